// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/roi_align/op.h"

namespace tw::ops::roi_align {

namespace {

struct Corners
{
    float low, high;
};

struct Located
{
    Corners y, x;
    int64_t level;
    bool isSkipped;
};

float limited(float v, float high)
{
    return v > 0 ? std::fmin(v, high) : 0;
}

Corners inOrder(Attrs const& a, Corners r, float side)
{
    float const most = a.isAbsolute ? side : 1;
    Corners const clamped{limited(std::fmin(r.low, r.high), most), limited(std::fmax(r.low, r.high), most)};
    return a.isAbsolute ? Corners{clamped.low / side, clamped.high / side} : clamped;
}

Located locate(Attrs const& a, TensorRef const& rois, int64_t roi, int64_t levels)
{
    float v[4];
    for (int i = 0; i < 4; ++i)
        v[i] = float(rois.get(4 * roi + i));
    Corners y{v[1], v[3]}, x{v[0], v[2]};
    if (a.isRowFirst)
        std::swap(y, x);
    float const tall = float(a.imageHeight), wide = float(a.imageWidth);
    if (a.boxes == Boxes::kTidied) {
        y = inOrder(a, y, tall);
        x = inOrder(a, x, wide);
    }
    float h = y.high - y.low, w = x.high - x.low;
    bool const isEmpty = !(h > 0 && w > 0);
    if (a.isPlusOne) {
        h = h + 1 / tall;
        w = w + 1 / wide;
    }
    float const area = h * w;
    int64_t level = 0;
    for (double limit : a.areas)
        level += area > float(limit);
    return {y, x, std::min(level, levels - 1), a.isEmptySkipped && isEmpty};
}

// Samples of one axis.
struct Samples
{
    float begin, step, offset;
    int64_t samples, size;
};

Samples samplesOf(Attrs const& a, Corners v, int64_t level, int64_t bins, int64_t size)
{
    bool const isCorners = a.grid == Grid::kCorners;
    float const unit =
        a.boxes == Boxes::kScaled ? std::ldexp(float(a.scale), int(-level)) : float(isCorners ? size - 1 : size);
    float const moved = a.grid == Grid::kHalfPixel ? 0.5F : 0.0F;
    Samples axis{};
    axis.size = size;
    axis.begin = v.low * unit - moved;
    float length = (v.high * unit - moved) - axis.begin;
    if (isCorners && a.boxes == Boxes::kNormalized)
        length = (v.high - v.low) * unit;
    if (a.grid == Grid::kAtLeastOne)
        length = std::fmax(length, 1.0F);
    axis.samples = a.samples;
    if (a.samples == 0) {
        float const needed = std::ceil(length / float(bins));
        float const least = a.boxes == Boxes::kTidied ? 1 : 0;
        axis.samples = needed > least ? int64_t(std::fmin(needed, float(kMostSamples))) : int64_t(least);
    }
    axis.offset = isCorners || a.grid == Grid::kEdges ? 0.0F : 0.5F;
    axis.step = length / float(isCorners ? bins - 1 : bins);
    if (isCorners && bins == 1) {
        axis.begin = 0.5F * (v.low + v.high) * unit;
        axis.step = 0;
    }
    return axis;
}

// The two pixels around a sample; both weights are 0 where it counts 0.
struct Neighbours
{
    int64_t at[2];
    double weight[2];
};

Neighbours neighboursOf(Attrs const& a, Samples const& axis, int64_t bin, int64_t sample)
{
    float const part = (float(sample) + axis.offset) / float(axis.samples);
    float place = axis.begin + axis.step * (float(bin) + part);
    float const last = float(axis.size - 1);
    if (a.outside == Outside::kFade && !(place >= -1 && place <= float(axis.size)))
        return {};
    if (a.outside == Outside::kZero && !(place >= 0 && place <= last))
        return {};
    place = limited(place, last);
    int64_t const low = int64_t(place);
    double const behind = double(place) - double(low);
    return {{low, std::min(low + 1, axis.size - 1)}, {1 - behind, behind}};
}

double mixOf(Attrs const& a, TensorRef const& map, int64_t plane, Samples const& down, Samples const& across, int64_t i,
             int64_t j)
{
    double sum = 0, largest = NAN;
    for (int64_t r = 0; r < down.samples; ++r)
        for (int64_t s = 0; s < across.samples; ++s) {
            Neighbours const y = neighboursOf(a, down, i, r), x = neighboursOf(a, across, j, s);
            for (int k = 0; k < 4; ++k) {
                double const weight = y.weight[k / 2] * x.weight[k % 2];
                int64_t const at = (plane * down.size + y.at[k / 2]) * across.size + x.at[k % 2];
                double const part = weight == 0 ? 0 : weight * map.get(at);
                sum += part;
                largest = std::fmax(largest, part);
            }
        }
    int64_t const count = down.samples * across.samples;
    return count == 0 ? 0 : a.mode == Mode::kMax ? largest : sum / double(count);
}

struct PixelRange
{
    int64_t begin, end;
};

PixelRange pixelsOf(Attrs const& a, Corners v, int64_t level, int64_t bins, int64_t size, int64_t bin)
{
    float const unit = std::ldexp(float(a.scale), int(-level));
    float const first = std::round(v.low * unit), last = std::round(v.high * unit);
    float const step = std::fmax(last - first + 1, 1.0F) / float(bins);
    float const begin = std::floor(float(bin) * step) + first, end = std::ceil(float(bin + 1) * step) + first;
    return {int64_t(limited(begin, float(size))), int64_t(limited(end, float(size)))};
}

double largestPixel(TensorRef const& map, int64_t plane, PixelRange const& y, PixelRange const& x)
{
    double largest = NAN;
    for (int64_t r = y.begin; r < y.end; ++r)
        for (int64_t s = x.begin; s < x.end; ++s)
            largest = std::fmax(largest, map.get((plane * map.dims[2] + r) * map.dims[3] + s));
    return y.begin < y.end && x.begin < x.end ? largest : 0;
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &rois = ctx.in(kRois), &y = ctx.out();
    int64_t const channels = ctx.in(kMaps).dims[1], images = ctx.in(kMaps).dims[0];
    ctx.forEachWanted([&](int64_t e) {
        int64_t const j = e % a.width, i = e / a.width % a.height;
        int64_t const channel = e / (a.width * a.height) % channels, roi = e / (a.width * a.height * channels);
        int64_t const image = ctx.has(kImages) ? ctx.in(kImages).getInt(roi) : roi / rois.dims[1];
        Located const region = locate(a, rois, roi, ctx.inputCount() - kMaps);
        TensorRef const& map = ctx.in(kMaps + int(region.level));
        int64_t const h = map.dims[2], w = map.dims[3], plane = image * channels + channel;
        bool const isNothing = image < 0 || image >= images || region.isSkipped || h == 0 || w == 0;
        double v = 0;
        if (!isNothing && a.grid == Grid::kPooled)
            v = largestPixel(map, plane, pixelsOf(a, region.y, region.level, a.height, h, i),
                             pixelsOf(a, region.x, region.level, a.width, w, j));
        else if (!isNothing)
            v = mixOf(a, map, plane, samplesOf(a, region.y, region.level, a.height, h),
                      samplesOf(a, region.x, region.level, a.width, w), i, j);
        y.set(e, v);
    });
    return {};
}

} // namespace tw::ops::roi_align
