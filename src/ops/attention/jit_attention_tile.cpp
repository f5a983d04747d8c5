// SPDX-License-Identifier: Apache-2.0
// A tile of queries: packed keys and values, scores, their sums.
#include <algorithm>

#include "base/element.h"
#include "kernels/cpu/casts.h"
#include "ops/attention/few_rows.h"
#include "ops/attention/jit_attention.h"

namespace tw::ops::attention::emitted {

namespace {

using Widen = void (*)(uint16_t const*, float*, int64_t);

// By the type of an element.
Widen widenOf(kernels::CastKernels const& casts, uint16_t)
{
    return casts.halfToFloat;
}
Widen widenOf(kernels::CastKernels const& casts, Bfloat16)
{
    return casts.bfloat16ToFloat;
}

} // namespace

FloatRows JitKernel::floatsOf(HeadRows const& rows, int64_t j, int64_t count, int64_t size, float* room) const
{
    if (!isNarrow_)
        return {reinterpret_cast<float const*>(rows.at(j)), rows.row};
    kernels::CastKernels const& casts = kernels::castsOf(isa_);
    Widen const widen = withNarrow(rows.type, [&](auto number) { return widenOf(casts, number); });
    std::byte const* x = rows.at(j);
    for (int64_t i = 0; i < count; ++i, x += rows.row * sizeOf(rows.type))
        widen(reinterpret_cast<uint16_t const*>(x), room + i * size, size);
    return {room, size};
}

// [columns, size] -> panels [size][panel's columns]; columns that do not exist are zero.
void JitKernel::packKeys(HeadRows const& k, int64_t columnsOfAll, float* to, float* room) const
{
    int64_t const size = attrs_.size, w = width();
    Panels const keys = panelsOf(columnsOfAll);
    for (int64_t p = 0; p < keys.count(); ++p) {
        int64_t const columns = keys.columnsOf(p), padded = keys.vectorsOf(p) * w;
        float* panel = to + keys.begin(p, size);
        for (int64_t j0 = 0; j0 < padded; j0 += w) {
            auto const [from, stride] =
                j0 < columns ? floatsOf(k, p * keys.width + j0, std::min(w, columns - j0), size, room) : FloatRows{};
            int64_t d = 0;
            if (j0 + w <= columns)
                for (; d + w <= size; d += w)
                    transpose_(from + d, stride * 4, panel + d * padded + j0, padded * 4);
            for (; d < size; ++d)
                for (int64_t j = 0; j < w; ++j)
                    panel[d * padded + j0 + j] = j0 + j < columns ? from[j * stride + d] : 0;
        }
    }
}

// [columns, valueSize] -> panels [columns][panel's values].
void JitKernel::packValues(Plan const& plan, HeadRows const& v, int64_t columns, float* to, float* room) const
{
    int64_t const together = attrs_.pages || isNarrow_ ? kRowsAtOnce : std::max<int64_t>(columns, 1);
    for (int64_t j = 0; j < columns; j += together) {
        int64_t const rows = std::min(together, columns - j);
        auto const [from, stride] = floatsOf(v, j, rows, attrs_.valueSize, room);
        for (int64_t p = 0; p < plan.values.count(); ++p) {
            int64_t const yRow = plan.values.vectorsOf(p) * width();
            CopyRowsArgs a;
            a.x = from + p * plan.values.width;
            a.y = to + plan.values.begin(p, columns) + j * yRow;
            a.xStrideBytes = stride * 4;
            a.yStrideBytes = yRow * 4;
            a.rows = rows;
            a.n = plan.values.columnsOf(p);
            copyRows_(a);
        }
    }
}

// Lanes of ones where the fill value stands.
uint32_t const* JitKernel::expandKeep(Plan const& plan, uint8_t const* keep, int64_t rows, int64_t n,
                                      float* scratch) const
{
    auto* to = static_cast<uint32_t*>(static_cast<void*>(scratch + plan.scratch.fillWhere));
    int64_t const count = plan.g.keep.row == 0 ? 1 : rows;
    uint32_t const flip = attrs_.keepInverted ? 0xffffffffu : 0u;
    for (int64_t i = 0; i < count; ++i)
        for (int64_t j = 0; j < n; ++j)
            to[i * plan.scratch.scoreStride + j] = (keep[i * plan.g.keep.row + j] != 0 ? 0u : 0xffffffffu) ^ flip;
    return to;
}

void JitKernel::tile(Plan const& plan, RunArgs& args, Sequence const& of, int64_t h, Tiles const& tiles, int64_t t,
                     float* scratch, Fetch& fetch) const
{
    Geometry const& g = plan.g;
    int64_t const b = of.batch, first = of.first + tiles.begin(t), rows = tiles.rows(t);
    float* const y = args.outputs[0].as<float>() + b * g.y.batch + first * g.y.row + h * g.y.head;
    Panels const keys = panelsOf(of.columns);
    // Keys that the tile sees, from a panel's begin on: later queries see later ones.
    Keys seen{0, plan.tileColumns.empty() ? of.columns : plan.tileColumns[size_t(t)]};
    if (attrs_.ofDecoders()) {
        seen = {std::max<int64_t>(keysOfRow(g, of, first).from, 0) / keys.width * keys.width,
                keysOfRow(g, of, first + rows - 1).to};
        if (seen.from >= seen.to) {
            for (int64_t i = 0; i < rows; ++i)
                std::fill_n(y + i * g.y.row, attrs_.valueSize, 0.0F);
            return;
        }
    }
    int64_t const n = seen.to - seen.from;
    Plan::Kernels const& kernels = plan.kernels[size_t(rows)];
    int64_t const size = attrs_.size, w = width(), queryStride = roundUp(size, kCacheLine / int64_t(sizeof(float)));
    float* queries = scratch + plan.scratch.queries;
    float* scores = scratch + plan.scratch.scores;
    int64_t const scoreBytes = plan.scratch.scoreStride * 4;

    CopyRowsArgs copy;
    copy.x = args.inputs[0].as<float>() + g.q.offset + b * g.q.batch + h * g.q.head + first * g.q.row;
    copy.y = queries;
    copy.xStrideBytes = g.q.row * 4;
    copy.yStrideBytes = queryStride * 4;
    copy.rows = rows;
    copy.n = size;
    copy.factor = float(attrs_.scale);
    copyRows_(copy);

    void const* a = queries;
    GemmArgs gemm;
    gemm.a = &a;
    gemm.ldaBytes = queryStride * 4;
    gemm.bodyCount = size / kUnroll;
    gemm.tailCount = size % kUnroll;
    gemm.ldcBytes = scoreBytes;
    for (int64_t p = seen.from / keys.width; p * keys.width < seen.to; ++p) {
        gemm.b = scratch + plan.scratch.keys + keys.begin(p, size);
        gemm.c = scores + p * keys.width - seen.from;
        fetch.some();
        kernels.products[keys.vectorsOf(p) - 1](gemm);
    }

    SoftmaxArgs soft;
    soft.x = soft.y = scores;
    soft.xStrideBytes = soft.yStrideBytes = scoreBytes;
    soft.rows = rows;
    soft.n = n + attrs_.sinks; // a sink is one score more, of no value
    soft.reciprocals = scratch + plan.scratch.reciprocals;
    if (attrs_.ofDecoders()) {
        adjust(plan, args, of, h, first, rows, seen, scores);
    } else if (g.maskInput > 0) {
        soft.mask =
            args.inputs[size_t(g.maskInput)].as<float>() + b * g.mask.batch + h * g.mask.head + first * g.mask.row;
        soft.maskStrideBytes = g.mask.row * 4;
    }
    if (endsSayAll_) {
        soft.ends = rowEnds_.data() + first;
    } else if (g.keepInput > 0 && !attrs_.ofDecoders()) {
        uint8_t const* keep =
            args.inputs[size_t(g.keepInput)].as<uint8_t>() + b * g.keep.batch + h * g.keep.head + first * g.keep.row;
        soft.fillWhere = expandKeep(plan, keep, rows, n, scratch);
        soft.fillStrideBytes = g.keep.row == 0 ? 0 : scoreBytes;
        soft.fill = float(attrs_.fill);
    }
    softmax_(soft);

    a = scores;
    gemm.ldaBytes = scoreBytes;
    gemm.bodyCount = n / kUnroll;
    gemm.tailCount = n % kUnroll;
    gemm.rowScale = soft.reciprocals;
    gemm.ldcBytes = g.y.row * 4;
    for (int64_t p = 0; p < plan.values.count(); ++p) {
        int const vectors = plan.values.vectorsOf(p);
        int64_t const columns = plan.values.columnsOf(p);
        bool const masked = columns != vectors * w;
        gemm.b = scratch + plan.scratch.values + plan.values.begin(p, of.columns) + seen.from * vectors * w;
        gemm.c = y + p * plan.values.width;
        gemm.lastColumns = columns - (vectors - 1) * w;
        fetch.some();
        (masked ? kernels.masked : kernels.sums[vectors - 1])(gemm);
    }
    for (int64_t i = 0; i < rows && attrs_.ofDecoders(); ++i)
        if (Keys const of1 = keysOfRow(g, of, first + i); of1.from >= of1.to)
            std::fill_n(y + i * g.y.row, attrs_.valueSize, 0.0F);
}

// Of row i, which counts from the first of all: keys of its sequence, whose first is 0.
Keys JitKernel::keysOfRow(Geometry const& g, Sequence const& of, int64_t i) const
{
    int64_t const begin = attrs_.segments ? of.first : 0;
    Keys const k = keysOf(attrs_, begin, begin + of.columns, g.rows, i);
    return {k.from - begin, k.to - begin, k.position - begin};
}

// Scores of a tile, of the keys in `seen`: what decoders do with them.
void JitKernel::adjust(Plan const& plan, RunArgs& args, Sequence const& of, int64_t h, int64_t first, int64_t rows,
                       Keys const& seen, float* scores) const
{
    Geometry const& g = plan.g;
    int64_t const begin = attrs_.segments ? of.first : 0, n = seen.to - seen.from;
    auto const* const mask = elementsOf<float>(args.inputs, g.maskInput);
    auto const* const keep = elementsOf<uint8_t>(args.inputs, g.keepInput);
    auto const* const sinks = elementsOf<float>(args.inputs, g.sinksInput);
    auto const* const slopes = elementsOf<float>(args.inputs, g.slopesInput);
    ScoreRules const rules{float(attrs_.softcap), float(attrs_.fill), attrs_.keepInverted};
    auto const& kernels = isa_ == Isa::kAvx512 ? avx512::kFewRows : avx2::kFewRows;
    for (int64_t i = 0; i < rows; ++i) {
        FewRow row;
        Keys const keys = keysOfRow(g, of, first + i);
        row.from = keys.from - seen.from;
        row.to = keys.to - seen.from;
        row.position = keys.position - seen.from;
        int64_t const at = begin + seen.from, r = first + i, b = of.batch;
        if (mask)
            row.mask = mask + b * g.mask.batch + h * g.mask.head + r * g.mask.row + at;
        if (keep)
            row.keep = keep + b * g.keep.batch + h * g.keep.head + r * g.keep.row + at;
        if (slopes)
            row.slope = slopes[h];
        float* const t = scores + i * plan.scratch.scoreStride;
        kernels.adjust({t, 0, n}, row, rules);
        if (sinks)
            t[n] = sinks[h];
    }
}

} // namespace tw::ops::attention::emitted
