"""Datasets and loaders. Everything random is decided by seed, epoch and index, so the same batches
come with any number of workers."""

from __future__ import annotations

import queue
import threading
from typing import Any, Callable, Iterable, Iterator

from ._netcl import Tensor, get_active_device
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
    "shuffled",
    "to_float",
]


class DataLoader:
    """Batches of a dataset on a device, made ahead while the device computes: by `num_workers`
    threads for netcl's datasets, by one thread for those of Python (0: by the caller).

    The dataset is one of netcl's, anything with len() and [index], or an iterable. A sample is an
    array, a number, or a tuple of them; a batch has the same form with tensors. `transforms` change
    the first part of a sample. Iterating gives one epoch; each has an order of its own.

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
        if batch_size < 1 or prefetch < 1 or num_workers < 0:
            raise ValueError(
                "[DataLoader] batch_size and prefetch must be at least 1 and num_workers not "
                f"negative: {batch_size}, {prefetch}, {num_workers}"
            )
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.num_workers = num_workers
        self.prefetch = prefetch
        self.epoch = 0
        self._queue = _queue_of(device)
        self._transforms = list(transforms)
        self._collate = collate
        self._loader: _Loader | None = None
        self._has_length = hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")
        if shuffle and not self._has_length:
            raise TypeError("[DataLoader] only a dataset with len() and [index] can be shuffled")
        if isinstance(dataset, Dataset) and collate is None:
            self._loader = _Loader(
                dataset, batch_size, shuffle, seed, drop_last, num_workers, prefetch, self._queue, self._transforms
            )

    def __len__(self) -> int:
        count = len(self.dataset)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        epoch = self.epoch
        self.epoch += 1
        if self._loader is not None:
            self._loader.start_epoch(epoch)
            return iter(self._loader.next, None)
        return _ahead(self._batches(epoch), self.prefetch if self.num_workers else 0)

    def _samples(self, epoch: int) -> Iterator[Any]:
        if not self._has_length:
            yield from self.dataset
            return
        count = len(self.dataset)
        order = shuffled(count, self.seed, epoch) if self.shuffle else range(count)
        for index in order:
            yield self.dataset[index]

    def _batches(self, epoch: int) -> Iterator[Any]:
        batch: list = []
        for sample in self._samples(epoch):
            batch.append(self._transformed(sample))
            if len(batch) == self.batch_size:
                yield self._upload(batch)
                batch = []
        if batch and not self.drop_last:
            yield self._upload(batch)

    def _transformed(self, sample: Any) -> Any:
        if not self._transforms:
            return sample
        first, *rest = sample if isinstance(sample, (tuple, list)) else (sample,)
        for transform in self._transforms:
            if isinstance(transform, Transform):
                raise TypeError("[DataLoader] netcl's transforms are for netcl's datasets: use a function")
            first = transform(first)
        return (first, *rest) if isinstance(sample, (tuple, list)) else first

    def _upload(self, batch: list) -> Any:
        if self._collate is not None:
            return self._collate(batch)
        if isinstance(batch[0], (tuple, list)):
            return tuple(_stack([sample[i] for sample in batch], self._queue) for i in range(len(batch[0])))
        return _stack(batch, self._queue)


def _queue_of(device: Any) -> Any:
    if device is None:
        return get_active_device().queue
    if isinstance(device, str):
        from ._netcl import manager

        return manager.default(device).queue
    return getattr(device, "queue", device)


def _stack(values: list, where: Any) -> Tensor:
    import numpy as np  # not at import: building the package needs none

    arrays = [np.asarray(value) for value in values]
    if not hasattr(values[0], "dtype") and arrays[0].dtype == np.float64:
        arrays = [array.astype(np.float32) for array in arrays]
    return Tensor.from_host(where, np.stack(arrays))


_END = object()


def _ahead(items: Iterator[Any], depth: int) -> Iterator[Any]:
    """The same items, up to `depth` of them made ahead by a thread that ends with the iteration."""
    if depth == 0:
        yield from items
        return
    ready: queue.Queue = queue.Queue(depth)
    stop = threading.Event()

    def put(item: Any) -> bool:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def produce() -> None:
        try:
            for item in items:
                if not put((item, None)):
                    return
            put((_END, None))
        except BaseException as error:  # handed to the one who iterates
            put((_END, error))

    thread = threading.Thread(target=produce, name="netcl-loader", daemon=True)
    thread.start()
    try:
        while True:
            item, error = ready.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item
    finally:
        stop.set()
        thread.join()
