// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/round.h"
#include "kernels/cpu/jit/gemm_kernel.h"
#include "kernels/cpu/jit/matrix_copy.h"
#include "kernels/cpu/jit/softmax_kernel.h"
#include "ops/attention/cpu_few_rows.h"
#include "ops/attention/few_rows.h"
#include "ops/attention/op.h"
#include "ops/attention/tactics.h"
#include "tactic/cpu_tactic.h"

namespace tw::ops::attention {

namespace {

using namespace kernels::jit;

constexpr int kPanelVectors = 2; // a panel of packed keys or values is two vectors wide, the last one may be one
constexpr int kUnroll = 4;

// Cache lines of so many floats at any address.
int64_t linesOf(int64_t floats)
{
    return divideUp(floats * 4, kCacheLine) + 1;
}

// Columns of keys or values in panels.
struct Panels
{
    int64_t columns = 0, width = 0; // width of a panel

    int64_t count() const { return divideUp(columns, width); }
    int64_t columnsOf(int64_t p) const { return std::min(width, columns - p * width); }
    int vectorsOf(int64_t p) const { return columnsOf(p) > width / kPanelVectors ? kPanelVectors : 1; }
    // Floats before panel p, `depth` rows each.
    int64_t begin(int64_t p, int64_t depth) const { return p * width * depth; }
    int64_t padded() const { return roundUp(columns, width); }
};

// Floats of scratch of one worker, each part on a cache line of its own.
struct Scratch
{
    int64_t keys = 0, values = 0, queries = 0, scores = 0, reciprocals = 0, fillWhere = 0, total = 0;
    int64_t scoreStride = 0;
};

// Where one row of the scores may end early: columns after it weigh nothing.
constexpr double kNothing = -1e30;

// Tiles of queries, of two heights at most, one row apart, so that none is left with a few rows: the first `tall` of them
// have height + 1 rows.
struct Tiles
{
    int64_t count = 0, height = 0, tall = 0;

    Tiles() = default;
    Tiles(int64_t rows, int64_t most)
        : count(divideUp(rows, most)), height(count > 0 ? rows / count : 0), tall(count > 0 ? rows % count : 0)
    {}
    int64_t begin(int64_t t) const { return t * height + std::min(t, tall); }
    int64_t rows(int64_t t) const { return height + (t < tall); }
};

// Queries and keys from row `first` on that look at each other.
struct Sequence
{
    int64_t batch = 0, first = 0, rows = 0, columns = 0;
};

class Plan final : public Prepared
{
public:
    Geometry g;
    Panels values;
    Scratch scratch;
    Tiles tiles;                      // but for those of segments
    std::vector<int64_t> tileColumns; // columns that a tile looks at; empty: all
    int64_t products = 0;             // of all tiles of a head
    // Of tiles of so many rows.
    struct Kernels
    {
        // [vectors - 1]; sums are multiplied by the reciprocals of their rows' weights.
        GemmKernel products[kPanelVectors], sums[kPanelVectors];
        GemmKernel masked; // for the last panel of values
    };
    std::vector<Kernels> kernels; // [rows]
};

// Brings rows that the next part will read into L2, some lines before each product: they were written by the step
// before, and have left for the outer cache or for another core's since.
class Fetch
{
public:
    explicit Fetch(int64_t linesAtOnce) : linesAtOnce_(linesAtOnce) {}
    void add(float const* first, int64_t rows, int64_t rowStride, int64_t rowFloats)
    {
        if (rows > 0)
            blocks_[count_++] = {reinterpret_cast<char const*>(first), rows, rowStride * 4, rowFloats * 4};
    }
    void some()
    {
        for (int64_t n = linesAtOnce_; n > 0 && done_ < count_;) {
            Block& b = blocks_[done_];
            for (int64_t at = 0; at < b.rowBytes; at += kCacheLine, --n)
                __builtin_prefetch(b.row + at, 0, 2);
            b.row += b.strideBytes;
            if (--b.rows == 0)
                ++done_;
        }
    }

private:
    struct Block
    {
        char const* row;
        int64_t rows, strideBytes, rowBytes;
    };
    Block blocks_[3];
    int count_ = 0, done_ = 0;
    int64_t linesAtOnce_;
};

class JitKernel final : public Kernel
{
public:
    JitKernel(Isa isa, Problem const& problem) : isa_(isa), attrs_(problem.node->attrsAs<Attrs>())
    {
        threads_ = std::max(problem.threads, 1);
        for (size_t i = 3; i < size_t(attrs_.masksEnd(problem.inputs.size())); ++i)
            if (problem.inputs[i].type == DataType::kBool && problem.inputs[i].constant && attrs_.fill < kNothing &&
                attrs_.sumStep == 0 && !attrs_.ofDecoders())
                findRowEnds(problem.inputs[i]);
    }

