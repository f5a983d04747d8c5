// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution/op.h"
#include "ops/convolve.h"
#include "ops/tactic.h"
#include "ops/winograd.h"

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

constexpr WinogradTactic kWinograd512{"convolution_f32_winograd_avx512", 1, kernels::jit::Isa::kAvx512, nullptr};
constexpr WinogradTactic kWinograd2{"convolution_f32_winograd_avx2", 1, kernels::jit::Isa::kAvx2, nullptr};
constexpr PlainTactic kPlain{"convolution_plain", 1, run, workspace};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kWinograd512, &kWinograd2, &kPlain};
    return kList;
}

} // namespace tw::ops::convolution
