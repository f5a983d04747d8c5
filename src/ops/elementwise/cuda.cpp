// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_pointwise.h"
#include "ops/elementwise/op.h"

namespace tw::ops::elementwise {

namespace {

// Floating numbers; i8 too, in double: all its results are exact there.
char const* realExpression(Operation operation, bool isSmall)
{
    switch (operation) {
    case Operation::kSum:
        return "a + b";
    case Operation::kProd:
        return "a * b";
    case Operation::kMax: // NaN when either is
        return "a != a ? a : b != b ? b : a > b ? a : b";
    case Operation::kMin:
        return "a != a ? a : b != b ? b : a < b ? a : b";
    case Operation::kSub:
        return "a - b";
    case Operation::kDiv:
        return isSmall ? "b == 0 ? 0 : a / b" : "a / b";
    case Operation::kPow:
        return "pow(a, b)";
    case Operation::kFloorDiv:
        return isSmall ? "b == 0 ? 0 : floor(a / b)" : "floor(a / b)";
    case Operation::kEqual:
        return "a == b";
    case Operation::kGreater:
        return "a > b";
    case Operation::kLess:
        return "a < b";
    default:
        return "0";
    }
}

// i32 wraps, so that sums and products are those of unsigned numbers; a quotient of 64 bits never overflows.
char const* wholeExpression(Operation operation)
{
    switch (operation) {
    case Operation::kSum:
        return "int(u32(a) + u32(b))";
    case Operation::kProd:
        return "int(u32(a) * u32(b))";
    case Operation::kMax:
        return "a > b ? a : b";
    case Operation::kMin:
        return "a < b ? a : b";
    case Operation::kSub:
        return "int(u32(a) - u32(b))";
    case Operation::kDiv:
        return "b == 0 ? 0 : int(i64(a) / i64(b))";
    case Operation::kFloorDiv:
        return "b == 0 ? 0 : int(i64(a) / i64(b) - (i64(a) % i64(b) != 0 && (a < 0) != (b < 0)))";
    case Operation::kAnd:
        return "a & b";
    case Operation::kOr:
        return "a | b";
    case Operation::kXor:
        return "a ^ b";
    case Operation::kEqual:
        return "a == b";
    case Operation::kGreater:
        return "a > b";
    case Operation::kLess:
        return "a < b";
    case Operation::kPow: // not for i32
        return "0";
    }
    return "0";
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const&)
{
    Operation const operation = p.node->attrsAs<Attrs>().operation;
    DataType const t = p.inputs[0].type;
    bool const isSmall = isQuantized(t);
    std::string const number = cuda::computeOf(t), result = isComparison(operation) ? "int" : number;
    char const* const expression =
        isFloating(t) || isSmall ? realExpression(operation, isSmall) : wholeExpression(operation);
    return pointwiseKernels(
        p, {"elementwise",
            {0, 1},
            "TW_INLINE " + result + " apply(" + number + " a, " + number + " b) { return " + expression + "; }\n"});
}

constexpr CudaTactic kPlain{"elementwise_any_plain_cuda", 1, generate, nullptr, nullptr, pointwiseFormatsOfAll};

} // namespace

constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::elementwise
