# SPDX-License-Identifier: Apache-2.0
"""The ways in which samples of TensorRT use plugins: a network with CoordConvAC, heads of SSD (of Caffe and of TensorFlow), Faster R-CNN and Mask
R-CNN. Each plan is loaded in another process; NumPy says what comes out."""

import numpy as np
import pytest
import tensorrt as trt

from small import QUIET
from standard_plugins import close, make
from standard_plugins_detection_test import grid, ssd
from standard_plugins_elsewhere import elsewhere
from standard_plugins_models import Model, plan_of, sigmoid, softmax
from standard_plugins_proposals_test import best, detections_of, moved, multilevel_anchors, multilevel_proposed, pyramid_anchors, regions_of_image, rows
from standard_plugins_regions_test import multilevel, pyramid

f = np.float32


def weights(random, *shape, scale=0.3):
    return (scale * random.standard_normal(shape)).astype(f)


def conv(x, w, b, pad=0):
    x = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    return np.einsum("nchwij,kcij->nkhw", windows, w, optimize=True) + b[:, None, None]


def relu(x):
    return np.maximum(x, 0)


def pooled_by_two(x):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))


class Network:
    """Layers added one by one, tensors in and out."""

    def __init__(self, batch=None):
        self.builder = trt.Builder(QUIET)
        self.builder.max_batch_size = batch or 1
        self.net = self.builder.create_network(0 if batch else 1)
        self.kept = []

    def input(self, name, *shape):
        return self.net.add_input(name, trt.float32, shape)

    def conv(self, x, w, b, pad=0):
        self.kept += [w, b]
        layer = self.net.add_convolution_nd(x, w.shape[0], w.shape[2:], w, b)
        layer.padding_nd = (pad, pad)
        return layer.get_output(0)

    def connected(self, x, w, b):
        self.kept += [w, b]
        return self.net.add_fully_connected(x, w.shape[0], w, b).get_output(0)

    def relu(self, x):
        return self.net.add_activation(x, trt.ActivationType.RELU).get_output(0)

    def softmax(self, x, axis):
        layer = self.net.add_softmax(x)
        layer.axes = 1 << axis
        return layer.get_output(0)

    def shuffled(self, x, dims, first=None):
        layer = self.net.add_shuffle(x)
        if first:
            layer.first_transpose = first
        layer.reshape_dims = dims
        return layer.get_output(0)

    def concat(self, tensors, axis):
        layer = self.net.add_concatenation(tensors)
        layer.axis = axis
        return layer.get_output(0)

    def plugin(self, name, inputs, **fields):
        layer = self.net.add_plugin_v2(inputs, make(name, **fields))
        outputs = [layer.get_output(i) for i in range(layer.num_outputs)]
        return outputs if len(outputs) > 1 else outputs[0]

    def plan(self, **outputs):
        for name, t in outputs.items():
            t.name = name
            self.net.mark_output(t)
        plan = self.builder.build_serialized_network(self.net, self.builder.create_builder_config())
        assert plan is not None
        return plan


