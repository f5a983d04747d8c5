// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/int8_tactics.h"
#include "families/convolution/plain_convolution.h"
#include "families/convolution/tactics.h"
#include "families/convolution/winograd.h"
#include "ops/convolution/op.h"

namespace tw::ops::convolution {

namespace {

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    if (sumsIntegers(node)) {
        convolveIntegersPlain(a, args.inputs, args.outputs[0], args.workspace);
        return {};
    }
    auto optional = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i] : TensorRef{}; };
    convolvePlain(a.kind(), a, args.inputs[0], args.inputs[1], optional(2), optional(3), a.epilogue.activation,
                  args.outputs[0], args.workspace);
    return {};
}

int64_t workspace(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    return convolvePlainWorkspaceBytes(in[1], out[0]);
}

using kernels::jit::Factors;
using kernels::jit::Isa;
constexpr WinogradTactic kWinogradAvx512{"convolution_f32_winograd_avx512", 1, Isa::kAvx512};
constexpr WinogradTactic kWinogradAvx2{"convolution_f32_winograd_avx2", 1, Isa::kAvx2};
constexpr DepthwiseTactic kDepthwiseAvx512{"convolution_f32_depthwise_avx512", 1, Isa::kAvx512};
constexpr DepthwiseTactic kDepthwiseAvx2{"convolution_f32_depthwise_avx2", 1, Isa::kAvx2};
constexpr DirectTactic kDirectAvx512{"convolution_f32_direct_nhwc_avx512", 1, Isa::kAvx512, DirectTactic::kNhwc};
constexpr DirectTactic kDirectAvx2{"convolution_f32_direct_nhwc_avx2", 1, Isa::kAvx2, DirectTactic::kNhwc};
constexpr DirectTactic kNchwAvx512{"convolution_f32_direct_nchw_avx512", 1, Isa::kAvx512, DirectTactic::kNchw};
constexpr DirectTactic kNchwAvx2{"convolution_f32_direct_nchw_avx2", 1, Isa::kAvx2, DirectTactic::kNchw};
constexpr PaddedTactic kPaddedAvx512{"convolution_f32_padded_avx512", 1, Isa::kAvx512};
constexpr PaddedTactic kPaddedAvx2{"convolution_f32_padded_avx2", 1, Isa::kAvx2};
constexpr PaddedTactic kBf16Amx{"convolution_bf16_padded_amx", 1, Isa::kAvx512, Factors::kBf16Tiles};
constexpr PaddedTactic kBf16Avx512{"convolution_bf16_padded_avx512", 1, Isa::kAvx512, Factors::kBf16Dots};
constexpr PaddedTactic kBf16Avx2{"convolution_bf16_padded_avx2", 1, Isa::kAvx2, Factors::kBf16Shifts};
constexpr Int8DepthwiseTactic kInt8DepthwiseAvx512{"convolution_i8_depthwise_avx512", 1, Isa::kAvx512};
constexpr Int8DepthwiseTactic kInt8DepthwiseAvx2{"convolution_i8_depthwise_avx2", 1, Isa::kAvx2};
constexpr Int8DirectTactic kInt8DirectAvx512{"convolution_i8_direct_avx512", 1, Isa::kAvx512};
constexpr Int8DirectTactic kInt8DirectAvx2{"convolution_i8_direct_avx2", 1, Isa::kAvx2};
constexpr Int8PaddedTactic kInt8PaddedAvx512{"convolution_i8_padded_avx512", 1, Isa::kAvx512};
constexpr Int8PaddedTactic kInt8PaddedAvx2{"convolution_i8_padded_avx2", 1, Isa::kAvx2};
constexpr PlainTactic kPlain{"convolution_any_plain_cpu", 1, run, workspace};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {
        &kWinogradAvx512,   &kWinogradAvx2,   &kDepthwiseAvx512,  &kDepthwiseAvx2,       &kNchwAvx512,
        &kNchwAvx2,         &kDirectAvx512,   &kDirectAvx2,       &kPaddedAvx512,        &kPaddedAvx2,
        &kBf16Amx,          &kBf16Avx512,     &kBf16Avx2,         &kInt8DepthwiseAvx512, &kInt8DepthwiseAvx2,
        &kInt8DirectAvx512, &kInt8DirectAvx2, &kInt8PaddedAvx512, &kInt8PaddedAvx2,      &kPlain};
    return kList;
}

} // namespace tw::ops::convolution
