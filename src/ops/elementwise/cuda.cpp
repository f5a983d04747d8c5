// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_pointwise.h"
#include "ops/elementwise/op.h"

namespace tw::ops::elementwise {

namespace {

// What each operation makes of a and b, in the order of Operation. `real`: of floating numbers, NaN when either is; of i8 too
// but where `small` stands, in double: all its results are exact there. `whole`: of i32, which wraps, so that sums and products
// are those of unsigned numbers; a quotient of 64 bits never overflows.
struct Form
{
    char const *real, *whole, *small = nullptr;
};
constexpr Form kForms[kOperationCount] = {
    {"a + b", "int(u32(a) + u32(b))"},
    {"a * b", "int(u32(a) * u32(b))"},
    {"a != a ? a : b != b ? b : a > b ? a : b", "a > b ? a : b"},
    {"a != a ? a : b != b ? b : a < b ? a : b", "a < b ? a : b"},
    {"a - b", "int(u32(a) - u32(b))"},
    {"a / b", "b == 0 ? 0 : int(i64(a) / i64(b))", "b == 0 ? 0 : a / b"},
    {"pow(a, b)", "0"}, // not for i32
    {"floor(a / b)", "b == 0 ? 0 : int(i64(a) / i64(b) - (i64(a) % i64(b) != 0 && (a < 0) != (b < 0)))",
     "b == 0 ? 0 : floor(a / b)"},
    {"0", "a & b"},
    {"0", "a | b"},
    {"0", "a ^ b"},
    {"a == b", "a == b"},
    {"a > b", "a > b"},
    {"a < b", "a < b"},
};

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const&)
{
    Operation const operation = p.node->attrsAs<Attrs>().operation;
    DataType const t = p.inputs[0].type;
    bool const isSmall = isQuantized(t);
    std::string const number = cuda::computeOf(t), result = isComparison(operation) ? "int" : number;
    Form const& form = kForms[int(operation)];
    char const* const expression = isSmall && form.small      ? form.small
                                   : isFloating(t) || isSmall ? form.real
                                                              : form.whole;
    return pointwiseKernels(
        p, {"elementwise",
            {0, 1},
            "TW_INLINE " + result + " apply(" + number + " a, " + number + " b) { return " + expression + "; }\n"});
}

constexpr CudaTactic kPlain{"elementwise_any_plain_cuda", 1, generate, nullptr, nullptr, pointwiseFormatsOfAll};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::elementwise
