// SPDX-License-Identifier: Apache-2.0
// Dimension expressions of plugins: ir::Dim behind the public classes.
#pragma once

#include <algorithm>
#include <deque>

#include "NvInferRuntime.h"
#include "ir/dim.h"

namespace tw::api {

struct DimensionExpr final : nvinfer1::IDimensionExpr
{
    explicit DimensionExpr(ir::Dim d) : dim(std::move(d)) {}
    ir::Dim dim;
};

// Owns every expression that it gives.
class ExprBuilder final : public nvinfer1::IExprBuilder
{
public:
    nvinfer1::IDimensionExpr const* make(ir::Dim d)
    {
        made_.emplace_back(std::move(d));
        return &made_.back();
    }
    // Whether an expression is one of its own: others may be of a builder that is gone.
    bool owns(nvinfer1::IDimensionExpr const* e) const
    {
        return std::ranges::any_of(made_, [&](DimensionExpr const& known) { return &known == e; });
    }

private:
    std::deque<DimensionExpr> made_;
};

inline ir::Dim const& dimOf(nvinfer1::IDimensionExpr const& e)
{
    return static_cast<DimensionExpr const&>(e).dim;
}

} // namespace tw::api
