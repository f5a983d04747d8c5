// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/concatenation/op.h"
#include "ops/vector_tactic.h"

namespace tw::ops::concatenation {

namespace {

// Input k is [outer, its bytes behind the axis]; its pieces stand side by side in the output's rows.
Result<void> run(ir::Node const& node, RunArgs& args)
{
    int const axis = node.attrsAs<Attrs>().axis;
    TensorRef const& y = args.outputs[0];
    int64_t const outer = y.dims.volume(0, axis), rowBytes = y.dims.volume(axis, y.dims.rank) * sizeOf(y.type);
    if (y.sizeBytes() == 0)
        return {};
    int64_t before = 0; // bytes of a row that earlier inputs fill
    for (TensorRef const& x : args.inputs) {
        int64_t const bytes = x.dims.volume(axis, x.dims.rank) * sizeOf(x.type);
        for (int64_t r = 0; r < outer && bytes > 0; ++r)
            std::memcpy(y.as<char>() + r * rowBytes + before, x.as<char>() + r * bytes, size_t(bytes));
        before += bytes;
    }
    return {};
}

constexpr PlainTactic kPlain{"concatenation_plain", 1, run};

// ---- Channels-last, along the channels: runs of whole cache lines, in order, so that what an input writes behind its
// last channel is overwritten by the next one. Inputs that lie in their place already (aliases) are left alone.

Support supportsPixels(Problem const& p)
{
    if (p.node->attrsAs<Attrs>().axis != 1)
        return Support::no("joins channels only");
    for (size_t i = 0; i + 1 < p.inputs.size(); ++i)
        if (p.inputs[i].dims[1] % 16 != 0)
            return Support::no("input " + std::to_string(i) + " has " + std::to_string(p.inputs[i].dims[1]) +
                               " channels; all but the last need a multiple of 16");
    for (TensorSpec const& t : p.inputs)
        if (t.constant)
            return Support::no("takes no constants");
    return Support::yes();
}

Result<void> runPixels(ir::Node const&, kernels::ChannelsLastKernels const& k, RunArgs& args)
{
    TensorRef const& y = args.outputs[0];
    int64_t const pixels = y.dims[0] * pixelsOf(y), yStep = y.pixelStride();
    auto const place = [&](int64_t begin, int64_t end) {
        int64_t c = 0;
        for (TensorRef const& x : args.inputs) {
            float* to = y.as<float>() + c;
            int64_t const channels = x.dims[1], xStep = x.pixelStride();
            c += channels;
            if (channels > 0 && (x.as<float>() != to || xStep != yStep))
                k.copy(x.as<float>() + begin * xStep, xStep, to + begin * yStep, yStep, channels, end - begin);
        }
    };
    inPieces(*args.workers, pixels, 2 * y.sizeBytes(), place);
    return {};
}

using kernels::jit::Isa;
constexpr VectorTactic kAvx512{
    "concatenation_f32_pixels_avx512", 1, Isa::kAvx512, runPixels, supportsPixels, onlyChannelsLast};
constexpr VectorTactic kAvx2{
    "concatenation_f32_pixels_avx2", 1, Isa::kAvx2, runPixels, supportsPixels, onlyChannelsLast};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kAvx512, &kAvx2, &kPlain};
    return kList;
}

} // namespace tw::ops::concatenation
