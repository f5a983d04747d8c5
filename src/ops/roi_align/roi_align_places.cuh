// SPDX-License-Identifier: Apache-2.0
// Where the samples of a roi stand, as op.h says. No step of a place is contracted.
//   type R: storage of rois   int kHeight, kWidth, kSamples, kMaps   float kScale, kImageHeight, kImageWidth
//   int kBoxes, kGrid, kOutside: as the enums   bool kHasImages, kIsMax, kIsRowFirst, kIsAbsolute, kIsPlusOne,
//   kIsEmptySkipped   TW_INLINE int areasBelow(float): how many of the areas are below
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/roi_align/roi_align_params.h"

namespace tw::ops::roi_align {

constexpr int kScaled = 0, kNormalized = 1, kTidied = 2;
constexpr int kHalfPixel = 0, kAtLeastOne = 1, kEdges = 3, kCorners = 4, kPooled = 5;
constexpr int kFade = 0, kZero = 1;
constexpr float kMostSamples = 4096;

TW_INLINE float within(float v, float high)
{
    return v > 0 ? fminf(v, high) : 0;
}

struct Range
{
    float low, high;
};

TW_INLINE Range tidied(Range r, float side)
{
    float const most = kIsAbsolute ? side : 1;
    float const low = within(fminf(r.low, r.high), most), high = within(fmaxf(r.low, r.high), most);
    if constexpr (kIsAbsolute)
        return {__fdiv_rn(low, side), __fdiv_rn(high, side)};
    return {low, high};
}

struct Region
{
    Range y, x;
    i32 level, image; // image below 0: there is nothing to take
};

TW_INLINE Region regionOf(Params const& p, u64 roi)
{
    R const* at = static_cast<R const*>(p.rois) + 4 * roi;
    float const v0 = load<float>(at[0]), v1 = load<float>(at[1]), v2 = load<float>(at[2]), v3 = load<float>(at[3]);
    Region g{kIsRowFirst ? Range{v0, v2} : Range{v1, v3}, kIsRowFirst ? Range{v1, v3} : Range{v0, v2}, 0, 0};
    if constexpr (kBoxes == kTidied) {
        g.y = tidied(g.y, kImageHeight);
        g.x = tidied(g.x, kImageWidth);
    }
    float h = __fsub_rn(g.y.high, g.y.low), w = __fsub_rn(g.x.high, g.x.low);
    bool const isEmpty = !(h > 0 && w > 0);
    if constexpr (kIsPlusOne) {
        h = __fadd_rn(h, __fdiv_rn(1.0f, kImageHeight));
        w = __fadd_rn(w, __fdiv_rn(1.0f, kImageWidth));
    }
    g.level = min(areasBelow(__fmul_rn(h, w)), kMaps - 1);
    g.image = kHasImages ? static_cast<i32 const*>(p.images)[roi] : i32(roi / p.perImage);
    if (g.image >= p.batch || p.h[g.level] == 0 || p.w[g.level] == 0 || (kIsEmptySkipped && isEmpty))
        g.image = -1;
    return g;
}

struct Axis
{
    float begin, step;
    i32 samples, size;
};

template <int Bins>
TW_INLINE Axis axisOf(Range v, i32 level, i32 size)
{
    float const unit = kBoxes == kScaled ? ldexpf(kScale, -level) : float(kGrid == kCorners ? size - 1 : size);
    if constexpr (kGrid == kPooled) {
        float const first = roundf(__fmul_rn(v.low, unit)), last = roundf(__fmul_rn(v.high, unit));
        return {first, __fdiv_rn(fmaxf(__fadd_rn(__fsub_rn(last, first), 1.0f), 1.0f), float(Bins)), 1, size};
    }
    constexpr float kMoved = kGrid == kHalfPixel ? 0.5f : 0.0f;
    Axis a{__fsub_rn(__fmul_rn(v.low, unit), kMoved), 0, kSamples, size};
    float length = __fsub_rn(__fsub_rn(__fmul_rn(v.high, unit), kMoved), a.begin);
    if constexpr (kGrid == kCorners && kBoxes == kNormalized)
        length = __fmul_rn(__fsub_rn(v.high, v.low), unit);
    if constexpr (kGrid == kAtLeastOne)
        length = fmaxf(length, 1.0f);
    if constexpr (kSamples == 0) {
        constexpr float kLeast = kBoxes == kTidied ? 1 : 0;
        float const needed = ceilf(__fdiv_rn(length, float(Bins)));
        a.samples = i32(needed > kLeast ? fminf(needed, kMostSamples) : kLeast);
    }
    if constexpr (kGrid == kCorners && Bins == 1)
        a.begin = __fmul_rn(__fmul_rn(0.5f, __fadd_rn(v.low, v.high)), unit);
    else
        a.step = __fdiv_rn(length, float(kGrid == kCorners ? Bins - 1 : Bins));
    return a;
}

// The place of a sample; none where it counts 0.
TW_INLINE bool placeOf(Axis const& a, i32 bin, i32 sample, float& place)
{
    constexpr float kOffset = kGrid == kCorners || kGrid == kEdges ? 0.0f : 0.5f;
    float const part = __fdiv_rn(__fadd_rn(float(sample), kOffset), float(a.samples));
    float const v = __fadd_rn(a.begin, __fmul_rn(a.step, __fadd_rn(float(bin), part))), last = float(a.size - 1);
    place = within(v, last);
    if constexpr (kOutside == kFade)
        return v >= -1 && v <= float(a.size);
    if constexpr (kOutside == kZero)
        return v >= 0 && v <= last;
    return true;
}

struct Pixels
{
    i32 begin, end;
};

TW_INLINE Pixels pooledOf(Axis const& a, i32 bin)
{
    float const begin = __fadd_rn(floorf(__fmul_rn(float(bin), a.step)), a.begin);
    float const end = __fadd_rn(ceilf(__fmul_rn(float(bin + 1), a.step)), a.begin);
    return {i32(within(begin, float(a.size))), i32(within(end, float(a.size)))};
}

// The larger; NaN is passed over.
TW_INLINE float larger(float most, float part)
{
    return fmaxf(most, part);
}
TW_INLINE float none()
{
    return __int_as_float(0x7fffffff);
}

} // namespace tw::ops::roi_align
