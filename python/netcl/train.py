"""fit(model, data): a training loop with progress, evaluation and the report of `netcl train`."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterator

from ._netcl import Tensor, get_active_device
from ._netcl.train import (
    Classifier,
    EpochRecord,
    Evaluation,
    Point,
    evaluate_classifier,
    report_html,
)
from . import nn, optim
from .autograd import Tape, no_grad
from .data import DataLoader, Dataset
from .errors import ArgumentError, DtypeError, ShapeError
from .progress import Progress

__all__ = [
    "Classifier",
    "EpochRecord",
    "Evaluation",
    "History",
    "Point",
    "evaluate",
    "evaluate_classifier",
    "fit",
    "report_html",
]


@dataclass
class History:
    """What fit() did: a record per epoch, the curve of the loss, the evaluation at the end."""

    epochs: list[EpochRecord] = field(default_factory=list)
    curve: list[Point] = field(default_factory=list)
    evaluation: Evaluation | None = None
    device: str = ""

    @property
    def loss(self) -> float:
        """Of the last epoch."""
        return self.epochs[-1].loss if self.epochs else float("nan")

    @property
    def accuracy(self) -> float:
        """Of the test data if there were any, else of the last epoch."""
        if self.evaluation is not None:
            return self.evaluation.accuracy
        return self.epochs[-1].accuracy if self.epochs else float("nan")


def fit(
    model: nn.Module,
    data: Any,
    epochs: int = 1,
    *,
    test: Any = None,
    optimizer: optim.Optimizer | None = None,
    lr: float = 1e-3,
    loss: Callable[[Tensor, Tensor], Tensor] | None = None,
    batch_size: int = 64,
    seed: int = 0,
    report: Any = None,
    progress: bool | None = None,
) -> History:
    """Trains a model on batches (x, target), with Adam on the cross entropy unless told otherwise.

    `data` and `test` are loaders (anything that gives batches each time it is iterated), datasets,
    which get a DataLoader, or pairs of arrays (x, targets). Batches go where the model is. `report`
    is the path of an HTML page. `progress` shows a bar; None shows it in terminals and notebooks
    only.

    >>> import numpy as np
    >>> x = np.linspace(0, 1, 100, dtype=np.float32).reshape(100, 1)
    >>> history = fit(nn.Linear(1, 1), (x, 2 * x), epochs=20, lr=0.1, loss=nn.mse_loss, progress=False)
    >>> history.loss < 0.05
    True
    """
    _check_arguments(model, epochs, optimizer, loss)
    where = _queue_of(model)
    loader = _loader(data, batch_size, True, seed, where)
    test_loader = None if test is None else _loader(test, 4 * batch_size, False, seed, where)
    optimizer = optimizer or optim.Adam(model.parameters(), lr=lr)
    loss = loss or nn.cross_entropy
    active = get_active_device()
    history = History(device=active.device_name if active.queue == where else where.name)
    step = 0
    for epoch in range(1, epochs + 1):
        model.train()
        start, meter = time.perf_counter(), _Meter()
        with Progress(f"epoch {epoch}/{epochs}", _length(loader), progress) as bar:
            for batch in loader:
                x, target = _pair(batch, where)
                with Tape() as tape:
                    output = model(x)
                    value = loss(output, target)
                tape.backward(value, retain=False)
                optimizer.step()
                optimizer.zero_grad()
                step += 1
                meter.add(value.detach(), output.detach(), target)
                if step % 20 == 0:
                    history.curve.append(meter.point(step))
                bar.update(lambda: f"loss {meter.recent_loss():.4f}")
        if bar.done == 0:
            again = "" if epoch == 1 else "; a generator can be read once only: give a list or a DataLoader"
            raise ArgumentError(f"[fit] the data must have batches: there was none in epoch {epoch}{again}")
        record = (meter.loss(), meter.accuracy())
        seconds = time.perf_counter() - start
        tested = None
        if test_loader is not None:
            history.evaluation = evaluate(model, test_loader, loss=loss, classes=_classes(test))
            tested = (history.evaluation.loss, history.evaluation.accuracy)
        history.epochs.append(EpochRecord(epoch, *record, tested, seconds))
    if report is not None:
        _write_report(report, model, optimizer, history, epochs, test_loader)
    return history


def evaluate(
    model: nn.Module,
    data: Any,
    *,
    loss: Callable[[Tensor, Tensor], Tensor] | None = None,
    batch_size: int = 256,
    classes: list[str] | None = None,
) -> Evaluation:
    """Loss, accuracy and confusion of a classifier on batches (x, labels). Other models have a
    loss only."""
    import numpy as np

    loss = loss or nn.cross_entropy
    total, samples, answers, truths = 0.0, 0, [], []
    with _evaluating(model):
        where = _queue_of(model)
        for batch in _loader(data, batch_size, False, 0, where):
            x, target = _pair(batch, where)
            output = model(x)
            total += float(loss(output, target)) * len(x)
            samples += len(x)
            if _is_classification(output, target):
                answers.append(output.argmax(-1).to_host())
                truths.append(target.to_host())
    mean = total / samples if samples else float("nan")
    if not answers:
        return Evaluation(mean, float("nan"), samples, [], [])
    answer, truth = np.concatenate(answers).ravel(), np.concatenate(truths).ravel().astype(np.int64)
    count = max(int(answer.max()), int(truth.max())) + 1
    if classes is not None:
        count = max(count, len(classes))
    names = list(classes or []) + [str(i) for i in range(len(classes or []), count)]
    confusion = np.bincount(truth * count + answer, minlength=count * count)
    return Evaluation(mean, float((answer == truth).mean()), samples, names, confusion.tolist())


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """In evaluation mode and unseen by tapes; then as it was."""
    was_training = model.training
    model.eval()
    try:
        with no_grad():
            yield
    finally:
        model.train(was_training)


def _check_arguments(model: Any, epochs: Any, optimizer: Any, loss: Any) -> None:
    if not isinstance(model, nn.Module):
        raise DtypeError(f"[fit] the model must be a Module: {type(model).__name__}")
    if not isinstance(epochs, int):
        raise DtypeError(
            f"[fit] epochs must be a whole number: {type(epochs).__name__} (arrays go together: fit(model, (x, targets)))"
        )
    if optimizer is not None and not isinstance(optimizer, optim.Optimizer):
        raise DtypeError(
            f"[fit] the optimizer must be one, such as optim.SGD(model.parameters(), lr=0.1): {optimizer!r}"
        )
    if loss is not None and not callable(loss):
        raise DtypeError(f"[fit] the loss must be a function, such as nn.mse_loss: {loss!r}")


def _queue_of(model: nn.Module) -> Any:
    state = model.state_dict()
    return next(iter(state.values())).queue if state else get_active_device().queue


class _Pairs:
    """Arrays (x, targets) as a dataset."""

    def __init__(self, x: Any, targets: Any) -> None:
        if len(x) != len(targets):
            raise ShapeError(f"[fit] there must be a target for each x: {len(x)} and {len(targets)}")
        self.x, self.targets = x, targets

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple:
        return self.x[index], self.targets[index]


def _loader(data: Any, batch_size: int, shuffle: bool, seed: int, where: Any) -> Any:
    if isinstance(data, (tuple, list)) and len(data) == 2 and all(getattr(part, "ndim", 0) > 0 for part in data):
        x, targets = (part.to_host() if isinstance(part, Tensor) else part for part in data)
        data = _Pairs(x, targets)
    is_dataset = hasattr(data, "__getitem__") and not isinstance(data, DataLoader)
    return DataLoader(data, batch_size, shuffle, seed=seed, device=where) if is_dataset else data


def _pair(batch: Any, where: Any) -> tuple[Tensor, Tensor]:
    if isinstance(batch, (tuple, list)) and len(batch) == 2:
        x, target = (part if isinstance(part, Tensor) else Tensor(part, device=where) for part in batch)
        return x, target
    what = f"{len(batch)} parts" if isinstance(batch, (tuple, list)) else f"one {type(batch).__name__}"
    raise ArgumentError(f"[fit] a batch must be a pair (x, target): {what}")


def _length(loader: Any) -> int | None:
    return len(loader) if hasattr(loader, "__len__") else None


def _classes(data: Any) -> list[str] | None:
    names = getattr(data, "classes", None) or getattr(getattr(data, "dataset", None), "classes", None)
    return list(names) if names else None


def _is_classification(output: Tensor, target: Tensor) -> bool:
    return output.ndim >= 2 and output.shape[:-1] == target.shape and str(target.dtype).startswith("int")


class _Meter:
    """Sums that stay on the device until somebody looks at them."""

    def __init__(self) -> None:
        self._losses: list[Tensor] = []
        self._right: list[Tensor] = []
        self._answers = 0  # since the sums were last looked at
        self._total = [0.0, 0.0, 0, 0]  # loss, right answers, steps, answers
        self._recent = (float("nan"), float("nan"))

    def add(self, loss: Tensor, output: Tensor, target: Tensor) -> None:
        self._losses.append(loss)
        if _is_classification(output, target):
            self._right.append((output.argmax(-1) == target).sum())
            self._answers += target.size
        if len(self._losses) == 20:
            self._settle()

    def _settle(self) -> None:
        if not self._losses:
            return
        losses = [float(one) for one in self._losses]
        right = sum(float(one) for one in self._right)
        self._recent = (sum(losses) / len(losses), right / self._answers if self._answers else float("nan"))
        self._total[0] += sum(losses)
        self._total[1] += right
        self._total[2] += len(losses)
        self._total[3] += self._answers
        self._losses, self._right, self._answers = [], [], 0

    def recent_loss(self) -> float:
        return self._recent[0]

    def point(self, step: int) -> Point:
        self._settle()
        return Point(step, *self._recent)

    def loss(self) -> float:
        self._settle()
        return self._total[0] / self._total[2] if self._total[2] else float("nan")

    def accuracy(self) -> float:
        self._settle()
        return self._total[1] / self._total[3] if self._total[3] else float("nan")


def _sample_predictions(model: nn.Module, loader: Any, most: int = 24) -> list[tuple]:
    """(image, truth, answer, probability) of the first test images, where they are images of a
    dataset in its own order."""
    dataset = getattr(loader, "dataset", None)
    if not isinstance(dataset, Dataset) or loader.shuffle or len(dataset) == 0:
        return []
    image, _ = dataset[0]
    if str(image.dtype) != "uint8" or image.shape[0] not in (1, 3):
        return []
    with _evaluating(model):
        x, labels = next(iter(loader))
        probabilities = model(x).softmax(-1).to_host()[:most]
    truths = labels.to_host()
    return [
        (dataset[i][0], int(truths[i]), int(row.argmax()), float(row.max()))
        for i, row in enumerate(probabilities)
    ]


def _write_report(
    path: Any, model: nn.Module, optimizer: Any, history: History, epochs: int, test_loader: Any
) -> None:
    settings = [
        ("model", model.describe()),
        ("parameters", str(model.parameter_count())),
        ("optimiser", repr(optimizer)),
        ("epochs", str(epochs)),
        ("device", history.device),
    ]
    samples = _sample_predictions(model, test_loader) if history.evaluation and history.evaluation.classes else []
    page = report_html("Training", settings, history.curve, history.epochs, history.evaluation, samples)
    Path(path).write_text(page, encoding="utf-8")
