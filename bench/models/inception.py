# SPDX-License-Identifier: Apache-2.0
"""Inception-v3 without its auxiliary head, 1x3x299x299: 1x7, 7x1, 1x3 and 3x1 filters, branches joined by Concat.

The 3x3 average pools count padding, which PyTorch exports as Pad and an AveragePool without padding.
"""
from graph import Net


def _block(net, x, out, kernel=1, stride=1, pad=0):
    return net.relu(net.conv(x, out, kernel, stride, pad))


def _pooled(net, x):
    n, c, h, w = x.shape
    pads = net.constant([0, 0, 1, 1, 0, 0, 1, 1], "int64")
    padded = net.node("Pad", [x, pads, net.constant(0.0)], (n, c, h + 2, w + 2), x.std, mode="constant")
    return net.average_pool(padded, 3, 1)


def _a(net, x, pool):
    b5 = _block(net, _block(net, x, 48), 64, 5, pad=2)
    b3 = _block(net, _block(net, _block(net, x, 64), 96, 3, pad=1), 96, 3, pad=1)
    return net.concat([_block(net, x, 64), b5, b3, _block(net, _pooled(net, x), pool)])


def _b(net, x):
    b3 = _block(net, _block(net, _block(net, x, 64), 96, 3, pad=1), 96, 3, 2)
    return net.concat([_block(net, x, 384, 3, 2), b3, net.max_pool(x, 3, 2)])


def _c(net, x, width):
    row, column = ((1, 7), (0, 3)), ((7, 1), (3, 0))

    def seven(y, out, shape):
        return _block(net, y, out, shape[0], pad=shape[1])

    short = seven(seven(_block(net, x, width), width, row), 192, column)
    long = _block(net, x, width)
    for out, shape in ((width, column), (width, row), (width, column), (192, row)):
        long = seven(long, out, shape)
    return net.concat([_block(net, x, 192), short, long, _block(net, _pooled(net, x), 192)])


def _d(net, x):
    b3 = _block(net, _block(net, x, 192), 320, 3, 2)
    b7 = _block(net, _block(net, _block(net, x, 192), 192, (1, 7), pad=(0, 3)), 192, (7, 1), pad=(3, 0))
    return net.concat([b3, _block(net, b7, 192, 3, 2), net.max_pool(x, 3, 2)])


def _e(net, x):
    def split(y):
        return net.concat([_block(net, y, 384, (1, 3), pad=(0, 1)), _block(net, y, 384, (3, 1), pad=(1, 0))])

    b3 = split(_block(net, x, 384))
    dbl = split(_block(net, _block(net, x, 448), 384, 3, pad=1))
    return net.concat([_block(net, x, 320), b3, dbl, _block(net, _pooled(net, x), 192)])


def inception_v3():
    net = Net("inception_v3")
    x = net.input("input", (1, 3, 299, 299))
    x = _block(net, x, 32, 3, 2)
    x = _block(net, x, 32, 3)
    x = _block(net, x, 64, 3, pad=1)
    x = net.max_pool(x, 3, 2)
    x = _block(net, x, 80)
    x = _block(net, x, 192, 3)
    x = net.max_pool(x, 3, 2)
    for pool in (32, 64, 64):
        x = _a(net, x, pool)
    x = _b(net, x)
    for width in (128, 160, 160, 192):
        x = _c(net, x, width)
    x = _d(net, x)
    x = _e(net, _e(net, x))
    net.output(net.classifier(x), "output")
    return net
