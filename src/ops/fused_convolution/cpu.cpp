// SPDX-License-Identifier: Apache-2.0
#include "ops/convolve.h"
#include "ops/fused_convolution/op.h"
#include "ops/tactic.h"
#include "ops/winograd.h"

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

constexpr WinogradTactic kWinograd512{"fused_convolution_f32_winograd_avx512", 1, kernels::jit::Isa::kAvx512,
                                      activationOf};
constexpr WinogradTactic kWinograd2{"fused_convolution_f32_winograd_avx2", 1, kernels::jit::Isa::kAvx2, activationOf};
constexpr PlainTactic kPlain{"fused_convolution_plain", 1, run, workspace};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kWinograd512, &kWinograd2, &kPlain};
    return kList;
}

} // namespace tw::ops::fused_convolution