def test_coord_conv():
    """The ONNX model of handwritten digits whose convolutions know where they are: the node CoordConvAC is found by its name."""
    random = np.random.default_rng(41)
    w = [weights(random, 6, 3, 5, 5), weights(random, 8, 8, 3, 3), weights(random, 8 * 49, 10, scale=0.1)]
    b = [weights(random, n) for n in (6, 8, 10)]
    model = Model()
    x = model.input("image", [2, 1, 28, 28])
    for k in (0, 1):
        side = w[k].shape[2] // 2
        x = model.node("Conv", model.node("CoordConvAC", x, plugin_version="1"), w[k], b[k], pads=[side] * 4)
        x = model.node("MaxPool", model.node("Relu", x), kernel_shape=[2, 2], strides=[2, 2])
    model.node("Add", model.node("MatMul", model.node("Flatten", x), w[2]), b[2], outputs=["digits"])
    model.output("digits")
    image = random.uniform(0, 1, (2, 1, 28, 28)).astype(f)
    got = elsewhere(plan_of(model), {"image": image})["digits"]

    def with_places(x):
        n, _, h, wd = x.shape
        at = np.stack(np.meshgrid(np.linspace(-1, 1, h), np.linspace(-1, 1, wd), indexing="ij"))
        return np.concatenate([x, np.broadcast_to(at, (n, *at.shape))], 1)

    x = image.astype(float)
    for k in (0, 1):
        x = pooled_by_two(relu(conv(with_places(x), w[k], b[k], w[k].shape[2] // 2)))
    close([got], [x.reshape(2, -1) @ w[2] + b[2]], 2e-5)


def test_ssd_of_caffe():
    """Implicit batch: a normalized map and a coarser one, priors of each, permuted heads joined, NMS_TRT."""
    random = np.random.default_rng(42)
    n, classes, channels, sizes = 3, 4, 6, ((6, 6), (3, 3))
    least, most, ratios, variance = [[12.0], [24.0]], [[24.0], [40.0]], [2.0], [0.1, 0.1, 0.2, 0.2]
    per_cell = 4  # two squares, the ratio and its reciprocal
    loc_w = [weights(random, 4 * per_cell, channels, 3, 3, scale=0.15) for _ in range(2)]
    conf_w = [weights(random, classes * per_cell, channels, 3, 3) for _ in range(2)]
    b4, bc = np.zeros(4 * per_cell, f), np.zeros(classes * per_cell, f)
    scale = [2.0 + 0.25 * i for i in range(channels)]
    net = Network(n)
    data = net.input("data", 3, 48, 48)
    maps = [net.input(f"map{i}", channels, *s) for i, s in enumerate(sizes)]
    maps[0] = net.plugin("Normalize_TRT", [maps[0]], weights=scale, acrossSpatial=0, channelShared=0, nbWeights=channels, eps=1e-10)
    flat = lambda x, count: net.shuffled(x, (count, 1, 1), (1, 2, 0))
    locations, confidences, priors = [], [], []
    for i, (h, w) in enumerate(sizes):
        locations.append(flat(net.conv(maps[i], loc_w[i], b4, 1), h * w * per_cell * 4))
        confidences.append(flat(net.conv(maps[i], conf_w[i], bc, 1), h * w * per_cell * classes))
        priors.append(net.plugin("PriorBox_TRT", [maps[i], data], minSize=least[i], maxSize=most[i], aspectRatios=ratios, flip=1, clip=0, variance=variance,
                                 imgH=0, imgW=0, stepH=0.0, stepW=0.0, offset=0.5))
    count = sum(h * w for h, w in sizes) * per_cell
    confidence = net.shuffled(net.softmax(net.shuffled(net.concat(confidences, 0), (count, classes)), 1), (count * classes, 1, 1))
    found, counts = net.plugin(
        "NMS_TRT", [net.concat(locations, 0), confidence, net.concat(priors, 1)], shareLocation=1, varianceEncodedInTarget=0, backgroundLabelId=0,
        numClasses=classes, topK=60, keepTopK=30, confidenceThreshold=0.35, nmsThreshold=0.45, inputOrder=[0, 1, 2], confSigmoid=0, isNormalized=1, codeType=1,
    )
    arrays = {"data": np.zeros((n, 3, 48, 48), f), **{f"map{i}": random.standard_normal((n, channels, *s)).astype(f) for i, s in enumerate(sizes)}}
    got = elsewhere(net.plan(found=found, counts=counts), arrays)
    v = [arrays[f"map{i}"].astype(float) for i in range(2)]
    v[0] = v[0] / np.sqrt((v[0] ** 2).sum(1, keepdims=True) + 1e-10) * np.array(scale)[:, None, None]
    permuted = lambda x: x.transpose(0, 2, 3, 1).reshape(n, -1)
    location = np.concatenate([permuted(conv(v[i], loc_w[i], b4, 1)) for i in range(2)], 1)
    confidence = softmax(np.concatenate([permuted(conv(v[i], conf_w[i], bc, 1)) for i in range(2)], 1).reshape(n, count, classes))
    boxes = []
    for i, (h, w) in enumerate(sizes):
        shapes = [(least[i][0],) * 2, (np.sqrt(least[i][0] * most[i][0]),) * 2]
        shapes += [(least[i][0] * np.sqrt(a), least[i][0] / np.sqrt(a)) for a in (2.0, 0.5)]
        for r in range(h):
            for c in range(w):
                x, y = (c + 0.5) * 48 / w, (r + 0.5) * 48 / h
                boxes += [k / 48 for a, b in shapes for k in (x - a / 2, y - b / 2, x + a / 2, y + b / 2)]
    priors = np.array([boxes, variance * count])[None, :, :, None]
    wanted, wanted_counts = ssd(
        location[..., None, None], confidence.reshape(n, -1, 1, 1), priors, classes=classes, share=1, code=1, encoded=0, sigmoid=0, keep=30, normalized=True,
        background=0, top=60, least=0.35, overlap=0.45,
    )
    assert wanted_counts.min() > 3 and (got["counts"].view(np.int32) == wanted_counts).all()
    close([got["found"]], [wanted], 5e-5)


def test_ssd_of_tensorflow():
    """As UFF models have it: GridAnchor_TRT for all maps, FlattenConcat_TRT of the heads, logits into NMS_TRT."""
    random = np.random.default_rng(43)
    n, classes, channels, sizes = 2, 3, 5, (6, 3)
    ratios, variance = [1.0, 2.0, 0.5], [0.1, 0.1, 0.2, 0.2]
    per_cell = [3, 4]
    loc_w = [weights(random, 4 * k, channels, 1, 1) for k in per_cell]
    conf_w = [weights(random, classes * k, channels, 1, 1) for k in per_cell]
    net = Network(n)
    maps = [net.input(f"map{i}", channels, s, s) for i, s in enumerate(sizes)]
    head = lambda x, w: net.shuffled(net.conv(x, w, np.zeros(len(w), f)), (0, 0, 0), (1, 2, 0))  # channels last
    locations = net.plugin("FlattenConcat_TRT", [head(x, w) for x, w in zip(maps, loc_w)], axis=1, ignoreBatch=0)
    confidences = net.plugin("FlattenConcat_TRT", [head(x, w) for x, w in zip(maps, conf_w)], axis=1, ignoreBatch=0)
    anchors = net.plugin("GridAnchor_TRT", [], minSize=0.2, maxSize=0.9, aspectRatios=ratios, featureMapShapes=list(sizes), variance=variance, numLayers=2)
    found, counts = net.plugin(
        "NMS_TRT", [locations, net.concat(anchors, 1), confidences], shareLocation=1, varianceEncodedInTarget=0, backgroundLabelId=0, numClasses=classes,
        topK=50, keepTopK=20, confidenceThreshold=0.5, nmsThreshold=0.6, inputOrder=[0, 2, 1], confSigmoid=1, isNormalized=1, codeType=3,
    )
    arrays = {f"map{i}": random.standard_normal((n, channels, s, s)).astype(f) for i, s in enumerate(sizes)}
    got = elsewhere(net.plan(found=found, counts=counts), arrays)
    flat = lambda w: np.concatenate([conv(arrays[f"map{i}"].astype(float), w[i], np.zeros(len(w[i]))).transpose(0, 2, 3, 1).reshape(n, -1) for i in range(2)], 1)[..., None, None]
    priors = np.concatenate(grid([(s, s) for s in sizes], ratios, 0.2, 0.9, variance), 2)
    wanted, wanted_counts = ssd(
        flat(loc_w), flat(conf_w), priors, classes=classes, share=1, code=3, encoded=0, sigmoid=1, keep=20, normalized=True, background=0, top=50, least=0.5, overlap=0.6,
    )
    assert wanted_counts.min() > 3 and (got["counts"].view(np.int32) == wanted_counts).all()
    close([got["found"]], [wanted], 5e-5)


def test_faster_rcnn():
    """Caffe's, implicit batch: scores through a softmax over two, RPROI_TRT, fully connected layers on the regions of each image."""
    random = np.random.default_rng(44)
    n, channels, h, w, stride, keep, classes, bins = 2, 5, 5, 7, 16, 12, 3, 2
    ratios, scales = [0.5, 1.0, 2.0], [1.0, 2.0]
    count = len(ratios) * len(scales)
    rpn = weights(random, 8, channels, 3, 3), weights(random, 8)
    score_w, move_w = weights(random, 2 * count, 8, 1, 1), weights(random, 4 * count, 8, 1, 1, scale=0.05)
    inner = weights(random, 10, channels * bins * bins), weights(random, 10)
    kind, side = (weights(random, classes, 10), weights(random, classes)), (weights(random, 4 * classes, 10), weights(random, 4 * classes))
    net = Network(n)
    x, info = net.input("features", channels, h, w), net.input("im_info", 1, 1, 3)
    hidden = net.relu(net.conv(x, *rpn, 1))
    scores = net.conv(hidden, score_w, np.zeros(2 * count, f))
    scores = net.shuffled(net.softmax(net.shuffled(scores, (2, count * h, w)), 0), (2 * count, h, w))
    moves = net.conv(hidden, move_w, np.zeros(4 * count, f))
    fields = dict(poolingH=bins, poolingW=bins, featureStride=stride, preNmsTop=100, nmsMaxOut=keep, anchorsRatioCount=len(ratios), anchorsScaleCount=len(scales),
                  iouThreshold=0.7, minBoxSize=16.0, spatialScale=1 / stride, anchorsRatios=ratios, anchorsScales=scales)
    rois, regions = net.plugin("RPROI_TRT", [scores, moves, x, info], **fields)
    flat = net.relu(net.connected(regions, *inner))
    kinds, sides = net.softmax(net.connected(flat, *kind), 1), net.connected(flat, *side)
    arrays = {"features": random.standard_normal((n, channels, h, w)).astype(f), "im_info": np.array([[[[80, 112, 1]]], [[[70, 100, 1.25]]]], f)}
    got = elsewhere(net.plan(rois=rois, kinds=kinds, sides=sides), arrays)
    v = arrays["features"].astype(float)
    hidden = relu(conv(v, *rpn, 1))
    s = softmax(conv(hidden, score_w, np.zeros(2 * count)).reshape(n, 2, count, h * w), 1)[:, 1]
    d = conv(hidden, move_w, np.zeros(4 * count)).reshape(n, count, 4, h * w).transpose(0, 1, 3, 2)
    wanted, parts = regions_of_image(s, d, arrays["im_info"], v, ratios, scales, stride, keep, bins)
    flat = relu(np.array(parts).reshape(n, keep, -1) @ inner[0].T + inner[1])
    assert (np.array(wanted)[:, :5].max(-1) > 0).all()
    close([got["rois"]], [np.array(wanted)[:, None]], 1e-4)
    close([got["kinds"].reshape(n, keep, -1), got["sides"].reshape(n, keep, -1)], [softmax(flat @ kind[0].T + kind[1]), flat @ side[0].T + side[1]], 5e-5)


@pytest.mark.parametrize("implicit", [False, True])
def test_mask_rcnn(implicit):
    """A pyramid grown by ResizeNearest_TRT, proposals, their regions, a head, detections, and masks of these."""
    random = np.random.default_rng(45)
    n, side, channels, classes, keep, found = 2, 64, 4, 3, 12, 6
    anchors = pyramid_anchors(side, side)
    net = Network(n if implicit else None)
    batch = () if implicit else (n,)
    top = net.input("top", *batch, channels, 2, 2)
    objects, deltas = net.input("objects", *batch, len(anchors), 2, 1), net.input("deltas", *batch, len(anchors), 4, 1)
    levels = [top]
    for _ in range(3):
        levels.insert(0, net.plugin("ResizeNearest_TRT", [levels[0]], scale=2.0))
    lateral = weights(random, channels, channels, 3, 3)
    levels = [net.relu(net.conv(x, lateral, np.zeros(channels, f), 1)) for x in levels]
    rois = net.plugin("ProposalLayer_TRT", [net.softmax(objects, len(batch) + 1), deltas], prenms_topk=200, keep_topk=keep, iou_threshold=0.7, image_size=[3, side, side])
    fields = dict(fpn_scale=56, image_size=[side, side], roi_coords_absolute=0, roi_coords_swap=1, roi_coords_transform=-1, sampling_ratio=1)
    regions = net.plugin("PyramidROIAlign_TRT", [rois, *levels], pooled_size=3, **fields)
    kind_b = np.array([-1, 0.2, 0.3], f)
    kind_w, side_w = weights(random, classes, channels * 9), weights(random, 4 * classes, channels * 9, scale=0.1)
    flat = net.shuffled(regions, (*batch, keep, channels * 9, 1, 1))
    kinds = net.softmax(net.connected(flat, kind_w, kind_b), len(batch) + 1)
    sides = net.connected(flat, side_w, np.zeros(4 * classes, f))
    detections = net.plugin("DetectionLayer_TRT", [sides, kinds, rois], num_classes=classes, keep_topk=found, score_threshold=0.3, iou_threshold=0.5)
    boxes = net.plugin("SpecialSlice_TRT", [detections])
    masks = net.plugin("PyramidROIAlign_TRT", [boxes, *levels], pooled_size=4, **fields)
    arrays = {
        "top": random.standard_normal((n, channels, 2, 2)).astype(f),
        "objects": random.standard_normal((n, len(anchors), 2, 1)).astype(f),
        "deltas": random.uniform(-1, 1, (n, len(anchors), 4, 1)).astype(f),
    }
    got = elsewhere(net.plan(detections=detections, masks=masks), arrays)
    v = arrays["top"].astype(float)
    maps = [v]
    for _ in range(3):
        maps.insert(0, maps[0].repeat(2, 2).repeat(2, 3))
    maps = [relu(conv(x, lateral, np.zeros(channels), 1)) for x in maps]
    scores = softmax(arrays["objects"][..., 0].astype(float))[..., 1]
    proposed = []
    for s, d in zip(scores, arrays["deltas"][..., 0]):
        moves = np.clip(moved(anchors, d, (0.1, 0.1, 0.2, 0.2)), 0, 1)
        proposed.append(rows(moves, best(moves, np.where(s > 0.01, s, -np.inf), 200, keep, 0.7), keep, (0, 0, 0, 0)))
    proposed = np.array(proposed)
    regions = lambda boxes, bins: pyramid(boxes, maps, bins, (side, side), 56, absolute=0, swap=1, transform=-1, ratio=1)
    flat = regions(proposed, 3).reshape(n, keep, -1)
    kinds, sides = softmax(flat @ kind_w.T + kind_b), flat @ side_w.T
    wanted = detections_of(kinds, sides, proposed, found)
    assert (wanted[:, 0, 4] > 0).all()
    close([got["detections"]], [wanted], 1e-4)
    close([got["masks"]], [regions(wanted[..., :4], 4)], 1e-3)


@pytest.mark.parametrize("implicit", [False, True])
def test_mask_rcnn_of_tao(implicit):
    """Five levels: proposals of each, regions, a head, detections in pixels, and masks of these."""
    random = np.random.default_rng(46)
    n, h, w, channels, classes, keep, found = 2, 64, 128, 4, 3, 14, 6
    anchors = [multilevel_anchors(h, w, level) for level in range(5)]
    net = Network(n if implicit else None)
    batch = () if implicit else (n,)
    inputs, arrays = [], {}
    for level, a in enumerate(anchors):
        arrays[f"moves{level}"] = random.uniform(-0.5, 0.5, (n, len(a), 4, 1)).astype(f)
        arrays[f"scores{level}"] = random.uniform(0, 1, (n, len(a), 1, 1)).astype(f)
        inputs += [net.input(f"moves{level}", *batch, len(a), 4, 1), net.input(f"scores{level}", *batch, len(a), 1, 1)]
    levels = []
    for level in range(5):
        arrays[f"p{level}"] = random.standard_normal((n, channels, h >> 2 + level, w >> 2 + level)).astype(f)
        levels.append(net.input(f"p{level}", *batch, *arrays[f"p{level}"].shape[1:]))
    image = [3, h, w]
    rois = net.plugin("MultilevelProposeROI_TRT", inputs, prenms_topk=50, keep_topk=keep, fg_threshold=0.1, iou_threshold=0.7, image_size=image)
    regions = net.plugin("MultilevelCropAndResize_TRT", [rois, *levels], pooled_size=3, image_size=image)
    kind_w, side_w = weights(random, classes, channels * 9), weights(random, 4 * classes, channels * 9, scale=0.1)
    flat = net.shuffled(regions, (*batch, keep, channels * 9, 1, 1))
    kinds = net.softmax(net.connected(flat, kind_w, np.zeros(classes, f)), len(batch) + 1)
    sides = net.connected(flat, side_w, np.zeros(4 * classes, f))
    detections = net.plugin("GenerateDetection_TRT", [sides, kinds, rois], num_classes=classes, keep_topk=found, score_threshold=0.2, iou_threshold=0.5, image_size=image)
    boxes = net.plugin("SpecialSlice_TRT", [detections])
    masks = net.plugin("ResizeNearest_TRT", [net.shuffled(net.plugin("MultilevelCropAndResize_TRT", [boxes, *levels], pooled_size=2, image_size=image),
                                                          (*batch, found * channels, 2, 2))], scale=2.0)
    got = elsewhere(net.plan(detections=detections, masks=masks), arrays)
    v = [arrays[f"p{level}"].astype(float) for level in range(5)]
    heads = [arrays[f"{kind}{level}"] for level in range(5) for kind in ("moves", "scores")]
    proposed = multilevel_proposed(heads, anchors, h, w, 50, keep, 0.1, 0.7)
    flat = multilevel(proposed, v, 3).reshape(n, keep, -1)
    kinds, sides = softmax(flat @ kind_w.T), (flat @ side_w.T).reshape(n, keep, classes, 4)
    wanted = []
    for k, d, r in zip(kinds, sides, proposed):
        own, score = 1 + k[:, 1:].argmax(1), k[:, 1:].max(1)
        out = np.clip(moved(r, d[np.arange(keep), own], (0.1, 0.1, 0.2, 0.2), 1, np.log(1000 / 16)), 0, [h - 1, w - 1] * 2)
        ranked = np.where(score >= f(0.2), score, -np.inf)
        table = np.concatenate([out, own[:, None], score[:, None]], 1)
        wanted.append(rows(table, best(out, ranked, 10**6, found, 0.5, classes=own), found, (0, 0, 0, 0, -1, 0)))
    wanted = np.array(wanted)
    assert (wanted[:, 0, 4] > 0).all()
    close([got["detections"]], [wanted], 1e-4)
    crops = multilevel(wanted[..., :4], v, 2).reshape(n, found * channels, 2, 2)
    close([got["masks"]], [crops.repeat(2, 2).repeat(2, 3)], 1e-3)