    Result<void> emitShared(Problem const& problem)
    {
        TW_ASSIGN(copyRows_, CopyRowsKernel::emit(isa_));
        TW_ASSIGN(transpose_, TransposeKernel::emit(isa_));
        SoftmaxSpec spec;
        spec.deferred = true;
        spec.scoreStep = float(attrs_.scoreStep);
        spec.sumStep = float(attrs_.sumStep);
        for (size_t i = 3; i < size_t(attrs_.masksEnd(problem.inputs.size())) && !attrs_.ofDecoders(); ++i)
            (problem.inputs[i].type == DataType::kBool ? spec.fill : spec.mask) = true;
        spec.ends = endsSayAll_;
        spec.fill = spec.fill && !spec.ends;
        TW_ASSIGN(softmax_, SoftmaxKernel::emit(isa_, spec));
        return {};
    }

    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const>) const override
    {
        Geometry const g = geometryOf(attrs_, in);
        int64_t const most = g.beginsInput >= 0 ? in[size_t(g.beginsInput)].dims[0] + 1 : 0; // sequences
        int64_t const whole = segmentsAt(g) + most * int64_t(sizeof(Sequence));
        return takesFewRows(isa_, attrs_, g, in[1].type) ? std::max(whole, fewRowsWorkspace(attrs_, g, threads_))
                                                         : whole;
    }

    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const>) const override;
    Result<void> run(RunArgs& args) const override;

private:
    void findRowEnds(TensorSpec const& keep);
    int width() const { return vectorWidth(isa_); }
    // Bytes of workspace in front of the list of segments.
    int64_t segmentsAt(Geometry const& g) const { return threads_ * scratchOf(g).total * int64_t(sizeof(float)); }
    Panels panelsOf(int64_t columns) const { return Panels{columns, int64_t(kPanelVectors) * width()}; }
    Scratch scratchOf(Geometry const& g) const;
    Result<void> emit(Plan& plan, int rows) const;
    void packKeys(Plan const& plan, float const* k, int64_t columns, float* to) const;
    void packValues(Plan const& plan, float const* v, int64_t columns, float* to) const;
    void tile(Plan const& plan, RunArgs& args, Sequence const& of, int64_t h, Tiles const& tiles, int64_t t,
              float* scratch, Fetch& fetch) const;
    void adjust(Plan const& plan, RunArgs& args, Sequence const& of, int64_t h, int64_t first, int64_t rows,
                Keys const& seen, float* scores) const;
    Keys keysOfRow(Geometry const& g, Sequence const& of, int64_t i) const;
    uint32_t const* expandKeep(Plan const& plan, uint8_t const* keep, int64_t rows, int64_t n, float* scratch) const;

    Isa isa_;
    Attrs attrs_;
    int64_t threads_ = 1;
    std::vector<int64_t> rowEnds_; // of a constant condition: columns from here on weigh nothing
    bool endsSayAll_ = false;      // and all columns before count
    CopyRowsKernel copyRows_;
    TransposeKernel transpose_;
    SoftmaxKernel softmax_;
};

