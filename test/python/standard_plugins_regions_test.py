# SPDX-License-Identifier: Apache-2.0
"""Standard plugins that bring regions of feature maps to one size, beside NumPy: ROIAlign_TRT, CropAndResize, PyramidROIAlign_TRT,
MultilevelCropAndResize_TRT. Places of samples are FP32, as in 8.5."""

import numpy as np
import pytest

from standard_plugins import check, engine_of, make, outputs_of, refusal

f = np.float32


def at(map, y, x):
    """Bilinear, [channels], at a place inside of the map [channels, h, w]."""
    h, w = map.shape[1:]
    i, j = int(y), int(x)
    a, b = float(y) - i, float(x) - j
    below, right = min(i + 1, h - 1), min(j + 1, w - 1)
    corners = [(1 - a) * (1 - b) * map[:, i, j], (1 - a) * b * map[:, i, right], a * (1 - b) * map[:, below, j], a * b * map[:, below, right]]
    return sum(corners), np.max(corners, axis=0)


def cells(map, rows, columns, inside, largest=False):
    """Bins of lists of places along both axes: means of samples, or the largest corners; what is not inside counts 0."""
    h, w = map.shape[1:]
    y = np.zeros((map.shape[0], len(rows), len(columns)))
    for i, ys in enumerate(rows):
        for j, xs in enumerate(columns):
            values = []
            for v in ys:
                for u in xs:
                    if inside(v, h) and inside(u, w):
                        values.append(at(map, min(max(v, f(0)), f(h - 1)), min(max(u, f(0)), f(w - 1)))[largest])
                    else:
                        values.append(np.zeros(map.shape[0]))
            if values:
                y[:, i, j] = np.max(values, axis=0) if largest else np.mean(values, axis=0)
    return y


def boxes(random, *shape, low, high, row_first=False):
    """Boxes in order; the last axis is 4."""
    v = random.uniform(low, high, (*shape, 2, 2)).astype(f)
    v = np.sort(v, axis=-2)  # two corners
    return v.reshape(*shape, 4)


def align(x, rois, images, height, width, ratio, scale, half, average):
    def axis(a, b, bins):
        moved = f(0.5) if half else f(0)
        begin, end = f(f(a) * f(scale)) - moved, f(f(b) * f(scale)) - moved
        length = end - begin
        if not half:
            length = max(length, f(1))
        count = ratio or max(int(np.ceil(length / f(bins))), 0)
        step = length / f(bins)
        return [[begin + step * (f(i) + (f(k) + f(0.5)) / f(count)) for k in range(count)] for i in range(bins)]

    y = np.zeros((len(rois), x.shape[1], height, width))
    for r, roi in enumerate(rois):
        if 0 <= images[r] < len(x):
            y[r] = cells(x[images[r]], axis(roi[1], roi[3], height), axis(roi[0], roi[2], width), lambda v, size: -1 <= v <= size, not average)
    return y


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("average", [0, 1])
@pytest.mark.parametrize("ratio", [0, 1, 2, 3])
def test_roi_align(half, average, ratio):
    random = np.random.default_rng(10 * ratio + 2 * half + average)
    x = random.standard_normal((2, 5, 11, 9)).astype(f)
    rois = np.concatenate([boxes(random, 20, low=-6, high=28), random.uniform(-4, 24, (4, 4)).astype(f), np.zeros((1, 4), f)])
    images = random.integers(-1, 3, len(rois)).astype(np.int32)
    plugin = make("ROIAlign_TRT", coordinate_transformation_mode=half, mode=average, output_height=3, output_width=4, sampling_ratio=ratio, spatial_scale=0.5)
    check(plugin, [x, rois, images], lambda x, rois, images: [align(x, rois, images, 3, 4, ratio, 0.5, half, average)], open_shapes=False)


def test_roi_align_of_open_shapes_and_many_rois():
    random = np.random.default_rng(4)
    plugin = make("ROIAlign_TRT", output_height=2, output_width=2, sampling_ratio=2)
    for count in (0, 1, 7):
        arrays = [random.standard_normal((1, 3, 6, 6)).astype(f), boxes(random, count, low=0, high=6), np.zeros(count, np.int32)]
        check(plugin, arrays, lambda x, rois, images: [align(x, rois, images, 2, 2, 2, 1, 1, 1)], open_shapes=count > 0)
    arrays = [random.standard_normal((2, 4, 20, 20)).astype(f), boxes(random, 10000, low=0, high=20), random.integers(0, 2, 10000).astype(np.int32)]
    got = outputs_of(engine_of(plugin, arrays), arrays)[0]
    some = random.integers(0, 10000, 50)
    right = align(arrays[0].astype(np.float64), arrays[1][some], arrays[2][some], 2, 2, 2, 1, 1, 1)
    assert np.abs(got[some] - right).max() < 1e-4


