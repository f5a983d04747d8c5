// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemv_jit.h"

#include <algorithm>

namespace tw::kernels {

namespace {

// A part lasts some microseconds at least, even where b comes from L2 (100 bytes a ns); and when there are several for
// each thread, a stream of it is long enough for the prefetchers.
constexpr int64_t kLeastBytes = 64 << 10, kLongBytes = 1 << 20;
constexpr int64_t kPartsPerThread = 4;

int64_t divideUp(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

} // namespace

Result<GemvJit> GemvJit::make(GemvJitOptions const& options, GemmShape const& s, std::vector<GemmOffsets> products)
{
    GemvJit g;
    g.options_ = options;
    g.shape_ = s;
    if (s.m == 0 || s.n == 0 || products.empty())
        return g;
    g.products_ = std::move(products);
    int64_t const width = jit::vectorWidth(options.isa), count = int64_t(g.products_.size());
    g.panel_ = options.vectors * width;
    g.panels_ = divideUp(s.n, g.panel_);

    int64_t const bytes = 4 * s.n * s.k * count, threads = std::max(options.threads, 1);
    int64_t const most = threads == 1 ? 1
                                      : std::max(std::clamp<int64_t>(bytes / kLeastBytes, 1, threads),
                                                 std::min(bytes / kLongBytes, kPartsPerThread * threads));
    int64_t best = INT64_MAX;
    for (int64_t groups = std::min(g.panels_, divideUp(most, count)); groups >= 1; --groups) {
        int64_t const span = divideUp(count * groups, threads) * divideUp(g.panels_, groups);
        if (span < best) {
            best = span;
            g.groups_ = groups;
        }
    }

    auto const fits = [&](int64_t rows) {
        return jit::gemvFits(options.isa, int(rows), options.vectors, options.packed ? 2 : 1, false) &&
               jit::gemvFits(options.isa, int(rows), options.vectors, 1, true);
    };
    g.rows_ = std::min<int64_t>(s.m, jit::kGemvMaxRows);
    while (g.rows_ > 1 && !fits(g.rows_))
        --g.rows_;
    for (Kind kind : {kPair, kSingle, kLast}) {
        int64_t const last = s.n % g.panel_, columns = kind == kLast ? last : g.panel_;
        if (kind == kLast ? last == 0 : s.n < (kind == kPair ? 2 : 1) * g.panel_)
            continue;
        if (kind == kPair && !options.packed)
            continue;
        jit::GemvKernelSpec spec;
        spec.vectors = int(divideUp(columns, width));
        spec.streams = kind == kPair ? 2 : 1;
        spec.masked = columns % width != 0;
        spec.maskedB = spec.masked && !options.packed;
        int64_t const aStep = 4 * s.aColumn, bStep = 4 * (options.packed ? spec.vectors * width : s.bRow);
        if (std::max(std::abs(aStep), std::abs(bStep)) > INT32_MAX)
            return internalError("a product's strides do not fit its code");
        spec.aStepBytes = int32_t(aStep);
        spec.bStepBytes = int32_t(bStep);
        spec.bias = options.bias;
        spec.residual = options.residual;
        spec.activation = options.activation;
        spec.rows = int(g.rows_);
        TW_ASSIGN(g.kernels_[0][kind], jit::GemvKernel::emit(options.isa, spec));
        spec.rows = int((s.m - 1) % g.rows_ + 1);
        TW_ASSIGN(g.kernels_[1][kind], jit::GemvKernel::emit(options.isa, spec));
    }
    return g;
}

void GemvJit::run(float const* a, float const* b, float const* bias, float const* residual, float* c,
                  Workers& workers) const
{
    workers.run(int64_t(products_.size()) * groups_,
                [&](int64_t part, int) { runPart(part, a, b, bias, residual, c); });
}

void GemvJit::runPart(int64_t part, float const* a, float const* b, float const* bias, float const* residual,
                      float* c) const
{
    int64_t const group = part % groups_, product = part / groups_, m = shape_.m, n = shape_.n;
    int64_t const first = panels_ * group / groups_, end = panels_ * (group + 1) / groups_;
    int64_t const full = std::min(end, n / panel_) - first, pairs = kernels_[0][kPair] ? full / 2 : 0;
    b += products_[size_t(product)].b;
    jit::GemvArgs args;
    a += products_[size_t(product)].a;
    args.ldaBytes = 4 * shape_.aRow;
    args.k = shape_.k;
    args.ldcBytes = 4 * n;
    args.columnBytes = 4 * pairs * panel_;
    args.streamBytes = args.columnBytes * shape_.k;
    auto call = [&](Kind kind, int64_t panel) {
        int64_t const j = panel * panel_;
        args.b = b + (options_.packed ? j * shape_.k : j);
        args.bias = bias ? bias + j : nullptr;
        for (int64_t row = 0; row < m; row += rows_) {
            int64_t const at = (product * m + row) * n + j;
            args.a = a + row * shape_.aRow;
            args.c = c + at;
            args.residual = residual ? residual + at : nullptr;
            kernels_[row + rows_ >= m][kind](args);
        }
    };
    for (int64_t i = 0; i < pairs; ++i)
        call(kPair, first + i);
    for (int64_t i = 2 * pairs; i < full; ++i)
        call(kSingle, first + i);
    if (first + full < end) {
        int64_t const width = jit::vectorWidth(options_.isa);
        args.lastColumns = (n - 1) % width + 1;
        call(kLast, first + full);
    }
}

} // namespace tw::kernels
