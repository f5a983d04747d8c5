// SPDX-License-Identifier: Apache-2.0
#include "ops/recurrence/cuda_products.h"
#include "ops/recurrence/op.h"
#include "ops/recurrence/tactics.h"

namespace tw::ops::recurrence {

namespace {

constexpr int kThreads = 256, kRows = 6;

// For results that become FP16 sigmoid and tanh take two special functions each; tanh is within 2e-7.
std::string sigmoidOf(bool isForHalf)
{
    return isForHalf ? "halfSigmoid(x)" : "1.0f / (1.0f + expf(-x))";
}
std::string tanhOf(std::string const& x, bool isForHalf)
{
    return isForHalf ? "1.0f - 2.0f * halfRecip(1.0f + approximatePower(2.88539008f * (" + x + ")))"
                     : "tanhf(" + x + ")";
}

std::string expressionOf(Activation const& f, bool isForHalf)
{
    std::string const a = cuda::literal(float(f.alpha)), b = cuda::literal(float(f.beta));
    switch (f.function) {
    case Function::kSigmoid:
        return sigmoidOf(isForHalf);
    case Function::kTanh:
        return tanhOf("x", isForHalf);
    case Function::kRelu:
        return "x > 0.0f || x != x ? x : 0.0f";
    case Function::kAffine:
        return a + " * x + " + b;
    case Function::kLeakyRelu:
        return "x >= 0.0f ? x : " + a + " * x";
    case Function::kThresholdedRelu:
        return "x > " + a + " ? x : 0.0f";
    case Function::kScaledTanh:
        return a + " * (" + tanhOf(b + " * x", isForHalf) + ")";
    case Function::kHardSigmoid:
        return "fminf(fmaxf(" + a + " * x + " + b + ", 0.0f), 1.0f)";
    case Function::kElu:
        return "x >= 0.0f ? x : " + a + " * expm1f(x)";
    case Function::kSoftsign:
        return "x / (1.0f + fabsf(x))";
    case Function::kSoftplus:
        return "fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)))";
    }
    return "x";
}

std::string functionsText(Attrs const& a, bool isForHalf)
{
    std::string text = "TW_INLINE float functionOf(int d, int i, float x)\n{\n";
    for (int d = 0; d < directionsOf(a); ++d)
        for (int i = 0; i < functionsOf(a.cell); ++i)
            text += fmt::format("    if (d == {} && i == {})\n        return {};\n", d, i,
                                expressionOf(activationOf(a, d, i), isForHalf));
    return text + "    return x;\n}\n";
}

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    CudaSource source = {.text = attrsText(problem) + cuda::include("ops/recurrence/recurrence.cuh"),
                         .names = {"recurrence_sequences"},
                         .wide = isWide(problem),
                         .isDependent = true};
    return kernelsOf(
        std::move(source),
        [attrs = problem.node->attrsAs<Attrs>()](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            Params const p = paramsOf(attrs, args);
            return launch(0, p.batch * directionsOf(attrs), kThreads, p);
        },
        [attrs = problem.node->attrsAs<Attrs>()](std::span<TensorRef const> in, std::span<TensorRef const>) {
            Sizes const s = sizesOf(attrs, in[kX].dims);
            return s.batch * s.directions * kRows * s.hidden * int64_t(sizeof(float));
        });
}

} // namespace

std::string attrsText(Problem const& problem, bool isForHalf)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    return cuda::type("Element", cuda::storageOf(problem.outputs[0].type)) + cuda::constant("kCell", int(a.cell)) +
           cuda::constant("kDirections", directionsOf(a)) + cuda::constant("kRows", kRows) +
           cuda::flag("kReverse", a.direction == Direction::kReverse) + cuda::flag("kLinear", a.linearBeforeReset) +
           cuda::flag("kInputForget", a.inputForget) + cuda::number("kClip", float(a.clip)) +
           cuda::include("kernels/cuda/common/prelude.cuh") + cuda::include("kernels/cuda/common/half_math.cuh") +
           functionsText(a, isForHalf);
}

Params paramsOf(Attrs const& a, RunArgs const& args)
{
    Sizes const s = sizesOf(a, args.inputs[kX].dims);
    auto in = [&](int i) { return i < int(args.inputs.size()) ? args.inputs[size_t(i)].data : nullptr; };
    return {.x = in(kX),
            .w = in(kW),
            .r = in(kR),
            .bias = in(kBias),
            .h0 = in(kH0),
            .c0 = in(kC0),
            .peepholes = in(kPeepholes),
            .lengths = static_cast<int const*>(in(kLengths)),
            .y = args.outputs[0].data,
            .h = args.outputs[1].data,
            .c = a.cell == Cell::kLstm ? args.outputs[2].data : nullptr,
            .rows = static_cast<float*>(args.workspace),
            .steps = s.steps,
            .batch = s.batch,
            .inputs = s.inputs,
            .hidden = s.hidden,
            .xStep = s.xStep,
            .xRow = s.xRow,
            .yStep = s.yStep,
            .yRow = s.yRow,
            .stateDir = s.stateDir,
            .stateRow = s.stateRow};
}

constexpr CudaTactic kPlain{"recurrence_any_plain_cuda", 1, plainKernels};

extern constinit TacticList const cudaTactics = kTactics<registers::kF16, persistent::kF16, persistent::kF32, kPlain>;

} // namespace tw::ops::recurrence
