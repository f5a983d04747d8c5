# SPDX-License-Identifier: Apache-2.0
"""ResNet-18 and -50 (stride in the 3x3, as torchvision has it). The batches of one share their weights.

ResNet-18: batch normalization folded, as PyTorch's TorchScript exporter writes it. ResNet-50: BatchNormalization nodes,
as PyTorch's newer exporter and MXNet write them.
"""
from graph import Net


def _conv_bn(net, x, out, kernel, stride, folded, std=1.0):
    if folded:
        return net.conv(x, out, kernel, stride, std=std)
    return net.batch_norm(net.conv(x, out, kernel, stride, bias=False), std=std)


def _resnet(name, blocks, bottleneck, folded, batch=1, size=224):
    net = Net(name)
    x = net.input("input", (batch, 3, size, size))
    x = net.relu(_conv_bn(net, x, 64, 7, 2, folded))
    x = net.max_pool(x, 3, 2, 1)
    for stage, count in enumerate(blocks):
        width = 64 << stage
        out = 4 * width if bottleneck else width
        for i in range(count):
            stride = 2 if stage > 0 and i == 0 else 1
            if bottleneck:
                y = net.relu(_conv_bn(net, x, width, 1, 1, folded))
                y = net.relu(_conv_bn(net, y, width, 3, stride, folded))
                y = _conv_bn(net, y, out, 1, 1, folded, 0.7)
            else:
                y = net.relu(_conv_bn(net, x, width, 3, stride, folded))
                y = _conv_bn(net, y, out, 3, 1, folded, 0.7)
            if x.channels != out or stride != 1:
                x = net.relu(net.add(y, _conv_bn(net, x, out, 1, stride, folded, 0.7)))
            else:
                x = net.relu(net.add(y, x), kept=0.85)  # x is a ReLU's result: no negative values
    net.output(net.classifier(x), "output")
    return net


def resnet18():
    return _resnet("resnet18", (2, 2, 2, 2), bottleneck=False, folded=True)


def resnet50(batch=1, size=224):
    return _resnet("resnet50", (3, 4, 6, 3), bottleneck=True, folded=False, batch=batch, size=size)
