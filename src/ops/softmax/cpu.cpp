// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/element.h"
#include "base/round.h"
#include "base/tensor.h"
#include "base/workers.h"
#include "kernels/cpu/jit/pointwise.h"
#include "kernels/cpu/jit/softmax_kernel.h"
#include "kernels/cpu/rows.h"
#include "ops/softmax/op.h"
#include "tactic/cpu_tactic.h"
#include "tactic/tactic.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::softmax {

namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity(); // the maximum of nothing

// Slices that are contiguous rows of n.
template <class T>
void rows(bool log, int64_t count, int64_t n, T const* x, T* y)
{
    for (int64_t r = 0; r < count; ++r, x += n, y += n) {
        float m = kLowest;
        for (int64_t j = 0; j < n; ++j)
            m = std::max(m, loadElement(x[j])); // passes over NaN: the sum below finds it
        double s = 0;
        for (int64_t j = 0; j < n; ++j) {
            float const e = std::exp(loadElement(x[j]) - m);
            s += double(e);
            if constexpr (std::is_same_v<T, float>)
                y[j] = e;
        }
        if (log) {
            for (int64_t j = 0; j < n; ++j)
                storeElement(y[j], double(loadElement(x[j]) - m) - std::log(s));
            continue;
        }
        float const scale = float(1 / s);
        for (int64_t j = 0; j < n; ++j) {
            if constexpr (std::is_same_v<T, float>)
                y[j] *= scale;
            else // not from y: e would be rounded to half twice
                storeElement(y[j], std::exp(loadElement(x[j]) - m) * scale);
        }
    }
}

// Slices that run across `inner` columns: all columns at once, kBlock of them at a time.
template <class T>
void columns(bool log, int64_t outer, int64_t n, int64_t inner, T const* x, T* y)
{
    constexpr int64_t kBlock = 256;
    float m[kBlock];
    double s[kBlock];
    for (int64_t o = 0; o < outer; ++o, x += n * inner, y += n * inner)
        for (int64_t first = 0; first < inner; first += kBlock) {
            int64_t const width = std::min(kBlock, inner - first);
            std::fill(m, m + width, kLowest);
            std::fill(s, s + width, 0.0);
            for (int64_t j = 0; j < n; ++j) {
                T const* row = x + j * inner + first;
                for (int64_t i = 0; i < width; ++i)
                    m[i] = std::max(m[i], loadElement(row[i]));
            }
            for (int64_t j = 0; j < n; ++j) {
                T const* row = x + j * inner + first;
                for (int64_t i = 0; i < width; ++i)
                    s[i] += double(std::exp(loadElement(row[i]) - m[i]));
            }
            for (int64_t j = 0; j < n; ++j) {
                T const* row = x + j * inner + first;
                T* out = y + j * inner + first;
                for (int64_t i = 0; i < width; ++i) {
                    double const d = double(loadElement(row[i]) - m[i]);
                    storeElement(out[i], log ? d - std::log(s[i]) : double(std::exp(float(d))) / s[i]);
                }
            }
        }
}

template <class T>
void softmaxAs(TensorRef const& x, TensorRef const& y, Attrs const& a)
{
    int const axis = int(a.axis);
    int64_t const outer = x.dims.volume(0, axis), n = x.dims[axis], inner = x.dims.volume(axis + 1, x.dims.rank);
    if (inner == 1)
        rows(a.log, outer, n, x.as<T>(), y.as<T>());
    else
        columns(a.log, outer, n, inner, x.as<T>(), y.as<T>());
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    auto const& a = node.attrsAs<Attrs>();
    withFloat(x.type, [&](auto element) { softmaxAs<decltype(element)>(x, y, a); });
    return {};
}

constexpr PlainTactic kPlain{"softmax_any_plain_cpu", 1, run};