def test_roi_align_of_what_is_no_number():
    rois = np.array([[np.nan, 0, 2, 2], [0, 0, np.inf, 2], [-np.inf, -np.inf, np.inf, np.inf], [0, 0, 3e38, 3e38], [1, 1, 3, 3]], f)
    for half in (0, 1):
        for ratio in (0, 2):
            arrays = [np.ones((1, 2, 4, 4), f), rois, np.zeros(5, np.int32)]
            plugin = make("ROIAlign_TRT", coordinate_transformation_mode=half, output_height=2, output_width=2, sampling_ratio=ratio)
            y = outputs_of(engine_of(plugin, arrays), arrays)[0]
            assert np.isfinite(y).all() and (y[4] == 1).all()


def crop(x, rois, height, width):
    def axis(a, b, size, bins):
        a, b = f(a), f(b)
        if bins == 1:
            return [[f(0.5) * (a + b) * f(size - 1)]]
        step = (b - a) * f(size - 1) / f(bins - 1)
        return [[a * f(size - 1) + f(i) * step] for i in range(bins)]

    n, count = rois.shape[:2]
    y = np.zeros((n, count, x.shape[1], height, width))
    for i in range(n):
        for r in range(count):
            a, b, c, d = rois[i, r].ravel()
            y[i, r] = cells(x[i], axis(a, c, x.shape[2], height), axis(b, d, x.shape[3], width), lambda v, size: 0 <= v <= size - 1)
    return y


@pytest.mark.parametrize("name", ["CropAndResize", "CropAndResizeDynamic"])
@pytest.mark.parametrize("height, width", [(7, 7), (1, 4), (5, 1)])
def test_crop_and_resize(name, height, width):
    random = np.random.default_rng(height)
    x = random.standard_normal((2, 6, 9, 13)).astype(f)
    rois = np.concatenate([boxes(random, 2, 9, low=-0.1, high=1.1), random.uniform(0, 1, (2, 3, 4)).astype(f), np.tile(np.array([0, 0, 1, 1], f), (2, 1, 1))], axis=1)
    plugin = make(name, crop_height=height, crop_width=width)
    check(plugin, [x, rois[..., None]], lambda x, rois: [crop(x, rois, height, width)], implicit=name == "CropAndResize", half=height == 7)


def pyramid(rois, maps, pooled, image=(1024, 1024), fpn=224, absolute=1, swap=0, plusone=0, transform=2, ratio=0, least=None):
    sides = np.array(image, f)
    least = fpn * fpn / (image[0] * image[1]) / 4 if least is None else least
    y = np.zeros((*rois.shape[:2], maps[0].shape[1], pooled, pooled))
    for n in range(rois.shape[0]):
        for r in range(rois.shape[1]):
            v = rois[n, r].astype(f)
            v = v if swap else v[[1, 0, 3, 2]]  # y x y x
            corners = np.sort(v.reshape(2, 2), axis=0)
            corners = np.clip(corners, f(0), sides) / sides if absolute else np.clip(corners, f(0), f(1))
            h, w = corners[1] - corners[0] + (f(1) / sides if plusone else f(0))
            level = sum(h * w > f(least * 4**k) for k in range(3))
            map = maps[level][n]

            def axis(a, b, size):
                if transform == -1:
                    begin, end = a * f(size - 1), b * f(size - 1)
                    step, offset = (end - begin) / f(pooled - 1), f(0)
                else:
                    moved = f(0.5) if transform == 2 else f(0)
                    begin, end = a * f(size) - moved, b * f(size) - moved
                    step, offset = (end - begin) / f(pooled), f(0 if transform == 0 else 0.5)
                count = ratio or max(1, int(np.ceil((end - begin) / f(pooled))))
                return [[begin + step * (f(i) + (f(k) + offset) / f(count)) for k in range(count)] for i in range(pooled)]

            y[n, r] = cells(map, axis(*corners[:, 0], map.shape[1]), axis(*corners[:, 1], map.shape[2]), lambda v, size: True)
    return y


def feature_maps(random, n, channels, *sizes):
    return [random.standard_normal((n, channels, *s)).astype(f) for s in sizes]


