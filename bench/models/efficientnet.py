# SPDX-License-Identifier: Apache-2.0
"""EfficientNet-B0, 1x3x224x224: inverted residuals with squeeze and excitation; swish as Sigmoid and Mul."""
from graph import Net


def _squeeze_excite(net, x, squeezed):
    s = net.global_average_pool(x)
    s = net.silu(net.conv(s, squeezed))
    gate = net.conv(s, x.channels)
    gate = net.node("Sigmoid", [gate], gate.shape)
    return net.node("Mul", [gate, x], x.shape, x.std * 0.54)  # E[sigmoid(z)^2] = 0.29


def efficientnet_b0():
    net = Net("efficientnet_b0")
    x = net.silu(net.conv(net.input("input", (1, 3, 224, 224)), 32, 3, 2))
    for expand, kernel, out, count, stride in ((1, 3, 16, 1, 1), (6, 3, 24, 2, 2), (6, 5, 40, 2, 2), (6, 3, 80, 3, 2),
                                               (6, 5, 112, 3, 1), (6, 5, 192, 4, 2), (6, 3, 320, 1, 1)):
        for i in range(count):
            step = stride if i == 0 else 1
            hidden = expand * x.channels
            y = net.silu(net.conv(x, hidden)) if expand > 1 else x
            y = net.silu(net.conv(y, hidden, kernel, step, groups=hidden))
            y = _squeeze_excite(net, y, x.channels // 4)
            y = net.conv(y, out)
            x = net.add(y, x) if step == 1 and x.channels == out else y
    x = net.silu(net.conv(x, 1280))
    net.output(net.classifier(x), "output")
    return net
