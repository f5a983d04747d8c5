// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "families/elementwise/pointwise_jit.h"
#include "ops/parametric_relu/op.h"
#include "tactic/blocks.h"
#include "tactic/broadcast.h"

namespace tw::ops::parametric_relu {

namespace {

// i8 goes through float too: products of two of them are exact there.
Result<void> run(ir::Node const&, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &slope = args.inputs[1], &y = args.outputs[0];
    BroadcastLoop const loop = broadcastLoop(y.dims, {&x.dims, &slope.dims});
    int64_t const row = loop.rowLength(), xStep = loop.rowStride(0), slopeStep = loop.rowStride(1);
    float xBlock[kBlock], slopeBlock[kBlock], yBlock[kBlock];
    loop.forEachRow([&](int64_t at, int64_t const* from) {
        for (int64_t i = 0; i < row; i += kBlock) {
            int64_t const n = std::min(kBlock, row - i);
            float const* xs = loadFloats(x.type, x.data, from[0] + i * xStep, xStep, n, xBlock);
            float const* slopes = loadFloats(slope.type, slope.data, from[1] + i * slopeStep, slopeStep, n, slopeBlock);
            float* to = floatsAt(y.type, y.data, at + i, yBlock);
            for (int64_t k = 0; k < n; ++k) {
                float const scaled = slopes[k] * xs[k];
                to[k] = xs[k] >= 0 ? xs[k] : scaled;
            }
            storeFloats(y.type, y.data, at + i, n, to);
        }
    });
    return {};
}

constexpr PlainTactic kPlain{"parametric_relu_any_plain_cpu", 1, run};

// One step of an emitted expression.
Result<PointwiseSpec> specOf(Problem const&)
{
    return stepSpec({StepCode::kParametricRelu, 0, 1}, 2);
}

} // namespace

extern constinit TacticList const cpuTactics = kPointwiseTactics<"parametric_relu", specOf, kPlain>;

} // namespace tw::ops::parametric_relu
