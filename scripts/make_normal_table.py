#!/usr/bin/env python3
"""Writes src/tensor/kernels/normal_table.cl: cubics that approximate the normal quantile function.

The magnitude m (31 bits) of a random word stands for the upper tail probability (m + 1/2) / 2^32.
Pieces 0-7 are the values of m < 8; after them every octave [2^e, 2^(e+1)) has eight pieces. Each
piece has four coefficients c of c0 + t (c1 + t (c2 + t c3)), t in [0, 1) across the piece.
"""
from statistics import NormalDist

import numpy as np


def quantile(m: float) -> float:
    """The normal value whose upper tail probability is (m + 1/2) / 2^32."""
    return -NormalDist().inv_cdf((m + 0.5) / 2.0**32)


def piece(low: float, width: float) -> np.ndarray:
    """The cubic through the Chebyshev points of [low, low + width)."""
    t = 0.5 - 0.5 * np.cos(np.pi * (np.arange(4) + 0.5) / 4)
    values = np.array([quantile(low + width * x) for x in t])
    return np.linalg.solve(np.vander(t, 4, increasing=True), values)


def table() -> list[np.ndarray]:
    rows = [np.array([quantile(m), 0.0, 0.0, 0.0]) for m in range(8)]
    for exponent in range(3, 31):
        width = 2.0 ** (exponent - 3)
        rows += [piece((8 + sub) * width, width) for sub in range(8)]
    return rows


def main() -> None:
    rows = table()
    print("// The normal quantile function in pieces; written by scripts/make_normal_table.py.")
    print("// clang-format off")
    print(f"__constant float kNormalTable[{4 * len(rows)}] = {{")
    for row in rows:
        print("    " + " ".join(f"{float(np.float32(c)):.9e}f," for c in row))
    print("};")
    print("// clang-format on")


if __name__ == "__main__":
    main()
