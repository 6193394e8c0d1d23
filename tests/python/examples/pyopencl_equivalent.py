import netcl as nc
x = nc.Tensor.from_host(host_in)
y = nc.relu(x)
host_out = y.to_host()
