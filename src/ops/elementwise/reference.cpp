// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/elementwise/op.h"

namespace tw::ops::elementwise {

namespace {

double real(Operation operation, double a, double b)
{
    switch (operation) {
    case Operation::kSum:
        return a + b;
    case Operation::kProd:
        return a * b;
    case Operation::kMax:
        return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::fmax(a, b);
    case Operation::kMin:
        return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::fmin(a, b);
    case Operation::kSub:
        return a - b;
    case Operation::kDiv:
        return a / b;
    case Operation::kPow:
        return std::pow(a, b);
    case Operation::kFloorDiv:
        return std::floor(a / b);
    case Operation::kEqual:
        return a == b;
    case Operation::kGreater:
        return a > b;
    case Operation::kLess:
        return a < b;
    default:
        return 0;
    }
}

// Products of two int32 fit into 64 bits; the caller wraps (i32) or saturates (i8).
int64_t integer(Operation operation, int64_t a, int64_t b)
{
    switch (operation) {
    case Operation::kSum:
        return a + b;
    case Operation::kProd:
        return a * b;
    case Operation::kMax:
        return std::max(a, b);
    case Operation::kMin:
        return std::min(a, b);
    case Operation::kSub:
        return a - b;
    case Operation::kDiv:
        return b == 0 ? 0 : a / b;
    case Operation::kFloorDiv:
        return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));
    case Operation::kAnd:
        return a & b;
    case Operation::kOr:
        return a | b;
    case Operation::kXor:
        return a ^ b;
    case Operation::kEqual:
        return a == b;
    case Operation::kGreater:
        return a > b;
    case Operation::kLess:
        return a < b;
    case Operation::kPow: // not for i32; see small()
        return 0;
    }
    return 0;
}

double small(Operation operation, int64_t a, int64_t b)
{
    double v = double(integer(operation, a, b));
    if (operation == Operation::kPow)
        v = std::pow(double(a), double(b));
    if (operation == Operation::kDiv)
        v = b == 0 ? 0 : double(a) / double(b);
    return std::clamp(std::nearbyint(v), -128.0, 127.0);
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    Operation const operation = ctx.attrs<Attrs>().operation;
    TensorRef const &a = ctx.in(0), &b = ctx.in(1), &y = ctx.out();
    if (y.count() == 0)
        return {};
    Extents const aStrides = stridesOf(a.dims, true), bStrides = stridesOf(b.dims, true);
    Counter at(y.dims);
    int64_t i = 0;
    do {
        int64_t const ai = at.offset(aStrides), bi = at.offset(bStrides);
        if (isFloating(a.type))
            y.set(i, real(operation, a.get(ai), b.get(bi)));
        else if (isQuantized(y.type))
            y.set(i, small(operation, a.getInt(ai), b.getInt(bi)));
        else
            y.setInt(i, integer(operation, a.getInt(ai), b.getInt(bi)));
        ++i;
    } while (at.next());
    return {};
}

} // namespace tw::ops::elementwise
