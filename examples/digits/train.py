#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the digit reader of `make demo` and writes every data file of this folder.

    python3 -m venv .venv && .venv/bin/pip install numpy scikit-learn onnx
    .venv/bin/python examples/digits/train.py

The data are the 1,797 handwritten digits that scikit-learn ships (8x8 pixels, values 0..16). One fifth is held back and
never seen by the training. Everything is seeded and runs on one thread, so a second run on the same machine writes the
same bytes. Needs numpy, scikit-learn and onnx; takes some ten seconds.

    x [n,1,8,8] -> conv 3x3, 16 -> relu -> maxpool 2 -> conv 3x3, 32 -> relu -> maxpool 2 -> fc 10
"""
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy is loaded: the order of sums depends on the thread count

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

HERE = pathlib.Path(__file__).resolve().parent
SEED = 1
HELD_BACK = 360  # one fifth of 1,797
PICTURES = 10  # of the held-back part, one of each digit, also written as PGM
EPOCHS = 60
BATCH = 64
RATE = 4e-3  # at the start; falls to zero along half a cosine
DECAY = 1e-4  # share of each weight (not of the biases) that a step at the full rate takes away
CHANNELS = (16, 32)


# Patches of a zero-padded 3x3 neighbourhood: x [n,c,h,w] -> [n*h*w, c*9], columns in the order of w[k,c,r,s].
def patches(x):
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))  # [n,c,h,w,3,3]
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, c * 9)


def conv(x, weights, bias):
    n, _, h, w = x.shape
    columns = patches(x)
    y = columns @ weights.reshape(len(weights), -1).T + bias
    return y.reshape(n, h, w, -1).transpose(0, 3, 1, 2), columns


# dy [n,k,h,w] -> (dx [n,c,h,w], dweights [k,c,3,3], dbias [k])
def conv_backward(dy, columns, weights):
    n, k, h, w = dy.shape
    rows = dy.transpose(0, 2, 3, 1).reshape(-1, k)
    dweights = (rows.T @ columns).reshape(weights.shape)
    # The gradient of a correlation is the correlation with the filters turned by half a turn, inputs and outputs swapped.
    turned = weights[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
    dx, _ = conv(dy, turned, np.zeros(turned.shape[0], np.float32))
    return dx, dweights, rows.sum(0)


def pool(x):
    n, c, h, w = x.shape
    cells = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
    return cells.max(-1), cells.argmax(-1)


def pool_backward(dy, where):
    n, c, h, w = dy.shape
    cells = np.zeros((n, c, h, w, 4), np.float32)
    np.put_along_axis(cells, where[..., None], dy[..., None], -1)
    return cells.reshape(n, c, h, w, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h * 2, w * 2)


def start_weights(rng):
    c1, c2 = CHANNELS

    def normal(shape, fan_in):
        return (rng.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32)

    return {
        "conv1.weight": normal((c1, 1, 3, 3), 9),
        "conv1.bias": np.zeros(c1, np.float32),
        "conv2.weight": normal((c2, c1, 3, 3), 9 * c1),
        "conv2.bias": np.zeros(c2, np.float32),
        "fc.weight": normal((10, c2 * 4), c2 * 4),
        "fc.bias": np.zeros(10, np.float32),
    }


def forward(p, x):
    a1, columns1 = conv(x, p["conv1.weight"], p["conv1.bias"])
    b1, where1 = pool(np.maximum(a1, 0))
    a2, columns2 = conv(b1, p["conv2.weight"], p["conv2.bias"])
    b2, where2 = pool(np.maximum(a2, 0))
    flat = b2.reshape(len(x), -1)
    return flat @ p["fc.weight"].T + p["fc.bias"], (a1, columns1, where1, a2, columns2, where2, b2.shape, flat)


# Mean softmax cross entropy and its gradient for every parameter.
def gradients(p, x, labels):
    logits, (a1, columns1, where1, a2, columns2, where2, shape2, flat) = forward(p, x)
    powers = np.exp(logits - logits.max(1, keepdims=True))
    probability = powers / powers.sum(1, keepdims=True)
    loss = -np.log(probability[np.arange(len(x)), labels] + 1e-12).mean()
    d = probability
    d[np.arange(len(x)), labels] -= 1
    d /= len(x)
    g = {"fc.weight": d.T @ flat, "fc.bias": d.sum(0)}
    d = pool_backward((d @ p["fc.weight"]).reshape(shape2), where2) * (a2 > 0)
    d, g["conv2.weight"], g["conv2.bias"] = conv_backward(d, columns2, p["conv2.weight"])
    d = pool_backward(d, where1) * (a1 > 0)
    _, g["conv1.weight"], g["conv1.bias"] = conv_backward(d, columns1, p["conv1.weight"])
    return loss, g


# Moves each picture by -1, 0 or 1 pixel along both axes; what leaves the frame is lost.
def shifted(x, rng):
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    out = np.empty_like(x)
    for i, (dy, dx) in enumerate(rng.choice([0, 1, 1, 2], (len(x), 2))):
        out[i] = padded[i, :, dy : dy + 8, dx : dx + 8]
    return out


def train(x, labels):
    rng = np.random.default_rng(SEED)
    p = start_weights(rng)
    first = {k: np.zeros_like(v) for k, v in p.items()}  # Adam's running means of the gradient and of its square
    second = {k: np.zeros_like(v) for k, v in p.items()}
    steps = EPOCHS * (len(x) // BATCH)
    step = 0
    for epoch in range(EPOCHS):
        order = rng.permutation(len(x))
        losses = []
        for at in range(0, len(x) // BATCH * BATCH, BATCH):
            chosen = order[at : at + BATCH]
            loss, g = gradients(p, shifted(x[chosen], rng), labels[chosen])
            losses.append(loss)
            step += 1
            rate = np.float32(RATE * 0.5 * (1 + np.cos(np.pi * step / steps)))
            for k in p:
                first[k] += 0.1 * (g[k] - first[k])
                second[k] += 0.001 * (g[k] * g[k] - second[k])
                move = (first[k] / (1 - 0.9**step)) / (np.sqrt(second[k] / (1 - 0.999**step)) + 1e-8)
                if k.endswith("weight"):
                    move = move + DECAY * p[k] / RATE
                p[k] = (p[k] - rate * move).astype(np.float32)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1:3}: loss {np.mean(losses):.4f}")
    return p


def write_onnx(p, path):
    nodes = [
        helper.make_node("Conv", ["image", "conv1.weight", "conv1.bias"], ["conv1"], "conv1", kernel_shape=[3, 3], pads=[1] * 4),
        helper.make_node("Relu", ["conv1"], ["relu1"], "relu1"),
        helper.make_node("MaxPool", ["relu1"], ["pool1"], "pool1", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["pool1", "conv2.weight", "conv2.bias"], ["conv2"], "conv2", kernel_shape=[3, 3], pads=[1] * 4),
        helper.make_node("Relu", ["conv2"], ["relu2"], "relu2"),
        helper.make_node("MaxPool", ["relu2"], ["pool2"], "pool2", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["pool2"], ["flat"], "flatten", axis=1),
        helper.make_node("Gemm", ["flat", "fc.weight", "fc.bias"], ["logits"], "fc", transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 10])],
        [numpy_helper.from_array(v, k) for k, v in p.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], producer_name="tensorwright examples/digits")
    model.ir_version = 7  # the version that belongs to opset 13
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString(deterministic=True))


# pixels: [8,8] of 0..16, 16 is ink. A PGM with maxval 16 keeps the values; 16 shows as white.
def write_pgm(path, pixels):
    path.write_bytes(b"P5\n8 8\n16\n" + pixels.astype(np.uint8).tobytes())


def main():
    digits = load_digits()
    pixels = digits.images.astype(np.uint8)  # [1797,8,8]
    labels = digits.target.astype(np.uint8)
    order = np.random.default_rng(SEED).permutation(len(pixels))
    held_back, rest = order[:HELD_BACK], order[HELD_BACK:]
    image = (pixels / 16).astype(np.float32)[:, None]
    p = train(image[rest], labels[rest])
    for name, part in (("training", rest), ("held-back", held_back)):
        right = int((forward(p, image[part])[0].argmax(1) == labels[part]).sum())
        print(f"{name} part: {right} of {len(part)} right ({100 * right / len(part):.2f} %)")
    write_onnx(p, HERE / "digits.onnx")
    (HERE / "heldback_images.bin").write_bytes(pixels[held_back].tobytes())
    (HERE / "heldback_labels.bin").write_bytes(labels[held_back].tobytes())
    for digit in range(PICTURES):
        write_pgm(HERE / f"{digit}.pgm", pixels[held_back[np.flatnonzero(labels[held_back] == digit)[0]]])


if __name__ == "__main__":
    main()
