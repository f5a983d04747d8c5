# SPDX-License-Identifier: Apache-2.0
"""Standard plugins that propose regions, or tell detections, beside NumPy: ProposalLayer_TRT, MultilevelProposeROI_TRT, DetectionLayer_TRT,
GenerateDetection_TRT, SpecialSlice_TRT, Proposal, RPROI_TRT."""

import numpy as np
import pytest

from standard_plugins import check, close, engine_of, make, outputs_of, refusal

import tensorrt as trt

f = np.float32


def overlap(a, b, plus):
    """Of box a and boxes b, y x y x or x y x y."""
    sides = np.maximum(np.minimum(a[2:], b[:, 2:]) - np.maximum(a[:2], b[:, :2]) + plus, 0)
    shared = sides.prod(1)
    whole = (a[2:] - a[:2] + plus).prod() + (b[:, 2:] - b[:, :2] + plus).prod(1) - shared
    return np.where(whole > 0, shared / np.where(whole > 0, whole, 1), 0)


def best(boxes, scores, limit, keep, threshold, plus=0, classes=None):
    """Places of what stays, best first. Scores of -infinity are no candidates."""
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > -np.inf][:limit]
    gone, stay = np.zeros(len(order), bool), []
    for i, box in enumerate(order):
        if gone[i]:
            continue
        stay.append(box)
        if len(stay) == keep:
            break
        more = overlap(boxes[box], boxes[order], plus) > threshold
        gone |= more if classes is None else more & (classes[order] == classes[box])
    return np.array(stay, int)


def moved(boxes, deltas, weights, plus=0, cap=np.inf):
    sides = boxes[:, 2:] - boxes[:, :2] + plus
    d = deltas * np.array(weights)
    centres = boxes[:, :2] + sides / 2 + d[:, :2] * sides
    grown = np.exp(np.minimum(d[:, 2:], cap)) * sides
    low = centres - grown / 2
    return np.concatenate([low, low + grown - plus], 1)


def rows(table, places, keep, absent):
    y = np.tile(np.array(absent, np.float64), (keep, 1))
    y[: len(places)] = table[places]
    return y


def around(centres, sides):
    centres, sides = np.array(centres, np.float64), np.array(sides, np.float64)
    return np.concatenate([centres - sides / 2, centres + sides / 2], 1)


