// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/epilogue.h"

#include <algorithm>
#include <cmath>

#include "ir/infer.h"
#include "tactic/domain.h"
#include "tactic/reference.h"

namespace tw::ops {

namespace {

// Slope over largest value of activations with bounded results, 0 of others.
double steepness(FusedActivation const& f)
{
    using activation::Kind;
    double const alpha = std::fabs(f.alpha), beta = std::fabs(f.beta);
    switch (Kind(f.kind)) {
    case Kind::kSigmoid:
        return 0.25;
    case Kind::kTanh:
    case Kind::kSoftsign:
        return 1;
    case Kind::kClip:
        return 1 / std::max({alpha, beta, 1e-30});
    case Kind::kHardSigmoid:
        return alpha;
    case Kind::kScaledTanh:
        return beta;
    default:
        return 0;
    }
}

} // namespace

bool hasInput(ir::Node const& node, int input)
{
    return size_t(input) < node.inputs.size() && node.inputs[size_t(input)] != nullptr;
}

Result<void> inferEpilogue(ir::InferContext& ctx, Epilogue const& epilogue)
{
    if (std::string const why = epilogue.activation.check(); !why.empty())
        return ctx.error(why);
    if (!ctx.has(Epilogue::kResidual))
        return {};
    ir::Shape const &y = ctx.outputs()[0].shape, &r = ctx.shape(Epilogue::kResidual);
    bool fits = ctx.type(Epilogue::kResidual) == ctx.type(0) && r.size() == y.size();
    for (size_t i = 0; fits && i < y.size(); ++i)
        fits = r[i] == y[i] || !(r[i].isConst() && y[i].isConst());
    return fits ? Result<void>()
                : ctx.error("residual " + ctx.describe(Epilogue::kResidual) + " must have the output's shape " +
                            ir::str(y));
}

Tolerance epilogueTolerance(Epilogue const& epilogue, DataType type, std::function<double()> const& largestSquares)
{
    Tolerance t = Tolerance::forType(type);
    double const steep = steepness(epilogue.activation);
    if (steep != 0 && type == DataType::kFloat)
        t.absolute *= std::clamp(4 * std::sqrt(largestSquares() / 3) * steep, 1., 100.);
    return t;
}

Result<void> finishReference(RefContext& ctx, Epilogue const& epilogue)
{
    TensorRef const& y = ctx.out();
    if (ctx.has(Epilogue::kResidual))
        ctx.forEachWanted([&](int64_t i) { y.set(i, y.get(i) + ctx.in(Epilogue::kResidual).get(i)); });
    return activateReference(epilogue.activation, y, ctx.wantedElements());
}

} // namespace tw::ops
