# SPDX-License-Identifier: Apache-2.0
"""U-Net with padded convolutions and 2x2 transposed convolutions, 1x3x256x256 to two classes."""
from graph import Net


def _double(net, x, out):
    for _ in range(2):
        x = net.relu(net.conv(x, out, 3))
    return x


def unet():
    net = Net("unet")
    x = _double(net, net.input("input", (1, 3, 256, 256)), 64)
    skips = []
    for out in (128, 256, 512, 1024):
        skips.append(x)
        x = _double(net, net.max_pool(x, 2, 2), out)
    for out in (512, 256, 128, 64):
        x = net.conv_transpose2(x, out)
        x = _double(net, net.concat([skips.pop(), x]), out)
    net.output(net.conv(x, 2), "output")
    return net