// One condition for all batches and heads, a row for each query.
void JitKernel::findRowEnds(TensorSpec const& keep)
{
    Extents const& e = keep.dims;
    if (e[0] != 1 || e[1] != 1 || keep.constant->sizeBytes() < size_t(e.volume()))
        return;
    auto const* row = keep.constant->as<uint8_t>();
    auto kept = [&](int64_t j) { return (row[j] != 0) != attrs_.keepInverted; };
    endsSayAll_ = e[2] > 1; // one row may stand for many
    for (int64_t i = 0; i < e[2]; ++i, row += e[3]) {
        int64_t end = e[3], first = 0;
        while (end > 0 && !kept(end - 1))
            --end;
        while (first < end && kept(first))
            ++first;
        endsSayAll_ = endsSayAll_ && end > 0 && first == end;
        rowEnds_.push_back(end == 0 ? e[3] : end); // a row of nothing but fill is an average
    }
}

Scratch JitKernel::scratchOf(Geometry const& g) const
{
    int64_t const rows = gemmMaxRows(isa_, kPanelVectors), line = kCacheLine / int64_t(sizeof(float));
    Panels const keys = panelsOf(g.columns), values = panelsOf(attrs_.valueSize);
    Scratch s;
    // Room for a sink; a line more than it needs, so that rows do not lie a multiple of 4 KiB apart.
    s.scoreStride = roundUp(keys.padded(), line) + line;
    s.keys = 0;
    s.values = s.keys + roundUp(keys.padded() * attrs_.size, line);
    s.queries = s.values + roundUp(values.padded() * g.columns, line);
    s.scores = s.queries + rows * roundUp(attrs_.size, line);
    s.reciprocals = s.scores + rows * s.scoreStride;
    s.fillWhere = s.reciprocals + roundUp(rows, line);
    s.total = s.fillWhere + (g.keepInput > 0 && !endsSayAll_ ? rows * s.scoreStride : 0);
    return s;
}

Result<std::shared_ptr<Prepared const>> JitKernel::prepare(std::span<TensorRef const> in,
                                                           std::span<TensorRef const>) const
{
    auto plan = std::make_shared<Plan>();
    Geometry const g = plan->g = geometryOf(attrs_, in);
    plan->values = panelsOf(attrs_.valueSize);
    plan->scratch = scratchOf(g);
    if (g.batch == 0 || g.rows == 0 || g.columns == 0)
        return std::shared_ptr<Prepared const>(std::move(plan));
    if (endsSayAll_ && int64_t(rowEnds_.size()) != g.rows)
        return internalError("attention: a condition of {} rows for {} queries", rowEnds_.size(), g.rows);
    int64_t const most = gemmMaxRows(isa_, kPanelVectors);
    plan->kernels.resize(size_t(most) + 1);
    if (g.beginsInput >= 0) { // tiles of any height
        for (int64_t rows = 1; rows <= std::min(most, g.rows); ++rows)
            TW_TRY(emit(*plan, int(rows)));
        return std::shared_ptr<Prepared const>(std::move(plan));
    }
    Tiles const& tiles = plan->tiles = Tiles(g.rows, most);
    if (int64_t(rowEnds_.size()) == g.rows)
        for (int64_t t = 0; t < tiles.count; ++t) {
            auto const first = rowEnds_.begin() + tiles.begin(t);
            plan->tileColumns.push_back(std::min(*std::max_element(first, first + tiles.rows(t)), g.columns));
        }
    plan->products = tiles.count * plan->values.count();
    for (int64_t t = 0; t < tiles.count; ++t)
        plan->products += panelsOf(plan->tileColumns.empty() ? g.columns : plan->tileColumns[size_t(t)]).count();
    for (int64_t rows = tiles.height; rows <= tiles.height + (tiles.tall > 0); ++rows)
        TW_TRY(emit(*plan, int(rows)));
    return std::shared_ptr<Prepared const>(std::move(plan));
}

