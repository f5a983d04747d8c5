// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/op.h"

#include <cmath>

#include "tactic/domain.h"
#include "tactic/layer_facts.h"
#include "tactic/registry.h"

namespace tw::ops::attention {

namespace {

using ir::Dim;

bool differ(Dim const& a, Dim const& b)
{
    return a.isConst() && b.isConst() && !(a == b);
}

// Batch and rows of an operand.
struct Rows
{
    Dim batch, rows;
};

Result<Rows> checkOperand(ir::InferContext& ctx, int input, Operand const& o, int64_t heads, int64_t size)
{
    ir::Shape const& x = ctx.shape(input);
    if (x.size() == 4) {
        if (differ(x[1], heads) || differ(x[3], size))
            return ctx.error("{} must have {} heads of size {}", ctx.describe(input), heads, size);
        if (o.rowsFirst)
            return ctx.error(ctx.describe(input) + " has rank 4, where rows are never first");
        return Rows{x[0], x[2]};
    }
    if (x.size() != 3)
        return ctx.error(ctx.describe(input) + " must have rank 3 or 4");
    // All below 2^31: sums and products of two cannot overflow.
    if (o.offset < 0 || o.offset > INT32_MAX || o.headStride < 0 || o.headStride > INT32_MAX)
        return ctx.error("offset {} and head stride {} of {} are out of range (allowed: 0..2^31 - 1)", o.offset,
                         o.headStride, ctx.describe(input));
    int64_t const end = o.offset + (heads - 1) * o.headStride + size;
    if (!x[2].isConst() || x[2].value() < end)
        return ctx.error("{} has {} columns, its heads reach to column {}", ctx.describe(input), x[2].str(), end - 1);
    return Rows{x[size_t(o.batchAxis(3))], x[size_t(o.rowsAxis(3))]};
}

Result<void> checkMask(ir::InferContext& ctx, int input, ir::Shape const& scores)
{
    ir::Shape const& m = ctx.shape(input);
    bool fits = m.size() == 4 && !differ(m[3], scores[3]);
    for (size_t i = 0; fits && i < 3; ++i)
        fits = m[i].is(1) || !differ(m[i], scores[i]);
    if (!fits)
        return ctx.error(ctx.describe(input) + " must have the shape of the scores, " + str(scores) +
                         ", or 1 in its first three dimensions");
    return {};
}

// What only decoders have.
Result<void> checkDecoder(ir::InferContext& ctx, Dim const& batch, Dim const& columns)
{
    auto const& a = ctx.attrs<Attrs>();
    if (a.window < 0 || a.window > INT32_MAX)
        return ctx.error("a window of {} keys is out of range (allowed: 0, none, to 2^31 - 1)", a.window);
    if (!std::isfinite(a.softcap) || a.softcap < 0)
        return ctx.error("softcap {} must be 0, none, or a positive number", a.softcap);
    if (a.softcap > 0 && a.roundsScores())
        return ctx.error("scores with a cap are not rounded (softcap {}, steps {} and {})", a.softcap, a.scoreStep,
                         a.sumStep);
    if (a.pages && (!a.lengths || a.table || a.segments))
        return ctx.error("pages are read beside lengths{}", a.table      ? ", and not by a table"
                                                            : a.segments ? ", and not of sequences one behind the other"
                                                                         : "");
    if (a.segments && (a.lengths || a.table))
        return ctx.error("sequences that lie one behind the other have no {} beside their begins",
                         a.lengths ? "lengths" : "table");
    auto vector = [&](int i, char const* what, DataType type, Dim const& size) -> Result<void> {
        if (i < 0)
            return {};
        if (!ctx.has(i) || ctx.type(i) != type || ctx.rank(i) != 1 || differ(ctx.shape(i)[0], size))
            return ctx.error("{} {} must be {} of shape [{}]", what, ctx.has(i) ? ctx.describe(i) : "", nameOf(type),
                             size.str());
        return {};
    };
    TW_TRY(vector(a.lengthsInput(size_t(ctx.inputCount())), "lengths", DataType::kInt32, batch));
    TW_TRY(vector(a.sinksInput(size_t(ctx.inputCount())), "sinks", ctx.type(0), a.heads));
    TW_TRY(vector(a.slopesInput(size_t(ctx.inputCount())), "slopes", DataType::kFloat, a.heads));
    if (a.scales)
        for (int i : {0, 1})
            TW_TRY(vector(a.scalesInput(size_t(ctx.inputCount())) + i, i ? "scales of values" : "scales of keys",
                          DataType::kFloat, a.keyHeads()));
    if (int const i = a.pagesInput(size_t(ctx.inputCount())); i >= 0 && differ(ctx.shape(i)[0], batch))
        return ctx.error("pages {} must have a row for each of {} images", ctx.describe(i), batch.str());
    int const i = a.tableInput(size_t(ctx.inputCount()));
    if (i < 0)
        return {};
    if (!ctx.has(i) || ctx.type(i) != DataType::kInt32 || ctx.rank(i) != 3 || differ(ctx.shape(i)[2], columns) ||
        !ctx.shape(i)[1].isConst() || ctx.shape(i)[1].value() < 1 || differ(ctx.shape(i)[0] * ctx.shape(i)[1], batch))
        return ctx.error("table {} must be i32 of shape [groups, images of a group, {}] for {} images, the second one "
                         "known when the engine is built",
                         ctx.has(i) ? ctx.describe(i) : "", columns.str(), batch.str());
    return {};
}

// Keys and values in blocks, as what they are to queries: rows of their images.
Result<void> readPages(ir::InferContext& ctx, Rows const& q, Rows& k, Rows& v)
{
    int const i = ctx.attrs<Attrs>().pagesInput(size_t(ctx.inputCount()));
    if (i < 3 || !ctx.has(i) || ctx.type(i) != DataType::kInt32 || ctx.rank(i) != 2)
        return ctx.error("pages {} must be i32 of shape [images, blocks of an image]",
                         i >= 3 && ctx.has(i) ? ctx.describe(i) : "");
    for (int x : {1, 2})
        if (ctx.rank(x) != 4 || !ctx.shape(x)[2].is(kPageRows))
            return ctx.error("{} must be blocks of {} rows, [blocks, heads, {}, size], as pages name them",
                             ctx.describe(x), kPageRows, kPageRows);
    if (differ(k.batch, v.batch))
        return ctx.error(ctx.describe(1) + " and " + ctx.describe(2) + " must have one number of blocks");
    ir::Dim const& count = ctx.shape(i)[1];
    if (count.isConst() && count.value() > INT32_MAX / kPageRows)
        return ctx.error("{} blocks of an image are more than 2^31 - 1 rows", count.value());
    k = v = {q.batch, count * Dim(kPageRows)};
    return {};
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    for (int64_t n : {a.heads, a.size, a.valueSize})
        if (n < 1 || n > INT32_MAX)
            return ctx.error("heads {} of size {} and {} are out of range (allowed: 1..2^31 - 1)", a.heads, a.size,
                             a.valueSize);
    if (a.headsPerKey < 1 || a.heads % a.headsPerKey != 0)
        return ctx.error("{} heads cannot share those of keys and values by {}", a.heads, a.headsPerKey);
    if (!std::isfinite(a.scale) || std::isnan(a.fill))
        return ctx.error("scale {} must be finite, fill {} a number", a.scale, a.fill);
    for (double step : {a.scoreStep, a.sumStep, a.weightStep})
        if (step != 0 && !isStep(step))
            return ctx.error("a step of {} is out of range (allowed: 0, none, and {}..{})", step, kLeastStep,
                             kMostStep);
    if (!isFloating(ctx.type(0)))
        return ctx.error(ctx.describe(0) + " must be f32 or f16");
    for (int i = 1; i < 3; ++i)
        if (a.scales ? !isQuantized(ctx.type(i))
                     : ctx.type(i) != ctx.type(0) && !(isFullFloat(ctx.type(0)) && isNarrowFloat(ctx.type(i))))
            return ctx.error(ctx.describe(i) + " must have the type of " + ctx.describe(0) +
                             ", or be f16 or bf16 beside f32, or i8 with scales");
    if (ctx.type(1) != ctx.type(2))
        return ctx.error(ctx.describe(1) + " and " + ctx.describe(2) + " must have one type");
    TW_ASSIGN(Rows const q, checkOperand(ctx, 0, a.q, a.heads, a.size));
    TW_ASSIGN(Rows k, checkOperand(ctx, 1, a.k, a.keyHeads(), a.size));
    TW_ASSIGN(Rows v, checkOperand(ctx, 2, a.v, a.keyHeads(), a.valueSize));
    if (a.pages)
        TW_TRY(readPages(ctx, q, k, v));
    if (differ(q.batch, k.batch) || differ(q.batch, v.batch) || differ(k.rows, v.rows))
        return ctx.error(ctx.describe(0) + ", " + ctx.describe(1) + " and " + ctx.describe(2) +
                         " must have one batch size, and the last two one number of rows");
    bool seen[2] = {};
    int const masksEnd = a.masksEnd(size_t(ctx.inputCount()));
    if (masksEnd < 3 || masksEnd > 5)
        return ctx.error("{} inputs are too {} (q, k, v, up to two masks{}{}{}{}{}{}{}", ctx.inputCount(),
                         masksEnd < 3 ? "few" : "many", a.lengths ? ", lengths" : "", a.sinks ? ", sinks" : "",
                         a.slopes ? ", slopes" : "", a.table ? ", a table" : "", a.pages ? ", pages" : "",
                         a.scales ? ", scales of both" : "", a.segments ? ", begins" : "",
                         a.integers ? ", a scale)" : ")");
    TW_TRY(checkDecoder(ctx, q.batch, k.rows));
    if (int const i = a.beginsInput(size_t(ctx.inputCount())); i >= 0) {
        if (!ctx.has(i) || ctx.type(i) != DataType::kInt32 || ctx.rank(i) != 1)
            return ctx.error("begins " + (ctx.has(i) ? ctx.describe(i) : "") + " must be i32 of rank 1");
        if (differ(q.rows, k.rows))
            return ctx.error(q.rows.str() + " queries and " + k.rows.str() +
                             " keys must be as many, as they lie in the same sequences");
    }
    if (int const i = a.scaleInput(size_t(ctx.inputCount()));
        i >= 0 &&
        (!ctx.has(i) || !isFullFloat(ctx.type(i)) || ctx.rank(i) > 1 || (ctx.rank(i) == 1 && !ctx.shape(i)[0].is(1))))
        return ctx.error("scale " + (ctx.has(i) ? ctx.describe(i) : "") + " must be one f32");
    for (int i = 3; i < masksEnd; ++i) {
        if (!ctx.has(i))
            return ctx.error("input {} is not given (leave it out of the list)", i);
        bool const keep = ctx.type(i) == DataType::kBool;
        if (!keep && ctx.type(i) != ctx.type(0))
            return ctx.error(ctx.describe(i) + " must be b or of the type of " + ctx.describe(0));
        if (seen[keep])
            return ctx.error(ctx.describe(i) + " is the second mask of its type");
        seen[keep] = true;
        TW_TRY(checkMask(ctx, i, {q.batch, a.heads, q.rows, k.rows}));
    }
    if (a.heads * a.valueSize > INT32_MAX)
        return ctx.error("{} heads of size {} are more than 2^31 - 1 columns", a.heads, a.valueSize);
    ir::Shape y{q.batch, q.rows, a.heads * a.valueSize};
    if (a.rowsFirst)
        std::swap(y[0], y[1]);
    ctx.output(0, a.integers ? DataType::kInt8 : ctx.type(0), y);
    return {};
}

// Queries, keys and values that wander over the range of softmax; where scores are rounded, integers, so that cases can
// keep them away from the edges between two steps.
void domain(ir::Node const& node, int input, Domain& d)
{
    if (input == node.attrsAs<Attrs>().scaleInput(node.inputs.size())) {
        d = {0.01, 0.05};
        return;
    }
    if (input == node.attrsAs<Attrs>().beginsInput(node.inputs.size())) {
        // Sequences of half to twice the mean length, where that is known.
        Dim const &rows = node.inputs[0]->shape[size_t(node.attrsAs<Attrs>().q.rowsAxis(node.inputs[0]->rank()))],
                  &begins = node.inputs[size_t(input)]->shape[0];
        double const mean = rows.isConst() && begins.isConst()
                                ? double(rows.value()) / double(std::max<int64_t>(begins.value() - 1, 1))
                                : 72;
        d = {std::floor(mean / 2), std::ceil(mean * 3 / 2), true};
        d.ascending = true;
        return;
    }
    Attrs const& a = node.attrsAs<Attrs>();
    if (input == a.lengthsInput(node.inputs.size())) { // from none to more than there is room for
        ir::Value const& k = *node.inputs[1];
        Dim const columns = a.pages ? node.inputs[size_t(a.pagesInput(node.inputs.size()))]->shape[1] * Dim(kPageRows)
                                    : k.shape[size_t(a.k.rowsAxis(k.rank()))];
        d = {0, columns.isConst() ? double(columns.value()) * 1.1 + 1 : 100, true};
        return;
    }
    if (int const i = a.scalesInput(node.inputs.size()); a.scales && (input == i || input == i + 1)) {
        d = {0.005, 0.03};
        return;
    }
    if (a.scales && (input == 1 || input == 2)) {
        d = {-127, 127, true};
        return;
    }
    if (input == a.slopesInput(node.inputs.size())) {
        d = {0, 0.1};
        return;
    }
    if (input == a.tableInput(node.inputs.size())) { // some beyond the first and the last
        d = {-1, double(node.inputs[size_t(input)]->shape[1].value()), true};
        return;
    }
    if (input == a.pagesInput(node.inputs.size())) { // the same
        Dim const& blocks = node.inputs[1]->shape[0];
        d = {-1, blocks.isConst() ? double(blocks.value()) : 8, true};
        return;
    }
    bool const keep = input > 2 && node.inputs[size_t(input)]->type == DataType::kBool;
    d.lo = keep ? 0 : -2;
    d.hi = keep ? 1 : 2;
    d.integer = keep || node.attrsAs<Attrs>().roundsScores();
}

// An integer near the edge between two steps may fall on either side, and so may a weight. A score that sums `size` products
// rounds by about size * 2^-24 of them, and its weight by as large a part: much where heads are long and nothing scales
// (channels that attend to channels, each with all pixels).
Tolerance tolerance(ir::Node const& node, DataType type)
{
    Tolerance t = Tolerance::forType(type);
    t.integers = 1;
    auto const& a = node.attrsAs<Attrs>();
    t.absolute += 2 * a.weightStep + std::fabs(a.scale) * double(a.size) * 0x1p-24;
    return t;
}

double operations(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    Attrs const& a = node.attrsAs<Attrs>();
    Geometry const g = geometryOf(a, in);
    double columns = double(g.columns);
    if (g.beginsInput >= 0) // as if sequences were of one length: what they hold may not be known
        columns /= double(std::max<int64_t>(in[size_t(g.beginsInput)].dims[0] - 1, 1));
    if (a.window > 0)
        columns = std::min(columns, double(a.window));
    else if (a.causal) // a query in the middle sees half of the queries' own rows less
        columns -= std::min(double(g.rows), columns) / 2;
    return 2.0 * double(g.batch * a.heads) * double(g.rows) * columns * double(a.size + a.valueSize);
}

} // namespace

Strides operandStrides(Extents const& e, Operand const& o, int64_t heads, int64_t size)
{
    if (e.rank == 4)
        return {0, heads * e[2] * size, e[2] * size, size};
    if (o.rowsFirst)
        return {o.offset, e[2], o.headStride, e[1] * e[2]};
    return {o.offset, e[1] * e[2], o.headStride, e[2]};
}

Geometry geometryOf(Attrs const& a, std::span<TensorRef const> inputs)
{
    Geometry g;
    Extents const &q = inputs[0].dims, &k = inputs[1].dims;
    g.batch = q[a.q.batchAxis(q.rank)];
    g.rows = q[a.q.rowsAxis(q.rank)];
    g.columns = k[a.k.rowsAxis(k.rank)];
    g.q = operandStrides(q, a.q, a.heads, a.size);
    g.k = operandStrides(k, a.k, a.keyHeads(), a.size);
    g.v = operandStrides(inputs[2].dims, a.v, a.keyHeads(), a.valueSize);
    int64_t const width = a.heads * a.valueSize;
    g.y = {0, a.rowsFirst ? width : g.rows * width, a.valueSize, a.rowsFirst ? g.batch * width : width};
    g.lengthsInput = a.lengthsInput(inputs.size());
    g.sinksInput = a.sinksInput(inputs.size());
    g.slopesInput = a.slopesInput(inputs.size());
    g.scalesInput = a.scalesInput(inputs.size());
    g.beginsInput = a.beginsInput(inputs.size());
    g.tableInput = a.tableInput(inputs.size());
    g.pagesInput = a.pagesInput(inputs.size());
    if (g.pagesInput >= 0) {
        g.blocks = k[0];
        g.columns = g.blocks > 0 ? inputs[size_t(g.pagesInput)].dims[1] * kPageRows : 0;
    }
    if (g.tableInput >= 0)
        g.sharing = std::max<int64_t>(inputs[size_t(g.tableInput)].dims[1], 1);
    for (size_t i = 3; i < size_t(a.masksEnd(inputs.size())); ++i) {
        Extents const& m = inputs[i].dims;
        auto step = [&](int d) { return m[d] == 1 ? 0 : m.volume(d + 1, 4); };
        bool const keep = inputs[i].type == DataType::kBool;
        (keep ? g.keep : g.mask) = Strides{0, step(0), step(1), step(2)};
        (keep ? g.keepInput : g.maskInput) = int(i);
    }
    return g;
}

constinit ir::OpDef const kDef{
    .name = "attention",
    TW_OP_PARTS(Attrs),
    .inputs = {3, 12},
    .domain = domain,
    .tolerance = tolerance,
    // 8.5 gives such a subgraph to another compiler, whose layers have no kind of their own.
    .inspect = [](LayerFacts& facts) { facts.kind("Myelin", ""); },
    .operations = operations,
};

} // namespace tw::ops::attention
