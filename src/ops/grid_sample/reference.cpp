// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/grid_sample/op.h"

namespace tw::ops::grid_sample {

namespace {

float clamped(float v, int64_t size)
{
    return v > 0 ? std::fmin(v, float(size - 1)) : 0;
}

float reflected(float v, int64_t size, bool alignCorners)
{
    float const low = alignCorners ? 0 : -0.5F, span = float(alignCorners ? size - 1 : size);
    if (span == 0)
        return 0;
    float const from = std::fabs(v - low), rest = std::fmod(from, span);
    bool const back = std::fmod(std::floor(from / span), 2.0F) != 0;
    return clamped((back ? span - rest : rest) + low, size);
}

float inside(Attrs const& a, float v, int64_t size)
{
    switch (a.outside) {
    case Outside::kClamp:
        return clamped(v, size);
    case Outside::kReflect:
        return reflected(v, size, a.alignCorners);
    case Outside::kFill:
        break;
    }
    return v;
}

double cubicWeight(double distance)
{
    double const d = std::fabs(distance), c = -0.75;
    return d <= 1 ? (c + 2) * d * d * d - (c + 3) * d * d + 1 : c * d * d * d - 5 * c * d * d + 8 * c * d - 4 * c;
}

// Pixels along one axis, -1 for those outside.
struct PointTaps
{
    int64_t at[4];
    double weight[4];
};

PointTaps tapsOf(Attrs const& a, float g, int64_t size)
{
    float const moved = g + 1;
    float place = a.alignCorners ? moved / 2 * float(size - 1) : (moved * float(size) - 1) / 2;
    bool const cubic = a.interpolation == Interpolation::kCubic, nearest = a.interpolation == Interpolation::kNearest;
    if (!cubic)
        place = inside(a, place, size);
    float const first = nearest ? std::nearbyint(place) : std::floor(place) - (cubic ? 1 : 0);
    PointTaps t{};
    for (int k = 0; k < a.taps(); ++k) {
        float const pixel = cubic ? inside(a, first + float(k), size) : first + float(k);
        t.at[k] = pixel >= 0 && pixel <= float(size - 1) ? int64_t(pixel) : -1;
        double const distance = double(place) - double(first + float(k));
        t.weight[k] = nearest ? 1 : cubic ? cubicWeight(distance) : 1 - std::fabs(distance);
    }
    return t;
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(0), &grid = ctx.in(1), &y = ctx.out();
    int64_t const channels = x.dims[1], h = x.dims[2], w = x.dims[3], points = y.dims[2] * y.dims[3];
    for (int64_t i = 0; i < y.count(); ++i) {
        int64_t const plane = i / points, point = plane / channels * points + i % points;
        PointTaps const tx = tapsOf(a, float(grid.get(2 * point)), w),
                        ty = tapsOf(a, float(grid.get(2 * point + 1)), h);
        double sum = 0;
        for (int r = 0; r < a.taps(); ++r)
            for (int s = 0; s < a.taps(); ++s)
                if (ty.at[r] >= 0 && tx.at[s] >= 0)
                    sum += ty.weight[r] * tx.weight[s] * x.get((plane * h + ty.at[r]) * w + tx.at[s]);
        y.set(i, sum);
    }
    return {};
}

} // namespace tw::ops::grid_sample
