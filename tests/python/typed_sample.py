"""Read by a type checker, not run: lines that end in "wrong" must be reported, no others."""

import netcl as nc
from netcl import nn, optim
from netcl.autograd import Tape

x: nc.Tensor = nc.Tensor([1.0, 2.0], dtype="float32")
y: nc.Tensor = nc.relu(x + 1) @ x
size: int = x.size
model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
optimizer = optim.Adam(model.parameters(), lr=1e-3)
with Tape() as tape:
    loss = nn.cross_entropy(model(x), x)
tape.backward(loss)
optimizer.step()
handle = nc.device.manager.default("cpu")
context, queue = nc.device.manager.default()
with nc.device("cpu") as dev:
    name: str = dev.device_name
text: str = x.size  # wrong
nn.Linear("2", 3)  # wrong
nc.relu(3)  # wrong
x.no_such_method()  # wrong
nc.zeros(3)  # wrong
