// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/plain_convolution.h"
#include "families/convolution/tactics.h"
#include "families/convolution/winograd.h"
#include "ops/convolution/op.h"

namespace tw::ops::convolution {

namespace {

Result<void> run(ir::Node const& node, RunArgs& args)
{
    TensorRef const b = args.inputs.size() > 2 ? args.inputs[2] : TensorRef{};
    convolvePlain(node.attrsAs<Attrs>(), args.inputs[0], args.inputs[1], b, {}, {}, args.outputs[0], args.workspace);
    return {};
}

int64_t workspace(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    return convolvePlainWorkspaceBytes(in[1], out[0]);
}

using kernels::jit::Isa;
constexpr WinogradTactic kWinogradAvx512{"convolution_f32_winograd_avx512", 1, Isa::kAvx512, nullptr};
constexpr WinogradTactic kWinogradAvx2{"convolution_f32_winograd_avx2", 1, Isa::kAvx2, nullptr};
constexpr DepthwiseTactic kDepthwiseAvx512{"convolution_f32_depthwise_avx512", 1, Isa::kAvx512, nullptr};
constexpr DepthwiseTactic kDepthwiseAvx2{"convolution_f32_depthwise_avx2", 1, Isa::kAvx2, nullptr};
constexpr DirectTactic kDirectAvx512{"convolution_f32_direct_avx512", 1, Isa::kAvx512, DirectTactic::kPixels, nullptr};
constexpr DirectTactic kDirectAvx2{"convolution_f32_direct_avx2", 1, Isa::kAvx2, DirectTactic::kPixels, nullptr};
constexpr DirectTactic kPlanesAvx512{"convolution_f32_planes_avx512", 1, Isa::kAvx512, DirectTactic::kPlanes, nullptr};
constexpr DirectTactic kPlanesAvx2{"convolution_f32_planes_avx2", 1, Isa::kAvx2, DirectTactic::kPlanes, nullptr};
constexpr PlainTactic kPlain{"convolution_plain", 1, run, workspace};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kWinogradAvx512, &kWinogradAvx2, &kDepthwiseAvx512,
                                              &kDepthwiseAvx2,  &kPlanesAvx512, &kPlanesAvx2,
                                              &kDirectAvx512,   &kDirectAvx2,   &kPlain};
    return kList;
}

} // namespace tw::ops::convolution
