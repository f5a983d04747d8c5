# SPDX-License-Identifier: Apache-2.0
"""Plugins in ONNX models as exporters write them: heads of YOLOv5, v7, v8 and v9, TAO, EfficientDet and Detectron2, attention of DeBERTa, a block
of a diffusion model. Weights are random; NumPy says what comes out."""

import math

import numpy as np
import pytest
import tensorrt as trt
from onnx import numpy_helper

from small import QUIET
from standard_plugins import close
from standard_plugins_detection_test import batched_all, efficient_all, ssd
from standard_plugins_elsewhere import elsewhere
from standard_plugins_models import Model, conv, outputs, parsed, plan_of, sigmoid, softmax
from standard_plugins_proposals_test import best, cell_boxes, moved, rows
from standard_plugins_regions_test import align, crop, pyramid

f = np.float32
FOUND = ["num_dets", "det_boxes", "det_scores", "det_classes"]
KINDS = "iffi"


def weights(random, *shape, scale=0.3):
    return (scale * random.standard_normal(shape)).astype(f)


def maps(random, n, channels=8, sizes=((8, 8), (4, 4), (2, 2))):
    return {f"p{i}": random.standard_normal((n, channels, *s)).astype(f) for i, s in enumerate(sizes)}


def check_found(y, wanted, names=FOUND, tolerance=2e-5):
    assert wanted[0].min() > 1, "a model that finds nothing proves nothing"
    close([y[n] for n in names], wanted, tolerance)


# Anchors in pixels of three levels of strides 8, 16 and 32, two of each.
ANCHORS = np.array([[[10, 13], [16, 30]], [[30, 61], [62, 45]], [[80, 90], [60, 70]]], f)


def grid_head(model, head, classes):
    """YOLOv5 and v7: of each cell and anchor x y w h, objectness and classes, decoded by a grid: [n, boxes, 5 + classes]."""
    levels = []
    for i, (w, b) in enumerate(head):
        size, stride = 8 >> i, 8 << i
        x = model.conv(model.input(f"p{i}", ["batch", 8, size, size]), w, b)
        x = model.node("Transpose", model.reshape(x, -1, 2, 5 + classes, size, size), perm=[0, 1, 3, 4, 2])
        x = model.node("Sigmoid", x)
        grid = np.stack(np.meshgrid(np.arange(size), np.arange(size)), -1)[None, None].astype(f) - f(0.5)
        centre = model.node("Mul", model.node("Add", model.node("Mul", model.part(x, 4, 0, 2), f(2)), grid), f(stride))
        side = model.node("Mul", model.node("Pow", model.node("Mul", model.part(x, 4, 2, 4), f(2)), f(2)), ANCHORS[i][None, :, None, None])
        x = model.node("Concat", centre, side, model.part(x, 4, 4, 5 + classes), axis=4)
        levels.append(model.reshape(x, -1, 2 * size * size, 5 + classes))
    return model.node("Concat", *levels, axis=1)


def grid_head_numbers(arrays, head, classes):
    levels = []
    for i, (w, b) in enumerate(head):
        x = sigmoid(conv(arrays[f"p{i}"].astype(float), w, b))
        n, _, h, wd = x.shape
        x = x.reshape(n, 2, 5 + classes, h, wd).transpose(0, 1, 3, 4, 2)
        for r in range(h):
            for c in range(wd):
                x[:, :, r, c, :2] = (2 * x[:, :, r, c, :2] - 0.5 + [c, r]) * (8 << i)
        x[..., 2:4] = (2 * x[..., 2:4]) ** 2 * ANCHORS[i][:, None, None]
        levels.append(x.reshape(n, -1, 5 + classes))
    return np.concatenate(levels, 1)


def corners_of(x):
    return np.concatenate([x[..., :2] - x[..., 2:4] / 2, x[..., :2] + x[..., 2:4] / 2], -1)


