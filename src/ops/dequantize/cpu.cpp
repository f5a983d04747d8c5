// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/pointwise_jit.h"
#include "ops/dequantize/op.h"
#include "tactic/scale_axis.h"

namespace tw::ops::dequantize {

namespace {

Result<void> run(ir::Node const& node, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &scale = args.inputs[1], &y = args.outputs[0];
    float block[kBlock];
    forEachScaledBlock(scaleGeometry(x.dims, node.attrsAs<Attrs>().axis), scale.as<float>(),
                       [&](int64_t at, int64_t n, float const* s, int64_t step) {
                           int8_t const* from = x.as<int8_t>() + at;
                           float* to = floatsAt(y.type, y.data, at, block);
                           for (int64_t e = 0; e < n; ++e)
                               to[e] = float(from[e]) * s[e * step];
                           storeFloats(y.type, y.data, at, n, to);
                       });
    return {};
}

constexpr PlainTactic kPlain{"dequantize_any_plain_cpu", 1, run};

using kernels::jit::Isa;
constexpr auto kSpec = scaledSpec<Attrs, StepCode::kMul>;
constexpr PointwiseTactic kAvx512{"dequantize_f32_jit_avx512", 1, Isa::kAvx512, kSpec, DataType::kInt8};
constexpr PointwiseTactic kAvx2{"dequantize_f32_jit_avx2", 1, Isa::kAvx2, kSpec, DataType::kInt8};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512, kAvx2, kPlain>;

} // namespace tw::ops::dequantize
