// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/tactics.h"
#include "ops/expanded_depthwise/jit_bands.h"
#include "ops/expanded_depthwise/op.h"

namespace tw::ops::expanded_depthwise {

namespace {

Extents expandedDims(TensorRef const& x, TensorRef const& y)
{
    return {y.dims[0], y.dims[1], x.dims[2], x.dims[3]};
}

// z, then the scratch of a convolution.
int64_t workspace(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    Extents const z = expandedDims(in[0], out[0]);
    return (z.volume() + z.volume(2, 4) + out[0].dims.volume(2, 4)) * int64_t(sizeof(float));
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    TensorRef const z{DataType::kFloat, expandedDims(x, y), args.workspace};
    void* scratch = z.as<float>() + z.count();
    convolvePlain(WindowKind::kConvolution, KernelWindowAttrs::plain(2), x, args.inputs[1], args.inputs[2], {}, a.inner,
                  z, scratch);
    convolvePlain(WindowKind::kConvolution, a, z, args.inputs[3], args.inputs[4], {}, a.outer, y, scratch);
    return {};
}

using kernels::jit::Isa;
constexpr CpuTactic kAvx512{"expanded_depthwise_f32_row_tiles_avx512", 1, Isa::kAvx512, kBands};
constexpr CpuTactic kAvx2{"expanded_depthwise_f32_row_tiles_avx2", 1, Isa::kAvx2, kBands};
constexpr PlainTactic kPlain{"expanded_depthwise_f32_plain_cpu", 1, run, workspace};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512, kAvx2, kPlain>;

} // namespace tw::ops::expanded_depthwise
