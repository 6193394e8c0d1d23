#!/usr/bin/env python3
"""Writes the seeds of tests/fuzz/corpus: small valid inputs of every target, made here byte by byte.

What `make fuzz` found besides them (names of 40 hex digits) is left alone."""

import gzip
import io
import json
import struct
import zipfile
import zlib
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus"


def write(target, name, data):
    directory = CORPUS / target
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def safetensors(header, data):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def npy(shape, descr, data, fortran=False, version=1):
    header = str({"descr": descr, "fortran_order": fortran, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + header + data


def npz(members, method):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=method)
    return out.getvalue()


def idx(kind, sizes, data):
    return struct.pack(">BBBB", 0, 0, kind, len(sizes)) + b"".join(struct.pack(">I", s) for s in sizes) + data


def png(width, height, color, channels):
    rows = b"".join(b"\0" + bytes((x * 7 + y) % 256 for x in range(width * channels)) for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


# A gray baseline picture of 8 x 8 pixels in one colour: the smallest tables that a decoder accepts.
def jpeg():
    def segment(marker, data):
        return b"\xff" + bytes([marker]) + struct.pack(">H", len(data) + 2) + data

    one_code = bytes([1] + [0] * 15)  # one code of one bit
    return (b"\xff\xd8" + segment(0xDB, b"\0" + bytes([1] * 64))
            + segment(0xC0, struct.pack(">BHHB", 8, 8, 8, 1) + bytes([1, 0x11, 0]))
            + segment(0xC4, b"\x00" + one_code + b"\x00") + segment(0xC4, b"\x10" + one_code + b"\x00")
            + segment(0xDA, bytes([1, 1, 0, 0, 63, 0])) + b"\x3f" + b"\xff\xd9")


def tuning_entry(kernel, **changes):
    return {"device": "d", "driver": "1", "kernel": kernel, "source_hash": "00ff", "global_size": [64, 2], "dtypes": "f32",
            "local_size": [8, 1], "parameters": {"VEC": 4}, "runtime_us": 1.5, "default_us": 2.0,
            "candidates": [{"local_size": [8, 1], "parameters": {"VEC": 4}, "runtime_us": None, "note": "n"}]} | changes


def layers(*all_of_them):
    return {"type": "Sequential", "layers": list(all_of_them)}


MODELS = {
    "mlp": layers({"type": "Flatten"}, {"type": "Linear", "in": 4, "out": 2},
                  {"type": "Activation", "function": "relu"}),
    "cnn": layers({"type": "Conv2d", "in": 1, "out": 2, "kernel": [3, 3], "padding": 1, "stride": 1, "bias": False},
                  {"type": "BatchNorm2d", "channels": 2, "eps": 1e-5}, {"type": "MaxPool2d", "window": 2},
                  {"type": "AdaptiveAvgPool2d", "size": 1}, {"type": "Dropout", "p": 0.5},
                  {"type": "ConvTranspose2d", "in": 2, "out": 1, "kernel": 2, "output_padding": 0}),
    "gpt": {"type": "GPT", "vocabulary": 5, "context": 4, "layers": 1, "heads": 2, "width": 4, "dropout": 0.1},
    "block": layers({"type": "TransformerBlock", "width": 4, "heads": 2, "hidden": 8, "causal": True},
                    {"type": "LayerNorm", "shape": [4]}, {"type": "RMSNorm", "size": 4},
                    {"type": "GroupNorm", "groups": 1, "channels": 4}, {"type": "Embedding", "rows": 3, "width": 4},
                    {"type": "MultiheadAttention", "width": 4, "heads": 2},
                    {"type": "ResidualBlock", "in": 2, "width": 2, "out": 4, "stride": 2},
                    {"type": "AvgPool2d", "window": [2, 2], "count_padding": False}, {"type": "BatchNorm1d", "channels": 2}),
}


def checkpoint(**changes):
    return {"version": 1, "netcl": "0.1.0", "model": MODELS["mlp"] | {"layers": MODELS["mlp"]["layers"][:2]},
            "model_name": "mlp", "classes": ["a", "b"], "image": [1, 2, 2], "mean": [0.5], "deviation": [0.25],
            "data": "data", "resize": [0, 0], "epochs": 3,
            "loader": {"seed": 1, "epoch": 1, "position": 4, "samples": 20, "batch": 2, "shuffle": True, "drop_last": False},
            "optimizer": {"name": "Adam", "steps": 7, "lr": 0.001, "schedule": "cosine", "parameter_steps": [7, 7]},
            "random": {"seed": 1, "draws": 2},
            "totals": {"loss": 1.5, "right": 3, "seen": 8, "seconds": 0.5, "window_seen": 8},
            "history": [{"epoch": 1, "loss": None, "accuracy": 0.5, "seconds": 1.0, "test_loss": 1.0, "test_accuracy": 0.5}],
            "curve": [[1, 2.0, 0.25], [2, None, 0.5]]} | changes


def cache_entry(description, metadata, binary, key=b"a" * 64):
    return (b"NETCLPRG" + struct.pack("<I", 1) + key + struct.pack("<QQQ", len(description), len(metadata), len(binary))
            + description + metadata + binary)


EXPRESSIONS = {
    "sum": "\0MUL(ADD(v0, v1), 2.0f)",
    "choice": "\0v0 > 0 && !(v1 <= 1e-3) ? -v0 / v1 : sqrt(fabs(v0)) + pow(v1, 2)",
    "logic": "\0((v0 == v1) | (v0 != 1)) ^ (v1 < inf) ? NAN : M_PI",
    "body": "\1const float t = exp(v0); int k = 7 / 2; return t / (1 + t) * k + (float)v1;",
    "source": "\2#define SQ(x) ((x) * (x))\n#define A 1 /* one */\nstatic inline float f(float a, const float b) {\n"
              "  const float t = SQ(a) + A;\n  return t * b;\n}\nconstant float k = 2;\n__kernel void q(__global float* x) {}\n",
    "functions": "\0" + " + ".join(f"{f}(v0)" for f in ("exp", "log", "sin", "cos", "tanh", "floor", "erf", "fabs")),
}


def main():
    entry = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
    write("safetensors", "one", safetensors({"a": entry, "__metadata__": {"k": "v"}}, bytes(24)))
    write("safetensors", "many", safetensors(
        {"x": {"dtype": "I64", "shape": [], "data_offsets": [0, 8]}, "y": {"dtype": "BOOL", "shape": [3], "data_offsets": [8, 11]},
         "z": {"dtype": "BF16", "shape": [0, 4], "data_offsets": [11, 11]}}, bytes(11)))
    write("safetensors", "none", safetensors({}, b""))

    write("npy", "float", npy((2, 3), "<f4", bytes(24)))
    write("npy", "fortran", npy((2, 2, 2), "<i8", bytes(range(64)), fortran=True))
    write("npy", "big", npy((3,), ">f8", bytes(24), version=2))
    write("npy", "scalar", npy((), "|b1", b"\1", version=3))

    members = {"a.npy": npy((2,), "<f4", bytes(8)), "b.npy": npy((1, 3), "|u1", b"abc")}
    write("npz", "stored", npz(members, zipfile.ZIP_STORED))
    write("npz", "deflated", npz(members, zipfile.ZIP_DEFLATED))

    plain = idx(0x08, [2, 3], b"abcdef")
    write("idx", "bytes", plain)
    write("idx", "shorts", idx(0x0B, [4], bytes(8)))
    write("idx", "floats", idx(0x0D, [2, 1, 2], bytes(16)))
    write("idx", "packed", gzip.compress(plain, mtime=0))
    write("idx", "cifar10", bytes(3073))

    write("image", "gray", png(5, 4, 0, 1))
    write("image", "rgba", png(3, 3, 6, 4))
    write("image", "jpeg", jpeg())

    document = {"format": "netcl-tuning", "version": 1}
    write("tuning", "two", json.dumps(document | {"entries": [tuning_entry("a"), tuning_entry("b", global_size=[])]}))
    write("tuning", "none", json.dumps(document | {"entries": []}))

    for name, model in MODELS.items():
        write("model", name, json.dumps(model))

    text = json.dumps(checkpoint())
    write("checkpoint", "text", "\1" + text)
    write("checkpoint", "first", "\1" + json.dumps(checkpoint(history=[], curve=[]) | {"loader": checkpoint()["loader"] | {"epoch": 0}}))
    write("checkpoint", "file", b"\0" + safetensors({"a": entry, "__metadata__": {"netcl.checkpoint": text}}, bytes(24)))

    write("cache_entry", "signed", b"\1" + cache_entry(b"k for d", b"{}", b"binary"))
    write("cache_entry", "empty", b"\1" + cache_entry(b"", b"", b""))
    write("cache_entry", "unsigned", b"\0" + cache_entry(b"k", b"[]", b"b") + bytes(32))

    write("indexing", "views", bytes([3, 8, 9, 10, 1, 4, 0, 8, 12, 1, 3, 7, 5, 6, 8, 7, 1, 7, 7, 6, 12, 5, 2, 6, 6, 7]))
    write("indexing", "indices", bytes([2, 9, 10, 0, 0, 6, 4, 6, 7, 8, 8, 0, 0, 1, 7, 3, 6, 7, 8, 1, 0, 5, 2, 7, 8, 8, 7]))
    write("indexing", "huge", bytes([2, 10, 10, 1, 7, 6, 0xF8, *[0x7F] + [0xFF] * 7, 0xF8, *[0x80] + [0] * 7, 7, 1, 5, 7]))
    write("indexing", "joins", bytes([3, 10, 9, 8, 0, 6, 2, 8, 8, 6, 6, 0, 7, 7, 0, 5, 3, 7, 7, 8, 8, 6, 6]))

    for name, expression in EXPRESSIONS.items():
        write("expression", name, expression)


if __name__ == "__main__":
    main()
