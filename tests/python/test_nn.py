"""Models by subclassing, state, optimisers, training."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import netcl as nc
from netcl import nn, optim
from netcl.autograd import Tape


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.scale = nn.Parameter([2.0])
        self.register_buffer("seen", nc.Tensor.zeros(1))
        self.blocks = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 3)])
        self.name = "net"

    def forward(self, x, times=1):
        x = nc.relu(self.first(x)) * self.scale * times
        for block in self.blocks:
            x = block(x)
        return x


def test_parameters_are_found(on):
    net = Net()
    names = [name for name, _ in net.named_parameters()]
    assert sorted(names) == sorted(["scale", "first.weight", "first.bias", "blocks.0.weight", "blocks.0.bias",
                                    "blocks.1.weight", "blocks.1.bias"])
    assert len(net.parameters()) == 7 and net.parameter_count() == 1 + 40 + 72 + 27
    assert list(net.state_dict())[-1] == "seen" and isinstance(net.first, nn.Linear) and net.first is net.first
    assert net.name == "net" and "Linear" in repr(net) and "Net" in repr(net)
    assert isinstance(net, nn.Module) and isinstance(net.first, nn.Module)
    assert [name for name, _ in net.named_children()] == ["first", "blocks"]
    assert net(nc.Tensor.ones((2, 4)), times=2).shape == (2, 3)


def test_attributes_are_replaced(on):
    net = Net()
    net.first = nn.Linear(4, 8, bias=False)
    assert net.first.bias is None and "first.bias" not in net.state_dict()
    net.first = None
    assert net.first is None and "first.weight" not in net.state_dict()
    net.scale = nc.Tensor([3.0])  # no gradient: an ordinary attribute
    assert "scale" not in dict(net.named_parameters()) and net.scale.item() == 3
    del net.blocks
    assert not hasattr(net, "blocks")
    with pytest.raises(AttributeError, match="nothing"):
        net.nothing
    net.seen = nc.Tensor([5.0])
    assert net.state_dict()["seen"].item() == 5


def test_super_init_is_asked_for():
    class Forgot(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match="super"):
        Forgot()

    class Silent(nn.Module):
        pass

    with pytest.raises(Exception, match="forward"):
        Silent()(nc.Tensor([1.0]))


def test_state_round_trip(on, tmp_path):
    a, b = Net(), Net()
    x = nc.Tensor.random((5, 4), 1)
    assert a(x).tolist() != b(x).tolist()
    b.load_state_dict(a.state_dict())
    assert a(x).tolist() == b(x).tolist()
    with pytest.raises(ValueError, match="missing"):
        b.load_state_dict({})
    b.load_state_dict({"scale": np.float32([9])}, strict=False)
    assert b.scale.item() == 9
    nc.io.save_model(tmp_path / "net.safetensors", a)
    assert nc.io.load_model(tmp_path / "net.safetensors", b)(x).tolist() == a(x).tolist()


def test_safetensors_package_agrees(on, tmp_path):
    numpy_file = pytest.importorskip("safetensors.numpy")
    net = Net()
    nc.io.save_model(tmp_path / "ours.safetensors", net)
    arrays = numpy_file.load_file(tmp_path / "ours.safetensors")
    np.testing.assert_array_equal(arrays["first.weight"], net.first.weight.to_host())
    numpy_file.save_file({"x": np.arange(3, dtype=np.int64)}, tmp_path / "theirs.safetensors")
    assert nc.io.load_safetensors(tmp_path / "theirs.safetensors")["x"].tolist() == [0, 1, 2]


def test_python_and_cpp_layers_mix(on):
    class Twice(nn.Module):
        def forward(self, x):
            return x * 2

    model = nn.Sequential(nn.Linear(3, 3), Twice(), nn.ReLU(), nn.Sequential([nn.Linear(3, 2)]))
    assert model(nc.Tensor.ones((1, 3))).shape == (1, 2) and len(model) == 4
    assert isinstance(model[1], Twice) and "Twice" in repr(model)
    with pytest.raises(ValueError, match="layer 0"):
        model(nc.Tensor.ones((1, 4)))

    class Fails(nn.Module):
        def forward(self, x):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        nn.Sequential(Fails())(nc.Tensor([1.0]))


def test_modules_are_freed():
    net = Net()
    gone = weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None


def test_to_moves_everything(opencl):
    net = Net().to("cpu")
    assert {t.backend for t in net.state_dict().values()} == {"cpu"} and net.scale.requires_grad
    net.to(opencl)
    assert net.scale.backend == "cl"
    assert net.astype("float16").first.weight.dtype == "float16"


class Tied(nn.Module):
    """Tensors and modules that are shared, frozen, in evaluation mode, of both languages."""

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(5, 3), nn.Linear(3, 5)
        self.head.weight = self.table.weight
        self.body = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5).eval())
        self.again = self.body
        self.scale = self.same = nn.Parameter([1.0, 2.0])
        self.frozen = nn.Linear(1, 1).requires_grad_(False)
        self.register_buffer("seen", nc.Tensor([3.0]))
        self.blocks = nn.ModuleList([nn.TransformerBlock(4, 2), Net()])
        self.settings = {"list": [1]}

    def forward(self, x):
        return self.head(self.body(self.table(x)))


class Pair(nn.Sequential):
    def __init__(self, width):
        super().__init__(nn.Linear(width, width), nn.ReLU())
        self.width = width


def test_shared_parameters_are_trained_once(on):
    net = Tied()
    before = net.scale.tolist()
    assert "head.weight" in net.state_dict() and "head.weight" not in dict(net.named_parameters())
    optimizer = optim.SGD(net.parameters(), lr=1.0)
    with Tape() as tape:
        loss = net.same.sum()
    tape.backward(loss)
    optimizer.step()
    assert net.scale.tolist() == [value - 1 for value in before]
    with pytest.raises(ValueError, match="once"):
        optim.SGD([net.scale, net.same])
    net.to("cpu")
    assert net.head.weight.shares_storage(net.table.weight) and net.scale.shares_storage(net.same)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_copies(on, copied):
    net = Tied()
    other = copied(net)
    assert list(other.state_dict()) == list(net.state_dict())
    for name, tensor in net.state_dict().items():
        twin = other.state_dict()[name]
        assert twin.tolist() == tensor.tolist() and twin.queue == tensor.queue and not twin.shares_storage(tensor)
        assert twin.requires_grad == tensor.requires_grad
    assert len(other.parameters()) == len(net.parameters()) and other.again is other.body
    assert other.head.weight.shares_storage(other.table.weight) and other.scale.shares_storage(other.same)
    assert [m.training for _, m in other.named_modules()] == [m.training for _, m in net.named_modules()]
    assert other.settings == net.settings and other.settings is not net.settings
    net.eval(), other.eval()
    x = nc.Tensor([1, 4])
    assert other(x).tolist() == net(x).tolist()
    pair = copied(Pair(3).astype("float16"))
    assert type(pair) is Pair and pair.width == 3 and pair[0].weight.dtype == "float16"


def test_parameters_are_frozen_one_by_one(on):
    net = Net()
    for parameter in net.blocks.parameters():
        parameter.requires_grad = False
    net.first.bias.requires_grad_(False)
    assert [name for name, p in net.named_parameters() if p.requires_grad] == ["scale", "first.weight"]
    optimizer = optim.Adam(net.parameters(), lr=0.1)
    before = {name: tensor.tolist() for name, tensor in net.state_dict().items()}

    def changed():
        with Tape() as tape:
            loss = net(nc.Tensor.ones((2, 4))).sum()
        tape.backward(loss)
        optimizer.step()
        return sorted(name for name, tensor in net.state_dict().items() if tensor.tolist() != before[name])

    assert changed() == ["first.weight", "scale"]
    net.first.bias.requires_grad = True
    assert changed() == ["first.bias", "first.weight", "scale"]


def test_results_are_not_parameters(on):
    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            self.last = self.layer(x)
            return self.last

    net = Keeps()
    with Tape():
        net(nc.Tensor.ones((1, 2)))
    assert list(net.state_dict()) == ["layer.weight", "layer.bias"] and net.last.requires_grad


def test_what_layers_of_netcl_cannot_do_is_said():
    with pytest.raises(TypeError, match="Linear as an attribute"):
        class Mine(nn.Linear):
            def forward(self, x):
                return x

    for part in (nn.Parameter([1.0]), nn.Linear(1, 1)):
        with pytest.raises(ValueError, match="subclass of Module.*'extra'"):
            nn.Linear(1, 1).extra = part
    layer = nn.Linear(1, 1)
    layer.note, layer.weight = "kept", nn.Parameter([[2.0]])
    assert layer.note == "kept" and layer.weight.item() == 2


def test_train_and_eval():
    net = nn.Sequential(nn.Dropout(0.5), Net())
    assert net.training and not net.eval().training and not net[1].training and net.train().training


@pytest.mark.parametrize("make", [
    lambda p: optim.SGD(p, lr=0.05, momentum=0.9), lambda p: optim.Adam(p, lr=0.05), lambda p: optim.AdamW(p, 0.05),
    lambda p: optim.RMSProp(p, lr=0.01),
])
def test_optimisers_learn(on, make):
    nn.manual_seed(0)
    net = Net()
    optimizer = make(net.parameters())
    x, target = nc.Tensor.random((32, 4), 1), nc.Tensor(np.arange(32) % 3)
    losses = []
    for _ in range(15):
        with Tape() as tape:
            loss = nn.cross_entropy(net(x), target)
        tape.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss))
    assert losses[-1] < losses[0] and optimizer.steps == 15 and net.scale.grad is None


def test_optimiser_state_and_schedule():
    net = Net()
    groups = [{"params": net.first.parameters(), "lr_scale": 0.1}, {"params": net.blocks.parameters()}]
    optimizer = optim.Adam(groups, lr=0.1)
    schedule = optim.CosineSchedule(optimizer, total=10)
    for _ in range(10):
        schedule.step()
    assert optimizer.lr == pytest.approx(0, abs=1e-9)
    optimizer.lr = 0.5
    other = optim.Adam((p for p in net.first.parameters() + net.blocks.parameters()), lr=0.1)
    other.load_state_dict(optimizer.state_dict())
    assert other.lr == 0.5
    with pytest.raises(ValueError):
        optim.SGD(net.parameters(), lr=-1)


def test_losses(on):
    a, b = nc.Tensor([[1.0, 2.0]]), nc.Tensor([[0.0, 4.0]])
    assert nn.mse_loss(a, b).item() == pytest.approx(2.5)
    assert nn.l1_loss(a, b, reduction="sum").item() == pytest.approx(3)
    assert nn.huber_loss(a, b, delta=1.0, reduction="none").shape == (1, 2)
    logits, labels = nc.Tensor([[2.0, 1.0]]), nc.Tensor([0])
    want = np.log(np.exp(2) + np.exp(1)) - 2
    assert nn.cross_entropy(logits, labels).item() == pytest.approx(want, rel=1e-5)
    assert nn.cross_entropy(logits, nc.Tensor([[1.0, 0.0]])).item() == pytest.approx(want, rel=1e-5)
    with pytest.raises(ValueError, match="reduction"):
        nn.mse_loss(a, b, reduction="all")


def test_layers_of_a_small_network(on):
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Flatten(), nn.Linear(4 * 4 * 4, 3))
    assert model(nc.Tensor.ones((2, 1, 8, 8))).shape == (2, 3)
    again = nn.from_json(nn.to_json(model))
    again.load_state_dict(model.state_dict())
    x = nc.Tensor.random((2, 1, 8, 8), 5)
    np.testing.assert_allclose(again.eval()(x).to_host(), model.eval()(x).to_host(), rtol=1e-5)
    assert nn.TransformerBlock(8, 2)(nc.Tensor.ones((1, 3, 8))).shape == (1, 3, 8)
    assert nn.Embedding(5, 3)(nc.Tensor([1, 4])).shape == (2, 3)


def blobs(count, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, count)
    return [((rng.normal(size=4) * 0.3 + label).astype(np.float32), int(label)) for label in labels]


def test_fit(on, tmp_path, capsys):
    nn.manual_seed(1)
    history = nc.fit(Net(), blobs(300), epochs=4, test=blobs(60, 1), lr=0.02, batch_size=16,
                     report=tmp_path / "report.html", progress=True)
    assert history.accuracy > 0.9 and history.evaluation.samples == 60 and len(history.epochs) == 4
    assert history.epochs[0].loss > history.epochs[-1].loss and history.curve
    page = (tmp_path / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>") or "<html" in page
    assert "epoch 4/4" in capsys.readouterr().err


def test_fit_takes_arrays_and_goes_where_the_model_is(on):
    nn.manual_seed(2)
    x = np.random.default_rng(0).random((64, 3), np.float32)
    model = nn.Linear(3, 1)
    targets = x.sum(1, keepdims=True)
    with nc.device("cpu"):  # another one than the model's
        assert nc.fit(model, (x, targets), epochs=30, loss=nn.mse_loss, lr=0.05, batch_size=8).loss < 0.02
        assert nc.train.evaluate(model, (nc.Tensor(x), nc.Tensor(targets)), loss=nn.mse_loss).loss < 0.02
    once = ((x[i : i + 16], targets[i : i + 16]) for i in (0, 16))  # batches of arrays
    with pytest.raises(ValueError, match="epoch 2; a generator"):
        nc.fit(model, once, epochs=2, loss=nn.mse_loss)
    for wrong, kind, words in [
        (lambda: nc.fit(model, []), ValueError, "none in epoch 1$"), (lambda: nc.fit(model, x, targets), TypeError, "epochs"),
        (lambda: nc.fit(model, (x, targets[1:])), ValueError, "64 and 63"), (lambda: nc.fit(None, x), TypeError, "Module"),
        (lambda: nc.fit(model, (x, x), optimizer=optim.SGD), TypeError, "optimizer"),
        (lambda: nc.fit(model, (x, x), loss="mse"), TypeError, "mse_loss"),
    ]:
        with pytest.raises(kind, match=words):
            wrong()


def test_fit_of_a_regression(on):
    x = np.random.default_rng(0).random((64, 2), np.float32)
    data = list(zip(x, x.sum(1, keepdims=True)))
    model = nn.Linear(2, 1)
    history = nc.fit(model, nc.data.DataLoader(data, 8, shuffle=True), epochs=20, loss=nn.mse_loss, lr=0.05)
    assert history.loss < 0.02


def test_kernels_of_a_model_are_tuned(opencl):
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    tuner = nc.profiling.Autotuner(device=opencl.device)
    launches = model.kernels(nc.Tensor.ones((4, 8)))
    assert len(model.kernels(nc.Tensor.ones((4, 8)), only_free=False)) >= len(launches)
    for name, launch, shape in launches:
        assert launch.kernel.name and launch.global_size == shape
        tuner.add(name, launch, shape)
    del launches
    tuner.tune_all(opencl.queue)
    with nc.device("cpu"):
        assert nn.Linear(2, 2).kernels(nc.Tensor.ones((1, 2))) == []


def test_onnx(tmp_path):
    with nc.device("cpu"):
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        x = nc.Tensor.random((5, 4), 1)
        nc.io.save_onnx(tmp_path / "net.onnx", model, x)
        runtime = pytest.importorskip("onnxruntime")
        session = runtime.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
        (got,) = session.run(None, {"input": x.to_host()})
        np.testing.assert_allclose(got, model(x).to_host(), rtol=1e-4, atol=1e-6)
        with pytest.raises(ValueError, match="Net"):
            nc.io.save_onnx(tmp_path / "no.onnx", Net(), x)
