// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm_jit.h"

#include <algorithm>
#include <numeric>

#include "base/round.h"
#include "kernels/cpu/casts.h"
#include "kernels/cpu/gemm_parts.h"
#include "kernels/cpu/int8_pixels.h"

namespace tw::kernels {

namespace {

constexpr int64_t kLineFloats = 16; // of a cache line

// An odd number of cache lines, so that neighbouring rows fall into different sets.
int64_t packedStride(int64_t k)
{
    return (divideUp(k, kLineFloats) | 1) * kLineFloats;
}

int halvesOf(GemmJitOptions const& o)
{
    return o.gated ? 2 : 1;
}

bool hasSigns(GemmJitOptions const& o)
{
    return o.factors == jit::Factors::kByteSigns;
}

bool isPackedBefore(GemmJitOptions const& o)
{
    return o.b == GemmJitOptions::kPackedBefore || o.b == GemmJitOptions::kNarrowBefore;
}

// Whether parts make panels of b of their own.
bool makesPanels(GemmJitOptions const& o)
{
    return o.b == GemmJitOptions::kPacked || o.b == GemmJitOptions::kNarrowBefore;
}

bool packsA(GemmJitOptions const& o)
{
    return o.packA || isPairs(o.factors);
}

// From row to row of a copy of a, `depth` elements deep.
int64_t copiedStride(GemmJitOptions const& o, int64_t depth)
{
    return packedStride(hasSigns(o) ? 2 * depth : depth);
}

// Elements along the sums of k products: pairs, of tiles in whole ones, or four bytes.
int64_t depthOf(GemmJitOptions const& o, int64_t k)
{
    if (isBytes(o.factors))
        return divideUp(k, 4);
    return isPairs(o.factors) ? roundUp(divideUp(k, 2), elementsOfStep(o.factors)) : k;
}

// Rows of 32 bits in a packed panel in front of its elements: the start values of bytes.
int64_t startRows(GemmJitOptions const& o)
{
    return isBytes(o.factors) ? 1 : 0;
}

// Of a copy of a, behind its last row: what a tile reads.
int64_t rowsBehind(GemmJitOptions const& o)
{
    return jit::gemmRowsRead(o.factors, 1) - 1;
}

// n: columns of b.
int tallest(GemmJitOptions const& o, int64_t n)
{
    int64_t const width = jit::vectorWidth(o.isa), halves = halvesOf(o);
    return jit::gemmMaxRows(o.isa, int(std::clamp<int64_t>(halves * divideUp(n / halves, width), halves, o.vectors)),
                            o.factors);
}

// Most of L2 holds a block of rows of a and one panel of b; at least kRowsPerBlock rows, so that b is not read too
// often.
constexpr int64_t kRowsPerBlock = 112;
int64_t longestBlock(GemmJitOptions const& o)
{
    if (isBytes(o.factors))
        return int64_t(1) << 40;
    int64_t const columns = o.vectors * jit::vectorWidth(o.isa);
    return std::max<int64_t>(o.l2Bytes * 6 / 10 / 4 / (kRowsPerBlock + columns) / kLineFloats * kLineFloats,
                             kLineFloats);
}

// Of the rows of a part: their start values.
int64_t rowStarts(GemmJitOptions const& o, int64_t m)
{
    return hasSigns(o) ? roundUp(4 * m, 64) : 0;
}

int64_t aBytes(GemmJitOptions const& o)
{
    return o.l2Bytes / 2;
}

} // namespace

bool thrashesL1(int64_t rowStrideBytes, int rows, int64_t l1DataBytes)
{
    // Sets are chosen by the address within a page: 64 sets of 64-byte lines, whatever the size. One row more than ways
    // still runs well (9 on 8: within 1 % of a stride without conflicts, while 13 lose a quarter; Zen 4).
    constexpr int64_t kLineBytes = 64, kSets = 64;
    int64_t const ways = std::max<int64_t>(l1DataBytes / (kLineBytes * kSets), 1);
    int64_t const lines = std::abs(rowStrideBytes) / kLineBytes % kSets;
    int64_t const distinct = kSets / std::gcd(lines, kSets); // gcd(0, n) is n
    return divideUp(rows, distinct) > ways + 1;
}

int64_t GemmJit::packedFloats(GemmJitOptions const& o, int64_t n, int64_t k)
{
    int64_t const halves = halvesOf(o);
    return (depthOf(o, k) + startRows(o)) * halves * roundUp(n / halves, jit::vectorWidth(o.isa));
}

void GemmJit::packB(GemmJitOptions const& o, GemmShape const& s, void const* b, float* to)
{
    int64_t const halves = halvesOf(o), n = s.n / halves;
    int64_t const width = jit::vectorWidth(o.isa), panel = o.vectors / halves * width, depth = depthOf(o, s.k);
    for (int64_t j = 0; j < n; j += panel) {
        int64_t const columns = std::min(panel, n - j), packed = roundUp(columns, width);
        for (int64_t h = 0; h < halves; ++h) {
            int64_t const at = (h * n + j) * s.bColumn;
            float const* const from = static_cast<float const*>(b) + (isBytes(o.factors) ? 0 : at);
            if (isBytes(o.factors))
                avx2::packInt8Panel(offsetsBytes(o.factors), static_cast<int8_t const*>(b) + at, s.k, columns, packed,
                                    s.bRow, s.bColumn, reinterpret_cast<int8_t*>(to));
            else if (isPairs(o.factors))
                roundColumnPairs(o.isa, to + h * packed, halves * packed, packed, depth, from, s.k, columns, s.bRow,
                                 s.bColumn);
            else
                copyMatrix(to + h * packed, halves * packed, packed, from, s.k, columns, s.bRow, s.bColumn);
        }
        to += halves * packed * (depth + startRows(o));
    }
}

void GemmJit::packBias(GemmJitOptions const& options, int64_t n, float const* bias, float* to)
{
    GemmJitOptions o = options;
    o.factors = jit::Factors::kFloat;
    packB(o, {1, n, 1, 1, 1, n, 1}, bias, to);
}

int64_t GemmJit::sumsBytes(GemmJitOptions const& o, int64_t m, int64_t n, int64_t k)
{
    int64_t const halves = halvesOf(o), columns = halves * roundUp(n / halves, jit::vectorWidth(o.isa));
    return o.gated && depthOf(o, k) > longestBlock(o) ? roundUp(m * columns * 4, 64) : 0;
}

int64_t GemmJit::workspaceBytes(GemmJitOptions const& o, int64_t m, int64_t n, int64_t k)
{
    int64_t const width = jit::vectorWidth(o.isa), block = std::min(depthOf(o, k), longestBlock(o));
    int64_t bytes = 0;
    int64_t const row = copiedStride(o, block) * 4;
    if (packsA(o)) // bytes, whose k is not cut: a tile at least
        bytes += std::min(m * row, isBytes(o.factors)
                                       ? std::max(aBytes(o) / 64 * 64, jit::gemmMaxRows(o.isa, 1, o.factors) * row)
                                       : aBytes(o)) +
                 rowsBehind(o) * row;
    if (makesPanels(o))
        bytes += roundUp((block + startRows(o)) * std::min(o.vectors * width, halvesOf(o) * roundUp(n, width)) * 4, 64);
    bytes = roundUp(bytes, 64) + rowStarts(o, m);
    return bytes * o.threads + sumsBytes(o, m, n, k);
}

Result<GemmJit> GemmJit::make(GemmJitOptions const& options, GemmShape const& given, std::vector<GemmOffsets> products,
                              GemmRows rowsOf)
{
    GemmJit g;
    g.options_ = options;
    g.options_.packA = packsA(options);
    g.shape_ = given;
    g.shape_.k = depthOf(options, given.k);
    g.kNumbers_ = given.k;
    g.products_ = std::move(products);
    g.rows_ = {rowsOf.c > 0 ? rowsOf.c : given.n / halvesOf(options), rowsOf.residual > 0 ? rowsOf.residual : given.n};
    GemmShape const& s = g.shape_;
    if (isPairs(options.factors) && options.b != GemmJitOptions::kPackedBefore)
        return internalError("a product of BF16 was asked for without packed weights");
    if (options.gated &&
        (!isPackedBefore(options) || options.residual || options.vectors % 2 != 0 || g.products_.size() > 1))
        return internalError("a gated product was asked for with {} vectors, a residual, without packed weights or for "
                             "several pairs of operands",
                             options.vectors);
    if (s.m == 0 || s.n == 0 || g.products_.empty()) {
        g.products_.clear();
        return g;
    }
    int64_t const width = jit::vectorWidth(options.isa);
    g.halves_ = halvesOf(options);
    g.columns_ = s.n / g.halves_;
    g.parts_.products = int64_t(g.products_.size());
    g.parts_.cut(s.m, tallest(options, s.n), g.columns_, options.vectors / g.halves_ * width);

    bool const bytes = isBytes(options.factors), isFloat = !bytes && !isPairs(options.factors);
    bool const far = isFloat && std::max(std::abs(s.aColumn), s.bRow) >= (1 << 24); // offsets have 32 bits
    g.unroll_ = far ? 1 : 4;
    g.step_ = elementsOfStep(options.factors);
    if (g.step_ > 1)
        g.unroll_ = 1;

    // One tile of rows uses each number of b once: nothing to keep in a cache.
    bool const once = g.parts_.tiles == 1 && !g.options_.packA && !makesPanels(options);
    g.kBlocks_ = once ? 1 : std::max<int64_t>(divideUp(s.k, longestBlock(options)), 1);
    g.kBlock_ = g.kBlocks_ == 1 ? s.k : roundUp(divideUp(s.k, g.kBlocks_), kLineFloats);
    g.kBlocks_ = std::max<int64_t>(divideUp(s.k, std::max<int64_t>(g.kBlock_, 1)), 1);

    int64_t const tileBytes = (g.parts_.height + (g.parts_.tallTiles > 0)) * copiedStride(options, g.kBlock_) * 4;
    // Where each block copies its panels of b anew, fewer and taller blocks are better than a in L2 (8 to 15 % of the
    // time at 512 x 768 x 768 and 384 x 384 x 1000; Zen 4).
    int64_t const blockBytes = aBytes(options) * (makesPanels(options) && !g.options_.packA && !bytes ? 4 : 1);
    double const depth = double(bytes ? g.kNumbers_ : s.k);
    double const operations = 2. * double(s.m) * double(s.n) * depth * double(g.products_.size());
    g.parts_.share(blockBytes, tileBytes, operations, bytes ? 2e6 : 5e5, options.threads);

    // A loop run reads `unroll` rows of a packed panel; the tiles of a block share out the next one.
    if (options.b == GemmJitOptions::kPackedBefore && g.parts_.tilesPerBlock > 1)
        g.nextLines_ = divideUp(g.unroll_ * g.step_ * g.halves_ * std::min(g.parts_.panel, roundUp(g.columns_, width)) /
                                    kLineFloats,
                                g.parts_.tilesPerBlock);

    TW_TRY(g.parts_.eachKind([&](int tall, int tail) -> Result<void> {
        for (int part = 0; part < kParts; ++part) {
            bool const used = part == kOnly ? g.kBlocks_ == 1 : g.kBlocks_ > (part == kMiddle ? 2 : 1);
            if (used)
                TW_TRY(g.emit(tall, tail, Part(part)));
        }
        return {};
    }));
    return g;
}

Result<void> GemmJit::emit(int tall, int tail, Part part)
{
    int64_t const width = jit::vectorWidth(options_.isa), columns = tail ? columns_ % parts_.panel : parts_.panel;
    jit::GemmKernelSpec spec;
    spec.rows = int(parts_.height) + tall;
    spec.vectors = halves_ * int(divideUp(columns, width));
    bool const finishes = part == kOnly || part == kLast;
    spec.gated = options_.gated && finishes;
    spec.masked = columns % width != 0 && (finishes || !options_.gated);
    spec.nextLines = int(nextLines_);
    bool const bytes = isBytes(options_.factors);
    spec.prefetchC = (bytes ? kNumbers_ : shape_.k) >= 64;
    bool const direct = options_.b == GemmJitOptions::kDirect;
    spec.maskedB = direct && spec.masked;
    spec.factors = options_.factors;
    int64_t const aStep =
        options_.packA && hasSigns(options_) ? 8 : 4 * (options_.packA || bytes ? step_ : shape_.aColumn);
    int64_t const bStep = 4 * (direct ? shape_.bRow : step_ * spec.vectors * width);
    spec.body = jit::evenSteps(unroll_, aStep, bStep);
    spec.tail = jit::evenSteps(1, aStep, bStep);
    if (bytes) {
        spec.preparedA = options_.packA && (offsetsBytes(options_.factors) || hasSigns(options_));
        spec.tail = jit::evenSteps(int(shape_.k - bodyRuns(shape_.k) * unroll_), aStep, bStep);
        if (kNumbers_ % 4 != 0 && !options_.packA)
            spec.tail.steps.back().bytes = int(kNumbers_ % 4);
        addEnd(spec, options_.integers);
    }
    if (part == kMiddle || part == kLast)
        spec.epilogue.push_back(spec.gated ? jit::EpilogueOp::kResidual : jit::EpilogueOp::kAddC);
    if (finishes && !bytes) {
        if (options_.bias)
            spec.epilogue.push_back(jit::EpilogueOp::kBias);
        addEnd(spec, options_, options_.residual);
    }
    TW_ASSIGN(kernels_[size_t(tall)][size_t(tail)][part], jit::GemmKernel::emit(options_.isa, spec));
    return {};
}

// Of the loop's body. Bytes: the last three steps may read less than four bytes, and are the tail's.
int64_t GemmJit::bodyRuns(int64_t depth) const
{
    return isBytes(options_.factors) ? kNumbers_ / (4 * unroll_) : depth / step_ / unroll_;
}

void GemmJit::run(float const* a, float const* b, float const* bias, float const* residual, float* c, void* workspace,
                  Workers& workers) const
{
    jit::GemmArgs first;
    first.c = c;
    first.bias = bias;
    first.residual = residual;
    run(a, b, first, workspace, workers);
}

void GemmJit::run(void const* a, void const* b, jit::GemmArgs const& first, void* workspace, Workers& workers) const
{
    if (products_.empty())
        return;
    Workers& sharing = workers.count() <= options_.threads ? workers : serialWorkers(); // scratch is for that many
    int64_t const sums = sumsBytes(options_, shape_.m, shape_.n, kNumbers_);
    int64_t const each = (workspaceBytes(options_, shape_.m, shape_.n, kNumbers_) - sums) / options_.threads;
    sharing.run(parts_.count(), [&](int64_t part, int worker) {
        jit::TileScope const tiles(options_.factors);
        auto* const scratch = static_cast<std::byte*>(workspace);
        runPart(part, static_cast<std::byte const*>(a), static_cast<std::byte const*>(b), first,
                static_cast<float*>(workspace), scratch + sums + each * worker);
    });
}

void GemmJit::runPart(int64_t index, std::byte const* a, std::byte const* b, jit::GemmArgs const& first, float* sums,
                      std::byte* scratch) const
{
    GemmParts::Part const part = parts_.part(index);
    int64_t const m = shape_.m, n = columns_, k = shape_.k, width = jit::vectorWidth(options_.isa);
    bool const bytes = isBytes(options_.factors), pairs = isPairs(options_.factors),
               packedBefore = isPackedBefore(options_), narrow = options_.b == GemmJitOptions::kNarrowBefore;
    int64_t const number = bytes ? 1 : 4, packed = narrow ? 2 : 4; // bytes of one, of a and b; of b packed before
    jit::IntegerEnd const& end = options_.integers;
    int64_t const cBytes = bytes ? sizeOf(end.store) : 4, residualBytes = !bytes         ? 4
                                                                          : end.residual ? sizeOf(*end.residual)
                                                                                         : 0;
    a += (products_[size_t(part.product)].a + part.firstRow * shape_.aRow) * number;
    b += products_[size_t(part.product)].b * (packedBefore ? packed : number);
    auto* const c = static_cast<std::byte*>(first.c) + part.product * m * rows_.c * cBytes;
    auto const* residual = static_cast<std::byte const*>(first.residual);
    if (residual)
        residual += part.product * m * rows_.residual * residualBytes;
    auto* const starts = reinterpret_cast<int32_t*>(scratch);
    scratch += rowStarts(options_, shape_.m);
    float* const packedA = reinterpret_cast<float*>(scratch);
    int64_t const stride = copiedStride(options_, kBlock_);
    float* const packedB =
        packedA + (options_.packA ? roundUp((part.rows + rowsBehind(options_)) * stride, kLineFloats) : 0);

    auto packedAt = [&](int64_t panel, int64_t k0) {
        int64_t const j = panel * parts_.panel;
        return b +
               packed * halves_ * (j * (k + startRows(options_)) + k0 * std::min(parts_.panel, roundUp(n - j, width)));
    };
    jit::GemmArgs args = first;
    args.ldaBytes = options_.packA ? 4 * stride : number * shape_.aRow;
    args.ldcBytes = cBytes * rows_.c;
    args.ldrBytes = residualBytes * rows_.residual;
    // Where c cannot hold the sums of both halves between blocks of k.
    bool const keepsSums = options_.gated && kBlocks_ > 1;
    int64_t const sumsRow = halves_ * roundUp(columns_, width);
    for (int64_t kBlock = 0; kBlock < kBlocks_; ++kBlock) {
        int64_t const k0 = kBlock * kBlock_, depth = std::min(kBlock_, k - k0);
        Part const kind = kBlocks_ == 1 ? kOnly : kBlock == 0 ? kFirst : kBlock + 1 == kBlocks_ ? kLast : kMiddle;
        int64_t const each = pairs ? 2 : 1; // floats of an element
        std::byte const* aBlock = a + each * k0 * shape_.aColumn * number;
        auto const* const floats = reinterpret_cast<float const*>(aBlock);
        auto const* const numbers = reinterpret_cast<int8_t const*>(aBlock);
        if (hasSigns(options_))
            options_.packA ? avx2::packInt8Signs(numbers, part.rows, kNumbers_, shape_.aRow, shape_.aColumn,
                                                 args.ldaBytes, reinterpret_cast<int8_t*>(packedA), starts)
                           : avx2::negativeSums(numbers, part.rows, kNumbers_, shape_.aRow, starts);
        else if (bytes && options_.packA)
            avx2::packInt8Rows(offsetsBytes(options_.factors), numbers, part.rows, kNumbers_, shape_.aRow,
                               shape_.aColumn, args.ldaBytes, reinterpret_cast<int8_t*>(packedA));
        else if (pairs)
            roundPairs(options_.isa, packedA, stride, depth, floats, part.rows,
                       std::clamp<int64_t>(kNumbers_ - each * k0, 0, each * depth), shape_.aRow, shape_.aColumn);
        else if (options_.packA)
            copyMatrix(packedA, stride, depth, floats, part.rows, depth, shape_.aRow, shape_.aColumn);
        if (options_.packA)
            aBlock = scratch;
        args.bodyCount = bodyRuns(depth);
        args.tailCount = bytes ? 1 : depth / step_ % unroll_;
        if (keepsSums) {
            args.ldrBytes = 4 * sumsRow;
            args.ldcBytes = kind == kLast ? 4 * rows_.c : 4 * sumsRow;
        }
        for (int64_t panel = part.firstPanel; panel < part.lastPanel; ++panel) {
            int64_t const j = panel * parts_.panel, columns = std::min(parts_.panel, n - j),
                          padded = roundUp(columns, width);
            int64_t const atB = (k0 * shape_.bRow + j * shape_.bColumn) * number;
            if (narrow) {
                CastKernels const& casts = castsOf(options_.isa);
                (options_.bfloat16 ? casts.bfloat16ToFloat : casts.halfToFloat)(
                    reinterpret_cast<uint16_t const*>(packedAt(panel, k0)), packedB, halves_ * padded * depth);
                args.b = packedB;
            } else if (packedBefore) {
                args.b = packedAt(panel, k0);
            } else if (options_.b == GemmJitOptions::kDirect) {
                args.b = b + 4 * (k0 * shape_.bRow + j);
            } else {
                if (bytes)
                    avx2::packInt8Panel(offsetsBytes(options_.factors), reinterpret_cast<int8_t const*>(b + atB),
                                        kNumbers_, columns, padded, shape_.bRow, shape_.bColumn,
                                        reinterpret_cast<int8_t*>(packedB));
                else
                    copyMatrix(packedB, padded, padded, reinterpret_cast<float const*>(b + atB), depth, columns,
                               shape_.bRow, shape_.bColumn);
                args.b = packedB;
            }
            if (bytes) {
                args.start = static_cast<int32_t const*>(args.b);
                args.b = args.start + padded;
                args.scale = first.scale + (end.oneScale ? 0 : j);
            }
            args.bias = first.bias ? first.bias + halves_ * j : nullptr;
            args.lastColumns = columns - (padded - width);
            // The tiles of this panel bring the next one into L2, a share each.
            std::byte const* next = panel + 1 < part.lastPanel
                                        ? packedAt(panel + 1, k0)
                                        : packedAt(part.firstPanel, bytes ? 0 : std::min(k0 + depth, k));
            int64_t const share = nextLines_ * args.bodyCount * 64;
            for (int64_t tile = part.firstTile; tile < part.lastTile; ++tile, next += share) {
                args.next = next;
                int64_t const row = parts_.rowOf(tile);
                void const* const pointer = aBlock + (row - part.firstRow) * args.ldaBytes;
                args.a = &pointer;
                args.rowStart = starts + (row - part.firstRow);
                args.c = c + (row * rows_.c + j) * cBytes;
                args.residual = residual ? residual + (row * rows_.residual + j) * residualBytes : nullptr;
                if (keepsSums) {
                    float* const kept = sums + row * sumsRow + halves_ * j;
                    args.residual = kept;
                    args.c = kind == kLast ? args.c : kept;
                }
                kernels_[tile < parts_.tallTiles][columns < parts_.panel][kind](args);
            }
        }
    }
}

} // namespace tw::kernels