Result<void> JitKernel::emit(Plan& plan, int rows) const
{
    Plan::Kernels& kernels = plan.kernels[size_t(rows)];
    for (int vectors = 1; vectors <= kPanelVectors; ++vectors) {
        GemmKernelSpec s;
        s.rows = rows;
        s.vectors = vectors;
        s.body = contiguousLoop(isa_, vectors, kUnroll);
        s.tail = contiguousLoop(isa_, vectors, 1);
        s.prefetchC = true;
        TW_ASSIGN(kernels.products[vectors - 1], GemmKernel::emit(isa_, s));
        s.epilogue.push_back(EpilogueOp::kRowScale);
        TW_ASSIGN(kernels.sums[vectors - 1], GemmKernel::emit(isa_, s));
        if (attrs_.valueSize % width() != 0 && vectors == plan.values.vectorsOf(plan.values.count() - 1)) {
            s.masked = true;
            TW_ASSIGN(kernels.masked, GemmKernel::emit(isa_, s));
        }
    }
    return {};
}

// [columns, size] -> panels [size][panel's columns]; columns that do not exist are zero.
void JitKernel::packKeys(Plan const& plan, float const* k, int64_t columnsOfAll, float* to) const
{
    int64_t const size = attrs_.size, w = width(), stride = plan.g.k.row;
    Panels const keys = panelsOf(columnsOfAll);
    for (int64_t p = 0; p < keys.count(); ++p) {
        int64_t const columns = keys.columnsOf(p), padded = keys.vectorsOf(p) * w;
        float* panel = to + keys.begin(p, size);
        for (int64_t j0 = 0; j0 < padded; j0 += w) {
            float const* from = k + (p * keys.width + j0) * stride;
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
void JitKernel::packValues(Plan const& plan, float const* v, int64_t columns, float* to) const
{
    for (int64_t p = 0; p < plan.values.count(); ++p) {
        CopyRowsArgs a;
        a.x = v + p * plan.values.width;
        a.y = to + plan.values.begin(p, columns);
        a.xStrideBytes = plan.g.v.row * 4;
        a.yStrideBytes = plan.values.vectorsOf(p) * width() * 4;
        a.rows = columns;
        a.n = plan.values.columnsOf(p);
        copyRows_(a);
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
    auto input = [&](int i) { return i >= 0 ? &args.inputs[size_t(i)] : nullptr; };
    TensorRef const *mask = input(g.maskInput), *keep = input(g.keepInput), *sinks = input(g.sinksInput),
                    *slopes = input(g.slopesInput);
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
            row.mask = mask->as<float>() + b * g.mask.batch + h * g.mask.head + r * g.mask.row + at;
        if (keep)
            row.keep = keep->as<uint8_t>() + b * g.keep.batch + h * g.keep.head + r * g.keep.row + at;
        if (slopes)
            row.slope = slopes->as<float>()[h];
        float* const t = scores + i * plan.scratch.scoreStride;
        kernels.adjust({t, 0, n}, row, rules);
        if (sinks)
            t[n] = sinks->as<float>()[h];
    }
}

Result<void> JitKernel::run(RunArgs& args) const
{
    auto const& plan = static_cast<Plan const&>(*args.prepared);
    Geometry const& g = plan.g;
    TensorRef const& y = args.outputs[0];
    if (g.columns == 0)
        std::memset(y.data, 0, size_t(y.sizeBytes()));
    if (g.batch == 0 || g.rows == 0 || g.columns == 0)
        return {};
    if (takesFewRows(isa_, attrs_, g, args.inputs[1].type))
        return runFewRows(isa_, attrs_, g, threads_, args);
    // Batches, or segments of each of them.
    auto* const segments = reinterpret_cast<Sequence*>(static_cast<std::byte*>(args.workspace) + segmentsAt(g));
    int64_t segmentCount = 0;
    if (g.beginsInput >= 0)
        forEachSegment(args.inputs[size_t(g.beginsInput)], g.rows, [&](int64_t from, int64_t to) {
            segments[segmentCount++] = {0, from, to - from, to - from};
        });
    auto const* const lengths = g.lengthsInput >= 0 ? args.inputs[size_t(g.lengthsInput)].as<int32_t>() : nullptr;
    auto sequenceOf = [&](int64_t i) {
        if (segmentCount == 0)
            return Sequence{i, 0, g.rows, lengthOf(lengths, i, g.columns)};
        Sequence s = segments[i % segmentCount];
        s.batch = i / segmentCount;
        return s;
    };
    int64_t const sequences = g.batch * std::max<int64_t>(segmentCount, 1), most = gemmMaxRows(isa_, kPanelVectors);
    // Heads alone share out evenly when there are many; packing is repeated in each chunk.
    int64_t const heads = sequences * attrs_.heads;
    int64_t chunks = 1; // parts that share the tiles of a head
    if (threads_ > 1 && heads % threads_ != 0 && heads < 8 * threads_)
        chunks = std::min(divideUp(g.rows, most), divideUp(4 * threads_, heads));
    int64_t const parts = heads * chunks;
    auto rowsOf = [&](int input, Strides const& p, Sequence const& s, int64_t h) {
        return args.inputs[size_t(input)].as<float>() + p.offset + s.batch * p.batch + s.first * p.row +
               h / (input == 0 ? 1 : attrs_.headsPerKey) * p.head;
    };
    auto body = [&](int64_t part, int worker) {
        int64_t const head = part / chunks, chunk = part % chunks, h = head % attrs_.heads;
        Sequence const s = sequenceOf(head / attrs_.heads);
        Tiles const tiles = segmentCount == 0 ? plan.tiles : Tiles(s.rows, most);
        int64_t const begin = tiles.count * chunk / chunks, end = tiles.count * (chunk + 1) / chunks;
        if (begin == end)
            return;
        float* scratch = static_cast<float*>(args.workspace) + worker * plan.scratch.total;
        packKeys(plan, rowsOf(1, g.k, s, h), s.columns, scratch + plan.scratch.keys);
        packValues(plan, rowsOf(2, g.v, s, h), s.columns, scratch + plan.scratch.values);
        int64_t const products =
            segmentCount == 0 ? plan.products : tiles.count * (plan.values.count() + panelsOf(s.columns).count());
        int64_t const lines = (s.columns + s.rows) * linesOf(attrs_.size) + s.columns * linesOf(attrs_.valueSize);
        Fetch fetch(lines * chunks / products + 1);
        if (part + 1 < parts) { // workers take neighbouring parts
            int64_t const nextHead = (part + 1) / chunks, ofNext = nextHead % attrs_.heads;
            Sequence const next = sequenceOf(nextHead / attrs_.heads);
            fetch.add(rowsOf(1, g.k, next, ofNext), next.columns, g.k.row, attrs_.size);
            fetch.add(rowsOf(2, g.v, next, ofNext), next.columns, g.v.row, attrs_.valueSize);
            fetch.add(rowsOf(0, g.q, next, ofNext), next.rows, g.q.row, attrs_.size);
        }
        for (int64_t t = begin; t < end; ++t)
            tile(plan, args, s, h, tiles, t, scratch, fetch);
    };
    if (args.workers->count() > threads_) // more workers than there is scratch for
        for (int64_t p = 0; p < parts; ++p)
            body(p, 0);
    else
        args.workers->run(parts, body);
    return {};
}

Support supports(CpuTactic const& t, Problem const& p)
{
    if (p.inputs[0].type != DataType::kFloat)
        return Support::no("takes queries in f32 only");
    if (p.inputs[1].type != DataType::kFloat &&
        (p.inputs[1].type != DataType::kHalf || !mayTakeFewRows(t.isa(), p.node->attrsAs<Attrs>())))
        return Support::no("takes keys in f16 alone, where heads are whole vectors and nothing is rounded");
    if (p.node->attrsAs<Attrs>().integers)
        return Support::no("makes no integers");
    if (p.node->attrsAs<Attrs>().weightStep > 0)
        return Support::no("takes no weights that are rounded");
    if (auto const& a = p.node->attrsAs<Attrs>(); a.segments && a.masksEnd(p.inputs.size()) > 3)
        return Support::no("takes no masks beside sequences that lie one behind the other");
    return Support::yes();
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& problem, Config const&, PackedConstants&)
{
    auto kernel = std::make_unique<JitKernel>(t.isa(), problem);
    TW_TRY(kernel->emitShared(problem));
    return std::unique_ptr<Kernel>(std::move(kernel));
}

} // namespace

constexpr CpuFunctions kJit{.supports = supports, .load = load};

} // namespace tw::ops::attention