class JitKernel final : public Kernel
{
public:
    JitKernel(int axis, kernels::jit::SoftmaxKernel kernel) : axis_(axis), kernel_(std::move(kernel)) {}
    Result<void> run(RunArgs& args) const override
    {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        int64_t const rows = x.dims.volume(0, axis_), n = x.dims.volume(axis_, x.dims.rank);
        if (rows == 0 || n == 0)
            return {};
        int64_t const parts = std::min<int64_t>(args.workers->count(), divideUp(rows * n, kPartElements));
        args.workers->run(parts, [&](int64_t part, int) {
            int64_t const begin = rows * part / parts, end = rows * (part + 1) / parts;
            kernels::jit::SoftmaxArgs a;
            a.x = x.as<float>() + begin * n;
            a.y = y.as<float>() + begin * n;
            a.xStrideBytes = a.yStrideBytes = n * 4;
            a.rows = end - begin;
            a.n = n;
            kernel_(a);
        });
        return {};
    }

private:
    // A part of the work takes a few microseconds: less is not worth waking a worker.
    static constexpr int64_t kPartElements = 8192;

    int axis_;
    kernels::jit::SoftmaxKernel kernel_;
};

// Rows, or slices across columns.
Support supportsSlices(Problem const& p, bool areRows)
{
    Extents const& e = areRows ? p.inputs[0].maxDims : p.inputs[0].dims;
    auto const& a = p.node->attrsAs<Attrs>();
    TW_SUPPORTS(takesOnly(DataType::kFloat, p));
    if (a.log)
        return Support::no("gives no logarithms");
    if ((e.volume(int(a.axis) + 1, e.rank) == 1) != areRows)
        return Support::no(areRows ? "takes the last axis only" : "takes other axes than the last");
    return Support::yes();
}

// Rows: nothing but dimensions of 1 after the axis.
constexpr CpuFunctions kRows{
    .supports = [](CpuTactic const&, Problem const& p) { return supportsSlices(p, true); },
    .load = [](CpuTactic const& t, Problem const& p, Config const&, PackedConstants&) -> CpuFunctions::Loaded {
        TW_ASSIGN(auto kernel, kernels::jit::SoftmaxKernel::emit(t.isa(), {}));
        return makeKernel<JitKernel>(int(p.node->attrsAs<Attrs>().axis), std::move(kernel));
    }};
constexpr CpuTactic kAvx512{"softmax_f32_jit_avx512", 2, kernels::jit::Isa::kAvx512, kRows};
constexpr CpuTactic kAvx2{"softmax_f32_jit_avx2", 2, kernels::jit::Isa::kAvx2, kRows};

// ---- Slices that run across columns: a block of columns at once, each step over one row of it, all in L1.

using kernels::jit::Code;

class ColumnsKernel final : public Kernel
{
public:
    ColumnsKernel(int axis, Code larger, Code expOfDifference, Code sum, Code quotient)
        : axis_(axis), larger_(std::move(larger)), expOfDifference_(std::move(expOfDifference)), sum_(std::move(sum)),
          quotient_(std::move(quotient))
    {}
    Result<void> run(RunArgs& args) const override
    {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        int64_t const outer = x.dims.volume(0, axis_), n = x.dims[axis_];
        int64_t const inner = x.dims.volume(axis_ + 1, x.dims.rank), blocks = divideUp(inner, kColumns);
        if (x.count() == 0)
            return {};
        // Rows of few columns are taken several at a time, as if they were one of as many slices.
        int64_t const group = std::min(kColumns / inner, n);
        int64_t const parts = std::clamp<int64_t>(x.count() / kPartElements, 1, args.workers->count() * 4);
        args.workers->run(parts, [&](int64_t part, int) {
            for (int64_t i = outer * blocks * part / parts; i < outer * blocks * (part + 1) / parts; ++i) {
                int64_t const first = i % blocks * kColumns, at = i / blocks * n * inner + first;
                if (group > 1)
                    narrow(x.as<float>() + at, y.as<float>() + at, n * inner, inner, group * inner);
                else
                    block(x.as<float>() + at, y.as<float>() + at, n, inner, std::min(kColumns, inner - first));
            }
        });
        return {};
    }

private:
    static constexpr int64_t kColumns = 256, kPartElements = 8192;

