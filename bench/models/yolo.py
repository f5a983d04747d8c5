# SPDX-License-Identifier: Apache-2.0
"""A YOLOv8n-like detector, 1x3x640x640: C2f blocks, SPPF, three decoupled heads, distribution focal loss and boxes
decoded in the graph. Batch normalization folded; swish as Sigmoid and Mul."""
import numpy as np

from graph import Net, Tensor

CLASSES, BINS = 80, 16


def _conv(net, x, out, kernel=1, stride=1):
    return net.silu(net.conv(x, out, kernel, stride))


def _split(net, x, parts, axis=1):
    size = x.shape[axis] // parts
    shape = tuple(size if i == axis else d for i, d in enumerate(x.shape))
    return net.node("Split", [x, net.constant([size] * parts, "int64")], [shape] * parts, x.std, outputs=parts,
                    axis=axis)


def _c2f(net, x, out, count, shortcut):
    parts = _split(net, _conv(net, x, out), 2)
    for _ in range(count):
        y = _conv(net, _conv(net, parts[-1], out // 2, 3), out // 2, 3)
        parts.append(net.add(parts[-1], y) if shortcut else y)
    return _conv(net, net.concat(parts), out)


def _sppf(net, x):
    pools = [_conv(net, x, x.channels // 2)]
    for _ in range(3):
        pools.append(net.max_pool(pools[-1], 5, 1, 2))
    return _conv(net, net.concat(pools), x.channels)


def _upsample(net, x):
    n, c, h, w = x.shape
    scales = net.weight(np.array([1, 1, 2, 2], np.float32), "scales")
    return net.node("Resize", [x, "", scales], (n, c, 2 * h, 2 * w), x.std, mode="nearest",
                    coordinate_transformation_mode="asymmetric", nearest_mode="floor")


def _head(net, x, box_width, class_width):
    box = net.conv(_conv(net, _conv(net, x, box_width, 3), box_width, 3), 4 * BINS)
    classes = net.conv(_conv(net, _conv(net, x, class_width, 3), class_width, 3), CLASSES)
    y = net.concat([box, classes])
    n, c, h, w = y.shape
    return net.node("Reshape", [y, net.constant([1, c, -1], "int64")], (1, c, h * w), y.std)


def _decode(net, levels, sizes):
    y = net.concat(levels, axis=2)
    cells = y.shape[2]
    box, classes = net.node("Split", [y, net.constant([4 * BINS, CLASSES], "int64")],
                            [(1, 4 * BINS, cells), (1, CLASSES, cells)], y.std, outputs=2, axis=1)
    # The expected bin: softmax over the bins, then a 1x1 convolution with weights 0, 1, ..., 15.
    box = net.node("Reshape", [box, net.constant([1, 4, BINS, cells], "int64")], (1, 4, BINS, cells))
    box = net.node("Transpose", [box], (1, BINS, 4, cells), perm=[0, 2, 1, 3])
    box = net.node("Softmax", [box], (1, BINS, 4, cells), axis=1)
    bins = net.weight(np.arange(BINS, dtype=np.float32).reshape(1, BINS, 1, 1))
    box = net.node("Conv", [box, bins], (1, 1, 4, cells), kernel_shape=[1, 1], strides=[1, 1], pads=[0] * 4,
                   dilations=[1, 1], group=1)
    box = net.node("Reshape", [box, net.constant([1, 4, cells], "int64")], (1, 4, cells))

    def corner(begin):
        bounds = [net.constant([v], "int64") for v in (begin, begin + 2, 1, 1)]
        return net.node("Slice", [box, *bounds], (1, 2, cells))

    grid = [np.stack(np.meshgrid(np.arange(s) + 0.5, np.arange(s) + 0.5)).reshape(2, -1) for s in sizes]
    anchors = Tensor(net.weight(np.concatenate(grid, 1)[None].astype(np.float32), "anchors"), (1, 2, cells), 1.0)
    strides = np.concatenate([np.full(s * s, 640 // s) for s in sizes])[None, None]
    strides = Tensor(net.weight(strides.astype(np.float32), "strides"), (1, 1, cells), 1.0)
    low = net.node("Sub", [anchors, corner(0)], (1, 2, cells))
    high = net.node("Add", [anchors, corner(2)], (1, 2, cells))
    centre = net.node("Div", [net.node("Add", [low, high], (1, 2, cells)), net.constant(2.0)], (1, 2, cells))
    extent = net.node("Sub", [high, low], (1, 2, cells))
    boxes = net.node("Mul", [net.concat([centre, extent]), strides], (1, 4, cells))
    return net.concat([boxes, net.node("Sigmoid", [classes], classes.shape)])


def yolov8n():
    net = Net("yolov8n")
    x = _conv(net, net.input("images", (1, 3, 640, 640)), 16, 3, 2)
    x = _c2f(net, _conv(net, x, 32, 3, 2), 32, 1, True)
    p3 = _c2f(net, _conv(net, x, 64, 3, 2), 64, 2, True)
    p4 = _c2f(net, _conv(net, p3, 128, 3, 2), 128, 2, True)
    p5 = _sppf(net, _c2f(net, _conv(net, p4, 256, 3, 2), 256, 1, True))
    n4 = _c2f(net, net.concat([_upsample(net, p5), p4]), 128, 1, False)
    n3 = _c2f(net, net.concat([_upsample(net, n4), p3]), 64, 1, False)
    n4 = _c2f(net, net.concat([_conv(net, n3, 64, 3, 2), n4]), 128, 1, False)
    n5 = _c2f(net, net.concat([_conv(net, n4, 128, 3, 2), p5]), 256, 1, False)
    levels = [_head(net, p, 64, 80) for p in (n3, n4, n5)]
    net.output(_decode(net, levels, [p.shape[2] for p in (n3, n4, n5)]), "output0")
    return net
