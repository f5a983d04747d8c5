// SPDX-License-Identifier: Apache-2.0
// What a build has decided by scales, and the ranges that steps are made of.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/tensor.h"
#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "recipe/recipes.h"

namespace tw::recipe {

namespace {

using Operation = ops::elementwise::Operation;

ir::Value* literal(ir::Graph& g, Extents const& dims, float value)
{
    return g.addConstant("literal", DataType::kFloat, dims, &value);
}

bool isRange(ir::Value const& source)
{
    return source.constant->role == ir::WeightsRole::kAny;
}

// The range that gives this step, where there is one.
float rangeOf(float step)
{
    float const range = step * 127;
    for (float r : {range, std::nextafter(range, 0.F), std::nextafter(range, std::numeric_limits<float>::max())})
        if (r / 127 == step)
            return r;
    return range;
}

} // namespace

// As a list of f32.
Result<ir::Value*> Recipes::floatsOf(ir::Value const& constant, Sources& sources)
{
    TW_ASSIGN(ir::Value * v, valueOf(constant, sources));
    TW_ASSIGN(v, reshaped(*graph_, v, {ir::extentsOf(constant.shape).volume()}));
    if (isFullFloat(v->type))
        return v;
    TW_ASSIGN(ir::Node * n,
              graph_->addNode(ops::identity::def(), std::make_unique<ops::identity::Attrs>(DataType::kFloat), {v},
                              constant.name));
    return n->outputs[0];
}

Result<ir::Value*> Recipes::compare(int32_t operation, ir::Value* a, ir::Value* b, std::string const& name)
{
    TW_ASSIGN(ir::Node * n,
              graph_->addNode(ops::elementwise::def(), std::make_unique<ops::elementwise::Attrs>(Operation(operation)),
                              {a, b}, name));
    return n->outputs[0];
}

Result<void> Recipes::keepEqual(ir::Value const& a, ir::Value const& b, std::string const& text)
{
    Blob const *one = a.constant->data.get(), *other = b.constant->data.get();
    if (one == other || (!reaches(a) && !reaches(b)) || !compared_.insert(std::minmax(one, other)).second)
        return {};
    Condition c;
    TW_ASSIGN(ir::Value * x, floatsOf(a, c.sources));
    TW_ASSIGN(ir::Value * y, floatsOf(b, c.sources));
    TW_ASSIGN(c.holds, compare(int32_t(Operation::kEqual), x, y, text));
    conditions_.push_back(std::move(c));
    return {};
}

Result<void> Recipes::keepPositive(ir::Value const& scale, std::string const& text)
{
    Blob const* const blob = scale.constant->data.get();
    if (!reaches(scale) || !compared_.insert({blob, blob}).second)
        return {};
    Condition c;
    TW_ASSIGN(ir::Value * x, floatsOf(scale, c.sources));
    ir::Value* const zero = literal(*graph_, {1}, 0);
    ir::Value* const infinity = literal(*graph_, {1}, std::numeric_limits<float>::infinity());
    TW_ASSIGN(ir::Value * above, compare(int32_t(Operation::kGreater), x, zero, text));
    TW_ASSIGN(ir::Value * below, compare(int32_t(Operation::kLess), x, infinity, text));
    TW_ASSIGN(c.holds, compare(int32_t(Operation::kAnd), above, below, text));
    conditions_.push_back(std::move(c));
    return {};
}

Result<void> Recipes::addRange(std::string const& tensor, BlobPtr const& step)
{
    if (known_.contains(step.get()))
        return {};
    float const largest = rangeOf(*static_cast<float const*>(step->data()));
    auto constant = std::make_shared<ir::Constant>();
    constant->data = Blob::copy(&largest, sizeof largest);
    constant->layer = tensor;
    constant->role = ir::WeightsRole::kAny;
    Known known{step, nullptr, {}};
    ir::Value* const source = graph_->addConstant(tensor, DataType::kFloat, Extents{}, std::move(constant));
    known.sources = {source};
    TW_ASSIGN(known.value, compare(int32_t(Operation::kDiv), source, literal(*graph_, {}, 127), tensor));
    known_[step.get()] = std::move(known);
    return {};
}

// As outputs of the recipes. Those of ranges alone only if one of them is used: else the graph with INT8 was not chosen.
void Recipes::keepConditions(Sources const& used)
{
    for (Condition const& c : conditions_)
        if (std::ranges::any_of(c.sources, [&](ir::Value const* s) {
                return !fixed_.contains(s) && (!isRange(*s) || used.contains(s));
            }))
            graph_->outputs.push_back(c.holds);
}

} // namespace tw::recipe
