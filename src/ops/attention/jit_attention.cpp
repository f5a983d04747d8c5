// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/round.h"
#include "kernels/cpu/jit/gemm_kernel.h"
#include "kernels/cpu/jit/matrix_copy.h"
#include "kernels/cpu/jit/softmax_kernel.h"
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

class Plan final : public Prepared
{
public:
    Geometry g;
    Panels keys, values;
    Scratch scratch;
    int64_t tiles = 0; // of queries: the first `tall` of them have height + 1 rows
    int64_t height = 0, tall = 0;
    int64_t chunks = 1;               // parts that share the tiles of a head
    int64_t fetchLines = 0;           // of the next part, before each product
    std::vector<int64_t> tileColumns; // columns that a tile looks at
    // [taller][vectors - 1]; sums are multiplied by the reciprocals of their rows' weights.
    GemmKernel products[2][kPanelVectors], sums[2][kPanelVectors];
    GemmKernel masked[2]; // [taller], for the last panel of values

    int64_t tileBegin(int64_t t) const { return t * height + std::min(t, tall); }
    int64_t tileRows(int64_t t) const { return height + (t < tall); }
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
        for (size_t i = 3; i < problem.inputs.size(); ++i)
            if (problem.inputs[i].type == DataType::kBool && problem.inputs[i].constant && attrs_.fill < kNothing &&
                attrs_.sumStep == 0)
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
        for (size_t i = 3; i < problem.inputs.size(); ++i)
            (problem.inputs[i].type == DataType::kBool ? spec.fill : spec.mask) = true;
        spec.ends = endsSayAll_;
        spec.fill = spec.fill && !spec.ends;
        TW_ASSIGN(softmax_, SoftmaxKernel::emit(isa_, spec));
        return {};
    }

    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const>) const override
    {
        return threads_ * scratchOf(geometryOf(attrs_, in)).total * int64_t(sizeof(float));
    }

    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const>) const override;
    Result<void> run(RunArgs& args) const override;

private:
    void findRowEnds(TensorSpec const& keep);
    int width() const { return vectorWidth(isa_); }
    Panels panelsOf(int64_t columns) const { return Panels{columns, int64_t(kPanelVectors) * width()}; }
    Scratch scratchOf(Geometry const& g) const;
    void packKeys(Plan const& plan, float const* k, float* to) const;
    void packValues(Plan const& plan, float const* v, float* to) const;
    void tile(Plan const& plan, RunArgs& args, int64_t b, int64_t h, int64_t t, float* scratch, Fetch& fetch) const;
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
    // A line more than it needs, so that rows do not lie a multiple of 4 KiB apart.
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
    plan->keys = panelsOf(g.columns);
    plan->values = panelsOf(attrs_.valueSize);
    plan->scratch = scratchOf(g);
    if (g.batch == 0 || g.rows == 0 || g.columns == 0)
        return std::shared_ptr<Prepared const>(std::move(plan));
    if (endsSayAll_ && int64_t(rowEnds_.size()) != g.rows)
        return internalError("attention: a condition of " + std::to_string(rowEnds_.size()) + " rows for " +
                             std::to_string(g.rows) + " queries");
    // Tiles of two heights at most, one row apart, so that none is left with a few rows.
    int64_t const most = gemmMaxRows(isa_, kPanelVectors);
    plan->tiles = divideUp(g.rows, most);
    plan->height = g.rows / plan->tiles;
    plan->tall = g.rows % plan->tiles;
    // Heads alone share out evenly when there are many; packing is repeated in each chunk.
    int64_t const heads = g.batch * attrs_.heads;
    if (threads_ > 1 && heads % threads_ != 0 && heads < 8 * threads_)
        plan->chunks = std::min(plan->tiles, divideUp(4 * threads_, heads));
    plan->tileColumns.assign(size_t(plan->tiles), g.columns);
    if (int64_t(rowEnds_.size()) == g.rows)
        for (int64_t t = 0; t < plan->tiles; ++t) {
            auto const first = rowEnds_.begin() + plan->tileBegin(t);
            plan->tileColumns[size_t(t)] = std::min(*std::max_element(first, first + plan->tileRows(t)), g.columns);
        }
    int64_t products = plan->tiles * plan->values.count();
    for (int64_t n : plan->tileColumns)
        products += divideUp(n, plan->keys.width);
    int64_t const lines = (g.columns + g.rows) * linesOf(attrs_.size) + g.columns * linesOf(attrs_.valueSize);
    plan->fetchLines = lines * plan->chunks / products + 1;
    for (int taller = 0; taller < (plan->tall > 0 ? 2 : 1); ++taller)
        for (int vectors = 1; vectors <= kPanelVectors; ++vectors) {
            GemmKernelSpec s;
            s.rows = int(plan->height) + taller;
            s.vectors = vectors;
            s.body = contiguousLoop(isa_, vectors, kUnroll);
            s.tail = contiguousLoop(isa_, vectors, 1);
            s.prefetchC = true;
            TW_ASSIGN(plan->products[taller][vectors - 1], GemmKernel::emit(isa_, s));
            s.epilogue.push_back(EpilogueOp::kRowScale);
            TW_ASSIGN(plan->sums[taller][vectors - 1], GemmKernel::emit(isa_, s));
            if (attrs_.valueSize % width() != 0 && vectors == plan->values.vectorsOf(plan->values.count() - 1)) {
                s.masked = true;
                TW_ASSIGN(plan->masked[taller], GemmKernel::emit(isa_, s));
            }
        }
    return std::shared_ptr<Prepared const>(std::move(plan));
}