@pytest.mark.parametrize("n", [1, 3])
def test_yolo_v5(n):
    """With BatchedNMSDynamic_TRT: corners in pixels, [n, boxes, 1, 4], and scores of objects times classes."""
    random = np.random.default_rng(21)
    classes, model = 3, Model()
    head = [(weights(random, 2 * (5 + classes), 8), weights(random, 2 * (5 + classes))) for _ in range(3)]
    x = grid_head(model, head, classes)
    scores = model.node("Mul", model.part(x, 2, 4, 5), model.part(x, 2, 5, 5 + classes))
    centre, half = model.part(x, 2, 0, 2), model.node("Mul", model.part(x, 2, 2, 4), f(0.5))
    boxes = model.node("Concat", model.node("Sub", centre, half), model.node("Add", centre, half), axis=2)
    boxes = model.node("Unsqueeze", boxes, np.array([2], np.int64))
    model.node(
        "BatchedNMSDynamic_TRT", boxes, scores, outputs=FOUND, shareLocation=1, backgroundLabelId=-1, numClasses=classes, topK=100, keepTopK=40,
        scoreThreshold=0.3, iouThreshold=0.4, isNormalized=0, clipBoxes=0, plugin_version="1",
    )
    model.output(*FOUND, kinds="ifff")
    arrays = maps(random, n)
    y = outputs(model, arrays, (1, 2, 4))
    x = grid_head_numbers(arrays, head, classes)
    wanted = batched_all(0, background=-1, top=100, keep=40, least=0.3, overlap=0.4, normalized=False)
    check_found(y, wanted(corners_of(x)[:, :, None], x[..., 4:5] * x[..., 5:]))


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("half", [False, True])
def test_yolo_v7(n, half):
    """The end-to-end export: a node of the domain TRT that has centres and sizes."""
    random = np.random.default_rng(22)
    classes, model = 4, Model()
    head = [(weights(random, 2 * (5 + classes), 8), weights(random, 2 * (5 + classes))) for _ in range(3)]
    x = grid_head(model, head, classes)
    scores = model.node("Mul", model.part(x, 2, 5, 5 + classes), model.part(x, 2, 4, 5))
    model.node(
        "EfficientNMS_TRT", model.part(x, 2, 0, 4), scores, outputs=FOUND, domain="TRT", background_class=-1, box_coding=1, iou_threshold=0.45,
        max_output_boxes=60, plugin_version="1", score_activation=0, score_threshold=0.3,
    )
    model.output(*FOUND, kinds=KINDS)
    arrays = maps(random, n)
    y = outputs(model, arrays, (1, 2, 4), [trt.BuilderFlag.FP16] if half else [])
    x = grid_head_numbers(arrays, head, classes)
    wanted = efficient_all(60, least=0.3, overlap=0.45, coding=1)(x[..., :4], x[..., 4:5] * x[..., 5:])
    if not half:
        return check_found(y, wanted)
    assert np.abs(y["num_dets"] - wanted[0]).max() <= 4  # scores are rounded
    assert np.abs(y["det_boxes"][:, :2] - wanted[1][:, :2]).max() < 1


# Anchor-free: distances to four sides, each the mean of a distribution over 16 bins.
BINS = 16


def free_head(model, head, classes, is_first):
    """YOLOv8 and v9: boxes [n, 4, places] in pixels (corners, or centres and sizes) and scores [n, classes, places]."""
    flat = []
    for i, (w, b) in enumerate(head):
        size = 8 >> i
        x = model.conv(model.input(f"p{i}", ["batch", 8, size, size]), w, b)
        flat.append(model.reshape(x, 0, 4 * BINS + classes, -1))
    x = model.node("Concat", *flat, axis=2)
    sides, scores = model.node("Split", x, np.array([4 * BINS, classes], np.int64), outputs=2, axis=1)
    sides = model.node("Transpose", model.reshape(sides, -1, 4, BINS, 84), perm=[0, 2, 1, 3])
    sides = model.node("Conv", model.node("Softmax", sides, axis=1), np.arange(BINS, dtype=f).reshape(1, BINS, 1, 1))
    sides = model.reshape(sides, -1, 4, 84)
    places, strides = anchor_points()
    near, far = (model.part(sides, 1, k, k + 2) for k in (0, 2))
    low, high = model.node("Sub", places[None].astype(f), near), model.node("Add", places[None].astype(f), far)
    if not is_first:
        centre, side = model.node("Div", model.node("Add", low, high), f(2)), model.node("Sub", high, low)
        low, high = centre, side
    boxes = model.node("Mul", model.node("Concat", low, high, axis=1), strides[None, None].astype(f))
    return boxes, model.node("Sigmoid", scores)


def anchor_points():
    points = [np.stack(np.meshgrid(np.arange(s) + 0.5, np.arange(s) + 0.5), 0).reshape(2, -1) for s in (8, 4, 2)]
    return np.concatenate(points, 1), np.concatenate([np.full(s * s, 64 / s) for s in (8, 4, 2)])


def free_head_numbers(arrays, head, classes):
    """Corners [n, places, 4] and scores [n, places, classes]."""
    x = np.concatenate([conv(arrays[f"p{i}"].astype(float), w, b).reshape(len(arrays["p0"]), 4 * BINS + classes, -1) for i, (w, b) in enumerate(head)], 2)
    sides = (softmax(x[:, : 4 * BINS].reshape(len(x), 4, BINS, -1), 2) * np.arange(BINS)[:, None]).sum(2)
    places, strides = anchor_points()
    boxes = np.concatenate([places - sides[:, :2], places + sides[:, 2:]], 1) * strides
    return boxes.transpose(0, 2, 1), sigmoid(x[:, 4 * BINS :]).transpose(0, 2, 1)


