// SPDX-License-Identifier: Apache-2.0
// Expressions of f32 tensors in one pass over memory, emitted for the shapes at hand, in linear and channels-last
// formats: what element-wise ops and clusters of them share. An op says its expression; broadcasting and sharing out
// work is done here.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

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

    // Of f32, or of what has an input or output of type `beside` too.
    constexpr PointwiseTactic(char const* name, int version, kernels::jit::Isa isa, SpecOf spec,
                              DataType beside = DataType::kFloat)
        : IsaTactic(name, version, isa), spec_(spec), beside_(beside)
    {}
    Traits traits() const override
    {
        Traits t = IsaTactic::traits();
        t.type = beside_;
        return t;
    }
    Support supports(Problem const& problem) const override;
    std::vector<Formats> formats(Problem const& problem) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const&, std::string const&) const override;

private:
    SpecOf spec_;
    DataType beside_;
};

template <size_t N>
struct Word
{
    char text[N];
    constexpr Word(char const (&t)[N]) { std::copy_n(t, N, text); }
};
template <Word op, DataType type, kernels::jit::Isa isa>
inline constexpr auto kPointwiseName = [] {
    std::array<char, 64> name{};
    auto at = name.begin();
    for (std::string_view const part :
         {std::string_view(op.text), std::string_view("_"), std::string_view(nameOf(type)),
          std::string_view(isa == kernels::jit::Isa::kAvx512 ? "_jit_avx512" : "_jit_avx2")})
        at = std::copy(part.begin(), part.end(), at);
    return name;
}();
// "<op>_<type>_jit_<isa>"
template <Word op, PointwiseTactic::SpecOf spec, DataType type, kernels::jit::Isa isa>
inline constexpr PointwiseTactic kPointwise{kPointwiseName<op, type, isa>.data(), 1, isa, spec, type};
// Those of every type and instruction set, and then the others of the op.
template <Word op, PointwiseTactic::SpecOf spec, auto const&... others>
inline constexpr Tactic const* kPointwiseTactics[] = {
    &kPointwise<op, spec, DataType::kFloat, kernels::jit::Isa::kAvx512>,
    &kPointwise<op, spec, DataType::kFloat, kernels::jit::Isa::kAvx2>,
    &kPointwise<op, spec, DataType::kBf16, kernels::jit::Isa::kAvx512>,
    &kPointwise<op, spec, DataType::kBf16, kernels::jit::Isa::kAvx2>, &others...};

} // namespace tw::ops
