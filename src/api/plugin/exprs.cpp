// SPDX-License-Identifier: Apache-2.0
#include "api/plugin/exprs.h"

#include <algorithm>
#include <optional>

#include "api/report.h"

using namespace tw;
using namespace tw::api;

namespace nvinfer1 {

namespace {

// None: there is no such operation, or it divides by zero.
std::optional<ir::Dim> apply(DimensionOperation op, ir::Dim const& a, ir::Dim const& b)
{
    bool const divides = op == DimensionOperation::kFLOOR_DIV || op == DimensionOperation::kCEIL_DIV;
    if (divides && b.is(0))
        return std::nullopt;
    switch (op) {
    case DimensionOperation::kSUM:
        return a + b;
    case DimensionOperation::kPROD:
        return a * b;
    case DimensionOperation::kMAX:
        return max(a, b);
    case DimensionOperation::kMIN:
        return min(a, b);
    case DimensionOperation::kSUB:
        return a - b;
    case DimensionOperation::kEQUAL:
        return ir::Dim::make(ir::DimOp::kEqual, a, b);
    case DimensionOperation::kLESS:
        return ir::Dim::make(ir::DimOp::kLess, a, b);
    case DimensionOperation::kFLOOR_DIV:
        return floorDiv(a, b);
    case DimensionOperation::kCEIL_DIV:
        return ceilDiv(a, b);
    }
    return std::nullopt;
}

} // namespace

bool IDimensionExpr::isConstant() const noexcept
{
    return dimOf(*this).isConst();
}

int32_t IDimensionExpr::getConstantValue() const noexcept
{
    ir::Dim const& d = dimOf(*this);
    return d.isConst() ? int32_t(std::clamp<int64_t>(d.value(), INT32_MIN, INT32_MAX)) : INT32_MIN;
}

IDimensionExpr const* IExprBuilder::constant(int32_t value) noexcept
{
    Reporter reporter(getLogger());
    return guarded<IDimensionExpr const*>(reporter, nullptr, [&]() -> Result<IDimensionExpr const*> {
        return static_cast<ExprBuilder*>(this)->make(ir::Dim(value));
    });
}

IDimensionExpr const* IExprBuilder::operation(DimensionOperation op, IDimensionExpr const& first,
                                              IDimensionExpr const& second) noexcept
{
    Reporter reporter(getLogger());
    return guarded<IDimensionExpr const*>(reporter, nullptr, [&]() -> Result<IDimensionExpr const*> {
        auto result = apply(op, dimOf(first), dimOf(second));
        if (!result)
            return invalidArgument(
                "IExprBuilder::operation: operation {} of {} and {} is none of the nine or divides by zero",
                static_cast<int>(op), dimOf(first).str(), dimOf(second).str());
        return static_cast<ExprBuilder*>(this)->make(*std::move(result));
    });
}

} // namespace nvinfer1
