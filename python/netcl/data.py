"""Datasets and loaders. Everything random is decided by seed, epoch and index, so the same batches
come with any number of workers."""

from __future__ import annotations

import threading
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator

from ._netcl import DeviceHandle, Tensor, get_active_device, manager
from ._netcl import device as _Scope
from ._netcl.data import (
    ArrayDataset,
    Dataset,
    ImageFolder,
    Transform,
    _Loader,
    load_cifar,
    load_mnist,
    normalise,
    open_dataset,
    random_crop,
    random_horizontal_flip,
    shuffled,
    to_float,
)
from ._prefetch import Job, in_order

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "ArrayDataset",
    "DataLoader",
    "Dataset",
    "ImageFolder",
    "Transform",
    "load_cifar",
    "load_mnist",
    "normalise",
    "open_dataset",
    "random_crop",
    "random_horizontal_flip",
    "rng",
    "shuffled",
    "to_float",
]


_sample = threading.local()


def rng() -> np.random.Generator:
    """Random numbers for the sample that a loader is making, to be used by `__getitem__` and by
    transforms. The loader's seed, the epoch and the sample's index decide them, not the thread;
    elsewhere they are new each time.

    >>> def jitter(x):
    ...     return x + rng().normal(0, 0.1)
    >>> one, other = (DataLoader([1.0, 2.0, 3.0], 2, num_workers=n, transforms=[jitter]) for n in (0, 3))
    >>> [x.tolist() for x in one] == [x.tolist() for x in other]
    True
    """
    import numpy as np  # not at import: building the package needs none

    key = getattr(_sample, "key", None)
    if key is None:
        return np.random.default_rng()
    if _sample.generator is None:
        _sample.generator = np.random.default_rng(key)
    return _sample.generator


def _with_rng(key: Any, function: Callable, *args: Any) -> Any:
    """Calls a function in which rng() gives the numbers of a key."""
    before = getattr(_sample, "key", None), getattr(_sample, "generator", None)
    _sample.key, _sample.generator = key, None
    try:
        return function(*args)
    finally:
        _sample.key, _sample.generator = before


