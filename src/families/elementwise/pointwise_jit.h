// SPDX-License-Identifier: Apache-2.0
// Expressions of f32 tensors in one pass over memory, emitted for the shapes at hand, in linear and channels-last
// formats: what element-wise ops and clusters of them share. An op says its expression; broadcasting and sharing out
// work is done here.
#pragma once

#include <algorithm>

#include "kernels/cpu/jit/pointwise.h"
#include "ops/pointwise/op.h"
#include "tactic/cpu_tactic.h"
#include "tactic/tactic.h"

namespace tw::ops {

// How an input of the node stands to the output y.
struct PointwiseInput
{
    enum class Kind
    {
        kBroadcast, // of y's rank, each dimension that of y or 1
        kScalar,    // one element, in any shape
        kChannel,   // as many elements as y has along `axis`, in any shape
        kTrailing,  // as many elements as y has from `axis` on
    };
    int index = 0; // of the node's input
    Kind kind = Kind::kBroadcast;
    int axis = 0;
};
struct PointwiseSpec
{
    kernels::jit::PointwiseProgram program;
    std::vector<PointwiseInput> inputs; // of the program
};

// One step of that many inputs; of the op pointwise, an error where it has no such step.
PointwiseSpec stepSpec(ExpressionStep const& step, int inputs);
Result<PointwiseSpec> stepSpec(std::optional<StepCode> code, int inputs);
// Input 0 times (kMul) or by (kDiv) input 1, which is one number (axis -1) or one for each index along the axis.
template <class Attrs, StepCode code>
Result<PointwiseSpec> scaledSpec(Problem const& p)
{
    using Kind = PointwiseInput::Kind;
    int const axis = p.node->attrsAs<Attrs>().axis;
    PointwiseSpec spec = stepSpec({code, 0, 1}, 2);
    spec.inputs[1] = {1, axis < 0 ? Kind::kScalar : Kind::kChannel, std::max(axis, 0)};
    return spec;
}

class PointwiseTactic final : public IsaTactic
{
public:
    // The node's expression, or why it has none.
    using SpecOf = Result<PointwiseSpec> (*)(Problem const&);

    // Of f32, or of what has an i8 input or output beside it.
    enum class Elements
    {
        kFloat,
        kInt8,
    };
    constexpr PointwiseTactic(char const* name, int version, kernels::jit::Isa isa, SpecOf spec,
                              Elements elements = Elements::kFloat)
        : IsaTactic(name, version, isa), spec_(spec), elements_(elements)
    {}
    Support supports(Problem const& problem) const override;
    std::vector<Formats> formats(Problem const& problem) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const&, std::string const&) const override;

private:
    SpecOf spec_;
    Elements elements_;
};

} // namespace tw::ops
