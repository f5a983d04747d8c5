# SPDX-License-Identifier: Apache-2.0
"""MobileNetV2, 1x3x224x224: inverted residuals; ReLU6 as Clip, batch normalization folded, as PyTorch exports."""
from graph import Net


def mobilenet_v2():
    net = Net("mobilenet_v2")
    x = net.relu6(net.conv(net.input("input", (1, 3, 224, 224)), 32, 3, 2))
    for expand, out, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                       (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(count):
            step = stride if i == 0 else 1
            hidden = expand * x.channels
            y = net.relu6(net.conv(x, hidden)) if expand > 1 else x
            y = net.relu6(net.conv(y, hidden, 3, step, groups=hidden))
            y = net.conv(y, out)
            x = net.add(x, y) if step == 1 and x.channels == out else y
    x = net.relu6(net.conv(x, 1280))
    net.output(net.classifier(x), "output")
    return net
