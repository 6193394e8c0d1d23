"""Datasets, loaders and files."""

from pathlib import Path

import numpy as np
import pytest

import netcl as nc
from netcl.data import ArrayDataset, DataLoader

DATA = Path(__file__).parents[2] / "data" / "mnist"


def test_array_dataset(on):
    images, labels = np.arange(40, dtype=np.uint8).reshape(10, 2, 2), np.arange(10) % 3
    dataset = ArrayDataset(images, labels, ["a", "b", "c"])
    image, label = dataset[-1]
    assert len(dataset) == 10 and image.shape == (1, 2, 2) and label == 0 and dataset.classes == ["a", "b", "c"]
    loader = DataLoader(dataset, 4, shuffle=True, seed=3, transforms=[nc.data.to_float()])
    first, second = list(loader), list(loader)
    assert len(first) == 3 == len(loader) and first[0][0].dtype == "float32" and first[0][0].queue == on.queue
    orders = [np.concatenate([y.to_host() for _, y in epoch]).tolist() for epoch in (first, second)]
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(labels.tolist())
    with pytest.raises(IndexError):
        dataset[10]


def test_python_datasets(on):
    class Squares:
        def __len__(self):
            return 7

        def __getitem__(self, index):
            return np.float32([index]), index * index

    loader = DataLoader(Squares(), 3, transforms=[lambda x: x + 1])
    x, y = zip(*loader)
    assert [len(one) for one in x] == [3, 3, 1] and np.concatenate([one.to_host() for one in x]).ravel().tolist() == \
        list(range(1, 8))
    assert y[2].tolist() == [36]
    assert len(list(DataLoader(Squares(), 3, drop_last=True))) == 2
    shuffled = DataLoader(Squares(), 7, shuffle=True, seed=1, num_workers=0)
    assert next(iter(shuffled))[1].tolist() == [i * i for i in nc.data.shuffled(7, 1, 0)]


def test_iterables(on):
    loader = DataLoader((float(i) for i in range(5)), 2)
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [4]]
    with pytest.raises(TypeError):
        DataLoader(iter([]), 2, shuffle=True)
    with pytest.raises(ValueError):
        DataLoader([1], 0)


def test_errors_of_a_dataset_pass_and_early_ends_are_fine(on):
    class Broken:
        def __len__(self):
            return 10

        def __getitem__(self, index):
            if index == 5:
                raise KeyError("sample 5")
            return np.zeros(2, np.float32)

    with pytest.raises(KeyError, match="sample 5"):
        list(DataLoader(Broken(), 2))
    for batch in DataLoader(Broken(), 2):
        break  # the thread ends with the loop
    assert batch.shape == (2, 2)


def test_mnist():
    dataset = nc.data.load_mnist(DATA, "test")
    image, label = dataset[0]
    assert image.shape == (1, 28, 28) and image.dtype == np.uint8 and label == dataset.labels[0]
    with pytest.raises(OSError):
        nc.data.load_mnist("/nowhere")
    with pytest.raises(ValueError, match="split"):
        nc.data.load_mnist(DATA, "all")


def test_files(tmp_path, on):
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.int64([1])}
    nc.io.save_npz(tmp_path / "x.npz", arrays)
    with np.load(tmp_path / "x.npz") as stored:
        np.testing.assert_array_equal(stored["a"], arrays["a"])
    assert nc.io.load_npz(tmp_path / "x.npz")["b"].tolist() == [1]
    nc.io.save_npy(str(tmp_path / "x.npy"), arrays["a"].T)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), arrays["a"].T)
    nc.io.save_safetensors(tmp_path / "x.safetensors", {"t": nc.Tensor([1.0, 2.0]), **arrays}, {"made": "here"})
    file = nc.io.SafetensorsFile(tmp_path / "x.safetensors")
    assert file.names() == ["a", "b", "t"] and "t" in file and file.metadata == {"made": "here"}
    assert file.shape("a") == (2, 3) and file.read("t").queue == on.queue
    nc.io.save_png(tmp_path / "x.png", np.zeros((4, 5, 3), np.uint8))
    assert nc.io.load_image(tmp_path / "x.png").shape == (4, 5, 3)
    (tmp_path / "bad").write_bytes(b"no such format")
    with pytest.raises(ValueError, match="bad"):
        nc.io.load_safetensors(tmp_path / "bad")
    with pytest.raises(OSError):
        nc.io.load_npy(tmp_path / "absent.npy")
