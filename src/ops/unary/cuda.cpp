// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_pointwise.h"
#include "kernels/cuda/common/source.h"
#include "ops/unary/op.h"

namespace tw::ops::unary {

namespace {

// Of each operation, in their order: what it makes of x, and where y is FP16 the function of half_math.cuh; null: there is no
// need.
struct Form
{
    char const* full;
    char const* half = nullptr;
};
constexpr Form kForms[kOperationCount] = {
    {"exp(x)", "halfExp"},             // kExp
    {"log(x)", "halfLog"},             // kLog
    {"sqrt(x)", "halfSqrt"},           // kSqrt
    {"1 / x", "halfRecip"},            // kRecip
    {"fabs(x)"},                       // kAbs
    {"-x"},                            // kNeg
    {"sin(x)", "halfSin"},             // kSin
    {"cos(x)", "halfCos"},             // kCos
    {"tan(x)", "halfTan"},             // kTan
    {"sinh(x)", "halfSinh"},           // kSinh
    {"cosh(x)", "halfCosh"},           // kCosh
    {"asin(x)", "halfAsin"},           // kAsin
    {"acos(x)", "halfAcos"},           // kAcos
    {"atan(x)", "halfAtan"},           // kAtan
    {"asinh(x)", "halfAsinh"},         // kAsinh
    {"acosh(x)", "halfAcosh"},         // kAcosh
    {"atanh(x)", "halfAtanh"},         // kAtanh
    {"ceil(x)"},                       // kCeil
    {"floor(x)"},                      // kFloor
    {"erf(x)", "halfErf"},             // kErf
    {"T(x == 0)"},                     // kNot
    {"T(x > 0 ? 1 : x < 0 ? -1 : 0)"}, // kSign
    {"rint(x)"},                       // kRound
};

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const&)
{
    Form const& form = kForms[int(p.node->attrsAs<Attrs>().operation)];
    char const* const half = isNarrowFloat(p.outputs[0].type) ? form.half : nullptr;
    std::string const apply =
        half ? cuda::include("kernels/cuda/common/half_math.cuh") + "TW_INLINE float apply(float x) { return " + half +
                   "(x); }\n"
             : std::string("template <class T> TW_INLINE T apply(T x) { return ") + form.full + "; }\n";
    return pointwiseKernels(p, {"unary", {0}, apply});
}

constexpr CudaTactic kPlain{"unary_any_plain_cuda", 2, generate, nullptr, nullptr, pointwiseFormatsOfAll};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::unary
