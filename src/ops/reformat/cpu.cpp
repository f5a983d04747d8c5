// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/round.h"
#include "families/copy/cpu_pixels.h"
#include "ops/reformat/op.h"
#include "tactic/convert_format.h"

namespace tw::ops::reformat {

namespace {

class PlainKernel final : public Kernel
{
public:
    Result<void> run(RunArgs& args) const override
    {
        convertFormat(args.inputs[0], args.outputs[0]);
        return {};
    }
};

class Plain final : public Tactic
{
public:
    constexpr Plain() : Tactic("reformat_any_plain_cpu", 1, Backend::kCpu) {}
    std::vector<Formats> formats(Problem const& problem) const override { return formatPairs(problem); }
    Result<std::unique_ptr<Kernel>> load(Problem const&, Config const&, std::string const&) const override
    {
        return std::unique_ptr<Kernel>(std::make_unique<PlainKernel>());
    }
};

constexpr Plain kPlain;

// ---- Vectors: blocks of 8 channels by 8 pixels of f32, or 16 by 16 of i8, transposed in registers.

template <class T>
Result<void> runVectors(ir::Node const&, ChannelsLastKernels const& k, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int64_t const channels = x.dims[1], pixels = pixelsOf(x), images = x.dims[0], plane = channels * pixels;
    int64_t const xStep = x.pixelStride(), yStep = y.pixelStride();
    bool const from = x.format == Format::kChannelsLast, to = y.format == Format::kChannelsLast;
    auto const& turning = turningKernels(k, x.as<T>());
    // Pixels in blocks: all planes of a block stay in L1 while its lines are written.
    constexpr int64_t kBlock = 256 / sizeof(T);
    int64_t const blocks = divideUp(pixels, kBlock);
    eachInPieces(*args.workers, images * blocks, x.sizeBytes() + y.sizeBytes(), [&](int64_t i) {
        int64_t const n = i / blocks, p = i % blocks * kBlock, count = std::min(kBlock, pixels - p);
        T const* const in = from ? pixelsAt<T>(x, n) + p * xStep : x.as<T>() + n * plane + p;
        T* const out = to ? pixelsAt<T>(y, n) + p * yStep : y.as<T>() + n * plane + p;
        if (from && to)
            copyPixels(k, in, xStep, out, yStep, channels, count);
        else if (from)
            turning.fromNhwc(in, xStep, out, pixels, channels, count);
        else
            turning.toNhwc(in, pixels, out, yStep, channels, count);
    });
    return {};
}

std::vector<Formats> vectorFormats(Problem const& problem)
{
    if (problem.inputs[0].dims.rank < 3)
        return {};
    Format const linear = Format::kLinear, pixels = Format::kChannelsLast;
    return {Formats{{linear}, {pixels}}, Formats{{pixels}, {linear}}, Formats{{pixels}, {pixels}}};
}

using kernels::jit::Isa;
constexpr VectorTactic kInt8{"reformat_i8_transpose_16x16_avx2",
                             1,
                             Isa::kAvx2,
                             runVectors<int8_t>,
                             nullptr,
                             vectorFormats,
                             nullptr,
                             DataType::kInt8};
constexpr VectorTactic kAvx2{
    "reformat_f32_transpose_8x8_avx2", 1, Isa::kAvx2, runVectors<float>, nullptr, vectorFormats};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx2, kInt8, kPlain>;

} // namespace tw::ops::reformat
