// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "families/elementwise/pointwise_jit.h"
#include "ops/quantize/op.h"
#include "tactic/scale_axis.h"

namespace tw::ops::quantize {

namespace {

int8_t quantized(float x, float scale)
{
    float const quotient = x / scale;
    if (quotient != quotient)
        return 0;
    return int8_t(std::clamp(std::nearbyintf(quotient), -128.0F, 127.0F));
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &scale = args.inputs[1], &y = args.outputs[0];
    float block[kBlock];
    forEachScaledBlock(scaleGeometry(x.dims, node.attrsAs<Attrs>().axis), scale.as<float>(),
                       [&](int64_t at, int64_t n, float const* s, int64_t step) {
                           float const* from = loadFloats(x.type, x.data, at, 1, n, block);
                           for (int64_t e = 0; e < n; ++e)
                               y.as<int8_t>()[at + e] = quantized(from[e], s[e * step]);
                       });
    return {};
}

constexpr PlainTactic kPlain{"quantize_any_plain_cpu", 1, run};

using kernels::jit::Isa;
constexpr auto kSpec = scaledSpec<Attrs, StepCode::kDiv>;
constexpr PointwiseTactic kAvx512{"quantize_f32_jit_avx512", 1, Isa::kAvx512, kSpec, DataType::kInt8};
constexpr PointwiseTactic kAvx2{"quantize_f32_jit_avx2", 1, Isa::kAvx2, kSpec, DataType::kInt8};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512, kAvx2, kPlain>;

} // namespace tw::ops::quantize