@pytest.mark.parametrize("version", [8, 9])
def test_yolo_v8_and_v9(version):
    random = np.random.default_rng(23)
    classes, model = 3, Model()
    head = [(weights(random, 4 * BINS + classes, 8), weights(random, 4 * BINS + classes)) for _ in range(3)]
    boxes, scores = free_head(model, head, classes, version == 8)
    if version == 9:  # one tensor, cut behind its transpose
        x = model.node("Transpose", model.node("Concat", boxes, scores, axis=1), perm=[0, 2, 1])
        boxes, scores = model.part(x, 2, 0, 4), model.part(x, 2, 4, 4 + classes)
    else:
        boxes, scores = (model.node("Transpose", t, perm=[0, 2, 1]) for t in (boxes, scores))
    model.node(
        "EfficientNMS_TRT", boxes, scores, outputs=FOUND, domain="TRT", background_class=-1, box_coding=int(version == 9), iou_threshold=0.65,
        max_output_boxes=50, plugin_version="1", score_activation=0, score_threshold=0.4,
    )
    model.output(*FOUND, kinds=KINDS)
    arrays = maps(random, 2)
    corners, s = free_head_numbers(arrays, head, classes)
    check_found(outputs(model, arrays, (1, 2, 4)), efficient_all(50, least=0.4, overlap=0.65)(corners, s))


def test_tao_yolo():
    """TAO's YOLOv4: normalized corners, and the plugin under the name that its exporter gives the node."""
    random = np.random.default_rng(24)
    classes, model = 3, Model()
    model.input("boxes", ["batch", 60, 4])
    model.input("logits", ["batch", 60, classes])
    names = ["BatchedNMS", "BatchedNMS_1", "BatchedNMS_2", "BatchedNMS_3"]
    model.node(
        "BatchedNMSDynamic_TRT", model.reshape(model.node("Sigmoid", "boxes"), 0, 0, 1, 4), model.node("Sigmoid", "logits"), outputs=names, shareLocation=1,
        backgroundLabelId=-1, numClasses=classes, topK=30, keepTopK=20, scoreThreshold=0.4, iouThreshold=0.5, isNormalized=1, clipBoxes=1, scoreBits=16,
        plugin_version="1", plugin_namespace="",
    )
    model.output(*names, kinds="ifff")
    arrays = {"boxes": random.standard_normal((2, 60, 4)).astype(f), "logits": random.standard_normal((2, 60, classes)).astype(f)}
    wanted = batched_all(background=-1, top=30, keep=20, least=0.4, overlap=0.5)
    b, s = (sigmoid(arrays[k].astype(float)) for k in ("boxes", "logits"))
    check_found(outputs(model, arrays, (1, 2, 4)), wanted(b[:, :, None], s), names)


