// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemv_jit.h"

#include <algorithm>

#include "base/round.h"
#include "kernels/cpu/casts.h"
#include "kernels/cpu/dots.h"

namespace tw::kernels {

namespace {

// A part lasts some microseconds at least, even where b comes from L2 (100 bytes a ns); and when there are several for
// each thread, a stream of it is long enough for the prefetchers.
constexpr int64_t kLeastBytes = 64 << 10, kLongBytes = 1 << 20;
constexpr int64_t kPartsPerThread = 4;
// Rows of b that are not packed are read side by side, panel by panel, so that each is a stream (0.7 to 0.95 of the
// time of whole panels; 8 or 32 rows gain less; Zen 4).
constexpr int64_t kRowsAtOnce = 16;

// Rows of a that are not contiguous (several rows of a transposed matrix) are rare where columns of b are.
void oneByOne(Dots const& d, int64_t aColumn)
{
    for (int64_t i = 0; i < d.rows; ++i)
        for (int64_t j = 0; j < d.columns; ++j) {
            float sum = 0;
            for (int64_t k = 0; k < d.k; ++k)
                sum += d.a[i * d.lda + k * aColumn] * d.b[j * d.ldb + k];
            d.c[i * d.ldc + j] = sum;
        }
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
    if (options.weights != jit::GemvWeights::kFloat && options.b != GemvJitOptions::kPacked)
        return internalError("weights of 16 bits were not packed");
    int64_t const width = jit::vectorWidth(options.isa), count = int64_t(g.products_.size());
    g.panel_ = options.vectors * width;
    g.panels_ = divideUp(s.n, g.panel_);

    int64_t const bytes = sizeOf(options.weights) * s.n * s.k * count, threads = std::max(options.threads, 1);
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
        return jit::gemvFits(options.isa, int(rows), options.vectors, options.b == GemvJitOptions::kPacked ? 2 : 1,
                             false, options.weights) &&
               jit::gemvFits(options.isa, int(rows), options.vectors, 1, true, options.weights);
    };
    g.rows_ = std::min<int64_t>(s.m, jit::kGemvMaxRows);
    while (g.rows_ > 1 && !fits(g.rows_))
        --g.rows_;
    g.kBlock_ = options.b != GemvJitOptions::kRows || g.panels_ == g.groups_ ? std::max<int64_t>(s.k, 1) : kRowsAtOnce;
    for (Kind kind : {kPair, kSingle, kLast}) {
        if (kind == kLast ? s.n % g.panel_ == 0 : s.n < (kind == kPair ? 2 : 1) * g.panel_)
            continue;
        if (kind == kPair && options.b != GemvJitOptions::kPacked)
            continue;
        int64_t const blocks = divideUp(s.k, g.kBlock_);
        for (Sum sum : {kOnly, kFirst, kMiddle, kEnd})
            if (sum == kOnly ? blocks < 2 : blocks > (sum == kMiddle ? 2 : 1))
                TW_TRY(g.emit(kind, sum));
    }
    return g;
}

Result<void> GemvJit::emit(Kind kind, Sum sum)
{
    int64_t const width = jit::vectorWidth(options_.isa), columns = kind == kLast ? shape_.n % panel_ : panel_;
    jit::GemvKernelSpec spec;
    spec.vectors = int(divideUp(columns, width));
    spec.streams = kind == kPair ? 2 : 1;
    spec.masked = columns % width != 0;
    spec.maskedB = spec.masked && options_.b == GemvJitOptions::kRows;
    int64_t const aStep = 4 * shape_.aColumn,
                  bStep = sizeOf(options_.weights) *
                          (options_.b == GemvJitOptions::kPacked ? spec.vectors * width : shape_.bRow);
    spec.weights = options_.weights;
    if (std::max(std::abs(aStep), std::abs(bStep)) > INT32_MAX)
        return internalError("a product's strides do not fit its code");
    spec.aStepBytes = int32_t(aStep);
    spec.bStepBytes = int32_t(bStep);
    spec.addC = sum == kMiddle || sum == kEnd || options_.b == GemvJitOptions::kColumns;
    if (sum == kOnly || sum == kEnd) {
        spec.bias = options_.bias;
        spec.residual = options_.residual;
        static_cast<jit::SumEnd&>(spec) = options_;
    }
    for (int last : {0, 1}) {
        spec.rows = int(last ? (shape_.m - 1) % rows_ + 1 : rows_);
        TW_ASSIGN(kernels_[size_t(last)][kind][sum], jit::GemvKernel::emit(options_.isa, spec));
    }
    return {};
}

void GemvJit::narrow(GemvJitOptions const& o, float const* packed, int64_t count, uint16_t* to)
{
    CastKernels const& casts = castsOf(o.isa);
    (o.weights == jit::GemvWeights::kHalf ? casts.floatToHalf : casts.floatToBfloat16)(packed, to, count);
}

void GemvJit::run(float const* a, void const* b, float const* bias, float const* residual, float* c,
                  Workers& workers) const
{
    workers.run(int64_t(products_.size()) * groups_,
                [&](int64_t part, int) { runPart(part, a, b, bias, residual, c); });
}

void GemvJit::runPart(int64_t part, float const* a, void const* weights, float const* bias, float const* residual,
                      float* c) const
{
    int64_t const group = part % groups_, product = part / groups_, m = shape_.m, n = shape_.n, k = shape_.k;
    int64_t const first = panels_ * group / groups_, end = panels_ * (group + 1) / groups_;
    int64_t const full = std::min(end, n / panel_) - first,
                  pairs = options_.b == GemvJitOptions::kPacked ? full / 2 : 0;
    a += products_[size_t(product)].a;
    int64_t const each = sizeOf(options_.weights);
    auto const* const bytes = static_cast<std::byte const*>(weights) + products_[size_t(product)].b * each;
    auto const* const b = reinterpret_cast<float const*>(bytes); // where they are floats
    jit::GemvArgs args;
    args.ldaBytes = 4 * shape_.aRow;
    args.ldcBytes = 4 * n;
    args.columnBytes = 4 * pairs * panel_;
    args.streamBytes = pairs * panel_ * k * each;
    args.lastColumns = (n - 1) % jit::vectorWidth(options_.isa) + 1;
    if (options_.b == GemvJitOptions::kColumns) {
        int64_t const j = first * panel_, columns = std::min(end * panel_, n) - j;
        for (int64_t row = 0; row < m; row += Dots::kMaxRows) {
            Dots const d{a + row * shape_.aRow,
                         shape_.aRow,
                         std::min(m - row, Dots::kMaxRows),
                         b + j * shape_.bColumn,
                         shape_.bColumn,
                         columns,
                         k,
                         c + (product * m + row) * n + j,
                         n};
            if (shape_.aColumn != 1)
                oneByOne(d, shape_.aColumn);
            else if (options_.isa == jit::Isa::kAvx512)
                avx512::dots(d);
            else
                avx2::dots(d);
        }
        if (!options_.bias && !options_.residual && !options_.any())
            return;
    }
    auto block = [&](int64_t k0, Sum sum) {
        args.k = options_.b == GemvJitOptions::kColumns ? 0 : std::min(kBlock_, k - k0);
        auto call = [&](Kind kind, int64_t panel) {
            int64_t const j = panel * panel_;
            args.b = bytes + each * (options_.b == GemvJitOptions::kPacked ? j * k : k0 * shape_.bRow + j);
            args.bias = bias ? bias + j : nullptr;
            for (int64_t row = 0; row < m; row += rows_) {
                int64_t const at = (product * m + row) * n + j;
                args.a = a + row * shape_.aRow + k0 * shape_.aColumn;
                args.c = c + at;
                args.residual = residual ? residual + at : nullptr;
                kernels_[row + rows_ >= m][kind][sum](args);
            }
        };
        for (int64_t i = 0; i < pairs; ++i)
            call(kPair, first + i);
        for (int64_t i = 2 * pairs; i < full; ++i)
            call(kSingle, first + i);
        if (first + full < end)
            call(kLast, first + full);
    };
    if (k <= kBlock_)
        return block(0, kOnly);
    for (int64_t k0 = 0; k0 < k; k0 += kBlock_)
        block(k0, k0 == 0 ? kFirst : k0 + kBlock_ < k ? kMiddle : kEnd);
}

} // namespace tw::kernels
