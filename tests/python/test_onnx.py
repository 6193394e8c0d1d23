"""Models of netcl in onnxruntime: the same answers.

NETCL_ONNX_EXPORT names the executable that writes the models, NETCL_BIN the command-line tool.
"""
import glob
import gzip
import json
import os
import struct
import subprocess

import numpy as np
import pytest

onnxruntime = pytest.importorskip("onnxruntime")

EXPORT = os.environ["NETCL_ONNX_EXPORT"]
NETCL = os.environ["NETCL_BIN"]
# Sums in another order; deep networks add up more of it.
TOLERANCE = dict(rtol=2e-4, atol=2e-4)


def open_model(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    directory = tmp_path_factory.mktemp("onnx")
    run = subprocess.run([EXPORT, str(directory)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return directory


def test_every_layer_and_network_gives_the_same(models):
    files = sorted(glob.glob(str(models / "*.onnx")))
    assert len(files) >= 35
    for file in files:
        stem = file[: -len(".onnx")]
        x, y = np.load(stem + ".input.npy"), np.load(stem + ".output.npy")
        answer = open_model(file).run(["output"], {"input": x})[0]
        assert answer.dtype == np.float32 and answer.shape == y.shape, stem
        np.testing.assert_allclose(answer, y, err_msg=stem, **TOLERANCE)


def write_idx(path, array):
    sizes = b"".join(struct.pack(">I", n) for n in array.shape)
    with gzip.open(path, "wb") as out:
        out.write(bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes())


def test_a_trained_classifier_takes_pixels(tmp_path):
    random = np.random.default_rng(0)
    labels = (np.arange(120) % 3).astype(np.uint8)
    images = random.integers(0, 60, (120, 8, 8)).astype(np.uint8)
    for i, label in enumerate(labels):
        images[i, :, 2 * label : 2 * label + 2] += 150
    for split in ("train", "t10k"):
        write_idx(tmp_path / f"{split}-images-idx3-ubyte.gz", images)
        write_idx(tmp_path / f"{split}-labels-idx1-ubyte.gz", labels)
    run = lambda *words: subprocess.run([NETCL, *map(str, words)], capture_output=True, text=True, cwd=tmp_path)
    trained = run("train", "--data", ".", "--device", "cpu", "--epochs", 3, "--batch", 20, "--save", "toy.safetensors")
    assert trained.returncode == 0, trained.stderr
    exported = run("export", "toy.safetensors", "toy.onnx")
    assert exported.returncode == 0, exported.stderr
    model = open_model(tmp_path / "toy.onnx")
    logits = model.run(None, {"input": images[:, None]})[0]
    evaluation = json.loads(run("eval", "toy.safetensors", "--device", "cpu", "--json").stdout)
    assert np.mean(logits.argmax(1) == labels) == pytest.approx(evaluation["test_accuracy"])
    classes = json.loads(model.get_modelmeta().custom_metadata_map["classes"])
    assert classes == ["0", "1", "2"]
    assert run("export", "nothing.safetensors", "x.onnx").returncode == 1