def test_tao_faster_rcnn():
    """Proposals, their crops of the feature map, a head on them, and NMS with the proposals of each image as priors."""
    random = np.random.default_rng(25)
    h, w, stride, keep, classes, channels = 5, 6, 16, 12, 3, 6
    model = Model()
    x = model.input("features", ["batch", channels, h, w])
    object_w, move_w = weights(random, 4, channels, scale=1), weights(random, 16, channels, scale=0.1)
    kinds_w, sides_w = weights(random, channels * 4, classes), weights(random, channels * 4, classes * 4, scale=0.2)
    zeros = lambda c: np.zeros(c, f)
    scores, deltas = model.node("Sigmoid", model.conv(x, object_w, zeros(4))), model.conv(x, move_w, zeros(16))
    height, width, sizes, ratios = h * stride, w * stride, [24.0, 48.0], [1.0, 2.0]
    rois = model.node(
        "ProposalDynamic", scores, deltas, input_height=height, input_width=width, rpn_stride=stride, roi_min_size=1.0, nms_iou_threshold=0.7,
        pre_nms_top_n=60, post_nms_top_n=keep, anchor_sizes=sizes, anchor_ratios=ratios, plugin_version="1",
    )
    crops = model.node("CropAndResizeDynamic", x, rois, crop_height=2, crop_width=2, plugin_version="1")
    flat = model.reshape(crops, -1, keep, channels * 4)
    kinds = model.node("Softmax", model.node("MatMul", flat, kinds_w), axis=2)
    sides = model.node("MatMul", flat, sides_w)
    corners = model.node("Gather", model.reshape(rois, -1, keep, 4), np.array([1, 0, 3, 2], np.int64), axis=2)  # x y x y
    variance = np.tile(np.array([0.1, 0.1, 0.2, 0.2], f), keep)[None, None]
    priors = model.reshape(corners, -1, 1, keep * 4)
    priors = model.node("Concat", priors, model.node("Add", model.node("Mul", priors, f(0)), variance), axis=1)
    priors = model.node("Unsqueeze", priors, np.array([3], np.int64))
    model.node(
        "NMSDynamic_TRT", model.reshape(sides, -1, keep * classes * 4, 1, 1), model.reshape(kinds, -1, keep * classes, 1, 1), priors, outputs=["NMS", "NMS_1"],
        shareLocation=0, varianceEncodedInTarget=0, backgroundLabelId=0, numClasses=classes, topK=30, keepTopK=10, confidenceThreshold=0.25, nmsThreshold=0.5,
        inputOrder=[0, 1, 2], confSigmoid=0, isNormalized=1, codeType=3, scoreBits=16, isBatchAgnostic=0, plugin_version="1",
    )
    model.output("NMS", "NMS_1")
    arrays = {"features": random.standard_normal((2, channels, h, w)).astype(f)}
    y = outputs(model, arrays, (1, 2, 4))
    v = arrays["features"].astype(float)
    s, d = sigmoid(conv(v, object_w, zeros(4))), conv(v, move_w, zeros(16))
    anchors = cell_boxes(h, w, [(a * r, a / r) for a in sizes for r in ratios], stride, stride / 2)
    found = []
    for score, delta in zip(s.reshape(2, -1), d.reshape(2, 4, 4, h * w).transpose(0, 1, 3, 2).reshape(2, -1, 4)):
        boxes = np.clip(moved(anchors, delta, (1, 1, 1, 1)), 0, [width - 1, height - 1] * 2)
        ranked = np.where((boxes[:, 2:] - boxes[:, :2] > 1).all(1), score, -np.inf)
        found.append(rows(boxes / ([width - 1, height - 1] * 2), best(boxes, ranked, 60, keep, 0.7, plus=1), keep, (0, 0, 0, 0)))
    found = np.array(found)
    flat = crop(v, found[..., [1, 0, 3, 2], None], 2, 2).reshape(2, keep, -1)
    p = np.stack([found.reshape(2, -1), np.tile(variance[0], (2, 1))], 1)[..., None]
    detections, counts = ssd(
        (flat @ sides_w).reshape(2, -1, 1, 1), softmax(flat @ kinds_w).reshape(2, -1, 1, 1), p, classes=classes, share=0, code=3, encoded=0, sigmoid=0,
        keep=10, normalized=True, background=0, top=30, least=0.25, overlap=0.5,
    )
    assert counts.min() > 0 and (y["NMS_1"].view(np.int32) == counts).all()
    close([y["NMS"]], [detections], 1e-4)


def test_efficient_det():
    """Logits of classes and centres and sizes of boxes, over anchors in the model."""
    random = np.random.default_rng(26)
    classes, model, per_cell = 4, Model(), 3
    x = [model.input(f"p{i}", ["batch", 8, 8 >> i, 8 >> i]) for i in range(3)]
    class_w, box_w = weights(random, per_cell * classes, 8), weights(random, per_cell * 4, 8, scale=0.15)
    zeros = lambda c: np.zeros(c, f)

    def of_levels(w, columns):
        flat = [model.reshape(model.node("Transpose", model.conv(t, w, zeros(len(w))), perm=[0, 2, 3, 1]), -1, per_cell * (8 >> i) ** 2, columns) for i, t in enumerate(x)]
        return model.node("Concat", *flat, axis=1)

    anchors = []  # y x h w
    for size in (8, 4, 2):
        for r in range(size):
            for c in range(size):
                anchors += [((r + 0.5) / size, (c + 0.5) / size, 2 / size * a, 2 / size / a) for a in (1, 1.4, 0.7)]
    anchors = np.array(anchors, f)[None]
    names = ["num_detections", "detection_boxes", "detection_scores", "detection_classes"]
    model.node(
        "EfficientNMS_TRT", of_levels(box_w, 4), of_levels(class_w, classes), anchors, outputs=names, plugin_version="1", background_class=-1,
        max_output_boxes=40, score_threshold=0.6, iou_threshold=0.5, score_activation=1, box_coding=1,
    )
    model.output(*names, kinds=KINDS)
    arrays = maps(random, 2)

    def numbers(w, columns):
        flat = [conv(arrays[f"p{i}"].astype(float), w, zeros(len(w))).transpose(0, 2, 3, 1).reshape(2, -1, columns) for i in range(3)]
        return np.concatenate(flat, 1)

    wanted = efficient_all(40, least=0.6, overlap=0.5, sigmoid=1, coding=1)(numbers(box_w, 4), numbers(class_w, classes), anchors.astype(float))
    check_found(elsewhere(plan_of(model, (1, 2, 4)), arrays), wanted, names)