class DataLoader:
    """Batches of a dataset on a device, made ahead by `num_workers` threads while the device
    computes (0: by the caller), `prefetch` of them at most.

    The dataset is one of netcl's, anything with len() and [index], or an iterable. Threads call
    [index] at the same time; an iterable is read by one at a time, and what is done with its samples
    is shared out. A sample is an array, a number, or a tuple of them; a batch has the same form with
    tensors. `transforms` change the first part of a sample. Iterating gives one epoch; each has an
    order of its own. Batches come in the same order with any number of workers; an error of a
    dataset is raised in the place of its batch.

    >>> import numpy as np
    >>> pairs = [(np.full(3, i, np.float32), i) for i in range(5)]
    >>> [tuple(x.shape) for x, label in DataLoader(pairs, batch_size=2, device="cpu")]
    [(2, 3), (2, 3), (1, 3)]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 32,
        shuffle: bool = False,
        *,
        seed: int = 0,
        drop_last: bool = False,
        num_workers: int = 2,
        prefetch: int = 4,
        device: Any = None,
        transforms: Iterable[Any] = (),
        collate: Callable[[list], Any] | None = None,
    ) -> None:
        if batch_size < 1 or prefetch < 1 or num_workers < 0 or seed < 0:
            raise ValueError(
                "[DataLoader] batch_size and prefetch must be at least 1, num_workers and seed not "
                f"negative: {batch_size}, {prefetch}, {num_workers}, {seed}"
            )
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.num_workers = num_workers
        self.prefetch = prefetch
        self.epoch = 0
        self._handle, self._queue = _place_of(device)
        self._transforms = list(transforms)
        self._collate = collate
        self._is_native = isinstance(dataset, Dataset) and collate is None
        self._idle: list[_Loader] = []
        self._has_length = hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")
        if not hasattr(dataset, "__iter__") and not hasattr(dataset, "__getitem__"):
            raise TypeError(
                f"[DataLoader] it needs a dataset with len() and [index], or an iterable: {type(dataset).__name__}"
            )
        if shuffle and not self._has_length:
            raise TypeError("[DataLoader] only a dataset with len() and [index] can be shuffled")
        if self._is_native:
            self._idle.append(self._new_loader())

    def __len__(self) -> int:
        count = len(self.dataset)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __repr__(self) -> str:
        what = f"{len(self.dataset)} samples" if self._has_length else "an iterable"
        return f"DataLoader({what}, batch_size={self.batch_size}, shuffle={self.shuffle})"

    def __iter__(self) -> Iterator[Any]:
        epoch = self.epoch
        self.epoch += 1
        if self._is_native:
            return self._native_batches(epoch)
        jobs = self._jobs(epoch)
        if self.num_workers == 0:
            return (job(lambda: False) for job in jobs)
        return in_order(jobs, self.num_workers, self.prefetch)

    # ---- datasets of netcl
    def _new_loader(self) -> _Loader:
        return _Loader(
            self.dataset,
            self.batch_size,
            self.shuffle,
            self.seed,
            self.drop_last,
            self.num_workers,
            self.prefetch,
            self._queue,
            self._transforms,
        )

    def _native_batches(self, epoch: int) -> Iterator[Any]:
        """One loader per iteration that is under way: usually the same each time."""
        loader = self._idle.pop() if self._idle else self._new_loader()
        try:
            loader.start_epoch(epoch)
            while (batch := loader.next()) is not None:
                yield batch
        finally:
            self._idle.append(loader)

    # ---- datasets of Python
    def _jobs(self, epoch: int) -> Iterator[Job]:
        """What the threads take in turn: each job makes a batch."""
        if self._has_length:
            count = len(self.dataset)
            keys: Iterator[Any] = iter(shuffled(count, self.seed, epoch) if self.shuffle else range(count))
        else:
            keys = enumerate(self.dataset)
        while part := list(islice(keys, self.batch_size)):
            if len(part) < self.batch_size and self.drop_last:
                return
            yield partial(self._batch, epoch, part)

    def _batch(self, epoch: int, keys: list, is_stopped: Callable[[], bool]) -> Any:
        with _Scope(self._handle):  # for transforms and collate that make tensors
            samples = []
            for key in keys:
                if is_stopped():
                    return None
                index = key if self._has_length else key[0]
                samples.append(_with_rng((self.seed, epoch, index), self._one_sample, epoch, key))
            return self._upload(samples)

    def _one_sample(self, epoch: int, key: Any) -> Any:
        index, sample = (key, self.dataset[key]) if self._has_length else key
        if not self._transforms:
            return sample
        first, *rest = sample if isinstance(sample, (tuple, list)) else (sample,)
        for number, transform in enumerate(self._transforms):
            if isinstance(transform, Transform):
                first = transform(first, self.seed, epoch, index, number)
            else:
                first = transform(first)
        return (first, *rest) if isinstance(sample, (tuple, list)) else first

    def _upload(self, batch: list) -> Any:
        if self._collate is not None:
            return self._collate(batch)
        if isinstance(batch[0], (tuple, list)):
            return tuple(_stack([sample[i] for sample in batch], self._queue) for i in range(len(batch[0])))
        return _stack(batch, self._queue)


def _place_of(device: Any) -> tuple[DeviceHandle, Any]:
    """(the active device of the threads, the queue of the batches)"""
    if device is None:
        device = get_active_device()
    if isinstance(device, str):
        device = manager.default(device)
    if isinstance(device, DeviceHandle):
        return device, device.queue
    return get_active_device(), device  # a queue, netcl's or pyopencl's


def _stack(values: list, where: Any) -> Tensor:
    import numpy as np

    arrays = [np.asarray(value) for value in values]
    if not hasattr(values[0], "dtype") and arrays[0].dtype == np.float64:
        arrays = [array.astype(np.float32) for array in arrays]
    return Tensor.from_host(where, np.stack(arrays))
