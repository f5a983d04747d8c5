# SPDX-License-Identifier: Apache-2.0
"""Standard plugins on clouds of points, and attention to places, beside NumPy."""

import math

import numpy as np
import pytest

from standard_plugins import check, make, refusal

random = np.random.default_rng(10)


def data(*shape):
    return random.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("features, raw", [(10, 4), (9, 4), (4, 4), (12, 5)])
def test_voxels(features, raw):
    least, most, size, most_points, most_voxels = [-2, -2, -3], [2, 2, 1], [0.5, 0.5, 4], 3, 20
    points, counts = (2 * data(2, 150, raw)).astype(np.float32), np.array([150, 90], np.int32)

    def wanted(points, counts):
        voxels = np.zeros((2, most_voxels, most_points, features))
        where, found = np.zeros((2, most_voxels, 4), np.int32), np.zeros(2, np.int32)
        for n in range(2):
            cells = {}
            for p in points[n, : counts[n]].astype(np.float32):
                if all(a <= v < b for a, v, b in zip(least, p, most)):
                    cells.setdefault(tuple(int(math.floor((v - np.float32(a)) / np.float32(s))) for v, a, s in zip(p, least, size)), []).append(p)
            found[n] = min(len(cells), most_voxels)
            for v, (cell, members) in enumerate(list(cells.items())[:most_voxels]):
                where[n, v, 1:] = cell[::-1]
                members = np.array(members[:most_points], np.float64)
                mean = members[:, :3].mean(0)
                centre = np.array([a + (c + 0.5) * s for a, c, s in zip(least, cell, size)])
                full = np.concatenate([members, members[:, :3] - mean, members[:, :3] - centre], 1)[:, :features]
                voxels[n, v, : len(full), : full.shape[1]] = full
        return [voxels, where, found]

    plugin = make("VoxelGeneratorPlugin", max_num_points_per_voxel=most_points, max_voxels=most_voxels, voxel_feature_num=features,
                  point_cloud_range=[float(v) for v in least + most], voxel_size=[float(v) for v in size])
    check(plugin, [points, counts], wanted, half=False)