    static void call(Code const& code, float const* a, float const* b, float* y, int64_t n)
    {
        kernels::jit::PointwiseArgs args{};
        args.x[0] = a;
        args.x[1] = b;
        args.y = y;
        args.rows = 1;
        args.n = n;
        code.entry<kernels::jit::PointwiseFunction>()(&args);
    }
    void block(float const* x, float* y, int64_t n, int64_t step, int64_t width) const
    {
        alignas(kCacheLine) float largest[kColumns], total[kColumns];
        std::copy_n(x, width, largest);
        for (int64_t j = 1; j < n; ++j)
            call(larger_, x + j * step, largest, largest, width);
        for (int64_t j = 0; j < n; ++j) {
            call(expOfDifference_, x + j * step, largest, y + j * step, width);
            if (j == 0)
                std::copy_n(y, width, total);
            else
                call(sum_, y + j * step, total, total, width);
        }
        for (int64_t j = 0; j < n; ++j)
            call(quotient_, y + j * step, total, y + j * step, width);
    }
    // What `width` numbers hold of each of `inner` columns becomes one number of each, in all places of the column.
    static void fold(Code const& code, float* v, int64_t inner, int64_t width)
    {
        for (int64_t at = inner; at < width; at += inner)
            call(code, v + at, v, v, inner);
        for (int64_t at = inner; at < width; ++at)
            v[at] = v[at - inner];
    }
    // `count` numbers of `inner` columns, `width` of them at a time.
    void narrow(float const* x, float* y, int64_t count, int64_t inner, int64_t width) const
    {
        alignas(kCacheLine) float largest[kColumns], total[kColumns];
        std::copy_n(x, width, largest);
        for (int64_t at = width; at < count; at += width)
            call(larger_, x + at, largest, largest, std::min(width, count - at));
        fold(larger_, largest, inner, width);
        for (int64_t at = 0; at < count; at += width) {
            int64_t const some = std::min(width, count - at);
            call(expOfDifference_, x + at, largest, y + at, some);
            if (at == 0)
                std::copy_n(y, width, total);
            else
                call(sum_, y + at, total, total, some);
        }
        fold(sum_, total, inner, width);
        for (int64_t at = 0; at < count; at += width)
            call(quotient_, y + at, total, y + at, std::min(width, count - at));
    }
    int axis_;
    Code larger_, expOfDifference_, sum_, quotient_;
};

CpuFunctions::Loaded loadColumns(CpuTactic const& t, Problem const& p, Config const&, PackedConstants&)
{
    auto two = [&](std::vector<ExpressionStep> steps) {
        return kernels::jit::emitPointwise(t.isa(), {2, std::move(steps)}, {false, false}, false);
    };
    TW_ASSIGN(Code larger, two({{StepCode::kMax, 0, 1}}));
    TW_ASSIGN(Code expOfDifference, two({{StepCode::kSub, 0, 1}, {StepCode::kExp, 2}}));
    TW_ASSIGN(Code sum, two({{StepCode::kAdd, 0, 1}}));
    TW_ASSIGN(Code quotient, two({{StepCode::kDiv, 0, 1}}));
    return makeKernel<ColumnsKernel>(int(p.node->attrsAs<Attrs>().axis), std::move(larger), std::move(expOfDifference),
                                     std::move(sum), std::move(quotient));
}

constexpr CpuFunctions kColumns{.supports = [](CpuTactic const&, Problem const& p) { return supportsSlices(p, false); },
                                .load = loadColumns};
constexpr CpuTactic kColumnsAvx512{"softmax_f32_columns_avx512", 2, kernels::jit::Isa::kAvx512, kColumns};
constexpr CpuTactic kColumnsAvx2{"softmax_f32_columns_avx2", 2, kernels::jit::Isa::kAvx2, kColumns};