// [columns, size] -> panels [size][panel's columns]; columns that do not exist are zero.
void JitKernel::packKeys(Plan const& plan, float const* k, float* to) const
{
    int64_t const size = attrs_.size, w = width(), stride = plan.g.k.row;
    for (int64_t p = 0; p < plan.keys.count(); ++p) {
        int64_t const columns = plan.keys.columnsOf(p), padded = plan.keys.vectorsOf(p) * w;
        float* panel = to + plan.keys.begin(p, size);
        for (int64_t j0 = 0; j0 < padded; j0 += w) {
            float const* from = k + (p * plan.keys.width + j0) * stride;
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
void JitKernel::packValues(Plan const& plan, float const* v, float* to) const
{
    for (int64_t p = 0; p < plan.values.count(); ++p) {
        CopyRowsArgs a;
        a.x = v + p * plan.values.width;
        a.y = to + plan.values.begin(p, plan.g.columns);
        a.xStrideBytes = plan.g.v.row * 4;
        a.yStrideBytes = plan.values.vectorsOf(p) * width() * 4;
        a.rows = plan.g.columns;
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

void JitKernel::tile(Plan const& plan, RunArgs& args, int64_t b, int64_t h, int64_t t, float* scratch,
                     Fetch& fetch) const
{
    Geometry const& g = plan.g;
    int64_t const first = plan.tileBegin(t), rows = plan.tileRows(t), n = plan.tileColumns[size_t(t)];
    int const taller = t < plan.tall;
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
    for (int64_t p = 0; p * plan.keys.width < n; ++p) {
        gemm.b = scratch + plan.scratch.keys + plan.keys.begin(p, size);
        gemm.c = scores + p * plan.keys.width;
        fetch.some();
        plan.products[taller][plan.keys.vectorsOf(p) - 1](gemm);
    }

    SoftmaxArgs soft;
    soft.x = soft.y = scores;
    soft.xStrideBytes = soft.yStrideBytes = scoreBytes;
    soft.rows = rows;
    soft.n = n;
    soft.reciprocals = scratch + plan.scratch.reciprocals;
    if (g.maskInput > 0) {
        soft.mask =
            args.inputs[size_t(g.maskInput)].as<float>() + b * g.mask.batch + h * g.mask.head + first * g.mask.row;
        soft.maskStrideBytes = g.mask.row * 4;
    }
    if (endsSayAll_) {
        soft.ends = rowEnds_.data() + first;
    } else if (g.keepInput > 0) {
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
    gemm.ldcBytes = attrs_.heads * attrs_.valueSize * 4;
    float* y = args.outputs[0].as<float>() + ((b * g.rows + first) * attrs_.heads + h) * attrs_.valueSize;
    for (int64_t p = 0; p < plan.values.count(); ++p) {
        int const vectors = plan.values.vectorsOf(p);
        int64_t const columns = plan.values.columnsOf(p);
        bool const masked = columns != vectors * w;
        gemm.b = scratch + plan.scratch.values + plan.values.begin(p, g.columns);
        gemm.c = y + p * plan.values.width;
        gemm.lastColumns = columns - (vectors - 1) * w;
        fetch.some();
        (masked ? plan.masked[taller] : plan.sums[taller][vectors - 1])(gemm);
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
    int64_t const parts = g.batch * attrs_.heads * plan.chunks;
    auto rowsOf = [&](int input, Strides const& p, int64_t head) {
        return args.inputs[size_t(input)].as<float>() + p.offset + head / attrs_.heads * p.batch +
               head % attrs_.heads / (input == 0 ? 1 : attrs_.headsPerKey) * p.head;
    };
    auto body = [&](int64_t part, int worker) {
        int64_t const head = part / plan.chunks, chunk = part % plan.chunks;
        float* scratch = static_cast<float*>(args.workspace) + worker * plan.scratch.total;
        packKeys(plan, rowsOf(1, g.k, head), scratch + plan.scratch.keys);
        packValues(plan, rowsOf(2, g.v, head), scratch + plan.scratch.values);
        int64_t const begin = plan.tiles * chunk / plan.chunks, end = plan.tiles * (chunk + 1) / plan.chunks;
        Fetch fetch(plan.fetchLines);
        if (part + 1 < parts) { // workers take neighbouring parts
            int64_t const next = (part + 1) / plan.chunks;
            fetch.add(rowsOf(1, g.k, next), g.columns, g.k.row, attrs_.size);
            fetch.add(rowsOf(2, g.v, next), g.columns, g.v.row, attrs_.valueSize);
            fetch.add(rowsOf(0, g.q, next), g.rows, g.q.row, attrs_.size);
        }
        for (int64_t t = begin; t < end; ++t)
            tile(plan, args, head / attrs_.heads, head % attrs_.heads, t, scratch, fetch);
    };
    if (args.workers->count() > threads_) // more workers than there is scratch for
        for (int64_t p = 0; p < parts; ++p)
            body(p, 0);
    else
        args.workers->run(parts, body);
    return {};
}

Support supports(CpuTactic const&, Problem const& p)
{
    TW_SUPPORTS(takesOnly(DataType::kFloat, p));
    if (p.node->attrsAs<Attrs>().integers)
        return Support::no("makes no integers");
    if (p.node->attrsAs<Attrs>().weightStep > 0)
        return Support::no("takes no weights that are rounded");
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
