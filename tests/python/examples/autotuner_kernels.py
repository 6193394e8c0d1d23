from netcl.profiling import Autotuner
autotuner = Autotuner(device=queue.device)
autotuner.add("matmul_small", prg.matmul_small, (256, 256))
autotuner.add("matmul_medium", prg.matmul_medium, (1024, 1024))
autotuner.add("matmul_large", prg.matmul_large, (4096, 4096))
autotuner.tune_all(queue)
