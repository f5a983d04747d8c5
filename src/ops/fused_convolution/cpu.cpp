// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/plain_convolution.h"
#include "families/convolution/tactics.h"
#include "families/convolution/winograd.h"
#include "ops/fused_convolution/op.h"

namespace tw::ops::fused_convolution {

namespace {

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    auto optional = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i] : TensorRef{}; };
    convolvePlain(a, args.inputs[0], args.inputs[1], optional(2), optional(3), a.activation, args.outputs[0],
                  args.workspace);
    return {};
}

int64_t workspace(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    return convolvePlainWorkspaceBytes(in[1], out[0]);
}

FusedActivation const& activationOf(ir::Node const& node)
{
    return node.attrsAs<Attrs>().activation;
}

using kernels::jit::Isa;
constexpr WinogradTactic kWinogradAvx512{"fused_convolution_f32_winograd_avx512", 1, Isa::kAvx512, activationOf};
constexpr WinogradTactic kWinogradAvx2{"fused_convolution_f32_winograd_avx2", 1, Isa::kAvx2, activationOf};
constexpr DepthwiseTactic kDepthwiseAvx512{"fused_convolution_f32_depthwise_avx512", 1, Isa::kAvx512, activationOf};
constexpr DepthwiseTactic kDepthwiseAvx2{"fused_convolution_f32_depthwise_avx2", 1, Isa::kAvx2, activationOf};
constexpr DirectTactic kDirectAvx512{"fused_convolution_f32_direct_avx512", 1, Isa::kAvx512, DirectTactic::kPixels,
                                     activationOf};
constexpr DirectTactic kDirectAvx2{"fused_convolution_f32_direct_avx2", 1, Isa::kAvx2, DirectTactic::kPixels,
                                   activationOf};
constexpr DirectTactic kPlanesAvx512{"fused_convolution_f32_planes_avx512", 1, Isa::kAvx512, DirectTactic::kPlanes,
                                     activationOf};
constexpr DirectTactic kPlanesAvx2{"fused_convolution_f32_planes_avx2", 1, Isa::kAvx2, DirectTactic::kPlanes,
                                   activationOf};
constexpr PlainTactic kPlain{"fused_convolution_plain", 1, run, workspace};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kWinogradAvx512, &kWinogradAvx2, &kDepthwiseAvx512,
                                              &kDepthwiseAvx2,  &kPlanesAvx512, &kPlanesAvx2,
                                              &kDirectAvx512,   &kDirectAvx2,   &kPlain};
    return kList;
}

} // namespace tw::ops::fused_convolution
