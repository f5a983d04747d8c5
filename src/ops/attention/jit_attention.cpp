// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/jit_attention.h"

#include <algorithm>
#include <cstring>

namespace tw::ops::attention {

namespace emitted {

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
    s.widened = s.fillWhere + (g.keepInput > 0 && !endsSayAll_ ? rows * s.scoreStride : 0);
    s.total = s.widened + (isNarrow_ ? kRowsAtOnce * roundUp(std::max(attrs_.size, attrs_.valueSize), line) : 0);
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
    auto const* const lengths = elementsOf<int32_t>(args.inputs, g.lengthsInput);
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
    auto at = [&](int input, int64_t element) {
        TensorRef const& x = args.inputs[size_t(input)];
        return static_cast<std::byte const*>(x.data) + element * sizeOf(x.type);
    };
    auto rowsOf = [&](int input, Strides const& p, Sequence const& s, int64_t h) {
        int64_t const head = h / (input == 0 ? 1 : attrs_.headsPerKey);
        return at(input, p.offset + s.batch * p.batch + s.first * p.row + head * p.head);
    };
    Table const table = tableOf(g, args.inputs);
    auto headRows = [&](int input, Strides const& p, Sequence const& s, int64_t h) {
        std::byte const* const x = at(input, p.offset + h / attrs_.headsPerKey * p.head);
        return HeadRows{x, args.inputs[size_t(input)].type, s.batch, s.first, p.batch, p.row, table};
    };
    auto body = [&](int64_t part, int worker) {
        int64_t const head = part / chunks, chunk = part % chunks, h = head % attrs_.heads;
        Sequence const s = sequenceOf(head / attrs_.heads);
        Tiles const tiles = segmentCount == 0 ? plan.tiles : Tiles(s.rows, most);
        int64_t const begin = tiles.count * chunk / chunks, end = tiles.count * (chunk + 1) / chunks;
        if (begin == end)
            return;
        float* scratch = static_cast<float*>(args.workspace) + worker * plan.scratch.total;
        float* const room = scratch + plan.scratch.widened;
        packKeys(headRows(1, g.k, s, h), s.columns, scratch + plan.scratch.keys, room);
        packValues(plan, headRows(2, g.v, s, h), s.columns, scratch + plan.scratch.values, room);
        int64_t const products =
            segmentCount == 0 ? plan.products : tiles.count * (plan.values.count() + panelsOf(s.columns).count());
        int64_t const lines = (s.columns + s.rows) * linesOf(attrs_.size) + s.columns * linesOf(attrs_.valueSize);
        Fetch fetch(lines * chunks / products + 1);
        if (part + 1 < parts) { // workers take neighbouring parts
            int64_t const nextHead = (part + 1) / chunks, ofNext = nextHead % attrs_.heads;
            Sequence const next = sequenceOf(nextHead / attrs_.heads);
            if (!attrs_.pages) {
                int64_t const element = sizeOf(args.inputs[1].type);
                fetch.add(rowsOf(1, g.k, next, ofNext), next.columns, g.k.row * element, attrs_.size * element);
                fetch.add(rowsOf(2, g.v, next, ofNext), next.columns, g.v.row * element, attrs_.valueSize * element);
            }
            fetch.add(rowsOf(0, g.q, next, ofNext), next.rows, g.q.row * 4, attrs_.size * 4);
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

namespace {

Support supports(CpuTactic const& t, Problem const& p)
{
    if (!isFullFloat(p.inputs[0].type))
        return Support::no("takes queries in f32 only");
    if ((!isFullFloat(p.inputs[1].type) || p.node->attrsAs<Attrs>().table) &&
        !mayTakeFewRows(t.isa(), p.node->attrsAs<Attrs>()))
        return Support::no("takes keys in f16, bf16 and i8, of several images, where heads are whole vectors and "
                           "nothing is rounded");
    if (p.node->attrsAs<Attrs>().integers)
        return Support::no("makes no integers");
    if (p.node->attrsAs<Attrs>().weightStep > 0)
        return Support::no("takes no weights that are rounded");
    if (auto const& a = p.node->attrsAs<Attrs>(); a.segments && a.masksEnd(p.inputs.size()) > 3)
        return Support::no("takes no masks beside sequences that lie one behind the other");
    return Support::yes();
}

// Two products as gemm's estimate has them, and what a score takes beside: about as much as 24 multiply-adds. 3 GHz.
double estimate(CpuTactic const& t, Problem const& p, Config const&)
{
    auto const& a = p.node->attrsAs<Attrs>();
    auto const in = mapped<TensorRef>(p.inputs, [](TensorSpec const& s) {
        return s.present ? TensorRef{s.type, s.dims, nullptr, s.format} : TensorRef{};
    });
    Geometry const g = geometryOf(a, in);
    double const lanes = double(kernels::jit::vectorWidth(t.isa())) * (t.isa() == kernels::jit::Isa::kAvx512 ? 1.5 : 2);
    double const scores = double(g.batch) * double(a.heads) * double(g.rows) * double(g.columns);
    return scores * double(a.size + a.valueSize + 24) / lanes / 3000 / std::max(p.threads, 1);
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& problem, Config const&, PackedConstants&)
{
    auto kernel = std::make_unique<JitKernel>(t.isa(), problem);
    TW_TRY(kernel->emitShared(problem));
    return std::unique_ptr<Kernel>(std::move(kernel));
}

} // namespace

} // namespace emitted

constexpr CpuFunctions kJit{.supports = emitted::supports, .estimate = emitted::estimate, .load = emitted::load};

} // namespace tw::ops::attention
