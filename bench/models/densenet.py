# SPDX-License-Identifier: Apache-2.0
"""DenseNet-121, 1x3x224x224. Every layer starts with Concat of all earlier ones, BatchNormalization and Relu (which no
convolution stands before, so that no exporter folds it); the second normalization of a layer is folded."""
from graph import Net

GROWTH = 32


def densenet121():
    net = Net("densenet121")
    x = net.relu(net.conv(net.input("input", (1, 3, 224, 224)), 64, 7, 2))
    x = net.max_pool(x, 3, 2, 1)
    for block, layers in enumerate((6, 12, 24, 16)):
        features = [x]
        for _ in range(layers):
            y = net.concat(features) if len(features) > 1 else x
            y = net.relu(net.batch_norm(y))
            y = net.relu(net.conv(y, 4 * GROWTH))
            features.append(net.conv(y, GROWTH, 3, bias=False))
        x = net.relu(net.batch_norm(net.concat(features)))
        if block < 3:
            x = net.average_pool(net.conv(x, x.channels // 2, bias=False), 2, 2)
    net.output(net.classifier(x), "output")
    return net
