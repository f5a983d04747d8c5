// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/tactics.h"
#include "ops/convolution/op.h"
#include "tactic/cpu_tactic.h"

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
    TensorRef const &y = args.outputs[0], residual = optional(Epilogue::kResidual);
    bool const hasSteps = a.epilogue.hasSteps();
    convolvePlain(a.kind(), a, args.inputs[0], args.inputs[1], optional(2), hasSteps ? TensorRef{} : residual,
                  a.epilogue.activation, y, args.workspace);
    return hasSteps ? finishSteps(a.epilogue, y, residual) : Result<void>();
}

int64_t workspace(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    return convolvePlainWorkspaceBytes(in[1], out[0]);
}

using kernels::jit::Factors;
using kernels::jit::Isa;
constexpr CpuTactic kWinogradAvx512{
    "convolution_f32_winograd_avx512", 1, Isa::kAvx512, kWinogradConvolution, 0, Rounding::kWinograd};
constexpr CpuTactic kWinogradAvx2{
    "convolution_f32_winograd_avx2", 1, Isa::kAvx2, kWinogradConvolution, 0, Rounding::kWinograd};
constexpr CpuTactic kDepthwiseAvx512{"convolution_f32_depthwise_avx512", 2, Isa::kAvx512, kDepthwiseConvolution};
constexpr CpuTactic kDepthwiseAvx2{"convolution_f32_depthwise_avx2", 2, Isa::kAvx2, kDepthwiseConvolution};
constexpr CpuTactic kFewFiltersAvx512{"convolution_f32_few_filters_avx512", 1, Isa::kAvx512, kFewFiltersConvolution};
constexpr CpuTactic kFewFiltersAvx2{"convolution_f32_few_filters_avx2", 1, Isa::kAvx2, kFewFiltersConvolution};
constexpr CpuTactic kDirectAvx512{"convolution_f32_direct_nhwc_avx512", 1, Isa::kAvx512, kDirectConvolution,
                                  DirectInput::kNhwc};
constexpr CpuTactic kDirectAvx2{"convolution_f32_direct_nhwc_avx2", 1, Isa::kAvx2, kDirectConvolution,
                                DirectInput::kNhwc};
constexpr CpuTactic kNchwAvx512{"convolution_f32_direct_nchw_avx512", 1, Isa::kAvx512, kDirectConvolution,
                                DirectInput::kNchw};
constexpr CpuTactic kNchwAvx2{"convolution_f32_direct_nchw_avx2", 1, Isa::kAvx2, kDirectConvolution,
                              DirectInput::kNchw};
constexpr CpuTactic kPaddedAvx512{"convolution_f32_padded_avx512", 1, Isa::kAvx512, kPaddedConvolution};
constexpr CpuTactic kPaddedAvx2{"convolution_f32_padded_avx2", 1, Isa::kAvx2, kPaddedConvolution};
constexpr CpuTactic kBf16Amx{
    "convolution_bf16_padded_amx", 1, Isa::kAvx512, kPaddedConvolution, Factors::kBf16Tiles, Rounding::kBf16};
constexpr CpuTactic kBf16Avx512{
    "convolution_bf16_padded_avx512", 1, Isa::kAvx512, kPaddedConvolution, Factors::kBf16Dots, Rounding::kBf16};
constexpr CpuTactic kBf16Avx2{
    "convolution_bf16_padded_avx2", 1, Isa::kAvx2, kPaddedConvolution, Factors::kBf16Shifts, Rounding::kBf16};
constexpr CpuTactic kInt8DepthwiseAvx512{"convolution_i8_depthwise_avx512", 1, Isa::kAvx512, kInt8DepthwiseConvolution};
constexpr CpuTactic kInt8DepthwiseAvx2{"convolution_i8_depthwise_avx2", 1, Isa::kAvx2, kInt8DepthwiseConvolution};
constexpr CpuTactic kInt8DirectAvx512{"convolution_i8_direct_avx512", 1, Isa::kAvx512, kInt8DirectConvolution};
constexpr CpuTactic kInt8DirectAvx2{"convolution_i8_direct_avx2", 1, Isa::kAvx2, kInt8DirectConvolution};
constexpr CpuTactic kInt8WinogradAvx2{"convolution_i8_winograd_avx2", 1, Isa::kAvx2, kInt8WinogradConvolution};
constexpr CpuTactic kInt8PaddedAvx512{"convolution_i8_padded_avx512", 1, Isa::kAvx512, kInt8PaddedConvolution};
constexpr CpuTactic kInt8PaddedAvx2{"convolution_i8_padded_avx2", 1, Isa::kAvx2, kInt8PaddedConvolution};
// Tensors of BF16, whose numbers are factors as they are.
constexpr WidenedTactic kTensorsAmx{"convolution_bf16_widened_padded_amx", 1, kBf16Amx};
constexpr WidenedTactic kTensorsAvx512{"convolution_bf16_widened_padded_avx512", 1, kBf16Avx512};
constexpr WidenedTactic kTensorsAvx2{"convolution_bf16_widened_padded_avx2", 1, kBf16Avx2};
constexpr WidenedTactic kTensorsDepthwiseAvx512{"convolution_bf16_widened_depthwise_avx512", 1, kDepthwiseAvx512};
constexpr WidenedTactic kTensorsDepthwiseAvx2{"convolution_bf16_widened_depthwise_avx2", 1, kDepthwiseAvx2};
constexpr WidenedTactic kTensorsDirectAvx512{"convolution_bf16_widened_direct_nhwc_avx512", 1, kDirectAvx512};
constexpr WidenedTactic kTensorsDirectAvx2{"convolution_bf16_widened_direct_nhwc_avx2", 1, kDirectAvx2};
constexpr PlainTactic kPlain{"convolution_any_plain_cpu", 1, run, workspace};

} // namespace

extern constinit TacticList const cpuTactics =
    kTactics<kWinogradAvx512, kWinogradAvx2, kDepthwiseAvx512, kDepthwiseAvx2, kFewFiltersAvx512, kFewFiltersAvx2,
             kNchwAvx512, kNchwAvx2, kDirectAvx512, kDirectAvx2, kPaddedAvx512, kPaddedAvx2, kBf16Amx, kBf16Avx512,
             kBf16Avx2, kTensorsAmx, kTensorsAvx512, kTensorsAvx2, kTensorsDepthwiseAvx512, kTensorsDepthwiseAvx2,
             kTensorsDirectAvx512, kTensorsDirectAvx2, kInt8DepthwiseAvx512, kInt8DepthwiseAvx2, kInt8WinogradAvx2,
             kInt8DirectAvx512, kInt8DirectAvx2, kInt8PaddedAvx512, kInt8PaddedAvx2, kPlain>;

} // namespace tw::ops::convolution
