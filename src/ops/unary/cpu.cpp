// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "families/elementwise/pointwise_jit.h"
#include "kernels/cpu/functions.h"
#include "ops/unary/op.h"
#include "tactic/blocks.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::unary {

namespace {

template <class T, class F>
void each(T const* x, T* y, int64_t n, F f)
{
    for (int64_t i = 0; i < n; ++i)
        y[i] = f(x[i]);
}

// In float for f32 and f16, in double for the table of i8.
template <class T>
using Loop = void (*)(T const* x, T* y, int64_t n);
template <class T, class F>
constexpr Loop<T> loopOf(F)
{
    return [](T const* x, T* y, int64_t n) { each(x, y, n, F{}); };
}
template <class T>
constexpr Loop<T> kLoops[kOperationCount] = {
    // of bools alone there is `not`, see run()
    loopOf<T>([](T v) { return std::exp(v); }),
    loopOf<T>([](T v) { return std::log(v); }),
    loopOf<T>([](T v) { return std::sqrt(v); }),
    loopOf<T>([](T v) { return 1 / v; }),
    loopOf<T>([](T v) { return std::fabs(v); }),
    loopOf<T>([](T v) { return -v; }),
    loopOf<T>([](T v) { return std::sin(v); }),
    loopOf<T>([](T v) { return std::cos(v); }),
    loopOf<T>([](T v) { return std::tan(v); }),
    loopOf<T>([](T v) { return std::sinh(v); }),
    loopOf<T>([](T v) { return std::cosh(v); }),
    loopOf<T>([](T v) { return std::asin(v); }),
    loopOf<T>([](T v) { return std::acos(v); }),
    loopOf<T>([](T v) { return std::atan(v); }),
    loopOf<T>([](T v) { return std::asinh(v); }),
    loopOf<T>([](T v) { return std::acosh(v); }),
    loopOf<T>([](T v) { return std::atanh(v); }),
    loopOf<T>([](T v) { return std::ceil(v); }),
    loopOf<T>([](T v) { return std::floor(v); }),
    loopOf<T>([](T v) { return std::erf(v); }),
    nullptr,
    loopOf<T>([](T v) { return T(v > 0) - T(v < 0); }),
    loopOf<T>([](T v) { return std::nearbyint(v); }),
};

Result<void> run(ir::Node const& node, RunArgs& args)
{
    Operation const operation = node.attrsAs<Attrs>().operation;
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int64_t const count = y.count(), bytes = x.sizeBytes() + y.sizeBytes();
    if (isFloating(x.type))
        inPieces(*args.workers, count, bytes, [&](int64_t begin, int64_t end) {
            float in[kBlock], out[kBlock];
            for (int64_t at = begin, n; at < end; at += n) {
                n = isFullFloat(x.type) ? end - at : std::min(kBlock, end - at); // f32 where it lies, in one
                float* const to = floatsAt(y.type, y.data, at, out);
                kLoops<float>[int(operation)](loadFloats(x.type, x.data, at, 1, n, in), to, n);
                storeFloats(y.type, y.data, at, n, to);
            }
        });
    else if (isQuantized(x.type))
        applyToBytes(x.as<int8_t>(), y.as<int8_t>(), count,
                     [&](double const* from, double* to, int64_t n) { kLoops<double>[int(operation)](from, to, n); });
    else if (x.type == DataType::kInt32) // sign
        each(x.as<int32_t>(), y.as<int32_t>(), count, [](int32_t v) { return int32_t(v > 0) - int32_t(v < 0); });
    else // not
        each(x.as<uint8_t>(), y.as<uint8_t>(), count, [](uint8_t v) { return uint8_t(v == 0); });
    return {};
}

constexpr PlainTactic kPlain{"unary_any_plain_cpu", 1, run};

// One step of an emitted expression.
Result<PointwiseSpec> specOf(Problem const& p)
{
    return stepSpec(stepOf(p.node->attrsAs<Attrs>().operation), 1);
}

// ---- Functions of angles and hyperbolic ones, in vectors.

kernels::RowFunction functionOf(kernels::RowFunctions const& f, Operation operation)
{
    using F = kernels::RowFunctions;
    constexpr kernels::RowFunction F::*kOf[] = {&F::sin,  &F::cos,  &F::tan,   &F::sinh,  &F::cosh, &F::asin,
                                                &F::acos, &F::atan, &F::asinh, &F::acosh, &F::atanh};
    bool const isKnown = operation >= Operation::kSin && operation <= Operation::kAtanh;
    return isKnown ? f.*kOf[int(operation) - int(Operation::kSin)] : nullptr;
}

Support supportsFunction(Problem const& p)
{
    bool const known = functionOf(avx2::kFunctions, p.node->attrsAs<Attrs>().operation);
    return known ? Support::yes() : Support::no("takes functions of angles and hyperbolic ones only");
}

template <kernels::RowFunctions const& f>
Result<void> runFunction(ir::Node const& node, kernels::ChannelsLastKernels const&, RunArgs& args)
{
    Operation const operation = node.attrsAs<Attrs>().operation;
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    auto const function = functionOf(f, operation);
    inPieces(*args.workers, y.count(), 4 * y.sizeBytes(), [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; at += kBlock) {
            int64_t const n = std::min(kBlock, end - at);
            float const* from = x.as<float>() + at;
            if (!function(from, y.as<float>() + at, n))
                kLoops<float>[int(operation)](from, y.as<float>() + at, n);
        }
    });
    return {};
}

using kernels::jit::Isa;
constexpr VectorTactic kRowsAvx512{"unary_f32_rows_avx512", 1,         Isa::kAvx512, runFunction<avx512::kFunctions>,
                                   supportsFunction,        onlyLinear};
constexpr VectorTactic kRowsAvx2{"unary_f32_rows_avx2", 1,         Isa::kAvx2, runFunction<avx2::kFunctions>,
                                 supportsFunction,      onlyLinear};

} // namespace

extern constinit TacticList const cpuTactics = kPointwiseTactics<"unary", specOf, kRowsAvx512, kRowsAvx2, kPlain>;

} // namespace tw::ops::unary
