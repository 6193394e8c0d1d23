"""Files of netcl read by the safetensors package and NumPy, and theirs read by netcl.

NETCL_FILE_CONVERT names the executable that reads one file and writes another.
"""
import json
import os
import struct
import subprocess

import numpy as np
import pytest
import safetensors
from hypothesis import given, settings, strategies as st
from safetensors.numpy import load_file, save, save_file

PROGRAM = os.environ.get("NETCL_FILE_CONVERT")
if not PROGRAM:
    raise RuntimeError("NETCL_FILE_CONVERT must name the executable file_convert")

DTYPES = ["bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64"]
SHAPES = [(), (0,), (1,), (7,), (2, 3), (3, 0, 2), (4, 5, 6), (1, 2, 1, 3, 1)]


def convert(source, target, *options, code=0):
    run = subprocess.run([PROGRAM, str(source), str(target), *options], capture_output=True, text=True)
    assert run.returncode == code, run.stderr
    return run.stderr


def patterned(shape, dtype, seed=0):
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return np.asarray(random.random(shape) < 0.5)
    if dtype.startswith("float"):
        values = np.asarray(random.standard_normal(shape) * 100).astype(dtype)
        if values.size > 3:
            values.reshape(-1)[:3] = [np.nan, np.inf, -0.0]
        return values
    info = np.iinfo(dtype)
    return np.asarray(random.integers(info.min, info.max, shape, dtype=dtype, endpoint=True))


def arrays():
    return {f"{dtype}{shape}": patterned(shape, dtype, i)
            for i, dtype in enumerate(DTYPES) for shape in SHAPES}


def assert_same(actual, expected):
    assert set(actual) == set(expected)
    for name, array in expected.items():
        assert actual[name].shape == array.shape, name
        assert actual[name].dtype == array.dtype, name
        assert actual[name].tobytes() == np.ascontiguousarray(array).tobytes(), name


def test_safetensors_both_ways(tmp_path):
    expected = arrays()
    save_file(expected, tmp_path / "a.safetensors", metadata={"format": "np", "ä": "\"x\"\n"})
    convert(tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    assert_same(load_file(tmp_path / "b.safetensors"), expected)
    with safetensors.safe_open(tmp_path / "b.safetensors", framework="np") as file:
        assert file.metadata() == {"format": "np", "ä": "\"x\"\n"}
    header = (tmp_path / "b.safetensors").read_bytes()[:8]
    assert struct.unpack("<Q", header)[0] % 8 == 0


def test_safetensors_without_tensors(tmp_path):
    save_file({}, tmp_path / "a.safetensors")
    convert(tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    assert load_file(tmp_path / "b.safetensors") == {}


def test_bfloat16_keeps_its_bits(tmp_path):
    bits = np.arange(65536, dtype="uint16")
    header = json.dumps({"x": {"dtype": "BF16", "shape": [256, 256], "data_offsets": [0, 131072]}}).encode()
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bits.tobytes())
    convert(tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    [(name, view)] = safetensors.deserialize((tmp_path / "b.safetensors").read_bytes())
    assert name == "x" and view["dtype"] == "BF16" and view["shape"] == [256, 256]
    assert bytes(view["data"]) == bits.tobytes()


def test_the_package_agrees_about_damaged_headers(tmp_path):
    """What the package refuses, netcl refuses; netcl is stricter about unknown fields only."""
    good = save({"a": np.arange(4, dtype="float32"), "b": np.arange(3, dtype="uint8")})
    length = struct.unpack("<Q", good[:8])[0]
    header, data = json.loads(good[8:8 + length]), good[8 + length:]

    def changed(name, field, value):
        copy = json.loads(json.dumps(header))
        copy[name][field] = value
        return copy

    cases = [changed("a", "dtype", "F33"), changed("a", "shape", [5]), changed("a", "data_offsets", [0, 15]),
             changed("a", "data_offsets", [3, 19]), changed("b", "data_offsets", [0, 3]),
             changed("b", "data_offsets", [17, 20]), changed("a", "shape", [-4]), changed("a", "shape", [2**62, 4])]
    for case in cases:
        text = json.dumps(case).encode()
        content = struct.pack("<Q", len(text)) + text + data
        with pytest.raises(safetensors.SafetensorError):
            safetensors.deserialize(content)
        (tmp_path / "a.safetensors").write_bytes(content)
        assert "FormatError" in convert(tmp_path / "a.safetensors", tmp_path / "b.safetensors", code=3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_npy_both_ways(tmp_path, dtype):
    for shape in SHAPES:
        for order in "CF":
            expected = np.asarray(patterned(shape, dtype), order=order)
            np.save(tmp_path / "a.npy", expected)
            convert(tmp_path / "a.npy", tmp_path / "b.npy")
            assert_same({"x": np.load(tmp_path / "b.npy")}, {"x": expected})


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_versions(tmp_path, version):
    expected = patterned((3, 4), "float32")
    with open(tmp_path / "a.npy", "wb") as file:
        np.lib.format.write_array(file, expected, version=version)
    convert(tmp_path / "a.npy", tmp_path / "b.npy")
    assert_same({"x": np.load(tmp_path / "b.npy")}, {"x": expected})


def test_npy_of_netcl_is_numpys_own(tmp_path):
    np.save(tmp_path / "a.npy", patterned((3, 4), "int32"))
    convert(tmp_path / "a.npy", tmp_path / "b.npy")
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


@pytest.mark.parametrize("array, message", [
    (np.arange(3, dtype=">f4"), "big-endian"),
    (np.array([{}, 1], dtype=object), "Python objects"),
    (np.array(["a", "bc"]), "dtype must be one of"),
    (np.zeros(2, dtype=[("a", "f4"), ("b", "i4")]), "structured"),
    (np.zeros(2, dtype="complex64"), "dtype must be one of"),
])
def test_npy_that_netcl_does_not_read(tmp_path, array, message):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    assert message in convert(tmp_path / "a.npy", tmp_path / "b.npy", code=3)


def test_npz_both_ways(tmp_path):
    expected = {name.replace("(", "_").replace(")", "_"): array for name, array in arrays().items()}
    for write in (np.savez, np.savez_compressed):
        write(tmp_path / "a.npz", **expected)
        for options in ([], ["deflate"]):
            convert(tmp_path / "a.npz", tmp_path / "b.npz", *options)
            with np.load(tmp_path / "b.npz") as file:
                assert_same(dict(file), expected)
    np.savez(tmp_path / "a.npz")
    convert(tmp_path / "a.npz", tmp_path / "b.npz")
    with np.load(tmp_path / "b.npz") as file:
        assert len(file) == 0


NAMES = st.text(st.characters(blacklist_categories=["Cs"]), max_size=20).filter(lambda n: n != "__metadata__")


@settings(max_examples=30, deadline=None)
@given(names=st.lists(NAMES, unique=True, max_size=8), metadata=st.dictionaries(NAMES, NAMES, max_size=4),
       data=st.data())
def test_any_names_and_metadata(tmp_path_factory, names, metadata, data):
    directory = tmp_path_factory.mktemp("names")
    expected = {name: patterned(data.draw(st.sampled_from(SHAPES)), data.draw(st.sampled_from(DTYPES)))
                for name in names}
    save_file(expected, directory / "a.safetensors", metadata=metadata or None)
    convert(directory / "a.safetensors", directory / "b.safetensors")
    assert_same(load_file(directory / "b.safetensors"), expected)
    with safetensors.safe_open(directory / "b.safetensors", framework="np") as file:
        assert (file.metadata() or {}) == metadata