@pytest.mark.parametrize("transform", [-1, 0, 1, 2])
@pytest.mark.parametrize("absolute, swap, plusone, ratio", [(1, 0, 0, 0), (0, 1, 1, 2), (1, 1, 1, 1), (0, 0, 0, 3)])
def test_pyramid_roi_align(transform, absolute, swap, plusone, ratio):
    random = np.random.default_rng(transform + 9 * absolute + 5 * ratio)
    maps = feature_maps(random, 2, 3, (32, 24), (16, 12), (8, 6), (4, 3))
    rois = random.uniform(-0.05, 1.05, (2, 12, 4)).astype(f)
    rois[:, 6:, 2:] = rois[:, 6:, :2] + random.uniform(-0.2, 0.2, (2, 6, 2))  # small ones
    if absolute:
        rois *= np.tile(np.array([128, 96] if swap else [96, 128], f), 2)
    plugin = make("PyramidROIAlign_TRT", fpn_scale=50, pooled_size=3, image_size=[128, 96], roi_coords_absolute=absolute, roi_coords_swap=swap,
                  roi_coords_plusone=plusone, roi_coords_transform=transform, sampling_ratio=ratio)
    check(plugin, [rois, *maps], lambda rois, *maps: [pyramid(rois, maps, 3, (128, 96), 50, absolute, swap, plusone, transform, ratio)], implicit=True, half=not absolute,
          half_tolerance=8e-3)


def test_pyramid_roi_align_as_of_old():
    random = np.random.default_rng(8)
    maps = feature_maps(random, 1, 2, (16, 16), (8, 8), (4, 4), (2, 2))
    rois = boxes(random, 1, 20, low=0, high=1)
    rois[:, 10:, 2:] = rois[:, 10:, :2] + 0.1 * (rois[:, 10:, 2:] - rois[:, 10:, :2])
    least = (224 * 224 * 2 / (1024 * 1024)) / 16
    check(make("PyramidROIAlign_TRT", pooled_size=5, legacy=1), [rois, *maps],
          lambda rois, *maps: [pyramid(rois, maps, 5, absolute=0, swap=1, transform=-1, ratio=1, least=least)], implicit=True, half=False)


def multilevel(rois, maps, pooled):
    y = np.zeros((*rois.shape[:2], maps[0].shape[1], pooled, pooled))
    for n in range(rois.shape[0]):
        for r in range(rois.shape[1]):
            v = rois[n, r].astype(f)
            side = v[2:] - v[:2]
            if (side > 0).all():
                level = sum(side[0] * side[1] > f(224 * 224 / 4 * 4**k) for k in range(4))
                scaled = v / f(4 << level)
                axes = [[[scaled[d] + (scaled[2 + d] - scaled[d]) / f(pooled) * (f(i) + f(0.5))] for i in range(pooled)] for d in range(2)]
                y[n, r] = cells(maps[level][n], *axes, lambda v, size: True)
    return y


def test_multilevel_crop_and_resize():
    random = np.random.default_rng(6)
    maps = feature_maps(random, 2, 4, (52, 84), (26, 42), (13, 21), (7, 11), (4, 6))
    rois = boxes(random, 2, 20, low=0, high=800)
    rois[:, 8:14, 2:] = rois[:, 8:14, :2] + random.uniform(5, 200, (2, 6, 2))
    rois[0, 0], rois[1, 0] = (5, 5, 5, 90), (9, 7, 8, 80)  # without an area

    plugin = make("MultilevelCropAndResize_TRT", pooled_size=7, image_size=[3, 208, 336])
    check(plugin, [rois, *maps], lambda rois, *maps: [multilevel(rois, maps, 7)], implicit=True, half=False, tolerance=1e-4)


def test_refusals():
    assert "mode is 2; it must be 0 to 1" in refusal("ROIAlign_TRT", mode=2)
    assert "output_height is 0; it must be 1 to" in refusal("ROIAlign_TRT", output_height=0)
    assert "sampling_ratio is -1; it must be 0 to" in refusal("ROIAlign_TRT", sampling_ratio=-1)
    assert "spatial_scale is 0;" in refusal("ROIAlign_TRT", spatial_scale=0.0)
    assert "field 'spatial_scale' is of kINT32" in refusal("ROIAlign_TRT", spatial_scale=1)
    assert "crop_width is 0; it must be 1 to" in refusal("CropAndResize", crop_height=7)
    assert "roi_coords_transform is 3; it must be -1 to 2" in refusal("PyramidROIAlign_TRT", roi_coords_transform=3)
    assert "image_size has 3 numbers; it must have 2" in refusal("PyramidROIAlign_TRT", image_size=[3, 10, 10])
    assert "missing required fields: {pooled_size}" in refusal("MultilevelCropAndResize_TRT")
    x, rois = np.zeros((1, 2, 4, 4), f), np.zeros((3, 4), f)
    assert engine_of(make("ROIAlign_TRT"), [x, rois, np.zeros(2, np.int32)]) is None
    assert engine_of(make("ROIAlign_TRT"), [x, rois[None], np.zeros(3, np.int32)]) is None