def pyramid_anchors(h, w):
    levels = []
    for level in range(5):
        stride, side = 4 << level, 32 << level
        grid = [(i * stride, j * stride, side / r**0.5, side * r**0.5) for i in range(-(-h // stride)) for j in range(-(-w // stride)) for r in (0.5, 1, 2)]
        levels += grid
    v = np.array(levels)
    y = around(v[:, :2], v[:, 2:])
    return (y - [0, 0, 1, 1]) / [h - 1, w - 1, h - 1, w - 1]


def distinct(random, *shape):
    """Scores without near ties, shuffled."""
    count = int(np.prod(shape))
    return ((random.permutation(count) + 0.5) / count).reshape(shape).astype(f)


@pytest.mark.parametrize("limit, keep, threshold", [(100, 30, 0.7), (4096, 200, 0.3)])
def test_proposal_layer(limit, keep, threshold):
    random = np.random.default_rng(limit)
    anchors = pyramid_anchors(64, 96)
    scores = distinct(random, 2, len(anchors), 2, 1)
    scores[1] *= 0.012  # most of them are below 0.01
    deltas = random.uniform(-2, 2, (2, len(anchors), 4, 1)).astype(f)

    def wanted(scores, deltas):
        y = []
        for s, d in zip(scores[:, :, 1, 0], deltas[..., 0]):
            boxes = np.clip(moved(anchors, d, (0.1, 0.1, 0.2, 0.2)), 0, 1)
            s = np.where(s > f(0.01), s, -np.inf)
            y.append(rows(boxes, best(boxes, s, limit, keep, threshold), keep, (0, 0, 0, 0)))
        return [np.array(y)]

    plugin = make("ProposalLayer_TRT", prenms_topk=limit, keep_topk=keep, iou_threshold=threshold, image_size=[3, 64, 96])
    check(plugin, [scores, deltas], wanted, implicit=True, half=False)


def multilevel_anchors(h, w, level):
    stride = 4 << level
    grid = [(stride / 2 + i * stride, stride / 2 + j * stride, 8 * stride * b, 8 * stride * a)
            for i in range(h // stride) for j in range(w // stride) for a, b in ((1, 1), (1.4, 0.7), (0.7, 1.4))]
    v = np.array(grid)
    return around(v[:, :2], v[:, 2:])


def multilevel_proposed(arrays, anchors, h, w, limit, keep, threshold, overlap_limit):
    y = []
    for n in range(len(arrays[0])):
        found, ranked = [], []
        for level, a in enumerate(anchors):
            d, s = arrays[2 * level][n, ..., 0], arrays[2 * level + 1][n].ravel()
            boxes = np.clip(moved(a, d, (1, 1, 1, 1), 1, np.log(1000 / 16)), 0, np.tile([h - 1, w - 1], 2))
            places = best(boxes, np.where(s >= f(threshold), s, -np.inf), limit, keep, overlap_limit)
            found.append(boxes[places])
            ranked.append(s[places])
        found, ranked = np.concatenate(found), np.concatenate(ranked)
        y.append(rows(found, np.argsort(-ranked, kind="stable")[:keep], keep, (0, 0, 0, 0)))
    return np.array(y)


@pytest.mark.parametrize("threshold, overlap_limit", [(0.0, 0.7), (0.6, 0.4)])
def test_multilevel_propose(threshold, overlap_limit):
    random = np.random.default_rng(3)
    h, w, limit, keep = 128, 192, 60, 40
    anchors = [multilevel_anchors(h, w, level) for level in range(5)]
    arrays = []
    for a in anchors:
        arrays += [random.uniform(-1, 1, (2, len(a), 4, 1)).astype(f), random.uniform(0, 1, (2, len(a), 1, 1)).astype(f)]
    arrays[0][0, 3, :, 0] = (0, 0, 9, 9)  # more than exp may grow

    def wanted(*arrays):
        return [multilevel_proposed(arrays, anchors, h, w, limit, keep, threshold, overlap_limit)]

    plugin = make("MultilevelProposeROI_TRT", prenms_topk=limit, keep_topk=keep, fg_threshold=threshold, iou_threshold=overlap_limit, image_size=[3, h, w])
    check(plugin, arrays, wanted, implicit=True, half=False, tolerance=5e-5)


def detections(random, n, count, classes, side):
    scores = random.uniform(0, 1, (n, count, classes, 1, 1)).astype(f)
    corners = np.sort(random.uniform(0, side, (n, count, 2, 2)), axis=2)
    rois = corners.reshape(n, count, 4).astype(f)
    rois[:, count // 2 :] = rois[:, : count - count // 2] + random.uniform(0, side / 50, (n, count - count // 2, 4))  # near others
    return [random.uniform(-1, 1, (n, count, 4 * classes, 1, 1)).astype(f), scores, rois]


@pytest.mark.parametrize("classes, threshold", [(5, 0.0), (2, 0.3), (21, 0.9)])
@pytest.mark.parametrize("name", ["DetectionLayer_TRT", "GenerateDetection_TRT"])
def test_detections(name, classes, threshold):
    random = np.random.default_rng(classes)
    pixels = name == "GenerateDetection_TRT"
    arrays = detections(random, 2, 60, classes, 90 if pixels else 0.9)
    arrays[1][0, :3] = 0.001  # below 0.01

    def wanted(deltas, scores, rois):
        y = []
        for d, s, boxes in zip(deltas[..., 0, 0], scores[..., 0, 0], rois):
            kinds = 1 + s[:, 1:].argmax(1) if pixels else s.argmax(1)
            own = d.reshape(-1, classes, 4)[np.arange(len(d)), kinds]
            if pixels:
                out = np.clip(moved(boxes, own, (0.1, 0.1, 0.2, 0.2), 1, np.log(1000 / 16)), 0, np.tile([79, 99], 2))
            else:
                out = np.clip(moved(boxes, own, (0.1, 0.1, 0.2, 0.2)), 0, 1)
            score = s[np.arange(len(d)), kinds]
            ranked = np.where((kinds > 0) & (score >= f(threshold)) & (score > f(0.01)), score, -np.inf)
            table = np.concatenate([out, kinds[:, None], score[:, None]], 1)
            y.append(rows(table, best(out, ranked, 10**6, 30, 0.3, classes=kinds), 30, (0, 0, 0, 0, -1, 0)))
        return [np.array(y)]

    fields = dict(num_classes=classes, keep_topk=30, score_threshold=threshold, iou_threshold=0.3)
    plugin = make(name, **fields, **(dict(image_size=[3, 80, 100]) if pixels else {}))
    check(plugin, arrays, wanted, implicit=True, half=False)


def test_special_slice():
    check(make("SpecialSlice_TRT"), [np.random.default_rng(1).standard_normal((2, 5, 6)).astype(f)], lambda x: [x[..., :4]], implicit=True)


def cell_boxes(h, w, shapes, stride, first):
    """x y x y of shapes (w, h), those of a shape together."""
    return np.concatenate([around([(first + j * stride, first + i * stride) for i in range(h) for j in range(w)], [s] * (h * w)) for s in shapes])


@pytest.mark.parametrize("name", ["Proposal", "ProposalDynamic"])
@pytest.mark.parametrize("least", [0.0, 30.0])
def test_proposal(name, least):
    random = np.random.default_rng(int(least))
    h, w, stride, sizes, ratios = 80, 128, 16, [16.0, 40.0], [0.5, 1.0, 2.0]
    shapes = [(s * r, s / r) for s in sizes for r in ratios]
    scores = distinct(random, 2, 6, 5, 8)
    deltas = random.uniform(-0.7, 0.7, (2, 24, 5, 8)).astype(f)
    anchors = cell_boxes(5, 8, shapes, stride, stride / 2)

    def wanted(scores, deltas):
        y = []
        for s, d in zip(scores.reshape(2, -1), deltas.reshape(2, 6, 4, 40).transpose(0, 1, 3, 2).reshape(2, -1, 4)):
            boxes = np.clip(moved(anchors, d, (1, 1, 1, 1)), 0, np.tile([w - 1, h - 1], 2))
            ranked = np.where((boxes[:, 2:] - boxes[:, :2] > least).all(1), s, -np.inf)
            places = best(boxes, ranked, 150, 60, 0.6, plus=1)
            y.append(rows(boxes[:, [1, 0, 3, 2]] / np.tile([h - 1, w - 1], 2), places, 60, (0, 0, 0, 0)))
        return [np.array(y)[..., None]]

    plugin = make(name, input_height=h, input_width=w, rpn_stride=stride, roi_min_size=least, nms_iou_threshold=0.6, pre_nms_top_n=150, post_nms_top_n=60,
                  anchor_sizes=sizes, anchor_ratios=ratios)
    check(plugin, [scores, deltas], wanted, implicit=name == "Proposal", half=False)


def half_away(v):
    return np.trunc(v + np.copysign(0.5, v))


def pooled(x, rois, height, width, scale):
    y = np.zeros((len(rois), x.shape[0], height, width))
    for r, roi in enumerate(rois):
        x0, y0, x1, y1 = half_away(roi.astype(f) * f(scale))
        for i in range(height):
            for j in range(width):
                step = f(max(y1 - y0 + 1, 1)) / f(height), f(max(x1 - x0 + 1, 1)) / f(width)
                spans = []
                for first, s, k, size in ((y0, step[0], i, x.shape[1]), (x0, step[1], j, x.shape[2])):
                    spans.append([int(np.clip(v, 0, size)) for v in (np.floor(f(k) * s) + first, np.ceil(f(k + 1) * s) + first)])
                part = x[:, spans[0][0] : spans[0][1], spans[1][0] : spans[1][1]]
                y[r, :, i, j] = part.max((1, 2)) if part.size else 0
    return y


def regions_of_image(scores, deltas, info, features, ratios, scales, stride, keep, bins):
    """Boxes [n, keep, 4] and their features in bins, as RPROI_TRT finds them that keeps 100 before it suppresses by 0.7."""
    shapes = []
    for r in ratios:
        width = half_away(np.sqrt(stride * stride / r))
        shapes += [(width * k, half_away(width * r) * k) for k in scales]
    anchors = cell_boxes(*features.shape[2:], shapes, stride, (stride - 1) / 2)
    boxes, parts = [], []
    for s, d, of, x in zip(scores, deltas, info, features):
        height, width, scale = of.ravel()
        places = np.clip(moved(anchors, d.reshape(-1, 4), (1, 1, 1, 1)), 0, [width - 1, height - 1] * 2)
        ranked = np.where((places[:, 2:] - places[:, :2] + 1 >= 16 * scale).all(1), s.ravel(), -np.inf)
        boxes.append(rows(places, best(places, ranked, 100, keep, 0.7, plus=1), keep, (0, 0, 0, 0)))
        parts.append(pooled(x, boxes[-1], bins, bins, 1 / stride))
    return boxes, parts


def detections_of(kinds, sides, proposed, found):
    """Rows [n, found, 6] of DetectionLayer_TRT with thresholds 0.3 and 0.5: each region as its likeliest class, which is not 0."""
    wanted = []
    for k, d, r in zip(kinds, sides.reshape(*kinds.shape, 4), proposed):
        own, score = k.argmax(1), k.max(1)
        out = np.clip(moved(r, d[np.arange(len(own)), own], (0.1, 0.1, 0.2, 0.2)), 0, 1)
        ranked = np.where((own > 0) & (score >= 0.3), score, -np.inf)
        table = np.concatenate([out, own[:, None], score[:, None]], 1)
        wanted.append(rows(table, best(out, ranked, 10**6, found, 0.5, classes=own), found, (0, 0, 0, 0, -1, 0)))
    return np.array(wanted)



@pytest.mark.parametrize("least", [0.0, 16.0])
def test_rproi(least):
    random = np.random.default_rng(5)
    stride, ratios, scales = 16, [0.5, 1.0, 2.0], [1.0, 2.0, 4.0]
    shapes = []
    for r in ratios:
        w = half_away(np.sqrt(stride * stride / r))
        shapes += [(w * s, half_away(w * r) * s) for s in scales]
    anchors = cell_boxes(5, 7, shapes, stride, (stride - 1) / 2)
    scores, deltas = distinct(random, 2, 18, 5, 7), random.uniform(-0.5, 0.5, (2, 36, 5, 7)).astype(f)
    features = random.standard_normal((2, 4, 5, 7)).astype(f)
    info = np.array([[80, 112, 1], [75, 100, 1.5]], f)

    def wanted(scores, deltas, features, info):
        rois, regions = [], []
        for s, d, x, (h, w, scale) in zip(scores[:, 9:].reshape(2, -1), deltas.reshape(2, 9, 4, 35).transpose(0, 1, 3, 2).reshape(2, -1, 4), features, info):
            boxes = np.clip(moved(anchors, d, (1, 1, 1, 1)), 0, np.tile([w - 1, h - 1], 2))
            ranked = np.where((boxes[:, 2:] - boxes[:, :2] + 1 >= least * scale).all(1), s, -np.inf)
            rois.append(rows(boxes, best(boxes, ranked, 200, 25, 0.7, plus=1), 25, (0, 0, 0, 0)))
            regions.append(pooled(x, rois[-1], 3, 2, 1 / 16))
        return [np.array(rois)[:, None], np.array(regions)]

    fields = dict(poolingH=3, poolingW=2, featureStride=stride, preNmsTop=200, nmsMaxOut=25, anchorsRatioCount=3, anchorsScaleCount=3, iouThreshold=0.7,
                  minBoxSize=least, spatialScale=1 / 16, anchorsRatios=ratios, anchorsScales=scales)
    check(make("RPROI_TRT", **fields), [scores, deltas, features, info], wanted, implicit=True, half=False)
    assert "anchorsRatios has 3 numbers, not 2" in refusal("RPROI_TRT", **{**fields, "anchorsRatioCount": 2})
    assert "poolingH is 0" in refusal("RPROI_TRT", **{**fields, "poolingH": 0})


def test_halves_keep_their_pixels():
    """Boxes are FP32 between FP16 tensors, and those of a build in FP16 are those of one in FP32."""
    random = np.random.default_rng(11)
    arrays = detections(random, 1, 40, 3, 900)
    plugin = make("GenerateDetection_TRT", num_classes=3, keep_topk=40, score_threshold=0.0, iou_threshold=1.0, image_size=[3, 1000, 1000])
    single = outputs_of(engine_of(plugin, arrays), arrays)[0]
    narrow = [a.astype(np.float16) for a in arrays]
    wide = [a.astype(f) for a in narrow]
    right = outputs_of(engine_of(plugin, wide), wide)
    got = outputs_of(engine_of(plugin, narrow, flags=[trt.BuilderFlag.FP16]), narrow)
    assert got[0].dtype == np.float16
    close(got, right, 1e-3)
    assert not np.array_equal(single, right[0])


def test_what_is_no_number():
    arrays = [np.full((2, 50, 12, 1, 1), np.nan, f), np.full((2, 50, 3, 1, 1), np.nan, f), np.full((2, 50, 4), np.inf, f)]
    arrays[1][0, 0, :, 0, 0] = 1, 1, 0.5
    y = outputs_of(engine_of(make("DetectionLayer_TRT", num_classes=3, keep_topk=4, score_threshold=0.0, iou_threshold=0.5), arrays), arrays)[0]
    assert (y == np.array([0, 0, 0, 0, -1, 0])).all()
    arrays[1][0, 0, :, 0, 0] = 0.5, 0.7, 0.2
    y = outputs_of(engine_of(make("GenerateDetection_TRT", num_classes=3, keep_topk=4, score_threshold=0.0, iou_threshold=0.5), arrays), arrays)[0]
    assert np.isfinite(y).all() and y[0, 0, 4] == 1 and (y[:, 1:, 4] == -1).all()


def test_many_boxes():
    random = np.random.default_rng(12)
    arrays = detections(random, 1, 10000, 2, 0.9)
    plugin = make("DetectionLayer_TRT", num_classes=2, keep_topk=100, score_threshold=0.5, iou_threshold=0.5)
    y = outputs_of(engine_of(plugin, arrays), arrays)[0]
    assert (y[0, :, 4] == 1).all() and (np.diff(y[0, :, 5]) <= 0).all()


def test_refusals():
    assert "missing required fields: {iou_threshold, keep_topk, prenms_topk}" in refusal("ProposalLayer_TRT")
    fields = dict(prenms_topk=10, keep_topk=5, iou_threshold=0.5)
    assert "keep_topk is 0; it must be 1 to" in refusal("ProposalLayer_TRT", **{**fields, "keep_topk": 0})
    assert "image_size has 2 numbers, not 3" in refusal("ProposalLayer_TRT", **fields, image_size=[64, 64])
    assert "image_size has the number 0" in refusal("ProposalLayer_TRT", **fields, image_size=[3, 0, 64])
    assert "missing required fields: {score_threshold}" in refusal("DetectionLayer_TRT", num_classes=4, keep_topk=5, iou_threshold=0.5)
    assert "num_classes is 1" in refusal("GenerateDetection_TRT", num_classes=1, keep_topk=5, iou_threshold=0.5, score_threshold=0.1)
    assert "anchor_sizes has 0 numbers" in refusal("Proposal", input_height=64, input_width=64, rpn_stride=16, pre_nms_top_n=9, post_nms_top_n=9)
    assert "rpn_stride is 0" in refusal("Proposal", input_height=64, input_width=64, pre_nms_top_n=9, post_nms_top_n=9)
    # Not as many anchors as the image has.
    arrays = [np.zeros((1, 100, 2, 1), f), np.zeros((1, 100, 4, 1), f)]
    assert engine_of(make("ProposalLayer_TRT", **fields), arrays) is None
