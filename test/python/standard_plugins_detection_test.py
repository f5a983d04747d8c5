# SPDX-License-Identifier: Apache-2.0
"""Standard plugins of detectors beside NumPy: non-maximum suppression, anchors and priors."""

import itertools
import math

import numpy as np
import onnx
import pytest
import tensorrt as trt
from onnx import TensorProto, helper

from small import QUIET, run
from standard_plugins import check, close, engine_of, make, outputs_of, refusal


def inputs(seed, n, boxes, classes, *, own=False, rank4=False, size=1.0, logits=False, levels=None):
    """Boxes around some centres, so that many overlap; scores, some of them equal where `levels` is given."""
    r = np.random.default_rng(seed)
    shape = (n, boxes, classes) if own else (n, boxes, 1)
    centres = r.uniform(0.2, 0.8, (n, max(boxes // 8, 1), 2))
    at = centres[np.arange(n)[:, None, None], r.integers(0, centres.shape[1], shape)] + r.normal(0, 0.02, (*shape, 2))
    half = r.uniform(0.02, 0.12, (*shape, 2))
    b = (size * np.concatenate([at - half, at + half], -1)).astype(np.float32)
    s = r.normal(0, 2, (n, boxes, classes)) if logits else r.uniform(0, 1, (n, boxes, classes)) ** 2
    if levels:
        s = np.round(s * levels) / levels
    return [b if own or rank4 else b[:, :, 0], s.astype(np.float32)]


def ordered(b):
    return np.concatenate([np.minimum(b[..., :2], b[..., 2:]), np.maximum(b[..., :2], b[..., 2:])], -1)


def corners(b):
    return np.concatenate([b[..., :2] - b[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2], -1)


def ious(a, others, normalized=True, caffe=True):
    """Of box a and each of the others."""
    a, b = ordered(a), ordered(np.array(others).reshape(-1, 4))
    low, high = np.maximum(a[:2], b[:, :2]), np.minimum(a[2:], b[:, 2:])
    one = 0 if normalized else 1
    sides = np.where((high < low).any(-1, keepdims=True), 0, high - low)
    shared = np.prod(np.maximum(sides + (one if caffe else 0), 0), -1)
    union = np.prod(a[2:] - a[:2] + one) + np.prod(b[:, 2:] - b[:, :2] + one, -1) - shared
    return np.where(union > 0, shared / np.where(union > 0, union, 1), 0)


def efficient(
    b, s, anchors=None, *, least, overlap, most, background=-1, sigmoid=0, coding=0, of_class=None, clip=0
):
    """EfficientNMS of one image: (box, score, class, number of the box) of those that stay."""
    s = s.reshape(s.shape[:2])
    if b.ndim == 2:
        b = b[:, None]
    if coding and anchors is None:
        b = corners(b)
    elif coding:
        a = anchors[:, None]
        b = corners(np.concatenate([b[..., :2] * a[..., 2:] + a[..., :2], a[..., 2:] * np.exp(b[..., 2:])], -1))
    elif anchors is not None:
        b = ordered(b) + ordered(anchors)[:, None]
    flat = s.ravel()
    real = 1 / (1 + np.exp(-flat)) if sigmoid else flat
    kept, result, counts = {}, [], {}
    order = [i for i in np.argsort(-flat, kind="stable") if real[i] >= least and i % s.shape[1] != background]
    for i in order[:5000]:
        if len(result) == most:
            break
        box, c = divmod(i, s.shape[1])
        mine = b[box, c if b.shape[1] > 1 else 0]
        if (ious(mine, kept.setdefault(c, [])) >= overlap).any():
            continue
        kept[c].append(mine)
        counts[c] = counts.get(c, 0) + 1
        if of_class is None or counts[c] <= of_class:
            result.append((np.clip(mine, 0, 1) if clip else mine, real[i], c, box))
    return result


def padded(images, most, pad=0):
    n = len(images)
    count, boxes = np.array([[len(i)] for i in images], np.int32), np.zeros((n, most, 4))
    scores, classes = np.zeros((n, most)), np.full((n, most), pad, np.int32)
    for k, image in enumerate(images):
        for r, (box, score, c, _) in enumerate(image):
            boxes[k, r], scores[k, r], classes[k, r] = box, score, c
    return [count, boxes, scores, classes]


def efficient_all(most, **options):
    def wanted(b, s, anchors=None):
        a = [None if anchors is None else anchors[i if len(anchors) > 1 else 0] for i in range(len(b))]
        return padded([efficient(b[i], s[i], a[i], most=most, **options) for i in range(len(b))], most)

    return wanted


def efficient_plugin(*, least, overlap, most, background=-1, sigmoid=0, coding=0):
    return make(
        "EfficientNMS_TRT", score_threshold=float(least), iou_threshold=float(overlap), max_output_boxes=most, background_class=background,
        score_activation=sigmoid, box_coding=coding,
    )


@pytest.mark.parametrize("shape", [(1, 40, 3), (3, 97, 5), (2, 300, 1), (2, 1, 4)])
@pytest.mark.parametrize("sigmoid", [0, 1])
@pytest.mark.parametrize("coding", [0, 1])
def test_efficient_nms(shape, sigmoid, coding):
    options = dict(least=0.25, overlap=0.45, sigmoid=sigmoid, coding=coding)
    arrays = inputs(1, *shape, logits=bool(sigmoid))
    check(efficient_plugin(most=30, **options), arrays, efficient_all(30, **options))


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("background", [-1, 0, 2])
def test_efficient_nms_of_classes(own, background):
    options = dict(least=0.1, overlap=0.5, background=background)
    b, s = inputs(2, 2, 60, 4, own=own, rank4=True, levels=16)  # equal scores
    check(efficient_plugin(most=50, **options), [b, s], efficient_all(50, **options))
    check(efficient_plugin(most=50, **options), [b, s[..., None]], efficient_all(50, **options))


@pytest.mark.parametrize("of_batch", [False, True])
@pytest.mark.parametrize("coding", [0, 1])
def test_efficient_nms_anchors(of_batch, coding):
    options = dict(least=0.2, overlap=0.4, coding=coding)
    b, s = inputs(3, 3, 50, 3)
    anchors = inputs(4, 3 if of_batch else 1, 50, 1)[0]
    if coding:
        b = (0.2 * b - 0.1).astype(np.float32)
    check(efficient_plugin(most=25, **options), [b, s, anchors], efficient_all(25, **options), open_shapes=of_batch, half=False)


@pytest.mark.parametrize("name", ["EfficientNMS_TRT", "BatchedNMSDynamic_TRT"])
def test_open_boxes(name):
    """Any number of images and of boxes."""
    builder = trt.Builder(QUIET)
    network, config, profile = builder.create_network(1), builder.create_builder_config(), builder.create_optimization_profile()
    is_efficient = name == "EfficientNMS_TRT"
    box = (4,) if is_efficient else (1, 4)
    x = [network.add_input("x0", trt.float32, (-1, -1, *box)), network.add_input("x1", trt.float32, (-1, -1, 3))]
    for t, rest in zip(x, (box, (3,))):
        profile.set_shape(t.name, (1, 0, *rest), (2, 200, *rest), (3, 400, *rest))
    config.add_optimization_profile(profile)
    if is_efficient:
        options = dict(least=0.1, overlap=0.5)
        plugin, wanted = efficient_plugin(most=30, **options), efficient_all(30, **options)
    else:
        options = dict(background=-1, top=40, keep=30, least=0.1, overlap=0.5)
        plugin, wanted = batched_plugin(name, inputs(1, 1, 1, 3, rank4=True), **options), batched_all(**options)
    layer = network.add_plugin_v2(x, plugin)
    for i in range(4):
        layer.get_output(i).name = f"y{i}"
        network.mark_output(layer.get_output(i))
    engine = trt.Runtime(QUIET).deserialize_cuda_engine(builder.build_serialized_network(network, config))
    for n, boxes in [(1, 1), (2, 200), (3, 400), (3, 0), (1, 77)]:
        b, s = inputs(n, n, boxes, 3, rank4=not is_efficient)
        close(outputs_of(engine, [b, s]), wanted(b.astype(np.float64), s), 1e-5)


def test_efficient_nms_odd():
    options = dict(least=0.0, overlap=0.5)
    nothing = [np.zeros((2, 0, 4), np.float32), np.zeros((2, 0, 3), np.float32)]
    check(efficient_plugin(most=5, **options), nothing, efficient_all(5, **options), open_shapes=False)
    b, s = inputs(5, 1, 30, 2)
    s[0, ::3, 0], s[0, 1::3, 1] = np.nan, np.inf
    check(efficient_plugin(most=40, **options), [b, s], efficient_all(40, **options))
    check(efficient_plugin(most=4, least=5.0, overlap=0.5), inputs(5, 2, 30, 2), efficient_all(4, least=5.0, overlap=0.5))
    flipped = b[..., [2, 1, 0, 3]]  # corners the other way round come out so
    check(efficient_plugin(most=40, **options), [flipped, s], efficient_all(40, **options))


def test_efficient_nms_many():
    options = dict(least=0.05, overlap=0.6)
    check(efficient_plugin(most=200, **options), inputs(6, 1, 10000, 2), efficient_all(200, **options), half=False, open_shapes=False)
    # No more than 5000 of one class take part, however few stay.
    b = np.tile(np.float32([0, 0, 1, 1]), (1, 7000, 1)) + np.float32(1e-4) * np.arange(7000, dtype=np.float32)[None, :, None] * (
        np.arange(7000)[None, :, None] >= 5000
    )
    s = np.linspace(1, 0.5, 7000, dtype=np.float32)[None, :, None]
    (count, *_) = outputs_of(engine_of(efficient_plugin(most=100, **options), [b, s]), [b, s])
    assert count[0, 0] == 1


def test_efficient_nms_onnx_form():
    """The end of an exported YOLO: boxes of centres and sizes and scores out of one tensor, and the plugin as a node."""
    r = np.random.default_rng(8)
    x = np.concatenate([r.uniform(0, 640, (1, 200, 2)), r.uniform(20, 120, (1, 200, 2)), r.uniform(0, 1, (1, 200, 1 + 6))], -1).astype(np.float32)
    names = ["num_dets", "det_boxes", "det_scores", "det_classes"]
    slices = [
        helper.make_node("Slice", ["x", f"from{i}", f"to{i}", "axes"], [f"part{i}"], name=f"slice{i}") for i in range(3)
    ]
    nodes = slices + [
        helper.make_node("Mul", ["part1", "part2"], ["scores"]),
        helper.make_node(
            "EfficientNMS_TRT", ["part0", "scores"], names, background_class=-1, box_coding=1, iou_threshold=0.45, max_output_boxes=100,
            plugin_version="1", score_activation=0, score_threshold=0.25,
        ),
    ]
    constants = {"from0": 0, "to0": 4, "from1": 4, "to1": 5, "from2": 5, "to2": 11, "axes": 2}
    shapes = [["batch", 1], ["batch", 100, 4], ["batch", 100], ["batch", 100]]
    kinds = [TensorProto.INT32, TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.INT32]
    graph = helper.make_graph(
        nodes,
        "yolo",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 200, 11])],
        [helper.make_tensor_value_info(*v) for v in zip(names, kinds, shapes)],
        [helper.make_tensor(k, TensorProto.INT64, [1], [v]) for k, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    builder = trt.Builder(QUIET)
    network = builder.create_network(1)
    parser = trt.OnnxParser(network, QUIET)
    assert parser.parse(model.SerializeToString()), [parser.get_error(i).desc() for i in range(parser.num_errors)]
    for flags in ([], [trt.BuilderFlag.FP16]):
        config = builder.create_builder_config()
        for flag in flags:
            config.set_flag(flag)
        profile = builder.create_optimization_profile()
        profile.set_shape("x", (1, 200, 11), (1, 200, 11), (4, 200, 11))
        config.add_optimization_profile(profile)
        plan = builder.build_serialized_network(network, config)
        engine = trt.Runtime(QUIET).deserialize_cuda_engine(plan)
        for n in (1, 3):
            batch = np.concatenate([x] * n)
            batch[1:] = batch[1:, ::-1]
            y = run(engine, x=batch)
            scores = batch[..., 4:5] * batch[..., 5:]
            wanted = efficient_all(100, least=0.25, overlap=0.45, coding=1)(batch[..., :4].astype(np.float64), scores)
            if not flags:
                close([y[k] for k in names], wanted, 1e-5)
            else:  # scores may be rounded, boxes are not
                assert abs(int(y["num_dets"].sum()) - int(wanted[0].sum())) <= 6
                best = y["det_boxes"][:, :5]
                assert all(np.abs(wanted[1][i] - box).max(-1).min() < 0.05 for i in range(n) for box in best[i])


@pytest.mark.parametrize("center", [0, 1])
def test_efficient_nms_onnx(center):
    def wanted(b, s):
        rows = [
            (i, c, box)
            for i in range(len(b))
            for _, _, c, box in efficient(b[i], s[i], least=0.3, overlap=0.5, most=20, coding=center)
        ]
        rows += [rows[-1] if rows else (-1, -1, -1)] * (20 * len(b) - len(rows))
        return [np.array(rows)]

    fields = dict(score_threshold=0.3, iou_threshold=0.5, max_output_boxes_per_class=20, center_point_box=center)
    b, s = inputs(9, 3, 40, 2)
    s[1] = 0
    s[2, 3:] = 0
    check(make("EfficientNMS_ONNX_TRT", **fields), [b, s], wanted)
    check(make("EfficientNMS_ONNX_TRT", **fields), [b, np.zeros_like(s)], wanted)


@pytest.mark.parametrize("pad", [0, 1])
@pytest.mark.parametrize("clip", [0, 1])
@pytest.mark.parametrize("of_class", [2, 100])
def test_efficient_nms_tf(pad, clip, of_class):
    fields = dict(
        max_output_size_per_class=of_class, max_total_size=20, iou_threshold=0.5, score_threshold=0.1, pad_per_class=pad, clip_boxes=clip
    )
    most = min(20, 3 * of_class) if pad else 20
    options = dict(least=0.1, overlap=0.5, of_class=of_class, clip=clip)
    arrays = inputs(10, 2, 70, 3, size=1.3)
    check(make("EfficientNMS_Explicit_TF_TRT", **fields), arrays, efficient_all(most, **options))
    plugin = make("EfficientNMS_Implicit_TF_TRT", **fields)

    def without(b, s):
        count, *rest = efficient_all(most, **options)(b, s)
        return [count[:, 0], *rest]

    close(outputs_of(engine_of(plugin, arrays, explicit=False), arrays), without(*[a.astype(np.float64) for a in arrays]), 1e-5)


def batched(b, s, *, background, top, keep, least, overlap, normalized=True, caffe=True):
    """BatchedNMS of one image, before boxes are clipped."""
    found = []
    for c in range(s.shape[1]):
        if c == background:
            continue
        passes = s[:, c] > least
        sorted_by = np.where(passes, s[:, c], 0)
        kept = []
        for i in np.argsort(-sorted_by, kind="stable")[:top]:
            if not passes[i]:
                break
            box = b[i, c if b.shape[1] > 1 else 0]
            if not (ious(box, kept, normalized, caffe) > overlap).any():
                kept.append(box)
                found.append((box, s[i, c], c, i))
    found = [found[i] for i in np.argsort([-f[1] for f in found], kind="stable")]
    return found[:keep]


def batched_all(clip=1, **options):
    def wanted(b, s):
        y = padded([batched(b[i], s[i], **options) for i in range(len(b))], options["keep"], -1)
        return [y[0], np.clip(y[1], 0, 1) if clip else y[1], y[2], y[3].astype(np.float64)]

    return wanted


def batched_plugin(name, arrays, *, background, top, keep, least, overlap, normalized=True, caffe=True, clip=1):
    b, s = arrays
    return make(
        name, shareLocation=int(b.shape[2] == 1), backgroundLabelId=background, numClasses=s.shape[2], topK=top, keepTopK=keep,
        scoreThreshold=float(least), iouThreshold=float(overlap), isNormalized=int(normalized), clipBoxes=clip, caffeSemantics=int(caffe),
    )


@pytest.mark.parametrize("shape", [(1, 50, 3), (3, 80, 5), (2, 130, 1)])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("top, keep, background", [(20, 15, -1), (4, 30, 0), (4096, 100, 1)])
def test_batched_nms(shape, own, top, keep, background):
    options = dict(background=background, top=top, keep=keep, least=0.15, overlap=0.4)
    arrays = inputs(11, *shape, own=own, rank4=True, levels=32, size=1.2)
    check(batched_plugin("BatchedNMSDynamic_TRT", arrays, **options), arrays, batched_all(**options))
    check(batched_plugin("BatchedNMS_TRT", arrays, **options), arrays, batched_all(**options), implicit=True)


@pytest.mark.parametrize("normalized, caffe", list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("clip", [0, 1])
def test_batched_nms_pixels(normalized, caffe, clip):
    options = dict(background=-1, top=100, keep=60, least=0.1, overlap=0.3, normalized=normalized, caffe=caffe)
    arrays = inputs(12, 2, 90, 2, rank4=True, size=40)
    plugin = batched_plugin("BatchedNMSDynamic_TRT", arrays, clip=clip, **options)
    check(plugin, arrays, batched_all(clip, **options), half=bool(clip))


@pytest.mark.parametrize("least", [-1.0, -0.25, 0.0])
def test_batched_nms_below_zero(least):
    options = dict(background=-1, top=100, keep=200, least=least, overlap=0.5)
    b, s = inputs(13, 2, 60, 3, rank4=True, logits=True)
    s = np.round(s) / 4
    s[0, :, 1] = np.maximum(s[0, :, 1], -0.25)
    check(batched_plugin("BatchedNMSDynamic_TRT", [b, s], **options), [b, s], batched_all(**options))


def test_batched_nms_many():
    options = dict(background=-1, top=1000, keep=300, least=0.001, overlap=0.5)
    arrays = inputs(14, 1, 10000, 3, rank4=True)
    plugin = batched_plugin("BatchedNMSDynamic_TRT", arrays, **options)
    check(plugin, arrays, batched_all(**options), half=False, open_shapes=False)


CORNER, CENTER_SIZE, CORNER_SIZE, TF_CENTER = range(4)


def ssd(location, confidence, priors, *, classes, share, code, encoded, sigmoid, keep, normalized, **options):
    p = priors[:, 0].reshape(len(priors), -1, 1, 4)
    v = priors[:, 1].reshape(p.shape) if not encoded or code == TF_CENTER else np.ones_like(p)
    loc = location.reshape(len(location), p.shape[1], -1, 4)
    if len(p) < len(loc):
        p, v = (np.repeat(a, len(loc), 0) for a in (p, v))
    size, centre = p[..., 2:] - p[..., :2], (p[..., :2] + p[..., 2:]) / 2
    if code == TF_CENTER:
        loc = loc[..., [1, 0, 3, 2]]
    if code == CORNER:
        boxes = p + loc * v
    elif code == CORNER_SIZE:
        boxes = p + loc * v * np.concatenate([size, size], -1)
    else:
        middle, half = v[..., :2] * loc[..., :2] * size + centre, np.exp(v[..., 2:] * loc[..., 2:]) * size / 2
        boxes = np.concatenate([middle - half, middle + half], -1)
    scores = confidence.reshape(len(loc), -1, classes)
    if sigmoid:
        scores = 1 / (1 + np.exp(-scores))
    rows, counts = np.zeros((len(loc), 1, keep, 7)), np.zeros((len(loc), 1, 1, 1), np.int32)
    rows[..., 1] = -1
    for i in range(len(loc)):
        rows[i, ..., 0] = i
        found = batched(boxes[i], scores[i], keep=keep, normalized=normalized, **options)
        counts[i] = len(found)
        for k, (box, score, c, _) in enumerate(found):
            rows[i, 0, k, 1:] = [c, score, *np.clip(box, 0, 1)]
    return rows, counts


def check_ssd(plugin, arrays, order, options, **how):
    given = [arrays[order.index(i)] for i in range(3)]
    for half in (False, True):
        given = [a.astype(np.float16) for a in given] if half else given
        kept = [given[i].astype(np.float64) for i in order]
        rows, counts = ssd(*kept, **options)
        flags = [trt.BuilderFlag.FP16] if half else []
        got = outputs_of(engine_of(plugin, given, flags=flags, **how), given)
        close(got[:1], [rows], 4e-3 if half else 2e-5)
        assert got[1].dtype == np.float32 and (got[1].view(np.int32) == counts).all()


@pytest.mark.parametrize("code", range(4))
@pytest.mark.parametrize("share, encoded", [(1, 0), (0, 0), (1, 1)])
@pytest.mark.parametrize("sigmoid, normalized", [(0, 1), (1, 0)])
def test_ssd(code, share, encoded, sigmoid, normalized):
    r = np.random.default_rng(15 + code)
    n, count, classes = 2, 60, 3
    priors = np.stack([inputs(16, 1, count, 1)[0].reshape(1, -1), np.tile([0.1, 0.15, 0.2, 0.25], (1, count))], 1)[..., None].astype(np.float32)
    location = r.normal(0, 0.5, (n, count * 4 * (1 if share else classes), 1, 1)).astype(np.float32)
    confidence = (r.normal(0, 1, (n, count * classes, 1, 1)) if sigmoid else r.uniform(0, 1, (n, count * classes, 1, 1))).astype(np.float32)
    options = dict(
        classes=classes, share=share, code=code, encoded=encoded, sigmoid=sigmoid, keep=40, normalized=bool(normalized), background=0, top=25,
        least=0.3, overlap=0.45,
    )
    for order in [[0, 2, 1] if sigmoid else [0, 1, 2]]:
        fields = dict(
            shareLocation=share, varianceEncodedInTarget=encoded, backgroundLabelId=0, numClasses=classes, topK=25, keepTopK=40,
            confidenceThreshold=0.3, nmsThreshold=0.45, inputOrder=order, confSigmoid=sigmoid, isNormalized=normalized, codeType=code,
        )
        arrays = [location, confidence, priors]
        check_ssd(make("NMSDynamic_TRT", **fields), arrays, order, options)
        check_ssd(make("NMS_TRT", **fields), arrays, order, options)
        of_batch = np.concatenate([priors, priors[:, :, ::-1]])  # one set for each image, and two of the first
        check_ssd(make("NMSDynamic_TRT", **fields, isBatchAgnostic=0), [location, confidence, of_batch], order, options, open_shapes=True)
        twice = np.concatenate([priors, priors])
        check_ssd(make("NMS_TRT", **fields), [location, confidence, twice], order, options, explicit=False)


def grid(sizes, ratios, least, most, variance):
    n, result = len(sizes), []
    for k, (h, w) in enumerate(sizes):
        scale = lambda i: least if n == 1 else 1.0 if i == n else least + (most - least) * i / (n - 1)
        if k == 0:
            shapes = [(ratios[0], 0.1), (ratios[1], scale(0)), (ratios[2], scale(0))]
        else:
            shapes = [(a, scale(k)) for a in ratios] + [(1, math.sqrt(scale(k) * scale(k + 1)))]
        boxes = []
        for y, x, (a, s) in itertools.product(range(h), range(w), shapes):
            cx, cy, dx, dy = (x + 0.5) / w, (y + 0.5) / h, s * math.sqrt(a) / 2, s / math.sqrt(a) / 2
            boxes += [cx - dx, cy - dy, cx + dx, cy + dy]
        result.append(np.array([boxes, list(variance) * (len(boxes) // 4)])[None, :, :, None])
    return result


@pytest.mark.parametrize("sizes", [[(4, 4), (2, 2), (1, 1)], [(5, 5)]])
@pytest.mark.parametrize("ratios", [[1.0, 2.0, 0.5], [1.0, 2.0, 0.5, 3.0, 0.33]])
def test_grid_anchors(sizes, ratios):
    variance = [0.1, 0.1, 0.2, 0.2]
    fields = dict(minSize=0.25, maxSize=0.9, aspectRatios=ratios, variance=variance, numLayers=len(sizes))
    plugin = make("GridAnchor_TRT", featureMapShapes=[h for h, _ in sizes], **fields)
    close(outputs_of(engine_of(plugin, []), []), grid(sizes, ratios, 0.25, 0.9, variance), 1e-6)
    wide = [(h, 2 * w + 1) for h, w in sizes]
    plugin = make("GridAnchorRect_TRT", featureMapShapes=[v for s in wide for v in s], **fields)
    close(outputs_of(engine_of(plugin, []), []), grid(wide, ratios, 0.25, 0.9, variance), 1e-6)
    assert plugin.num_outputs == len(sizes)


@pytest.mark.parametrize("explicit", [False, True])
def test_ssd_network(explicit):
    """Anchors, which are the same for the whole batch, and what reads them."""
    variance, ratios = [0.1, 0.1, 0.2, 0.2], [1.0, 2.0, 0.5]
    anchors = make(
        "GridAnchor_TRT", featureMapShapes=[5], minSize=0.3, maxSize=0.9, aspectRatios=ratios, variance=variance, numLayers=1
    )
    detector = make(
        "NMS_TRT", shareLocation=1, varianceEncodedInTarget=0, backgroundLabelId=0, numClasses=3, topK=50, keepTopK=20, confidenceThreshold=0.2,
        nmsThreshold=0.5, inputOrder=[0, 1, 2], confSigmoid=0, isNormalized=1, codeType=CENTER_SIZE,
    )
    r = np.random.default_rng(17)
    n, count = 3, 75
    arrays = [r.normal(0, 1, (n, 4 * count, 1, 1)).astype(np.float32), r.uniform(0, 1, (n, 3 * count, 1, 1)).astype(np.float32)]
    builder = trt.Builder(QUIET)
    network = builder.create_network(int(explicit))
    x = [network.add_input(f"x{i}", trt.float32, a.shape if explicit else a.shape[1:]) for i, a in enumerate(arrays)]
    priors = network.add_plugin_v2([], anchors).get_output(0)
    layer = network.add_plugin_v2([*x, priors], detector)
    for i in range(2):
        layer.get_output(i).name = f"y{i}"
        network.mark_output(layer.get_output(i))
    builder.max_batch_size = n
    engine = trt.Runtime(QUIET).deserialize_cuda_engine(builder.build_serialized_network(network, builder.create_builder_config()))
    got = outputs_of(engine, arrays)
    rows, counts = ssd(
        *[a.astype(np.float64) for a in arrays], grid([(5, 5)], ratios, np.float32(0.3), 0.9, variance)[0], classes=3, share=1, code=CENTER_SIZE,
        encoded=0, sigmoid=0, keep=20, normalized=True, background=0, top=50, least=0.2, overlap=0.5,
    )
    close(got[:1], [rows], 2e-5)
    assert (got[1].view(np.int32) == counts).all() and counts.min() > 0


@pytest.mark.parametrize("flip, clip", list(itertools.product([0, 1], repeat=2)))
@pytest.mark.parametrize("most", [[], [60.0, 90.0]])
@pytest.mark.parametrize("given", [False, True])
def test_prior_box(flip, clip, most, given):
    least, ratios, variance = [30.0, 50.0], [1.0, 2.0, 3.0, 2.0], [0.1, 0.1, 0.2, 0.2]
    image, step = ((100, 120), (20.0, 25.0)) if given else ((90, 160), (90 / 3, 160 / 4))
    all_ratios = [1.0] + [a for r in (2.0, 3.0) for a in ([r, 1 / r] if flip else [r])]

    def wanted(feature, data):
        boxes = []
        for y, x, k in itertools.product(range(3), range(4), range(2)):
            shapes = [(least[k], least[k])] + ([(math.sqrt(least[k] * most[k]),) * 2] if most else [])
            shapes += [(least[k] * math.sqrt(a), least[k] / math.sqrt(a)) for a in all_ratios[1:]]
            for w, h in shapes:
                cx, cy = (x + 0.5) * step[1], (y + 0.5) * step[0]
                boxes += [(cx - w / 2) / image[1], (cy - h / 2) / image[0], (cx + w / 2) / image[1], (cy + h / 2) / image[0]]
        boxes = np.clip(boxes, 0, 1) if clip else np.array(boxes)
        return [np.repeat(np.array([boxes, variance * (len(boxes) // 4)])[None, :, :, None], len(feature), 0)]

    fields = dict(minSize=least, aspectRatios=ratios, flip=flip, clip=clip, variance=variance, offset=0.5)
    if most:
        fields["maxSize"] = most
    if given:
        fields.update(imgH=100, imgW=120, stepH=20.0, stepW=25.0)
    arrays = [np.full((2, 5, 3, 4), np.nan, np.float32), np.zeros((2, 3, 90, 160), np.float32)]
    check(make("PriorBox_TRT", **fields), arrays, wanted, implicit=True)


def test_refusals():
    missing = "PluginFieldCollection missing required fields: {background_class, box_coding, iou_threshold, max_output_boxes, score_activation, score_threshold}"
    assert missing in refusal("EfficientNMS_TRT")
    good = dict(score_threshold=0.25, iou_threshold=0.5, max_output_boxes=9, background_class=-1, score_activation=0, box_coding=0)
    for field, value, words in [
        ("score_threshold", -0.5, "it must be 0 or above"),
        ("iou_threshold", 0.0, "it must be above 0"),
        ("max_output_boxes", 0, "it must be above 0"),
        ("score_activation", 2, "it must be 0 or 1"),
        ("box_coding", -1, "it must be 0 or 1"),
        ("score_threshold", 1, "it must be of kFLOAT32"),
        ("score_threshold", math.nan, "it must be 0 or above"),
    ]:
        line = refusal("EfficientNMS_TRT", **{**good, field: value})
        assert field in line and words in line, line
    batched = dict(shareLocation=1, backgroundLabelId=-1, numClasses=3, topK=10, keepTopK=5, scoreThreshold=0.1, iouThreshold=0.5)
    assert "topK is 4097; it must be at most 4096" in refusal("BatchedNMS_TRT", **{**batched, "topK": 4097})
    assert "keepTopK is 0" in refusal("BatchedNMSDynamic_TRT", **{**batched, "keepTopK": 0})
    arrays = inputs(1, 1, 10, 4, rank4=True)  # of four classes
    assert engine_of(make("BatchedNMS_TRT", **batched), arrays) is None
    assert engine_of(make("EfficientNMS_TRT", **good), [arrays[0], arrays[1][:, :9]]) is None
    ssd_fields = dict(numClasses=3, keepTopK=5)
    assert "codeType is 4" in refusal("NMS_TRT", **ssd_fields, codeType=4)
    assert "inputOrder must have 0, 1 and 2 once each" in refusal("NMS_TRT", **ssd_fields, inputOrder=[0, 1, 1])
    anchors = dict(aspectRatios=[1.0, 2.0, 0.5], variance=[0.1] * 4, numLayers=2)
    assert "featureMapShapes has 1 numbers; 2 layers need 2" in refusal("GridAnchor_TRT", **anchors, featureMapShapes=[4])
    assert "variance has 3 numbers" in refusal("GridAnchor_TRT", **{**anchors, "variance": [0.1] * 3}, featureMapShapes=[4, 2])
    assert "layer 0 needs 3" in refusal("GridAnchor_TRT", **{**anchors, "aspectRatios": [1.0]}, featureMapShapes=[4, 2])
    prior = dict(minSize=[30.0], variance=[0.1] * 4)
    assert "above its minSize" in refusal("PriorBox_TRT", **prior, maxSize=[20.0])
    assert "maxSize has 2 numbers and minSize 1" in refusal("PriorBox_TRT", **prior, maxSize=[40.0, 50.0])
