// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/round.h"
#include "kernels/cpu/int8_pixels.h"
#include "ops/reformat/op.h"
#include "tactic/convert_format.h"
#include "tactic/vector_tactic.h"

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

// ---- Vectors: blocks of 8 channels by 8 pixels, transposed in registers.

Result<void> runVectors(ir::Node const&, kernels::ChannelsLastKernels const& k, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int64_t const channels = x.dims[1], pixels = pixelsOf(x), images = x.dims[0], plane = channels * pixels;
    bool const from = x.format == Format::kChannelsLast, to = y.format == Format::kChannelsLast;
    // Pixels in blocks: all planes of a block stay in L1 while its lines are written.
    constexpr int64_t kBlock = 64;
    int64_t const blocks = divideUp(pixels, kBlock);
    inPieces(*args.workers, images * blocks, x.sizeBytes() + y.sizeBytes(), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            int64_t const n = i / blocks, p = i % blocks * kBlock, count = std::min(kBlock, pixels - p);
            if (from && to)
                k.copy(imageOf(x, n) + p * x.pixelStride(), x.pixelStride(), imageOf(y, n) + p * y.pixelStride(),
                       y.pixelStride(), channels, count);
            else if (from)
                k.fromNhwc(imageOf(x, n) + p * x.pixelStride(), x.pixelStride(), y.as<float>() + n * plane + p, pixels,
                           channels, count);
            else
                k.toNhwc(x.as<float>() + n * plane + p, pixels, imageOf(y, n) + p * y.pixelStride(), y.pixelStride(),
                         channels, count);
        }
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

// The same of i8: blocks of 16 by 16.
Result<void> runInt8(ir::Node const&, kernels::ChannelsLastKernels const&, RunArgs& args)
{
    kernels::Int8PixelKernels const& k = avx2::kInt8Pixels;
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int64_t const channels = x.dims[1], pixels = pixelsOf(x), images = x.dims[0], plane = channels * pixels;
    bool const from = x.format == Format::kChannelsLast, to = y.format == Format::kChannelsLast;
    int64_t const xStep = x.pixelStride(), yStep = y.pixelStride();
    constexpr int64_t kBlock = 256;
    int64_t const blocks = divideUp(pixels, kBlock);
    inPieces(*args.workers, images * blocks, x.sizeBytes() + y.sizeBytes(), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            int64_t const n = i / blocks, p = i % blocks * kBlock, count = std::min(kBlock, pixels - p);
            if (!from) {
                k.toNhwc(x.as<int8_t>() + n * plane + p, pixels, int8ImageOf(y, n) + p * yStep, yStep, channels, count);
                continue;
            }
            int8_t const* pixel = int8ImageOf(x, n) + p * xStep;
            if (!to) {
                k.fromNhwc(pixel, xStep, y.as<int8_t>() + n * plane + p, pixels, channels, count);
                continue;
            }
            for (int64_t q = 0; q < count; ++q)
                std::memcpy(int8ImageOf(y, n) + (p + q) * yStep, pixel + q * xStep, size_t(channels));
        }
    });
    return {};
}

using kernels::jit::Isa;
constexpr VectorTactic kInt8{
    "reformat_i8_transpose_16x16_avx2", 1, Isa::kAvx2, runInt8, nullptr, vectorFormats, nullptr, DataType::kInt8};
constexpr VectorTactic kAvx2{"reformat_f32_transpose_8x8_avx2", 1, Isa::kAvx2, runVectors, nullptr, vectorFormats};

} // namespace

constinit TacticList const cpuTactics = kTactics<kAvx2, kInt8, kPlain>;

} // namespace tw::ops::reformat