@pytest.mark.parametrize("n", [1, 2])
def test_detectron2(n):
    """Proposals by EfficientNMS over anchors, their regions of a pyramid, a head, and EfficientNMS over the proposals."""
    random = np.random.default_rng(27)
    side, channels, keep, classes, pooled = 128, 4, 10, 3, 3
    sizes = [(side >> k, side >> k) for k in (2, 3, 4, 5)]
    model = Model()
    levels = [model.input(f"p{i}", [n, channels, *s]) for i, s in enumerate(sizes)]
    per_cell = 2
    object_w, move_w = weights(random, per_cell, channels, scale=1), weights(random, per_cell * 4, channels, scale=0.1)
    zeros = lambda c: np.zeros(c, f)
    last = levels[3]  # the coarsest one proposes, which keeps it small
    cells = sizes[3][0] ** 2
    logits = model.reshape(model.node("Transpose", model.conv(last, object_w, zeros(per_cell)), perm=[0, 2, 3, 1]), n, per_cell * cells, 1)
    moves = model.reshape(model.node("Transpose", model.conv(last, move_w, zeros(4 * per_cell)), perm=[0, 2, 3, 1]), n, per_cell * cells, 4)
    anchors = np.array([((r + 0.5) / 4, (c + 0.5) / 4, a, 0.3) for r in range(4) for c in range(4) for a in (0.2, 0.5)], f)[None]  # normalized y x h w
    _, rois, _, _ = model.node(
        "EfficientNMS_TRT", moves, logits, anchors, outputs=4, plugin_version="1", background_class=-1, max_output_boxes=keep, score_threshold=0.01,
        iou_threshold=0.7, score_activation=1, class_agnostic=0, box_coding=1,
    )
    regions = model.node(
        "PyramidROIAlign_TRT", rois, *levels, plugin_version="1", fpn_scale=60, pooled_size=pooled, image_size=[side, side], roi_coords_absolute=0,
        roi_coords_swap=1, roi_coords_transform=2, sampling_ratio=0, legacy=0,
    )
    flat = model.reshape(regions, n, keep, channels * pooled * pooled)
    kinds_w, sides_w = weights(random, channels * pooled**2, classes + 1), weights(random, channels * pooled**2, 4, scale=0.05)
    kinds = model.part(model.node("Softmax", model.node("MatMul", flat, kinds_w), axis=2), 2, 0, classes)
    low, high = (model.part(rois, 2, k, k + 2) for k in (0, 2))
    own = model.node("Concat", model.node("Mul", model.node("Add", low, high), f(0.5)), model.node("Sub", high, low), axis=2)
    model.node(
        "EfficientNMS_TRT", model.node("MatMul", flat, sides_w), kinds, own, outputs=FOUND, plugin_version="1", background_class=-1,
        max_output_boxes=8, score_threshold=0.25, iou_threshold=0.5, score_activation=0, box_coding=1,
    )
    masks = model.node(
        "PyramidROIAlign_TRT", "det_boxes", *levels, outputs=["masks"], plugin_version="1", fpn_scale=60, pooled_size=4, image_size=[side, side],
        roi_coords_absolute=0, roi_coords_swap=1, roi_coords_transform=2, sampling_ratio=2, legacy=0,
    )
    model.output(*FOUND, masks, kinds=KINDS + "f")
    arrays = {f"p{i}": random.standard_normal((n, channels, *s)).astype(f) for i, s in enumerate(sizes)}
    y = elsewhere(plan_of(model), arrays)
    v = [arrays[f"p{i}"].astype(float) for i in range(4)]
    of_cells = lambda w: conv(v[3], w, zeros(len(w))).transpose(0, 2, 3, 1)
    proposed = efficient_all(keep, least=0.01, overlap=0.7, sigmoid=1, coding=1)(
        of_cells(move_w).reshape(n, -1, 4), of_cells(object_w).reshape(n, -1, 1), anchors.astype(float))[1]
    flat = pyramid(proposed, v, pooled, (side, side), 60, absolute=0, swap=1).reshape(n, keep, -1)
    own = np.concatenate([(proposed[..., :2] + proposed[..., 2:]) / 2, proposed[..., 2:] - proposed[..., :2]], -1)
    wanted = efficient_all(8, least=0.25, overlap=0.5, coding=1)(flat @ sides_w, softmax(flat @ kinds_w)[..., :classes], own)
    check_found(y, wanted, tolerance=2e-4)
    close([y["masks"]], [pyramid(wanted[1], v, 4, (side, side), 60, absolute=0, swap=1, ratio=2)], 2e-3)


