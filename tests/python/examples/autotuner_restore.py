autotuner = Autotuner(device=queue.device)
autotuner.load("autotune_results.json")
# Now the dispatch uses the cached sizes without re-tuning.