def test_pillars():
    h, w, pillars = 5, 7, 12
    features = data(3, pillars, 6)
    places = np.stack([random.permutation(h * w)[:pillars] for _ in range(3)])
    coordinates = np.stack([0 * places, 0 * places, places // w, places % w], 2).astype(np.int32)
    coordinates[0, 1, 2], coordinates[1, 0, 3] = h, -1
    counts = np.array([12, 5, 0], np.int32)

    def wanted(features, coordinates, counts):
        y = np.zeros((3, 6, h, w))
        for n in range(3):
            for i in range(counts[n]):
                r, c = coordinates[n, i, 2:]
                if 0 <= r < h and 0 <= c < w:
                    y[n, :, r, c] = features[n, i]
        return [y]

    check(make("PillarScatterPlugin", dense_shape=[h, w]), [features, coordinates, counts], wanted)


def test_boxes():
    classes, h, w, bins, threshold = 3, 4, 5, 2, 0.6
    anchors = np.abs(data(2 * classes, 4)) + 0.5
    bottoms, scene, offset, limit = [-1.0, -0.5, 0.25], [-4.0, -3.0, -2.0, 4.0, 3.0, 2.0], 0.78, 0.1
    count = 2 * classes
    arrays = [data(2, h, w, count * classes), data(2, h, w, count * 7), data(2, h, w, count * bins)]

    def wanted(scores, boxes, directions):
        rows, found = np.zeros((2, h * w * count, 9)), np.zeros(2, np.int32)
        period = 2 * math.pi / bins
        for n in range(2):
            for i in range(h * w * count):
                r, c, a = i // count // w, i // count % w, i % count
                best = scores[n, r, c, a * classes : (a + 1) * classes]
                score = 1 / (1 + math.exp(-best.max()))
                if score < threshold:
                    continue
                dx, dy, dz, turn = anchors[a].astype(np.float64)
                e = boxes[n, r, c, a * 7 : a * 7 + 7]
                diagonal = math.hypot(dx, dy)
                x = e[0] * diagonal + scene[0] + c * (scene[3] - scene[0]) / (w - 1)
                y = e[1] * diagonal + scene[1] + r * (scene[4] - scene[1]) / (h - 1)
                z = e[2] * dz + dz / 2 + bottoms[a // 2]
                value = e[6] + turn - offset
                label = np.argmax(directions[n, r, c, a * bins : (a + 1) * bins])
                yaw = value - math.floor(value / period + limit) * period + offset + period * label
                rows[n, found[n]] = [x, y, z, *(np.exp(e[3:6]) * [dx, dy, dz]), yaw, np.argmax(best), score]
                found[n] += 1
        return [rows, found]

    plugin = make("DecodeBbox3DPlugin", point_cloud_range=scene, anchors=[float(v) for v in anchors.ravel()], anchor_bottom_height=bottoms, dir_offset=offset,
                  dir_limit_offset=limit, num_dir_bins=bins, score_thresh=threshold)
    check(plugin, arrays, wanted, half=False)


def test_deformable_attention():
    shapes = np.array([[6, 8], [3, 4]], np.int32)
    starts = np.array([0, 48], np.int32)
    n, q, m, d, points = 2, 7, 3, 8, 4
    value, weights = data(n, 60, m, d), data(n, q, m, 2, points)
    at = random.uniform(-0.2, 1.2, (n, q, m, 2, points, 2)).astype(np.float32)

    def wanted(value, shapes, starts, at, weights):
        y = np.zeros((n, q, m, d))
        for index in np.ndindex(n, q, m, 2, points):
            l = index[3]
            h, w = shapes[l]
            x, v = at[index] * [w, h] - 0.5
            image = value[index[0], starts[l] : starts[l] + h * w, index[2]].reshape(h, w, d)
            for r in (math.floor(v), math.floor(v) + 1):
                for c in (math.floor(x), math.floor(x) + 1):
                    if 0 <= r < h and 0 <= c < w:
                        y[index[:3]] += weights[index] * (1 - abs(x - c)) * (1 - abs(v - r)) * image[r, c]
        return [y]

    check(make("MultiscaleDeformableAttnPlugin_TRT"), [value, shapes, starts, at, weights], wanted, open_shapes=False, half_tolerance=2e-2)


@pytest.mark.parametrize("s, span", [(24, 4), (50, 16), (5, 8)])
def test_disentangled_attention(s, span):
    def place(r):
        mid = span // 2
        b = r if abs(r) <= mid else int(np.sign(r)) * (math.ceil(math.log(abs(r) / mid) * (mid - 1) / math.log((s - 1) / mid) * (1 - 1e-7)) + mid)
        return min(max(b + span, 0), 2 * span - 1)

    t = np.array([[place(j - k) for k in range(s)] for j in range(s)])

    def wanted(d0, d1, d2):
        rows = np.arange(s)
        return [(d0 + d1[:, rows[:, None], t] + d2[:, rows[None], t]) * 0.25]

    check(make("DisentangledAttention_TRT", span=span, factor=0.25), [data(3, s, s), data(3, s, 2 * span), data(3, s, 2 * span)], wanted)


def test_refusals():
    assert "missing required fields: {dense_shape}" in refusal("PillarScatterPlugin")
    assert "a height and a width" in refusal("PillarScatterPlugin", dense_shape=[3, 0])
    assert "six numbers" in refusal("VoxelGeneratorPlugin", point_cloud_range=[1.0])
    assert "an anchor has four" in refusal("DecodeBbox3DPlugin", anchors=[1.0, 2.0])
    assert "span is 0" in refusal("DisentangledAttention_TRT", span=0, factor=1.0)