@pytest.mark.parametrize("retina", [False, True])
def test_tao_ssd_and_retinanet(retina):
    """Heads of three levels, flattened and joined; priors with their variances are a constant. RetinaNet's scores are sigmoids without a
    background, SSD's are a softmax over classes whose first is the background."""
    random = np.random.default_rng(30 + retina)
    classes, per_cell, keep, n = 4, 3, 12, 2
    model = Model()
    x = [model.input(f"p{i}", ["batch", 8, 8 >> i, 8 >> i]) for i in range(3)]
    class_w, box_w, zeros = weights(random, per_cell * classes, 8, scale=0.5), weights(random, per_cell * 4, 8), lambda w: np.zeros(len(w), f)

    def of_levels(w, columns):
        flat = [model.reshape(model.node("Transpose", model.conv(t, w, zeros(w)), perm=[0, 2, 3, 1]), -1, per_cell * (8 >> i) ** 2, columns) for i, t in enumerate(x)]
        return model.node("Concat", *flat, axis=1)

    boxes = []
    for size in (8, 4, 2):
        for r in range(size):
            for c in range(size):
                boxes += [((c + 0.5 - a) / size, (r + 0.5 - b) / size, (c + 0.5 + a) / size, (r + 0.5 + b) / size) for a, b in ((1, 1), (1.4, 0.7), (0.7, 1.4))]
    priors = np.stack([np.array(boxes, f).ravel(), np.tile(np.array([0.1, 0.1, 0.2, 0.2], f), len(boxes))])[None, :, :, None]
    kinds = of_levels(class_w, classes)
    kinds = kinds if retina else model.node("Softmax", kinds, axis=2)
    options = dict(share=1, encoded=0, background=-1 if retina else 0, classes=classes, top=60, keep=keep, least=0.5 if retina else 0.3, overlap=0.5, sigmoid=int(retina), normalized=True, code=1)
    model.node(
        "NMSDynamic_TRT", model.reshape(of_levels(box_w, 4), -1, len(boxes) * 4, 1, 1), model.reshape(kinds, -1, len(boxes) * classes, 1, 1), priors,
        outputs=["NMS", "NMS_1"], shareLocation=1, varianceEncodedInTarget=0, backgroundLabelId=options["background"], numClasses=classes, topK=60,
        keepTopK=keep, confidenceThreshold=options["least"], nmsThreshold=0.5, inputOrder=[0, 1, 2], confSigmoid=int(retina), isNormalized=1, codeType=1,
        scoreBits=16, isBatchAgnostic=1, plugin_version="1",
    )
    model.output("NMS", "NMS_1")
    arrays = maps(random, n)

    def numbers(w, columns):
        return np.concatenate([conv(arrays[f"p{i}"].astype(float), w, zeros(w)).transpose(0, 2, 3, 1).reshape(n, -1, columns) for i in range(3)], 1)

    scores = numbers(class_w, classes)
    rows_, counts = ssd(numbers(box_w, 4).reshape(n, -1, 1, 1), (scores if retina else softmax(scores)).reshape(n, -1, 1, 1), priors.astype(float), **options)
    y = elsewhere(plan_of(model, (1, 2, 4)), arrays)
    assert counts.min() > 2 and (y["NMS_1"].view(np.int32) == counts).all()
    close([y["NMS"]], [rows_], 1e-4)


@pytest.mark.parametrize("spelling", ["plugin", "operator"])
def test_detectron2_rois_of_images(spelling):
    """The form of torch's exports: regions of all images in one list with the index of each one's image, of one level, then the head. The
    operator RoiAlign, and the plugin that 8.5's parser makes of it."""
    random = np.random.default_rng(32)
    n, channels, count, pooled, classes = 2, 5, 9, 4, 3
    model = Model()
    x, rois = model.input("x", ["batch", channels, 12, 16]), model.input("rois", ["count", 4])
    images = model.input("images", ["count"], "i")
    if spelling == "plugin":
        regions = model.node("ROIAlign_TRT", x, rois, images, plugin_version="1", coordinate_transformation_mode=1, mode=1, output_height=pooled,
                             output_width=pooled, sampling_ratio=0, spatial_scale=0.25)
    else:
        indices = model.node("Cast", images, to=7)
        regions = model.node("RoiAlign", x, rois, indices, output_height=pooled, output_width=pooled, sampling_ratio=0, spatial_scale=0.25,
                             coordinate_transformation_mode="half_pixel", mode="avg")
    w = weights(random, channels * pooled**2, classes)
    kinds = model.node("Softmax", model.node("MatMul", model.reshape(regions, -1, channels * pooled**2), w), axis=1, outputs=["kinds"])
    model.output(kinds)
    corners = np.sort(random.uniform(-4, 68, (count, 2, 2)), 1).astype(f)
    arrays = {"x": random.standard_normal((n, channels, 12, 16)).astype(f), "rois": corners.reshape(count, 4), "images": random.integers(0, n, count).astype(np.int32)}
    right = align(arrays["x"].astype(float), arrays["rois"], arrays["images"], pooled, pooled, 0, 0.25, 1, 1)
    y = outputs(model, arrays, (1, 9, 20), opset=16)
    close([y["kinds"]], [softmax(right.reshape(count, -1) @ w, 1)], 2e-5)


