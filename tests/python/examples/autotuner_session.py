import netcl as nc
from netcl.profiling import Autotuner
ctx, queue = nc.device.manager.default()
autotuner = Autotuner(device=queue.device)
# Register all the kernels the model uses.
for name, prg, shape in model.kernels():
    autotuner.add(name, prg, shape)
# Run the tuner once.
autotuner.tune_all(queue)
# Save the results to a file for later re-use.
autotuner.save("autotune_results.json")