// ---- The logarithm, f32 along any axis.

using kernels::Join;
using kernels::RowKernels;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kPiece = 4096; // floats that are summed in float

void ofRows(RowKernels const& k, int64_t rows, int64_t n, TensorRef const& x, float* y, Workers& workers)
{
    eachInPieces(workers, rows, x.sizeBytes(), [&](int64_t r) {
        float const* from = x.as<float>() + r * n;
        float const m = k.joinRow[int(Join::kMax)](from, n);
        double s = 0;
        for (int64_t at = 0; at < n && std::isfinite(m); at += kPiece)
            s += double(k.sumOfPowers(from + at, std::min(kPiece, n - at), m));
        k.lessTwo(from, n, m, std::isfinite(m) ? float(std::log(s)) : kNan, y + r * n);
    });
}

// A block of columns at a time, all steps over it.
void ofColumns(RowKernels const& k, int64_t outer, int64_t n, int64_t inner, TensorRef const& x, float* y,
               Workers& workers)
{
    constexpr int64_t kColumns = 256, kRun = 512; // rows that are summed apart, which bounds the error
    int64_t const blocks = divideUp(inner, kColumns);
    inPieces(workers, outer * blocks, x.sizeBytes(), [&](int64_t begin, int64_t end) {
        float m[kColumns], s[kColumns], run[kColumns];
        for (int64_t i = begin; i < end; ++i) {
            int64_t const first = i % blocks * kColumns, width = std::min(kColumns, inner - first),
                          at = i / blocks * n * inner + first;
            float const* from = x.as<float>() + at;
            std::fill_n(m, width, kLowest);
            std::fill_n(s, width, 0.f);
            k.joinRows[int(Join::kMax)](from, inner, n, width, m);
            for (int64_t j = 0; j < n; j += kRun) {
                std::fill_n(run, width, 0.f);
                k.addPowers(from + j * inner, inner, std::min(kRun, n - j), width, m, run);
                k.joinRows[int(Join::kSum)](run, 0, 1, width, s);
            }
            for (int64_t c = 0; c < width; ++c)
                s[c] = std::isfinite(m[c]) ? std::log(s[c]) : kNan;
            for (int64_t j = 0; j < n; ++j)
                k.lessTwoRows(from + j * inner, width, m, s, y + at + j * inner);
        }
    });
}

// y = x - m - log(s) along `axis`.
void logSoftmax(RowKernels const& k, int axis, TensorRef const& x, float* y, Workers& workers)
{
    int64_t const outer = x.dims.volume(0, axis), n = x.dims[axis], inner = x.dims.volume(axis + 1, x.dims.rank);
    if (x.count() == 0)
        return;
    if (inner == 1)
        ofRows(k, outer, n, x, y, workers);
    else
        ofColumns(k, outer, n, inner, x, y, workers);
}

Support supportsLog(Problem const& p)
{
    return p.node->attrsAs<Attrs>().log ? Support::yes() : Support::no("gives logarithms only");
}
template <kernels::RowKernels const& k>
Result<void> runLog(ir::Node const& node, kernels::ChannelsLastKernels const&, RunArgs& args)
{
    logSoftmax(k, int(node.attrsAs<Attrs>().axis), args.inputs[0], args.outputs[0].as<float>(), *args.workers);
    return {};
}
using kernels::jit::Isa;
constexpr VectorTactic kLogAvx512{"softmax_f32_log_avx512", 1,           Isa::kAvx512,
                                  runLog<avx512::kRows>,    supportsLog, onlyLinear};
constexpr VectorTactic kLogAvx2{"softmax_f32_log_avx2", 1, Isa::kAvx2, runLog<avx2::kRows>, supportsLog, onlyLinear};

} // namespace

extern constinit TacticList const cpuTactics =
    kTactics<kAvx512, kAvx2, kColumnsAvx512, kColumnsAvx2, kLogAvx512, kLogAvx2, kPlain>;

} // namespace tw::ops::softmax