def test_mmdeploy():
    """Its own plugins are no part of TensorRT: refused by name, with what to take instead; an export with TensorRT's works."""
    model = Model()
    model.input("boxes", [1, 20, 1, 4])
    model.input("scores", [1, 20, 3])
    model.node(
        "TRTBatchedNMS", "boxes", "scores", outputs=["dets", "labels"], domain="mmdeploy", background_label_id=-1, iou_threshold=0.5, keep_topk=10,
        num_classes=3, return_index=0, score_threshold=0.3, topk=20,
    )
    model.output("dets", "labels")
    line = parsed(model)
    for words in ("TRTBatchedNMS", "mmdeploy", "BatchedNMSDynamic_TRT", "EfficientNMS_TRT"):
        assert words in line, line


@pytest.mark.parametrize("half", [False, True])
def test_deberta(half):
    """Attention of DeBERTa: content to content, content to position and position to content, which the plugin joins."""
    random = np.random.default_rng(28)
    b, heads, s, size, span = 2, 3, 16, 8, 5
    e = heads * size
    model = Model()
    x = model.input("x", [b, s, e])
    w = [weights(random, e, e, scale=0.2) for _ in range(3)]
    table = [weights(random, heads, 2 * span, size) for _ in range(2)]  # keys and queries of positions
    by_head = lambda t: model.reshape(model.node("Transpose", model.reshape(t, b, s, heads, size), perm=[0, 2, 1, 3]), b * heads, s, size)
    q, k, v = (by_head(model.node("MatMul", x, m)) for m in w)
    product = lambda a, c: model.node("MatMul", a, model.node("Transpose", c, perm=[0, 2, 1]))
    tiled = [np.tile(t, (b, 1, 1)) for t in table]
    factor = 1 / np.sqrt(3 * size)
    joined = model.node(
        "DisentangledAttention_TRT", product(q, k), product(q, tiled[0]), product(k, tiled[1]), plugin_version="1", plugin_namespace="", span=span,
        factor=float(factor),
    )
    y = model.node("MatMul", model.node("Softmax", joined, axis=2), v)
    y = model.reshape(model.node("Transpose", model.reshape(y, b, heads, s, size), perm=[0, 2, 1, 3]), b, s, e)
    model.node("Add", y, x, outputs=["y"])
    model.output("y")
    arrays = {"x": random.standard_normal((b, s, e)).astype(f)}
    got = outputs(model, arrays, flags=[trt.BuilderFlag.FP16] if half else [])["y"]
    middle = span // 2

    def place(r):
        far = abs(r) > middle
        bucket = int(np.sign(r) * (np.ceil(np.log(abs(r) / middle) * (middle - 1) / np.log((s - 1) / middle) * (1 - 1e-7)) + middle)) if far else r
        return min(max(bucket + span, 0), 2 * span - 1)

    at = np.array([[place(j - k) for k in range(s)] for j in range(s)])
    x = arrays["x"].astype(float)
    q, k, v = ((x @ m).reshape(b, s, heads, size).transpose(0, 2, 1, 3).reshape(-1, s, size) for m in w)
    turned = lambda t: t.transpose(0, 2, 1)
    c2p, p2c = q @ turned(tiled[0]), k @ turned(tiled[1])
    joined = (q @ turned(k) + np.take_along_axis(c2p, np.broadcast_to(at, (b * heads, s, s)), 2) + turned(np.take_along_axis(p2c, np.broadcast_to(at.T, (b * heads, s, s)), 2))) * factor
    y = (softmax(joined) @ v).reshape(b, heads, s, size).transpose(0, 2, 1, 3).reshape(b, s, e) + x
    close([got], [y], 1e-2 if half else 2e-5)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("half", [False, True])
