// SPDX-License-Identifier: Apache-2.0
// The pixels of some points at a time are looked for once, then taken from every channel.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/element.h"
#include "base/round.h"
#include "ops/grid_sample/kernels.h"
#include "ops/grid_sample/op.h"
#include "tactic/cpu_tactic.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::grid_sample {

namespace {

constexpr int64_t kPoints = 64; // whose pixels are looked for together
constexpr int kMostTaps = 4;
constexpr int32_t kOutside = -1;

class Axis
{
public:
    Axis(Attrs const& a, int64_t size)
        : a_(a), count_(a.taps()), isCubic_(a.interpolation == Interpolation::kCubic), last_(float(size - 1)),
          size_(float(size))
    {}
    // Pixels of the point at coordinate g, with weights; kOutside for those outside.
    void find(float g, int32_t* at, float* weight) const
    {
        float const moved = g + 1;
        float place = a_.alignCorners ? moved / 2 * last_ : (moved * size_ - 1) / 2;
        if (!isCubic_)
            place = inside(place);
        float const first = count_ == 1 ? std::nearbyint(place) : std::floor(place) - float(isCubic_);
        for (int k = 0; k < count_; ++k) {
            float const pixel = isCubic_ ? inside(first + float(k)) : first + float(k);
            at[k] = pixel >= 0 && pixel <= last_ ? int32_t(pixel) : kOutside;
            weight[k] = weightOf(place - (first + float(k)));
        }
    }

private:
    float clamped(float v) const { return v > 0 ? std::min(v, last_) : 0; }
    float inside(float v) const
    {
        if (a_.outside == Outside::kFill)
            return v;
        float const low = a_.alignCorners ? 0 : -0.5F, span = a_.alignCorners ? last_ : size_;
        if (a_.outside == Outside::kClamp || span == 0)
            return clamped(v);
        float const from = std::fabs(v - low), rest = std::fmod(from, span);
        bool const back = std::fmod(std::floor(from / span), 2.0F) != 0;
        return clamped((back ? span - rest : rest) + low);
    }
    float weightOf(float distance) const
    {
        constexpr float c = -0.75F;
        float const d = std::fabs(distance);
        if (count_ == 1)
            return 1;
        if (!isCubic_)
            return 1 - d;
        return d <= 1 ? ((c + 2) * d - (c + 3)) * d * d + 1 : ((c * d - 5 * c) * d + 8 * c) * d - 4 * c;
    }
    Attrs const& a_;
    int const count_;
    bool const isCubic_;
    float const last_, size_;
};

struct Taps
{
    int32_t at[kMostTaps * kMostTaps][kPoints];
    float weight[kMostTaps * kMostTaps][kPoints];
};

template <class G>
void findTaps(Attrs const& a, G const* grid, int64_t count, int64_t h, int64_t w, Taps& taps)
{
    Axis const across(a, w), down(a, h);
    int const n = a.taps();
    for (int64_t i = 0; i < count; ++i) {
        int32_t x[kMostTaps], y[kMostTaps];
        float wx[kMostTaps], wy[kMostTaps];
        across.find(loadElement(grid[2 * i]), x, wx);
        down.find(loadElement(grid[2 * i + 1]), y, wy);
        for (int k = 0; k < n * n; ++k) {
            int32_t const r = y[k / n], s = x[k % n];
            taps.at[k][i] = r == kOutside || s == kOutside ? kOutside : int32_t(r * w + s);
            taps.weight[k][i] = wy[k / n] * wx[k % n];
        }
    }
}

template <class T>
void take(T const* x, Taps const& taps, int count, int64_t points, T* y)
{
    float sum[kPoints] = {};
    for (int k = 0; k < count; ++k)
        for (int64_t i = 0; i < points; ++i)
            if (int32_t const at = taps.at[k][i]; at != kOutside)
                sum[i] += taps.weight[k][i] * loadElement(x[at]);
    for (int64_t i = 0; i < points; ++i)
        storeElement(y[i], sum[i]);
}

template <class T, class G>
void sample(Attrs const& a, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &grid = args.inputs[1], &y = args.outputs[0];
    int64_t const channels = x.dims[1], h = x.dims[2], w = x.dims[3], points = y.dims[2] * y.dims[3];
    int64_t const pieces = divideUp(points, kPoints);
    int const count = a.taps() * a.taps();
    inPieces(*args.workers, y.dims[0] * pieces, y.sizeBytes() * count, [&](int64_t begin, int64_t end) {
        Taps taps;
        for (int64_t piece = begin; piece < end; ++piece) {
            int64_t const n = piece / pieces, first = piece % pieces * kPoints;
            int64_t const here = std::min(kPoints, points - first);
            findTaps(a, grid.as<G>() + 2 * (n * points + first), here, h, w, taps);
            for (int64_t plane = n * channels; plane < (n + 1) * channels; ++plane)
                take(x.as<T>() + plane * h * w, taps, count, here, y.as<T>() + plane * points + first);
        }
    });
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    if (args.outputs[0].count() == 0)
        return {};
    withFloat(args.inputs[0].type, [&](auto element) {
        withFloat(args.inputs[1].type, [&](auto grid) { sample<decltype(element), decltype(grid)>(a, args); });
    });
    return {};
}

constexpr PlainTactic kPlain{"grid_sample_any_plain_cpu", 1, run};

// ---- f32 by vectors of points

Support supportsVectors(CpuTactic const&, Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    if (a.interpolation == Interpolation::kCubic || a.outside == Outside::kReflect)
        return Support::no("takes nearest and linear samples, without reflection");
    for (TensorSpec const& t : {p.inputs[0], p.inputs[1], p.outputs[0]})
        if (!isFullFloat(t.type) || t.format != Format::kLinear)
            return Support::no("takes linear f32 alone");
    if (p.inputs[0].maxDims.volume(2, 4) > INT32_MAX)
        return Support::no("takes planes of fewer than 2^31 pixels");
    return Support::yes();
}

class VectorSamples final : public Kernel
{
public:
    VectorSamples(ir::Node const& node, SamplePoints& sample) : a_(node.attrsAs<Attrs>()), sample_(sample) {}
    Result<void> run(RunArgs& args) const override
    {
        TensorRef const &x = args.inputs[0], &grid = args.inputs[1], &y = args.outputs[0];
        Sampling const s{a_.interpolation == Interpolation::kNearest,
                         a_.outside == Outside::kClamp,
                         a_.alignCorners,
                         x.dims[2],
                         x.dims[3],
                         x.dims[1],
                         y.dims[2] * y.dims[3]};
        int64_t const pieces = divideUp(s.points, kPoints), plane = s.height * s.width;
        if (y.count() == 0)
            return {};
        if (plane == 0)
            return std::memset(y.data, 0, size_t(y.sizeBytes())), Result<void>();
        inPieces(*args.workers, y.dims[0] * pieces, 4 * y.sizeBytes(), [&](int64_t begin, int64_t end) {
            for (int64_t piece = begin; piece < end; ++piece) {
                int64_t const n = piece / pieces, first = piece % pieces * kPoints;
                sample_(s, x.as<float>() + n * s.channels * plane, grid.as<float>() + 2 * n * s.points, first,
                        std::min(first + kPoints, s.points), y.as<float>() + n * s.channels * s.points);
            }
        });
        return {};
    }

private:
    Attrs const& a_;
    SamplePoints& sample_;
};

constexpr CpuFunctions kVectors{
    .supports = supportsVectors,
    .configs = [](CpuTactic const&, Problem const&) { return std::vector<Config>{{}}; },
    .load = [](CpuTactic const& t, Problem const& p, Config const&, PackedConstants&) -> CpuFunctions::Loaded {
        bool const wide = t.isa() == kernels::jit::Isa::kAvx512;
        return makeKernel<VectorSamples>(*p.node, wide ? avx512::samplePoints : avx2::samplePoints);
    }};
constexpr CpuTactic kAvx512{"grid_sample_f32_points_avx512", 1, kernels::jit::Isa::kAvx512, kVectors};
constexpr CpuTactic kAvx2{"grid_sample_f32_points_avx2", 1, kernels::jit::Isa::kAvx2, kVectors};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512, kAvx2, kPlain>;

} // namespace tw::ops::grid_sample
