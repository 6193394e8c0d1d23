#!/usr/bin/env python3
"""Makes a small dataset: images of 12 x 12 with a bright stripe whose place is the class.

    striped_images.py folder images_to_train images_to_test classes
"""
import os
import random
import struct
import sys

folder, train, test, classes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
os.makedirs(folder, exist_ok=True)
for prefix, count, seed in (("train", train, 1), ("t10k", test, 2)):
    draw = random.Random(seed)
    images = bytearray(struct.pack(">IIII", 0x803, count, 12, 12))
    labels = bytearray(struct.pack(">II", 0x801, count))
    for i in range(count):
        labels.append(i % classes)
        for place in range(144):
            images.append(draw.randrange(60) + (150 if place % 12 // 3 == i % classes else 0))
    open(f"{folder}/{prefix}-images-idx3-ubyte", "wb").write(images)
    open(f"{folder}/{prefix}-labels-idx1-ubyte", "wb").write(labels)