def test_diffusion(n, half):
    """A block of a U-Net: GroupNorm with its gate, attention to itself and to a text, a gated layer, and the way back to an image."""
    random = np.random.default_rng(29)
    c, h, w, heads, text, width = 64, 4, 6, 4, 7, 24
    size, s = c // heads, h * w
    model = Model()
    x, context = model.input("x", ["batch", c, h, w]), model.input("words", ["batch", text, width])
    # Numbers are constants of FP32 where the plugins have them so; the parser makes constants of initializers.
    gamma, beta = (1 + weights(random, c)), weights(random, c)
    norms = [(1 + weights(random, c), weights(random, c)) for _ in range(3)]
    m = {k: weights(random, *v, scale=0.15) for k, v in dict(qkv=(c, 3 * c), q=(c, c), kv=(width, 2 * c), gate=(c, 8 * c), out=(4 * c, c)).items()}
    bias = weights(random, c)
    y = model.node("GroupNorm", x, gamma, beta, plugin_version="1", epsilon=1e-5, bSwish=1)
    y = model.reshape(model.node("Transpose", y, perm=[0, 2, 3, 1]), 0, s, c)
    normed = lambda t, i: model.node("LayerNorm", t, *norms[i], plugin_version="1", epsilon=1e-5, axis=-1)
    a = model.node("fMHA_V2", model.reshape(model.node("MatMul", normed(y, 0), m["qkv"]), 0, 0, heads, 3, size), plugin_version="1")
    y = model.node("Add", y, model.reshape(a, 0, 0, c))
    q = model.reshape(model.node("MatMul", normed(y, 1), m["q"]), 0, 0, heads, size)
    kv = model.reshape(model.node("MatMul", context, m["kv"]), 0, 0, heads, 2, size)
    y = model.node("Add", y, model.reshape(model.node("fMHCA", q, kv, plugin_version="1"), 0, 0, c))
    g = model.node("SplitGeLU", model.node("MatMul", normed(y, 2), m["gate"]), plugin_version="1")
    model.node("SeqLen2Spatial", model.node("MatMul", g, m["out"]), bias, y, x, outputs=["y"], plugin_version="1")
    model.output("y")
    arrays = {"x": random.standard_normal((n, c, h, w)).astype(f), "words": random.standard_normal((n, text, width)).astype(f)}
    got = outputs(model, arrays, (1, 2, 4), [trt.BuilderFlag.FP16] if half else [])["y"]

    def attention(q, k, v):
        return (softmax(np.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(size)) @ v.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3).reshape(n, s, c)

    def layer(t, i):
        return (t - t.mean(-1, keepdims=True)) / np.sqrt(t.var(-1, keepdims=True) + 1e-5) * norms[i][0] + norms[i][1]

    x, context = (arrays[k].astype(float) for k in ("x", "words"))
    groups = x.reshape(n, 32, -1)
    y = ((groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)).reshape(x.shape) * gamma[:, None, None] + beta[:, None, None]
    y = (y * sigmoid(y)).transpose(0, 2, 3, 1).reshape(n, s, c)
    qkv = (layer(y, 0) @ m["qkv"]).reshape(n, s, heads, 3, size)
    y = y + attention(*qkv.transpose(3, 0, 1, 2, 4))
    k, v = (context @ m["kv"]).reshape(n, text, heads, 2, size).transpose(3, 0, 1, 2, 4)
    y = y + attention((layer(y, 1) @ m["q"]).reshape(n, s, heads, size), k, v)
    left, right = np.split(layer(y, 2) @ m["gate"], 2, -1)
    erf = np.vectorize(math.erf)
    out = (left * right * (1 + erf(right / np.sqrt(2))) / 2) @ m["out"]
    close([got], [(out + bias + y).transpose(0, 2, 1).reshape(n, c, h, w)], 4e-2 if half else 5e-5)


@pytest.mark.parametrize("op, attributes, words", [
    ("Region_TRT", dict(num=3, coords=4, classes=5, smTree=5), "pointer"),
    ("LReLU_TRT", dict(negSlope=np.zeros(0, f)), "null pointer"),
    ("Clip_TRT", dict(clipMin=1.0), "null pointer"),
    ("Reorg_TRT", dict(stride=np.zeros(0, np.int32)), "null pointer"),
])
def test_attributes_that_make_no_plugin(op, attributes, words):
    """Pointers, no elements, too few attributes: the parser says that there is no plugin."""
    model = Model()
    x = model.input("x", [2, 30, 4, 4])
    attributes = {k: numpy_helper.from_array(v) if isinstance(v, np.ndarray) else v for k, v in attributes.items()}
    model.node(op, x, outputs=["y"], plugin_version="1", **attributes)
    model.output("y")
    assert words in parsed(model)


def test_namespace():
    """Attributes plugin_namespace and plugin_version choose the creator."""
    model = Model()
    x = model.input("x", [2, 3])
    model.node("LReLU_TRT", x, outputs=["y"], negSlope=0.5, plugin_version="1", plugin_namespace="models")
    model.output("y")
    assert "LReLU_TRT" in parsed(model)
    assert trt.init_libnvinfer_plugins(QUIET, "models")
    arrays = {"x": np.array([[-1, 2, -3], [4, -5, 6]], f)}
    close([outputs(model, arrays)["y"]], [np.where(arrays["x"] > 0, arrays["x"], 0.5 * arrays["x"])], 0)
    next(a for a in model.nodes[0].attribute if a.name == "plugin_version").s = b"2"
    assert "version 2" in parsed(model)
