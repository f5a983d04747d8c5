// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/int8_gemm.h"

#include <algorithm>

#include "base/round.h"
#include "kernels/cpu/int8_pack.h"

namespace tw::kernels {

namespace {

constexpr int64_t kLineBytes = 64; // of a cache line
constexpr int kUnroll = 4;         // steps of the loop's body, of four k each

// An odd number of cache lines, so that neighbouring rows fall into different sets.
int64_t packedStrideBytes(int64_t k)
{
    return (divideUp(k, kLineBytes) | 1) * kLineBytes;
}

int64_t widthOf(Int8GemmOptions const& o)
{
    return jit::vectorWidth(o.isa);
}

// Of a packed panel: start values and rows.
int64_t panelBytes(int64_t k, int64_t width)
{
    return 4 * width * (1 + divideUp(k, 4));
}

// Of rows of a, in L2 beside a panel of b.
int64_t aBytes(Int8GemmOptions const& o)
{
    return o.l2Bytes / 2;
}

} // namespace

int64_t Int8Gemm::packedBytes(Int8GemmOptions const& o, int64_t n, int64_t k)
{
    return panelBytes(k, roundUp(n, widthOf(o)));
}

void Int8Gemm::packB(Int8GemmOptions const& o, GemmShape const& s, int8_t const* b, int8_t* to)
{
    int64_t const width = widthOf(o), panel = o.vectors * width;
    for (int64_t j = 0; j < s.n; j += panel) {
        int64_t const columns = std::min(panel, s.n - j), padded = roundUp(columns, width);
        avx2::packInt8Panel(offsetsBytes(o.factors), b + j * s.bColumn, s.k, columns, padded, s.bRow, s.bColumn, to);
        to += panelBytes(s.k, padded);
    }
}

int64_t Int8Gemm::workspaceBytes(Int8GemmOptions const& o, int64_t m, int64_t n, int64_t k)
{
    int64_t bytes = 0;
    int64_t const tile = jit::gemmMaxRows(o.isa, 1, o.factors); // no tile is taller
    if (o.packA)
        bytes += std::min(m * packedStrideBytes(k),
                          std::max(aBytes(o) / kLineBytes * kLineBytes, tile * packedStrideBytes(k)));
    if (!o.packedBefore)
        bytes += roundUp(panelBytes(k, std::min(o.vectors * widthOf(o), roundUp(n, widthOf(o)))), kLineBytes);
    return bytes * o.threads;
}

Result<Int8Gemm> Int8Gemm::make(Int8GemmOptions const& options, GemmShape const& s, std::vector<Int8Offsets> products)
{
    Int8Gemm g;
    g.options_ = options;
    g.shape_ = s;
    g.products_ = std::move(products);
    if (s.m == 0 || s.n == 0 || g.products_.empty()) {
        g.products_.clear();
        return g;
    }
    int64_t const width = widthOf(options);
    int64_t const vectors = std::min<int64_t>(options.vectors, divideUp(s.n, width));
    g.parts_.products = int64_t(g.products_.size());
    g.parts_.cut(s.m, jit::gemmMaxRows(options.isa, int(vectors), options.factors), s.n, options.vectors * width);
    int64_t const tileBytes = (g.parts_.height + (g.parts_.tallTiles > 0)) * packedStrideBytes(s.k);
    double const operations = 2. * double(s.m) * double(s.n) * double(s.k) * double(g.products_.size());
    g.parts_.share(aBytes(options), tileBytes, operations, 2e6, options.threads);
    // A run of the loop reads kUnroll rows of a packed panel; the tiles of a block share out the next one.
    if (options.packedBefore && g.parts_.tilesPerBlock > 1)
        g.nextLines_ =
            divideUp(kUnroll * 4 * std::min(g.parts_.panel, roundUp(s.n, width)) / kLineBytes, g.parts_.tilesPerBlock);
    TW_TRY(g.parts_.eachKind([&](int tall, int tail) { return g.emit(tall, tail); }));
    return g;
}

Result<void> Int8Gemm::emit(int tall, int tail)
{
    int64_t const width = widthOf(options_), columns = tail ? shape_.n % parts_.panel : parts_.panel, k = shape_.k;
    jit::GemmKernelSpec spec;
    spec.rows = int(parts_.height) + tall;
    spec.vectors = int(divideUp(columns, width));
    spec.offsetA = options_.packA && offsetsBytes(options_.factors);
    spec.factors = options_.factors;
    spec.masked = columns % width != 0;
    addEnd(spec, options_.end);
    spec.nextLines = int(nextLines_);
    spec.prefetchC = k >= 64;
    spec.body = jit::contiguousLoop(options_.isa, spec.vectors, kUnroll);
    int64_t const done = k / (4 * kUnroll) * 4 * kUnroll;
    spec.tail = jit::contiguousLoop(options_.isa, spec.vectors, int(divideUp(k - done, 4)));
    if (k % 4 != 0 && !options_.packA)
        spec.tail.steps.back().bytes = int(k % 4);
    TW_ASSIGN(kernels_[tall][tail], jit::GemmKernel::emit(options_.isa, spec));
    return {};
}

void Int8Gemm::run(int8_t const* a, int8_t const* b, jit::GemmArgs const& first, void* workspace,
                   Workers& workers) const
{
    if (products_.empty())
        return;
    Workers& sharing = workers.count() <= options_.threads ? workers : serialWorkers(); // scratch is for that many
    int64_t const each = workspaceBytes(options_, shape_.m, shape_.n, shape_.k) / options_.threads;
    sharing.run(parts_.count(), [&](int64_t part, int worker) {
        runPart(part, a, b, first, static_cast<std::byte*>(workspace) + each * worker);
    });
}

void Int8Gemm::runPart(int64_t index, int8_t const* a, int8_t const* b, jit::GemmArgs const& first,
                       std::byte* scratch) const
{
    GemmParts::Part const part = parts_.part(index);
    int64_t const m = shape_.m, n = shape_.n, k = shape_.k, width = widthOf(options_);
    bool const offset = offsetsBytes(options_.factors);
    a += products_[size_t(part.product)].a + part.firstRow * shape_.aRow;
    b += products_[size_t(part.product)].b;

    jit::GemmArgs args = first;
    args.ldaBytes = shape_.aRow;
    auto* const packedA = reinterpret_cast<int8_t*>(scratch);
    auto* packedB = packedA;
    if (options_.packA) {
        args.ldaBytes = packedStrideBytes(k);
        avx2::packInt8Rows(offset, a, part.rows, k, shape_.aRow, shape_.aColumn, args.ldaBytes, packedA);
        a = packedA;
        packedB += part.rows * args.ldaBytes;
    }
    int64_t const cBytes = sizeOf(options_.end.store);
    int64_t const residualBytes = options_.end.residual ? sizeOf(*options_.end.residual) : 0;
    args.ldcBytes = n * cBytes;
    args.ldrBytes = n * residualBytes;
    args.bodyCount = k / (4 * kUnroll);
    args.tailCount = 1;
    auto panelAt = [&](int64_t panel) { return b + panel * panelBytes(k, parts_.panel); };
    for (int64_t panel = part.firstPanel; panel < part.lastPanel; ++panel) {
        int64_t const j = panel * parts_.panel, columns = std::min(parts_.panel, n - j),
                      padded = roundUp(columns, width);
        int8_t const* packed = panelAt(panel);
        if (!options_.packedBefore) {
            avx2::packInt8Panel(offset, b + j * shape_.bColumn, k, columns, padded, shape_.bRow, shape_.bColumn,
                                packedB);
            packed = packedB;
        }
        args.start = reinterpret_cast<int32_t const*>(packed);
        args.b = packed + 4 * padded;
        args.lastColumns = columns - (padded - width);
        args.scale = first.scale + (options_.end.oneScale ? 0 : j);
        args.bias = first.bias ? first.bias + j : nullptr;
        // The tiles of this panel bring the next one into L2, a share each.
        int8_t const* next = panelAt(panel + 1 < part.lastPanel ? panel + 1 : part.firstPanel);
        for (int64_t tile = part.firstTile; tile < part.lastTile;
             ++tile, next += nextLines_ * args.bodyCount * kLineBytes) {
            int64_t const row = parts_.rowOf(tile), at = (part.product * m + row) * n + j;
            void const* const pointer = a + (row - part.firstRow) * args.ldaBytes;
            args.a = &pointer;
            args.next = next;
            args.c = static_cast<std::byte*>(first.c) + at * cBytes;
            args.residual = static_cast<std::byte const*>(first.residual) + at * residualBytes;
            kernels_[tile < parts_.tallTiles][columns < parts_.panel](args);
        }
    }
}

} // namespace tw::kernels
