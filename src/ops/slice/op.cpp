// SPDX-License-Identifier: Apache-2.0
#include "ops/slice/op.h"

#include <algorithm>

#include "base/format.h"
#include "ir/signs.h"
#include "tactic/layer_facts.h"
#include "tactic/registry.h"

namespace tw::ops::slice {

namespace {

using ir::Dim;
using ir::Shape;

// With these, start + i * stride stays far inside int64.
constexpr int64_t kMaxMagnitude = int64_t(1) << 31;

bool isWhole(ir::InferContext const& ctx, int i, Dim const& d)
{
    return i == 2 && !ctx.has(i) && d.is(kWhole);
}

// The elements of start, size or stride; empty optional: not known at build time.
Result<std::optional<std::vector<Dim>>> parameter(ir::InferContext& ctx, int i, char const* name,
                                                  std::vector<int64_t> const& attribute)
{
    size_t const rank = ctx.shape(0).size();
    std::optional<std::vector<Dim>> out;
    if (!ctx.has(i)) {
        if (attribute.size() != rank)
            return ctx.error("{} has {} entries, {} needs {}", name, attribute.size(), ctx.describe(0), rank);
        out.emplace(attribute.begin(), attribute.end());
    } else {
        if (ctx.type(i) != DataType::kInt32 || ctx.rank(i) != 1 || !ctx.shape(i)[0].is(int64_t(rank)))
            return ctx.error("{} {} must be i32 with shape [{}]", name, ctx.describe(i), rank);
        if (auto const* content = ctx.content(i))
            out = *content;
        else if (ctx.concrete())
            return ctx.error(std::string("the elements of ") + name + " " + ctx.describe(i) + " are not known");
    }
    if (out)
        for (Dim const& d : *out)
            if (d.isConst() && !isWhole(ctx, i, d) && (d.value() > kMaxMagnitude || d.value() < -kMaxMagnitude))
                return ctx.error(std::string(name) + " " + d.str() + " is out of range (-2^31 to 2^31)");
    return out;
}

// What is wrong with one dimension, when all of it is known; else empty.
std::string checkBounds(Mode mode, int64_t length, int64_t start, int64_t size, int64_t stride)
{
    if (size == 0 || mode == Mode::kFill)
        return {};
    if (length == 0)
        return fmt::format("the input is empty there, the output takes {} elements", size);
    if (mode != Mode::kStrict)
        return {};
    int64_t const last = start + (size - 1) * stride;
    if (start < 0 || start >= length || last < 0 || last >= length)
        return fmt::format("start {}, size {}, stride {} reach from {} to {}, out of the bounds [0, {})", start, size,
                           stride, std::min(start, last), std::max(start, last), length);
    return {};
}

int64_t sourceIndex(Mode mode, int64_t p, int64_t length)
{
    int64_t const period = mode == Mode::kReflect ? std::max<int64_t>(1, 2 * (length - 1)) : length;
    if (mode == Mode::kWrap || mode == Mode::kReflect)
        p = (p % period + period) % period;
    if (mode == Mode::kReflect && p >= length)
        p = period - p;
    return mode == Mode::kClamp ? std::clamp<int64_t>(p, 0, length - 1) : p;
}

// Elements of the output, when those of the input and all coordinates are known.
void propagateContent(ir::InferContext& ctx, Shape const& y, std::vector<Dim> const& start,
                      std::vector<Dim> const& stride)
{
    auto const* content = ctx.content(0);
    auto known = [](std::vector<Dim> const& v) {
        return std::all_of(v.begin(), v.end(), [](Dim const& d) { return d.isConst(); });
    };
    if (!content || !isStatic(ctx.shape(0)) || !known(y) || !known(start) || !known(stride))
        return;
    Extents const x = extentsOf(ctx.shape(0)), to = extentsOf(y), strides = stridesOf(x);
    int64_t count = 1;
    for (int64_t d : to)
        count = d < 0 ? INT64_MAX : ir::mulSat(count, d);
    auto const* fill = ctx.content(4);
    if (count > ir::kMaxContent || int64_t(content->size()) != x.volume() || (ctx.has(4) && !fill))
        return;
    std::vector<Dim> out;
    Counter at(to);
    for (int64_t i = 0; i < count; ++i, at.next()) {
        int64_t from = 0;
        bool inside = true;
        for (int d = 0; d < x.rank; ++d) {
            int64_t const p = sourceIndex(ctx.attrs<Attrs>().mode,
                                          start[size_t(d)].value() + at.at[d] * stride[size_t(d)].value(), x[d]);
            inside = inside && p >= 0 && p < x[d];
            from += p * strides[d];
        }
        out.push_back(inside ? (*content)[size_t(from)] : fill ? fill->at(0) : Dim(0));
    }
    ctx.outputContent(0, std::move(out));
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (a.mode < Mode::kStrict || a.mode > Mode::kReflect)
        return ctx.error("mode {} is unknown (allowed: 0 to 4)", int(a.mode));
    if (ctx.has(4)) {
        if (a.mode != Mode::kFill)
            return ctx.error("a fill value is given, but the mode is not fill");
        if (ctx.type(4) != ctx.type(0) || !volume(ctx.shape(4)).is(1))
            return ctx.error("the fill value " + ctx.describe(4) + " must be one element of type " +
                             nameOf(ctx.type(0)));
    }
    TW_ASSIGN(auto const start, parameter(ctx, 1, "start", a.start));
    TW_ASSIGN(auto size, parameter(ctx, 2, "size", a.size));
    TW_ASSIGN(auto const stride, parameter(ctx, 3, "stride", a.stride));
    Shape const& x = ctx.shape(0);
    for (size_t d = 0; size && d < x.size(); ++d)
        if (isWhole(ctx, 2, (*size)[d]))
            (*size)[d] = x[d];
    Shape y;
    for (size_t d = 0; d < x.size(); ++d) {
        if (!size) {
            // A strict slice that visits no element twice is no longer than its input.
            bool const within = a.mode == Mode::kStrict && stride && (*stride)[d].isConst() && !(*stride)[d].is(0);
            y.push_back(ctx.freshSymbol({0, within ? std::min<int64_t>(ctx.range(x[d]).hi, INT32_MAX) : INT32_MAX}));
            continue;
        }
        y.push_back((*size)[d]);
        std::string const where = fmt::format("dimension {} of {}: ", d, ctx.describe(0));
        if (y[d].isConst() && y[d].value() < 0)
            return ctx.error(where + "size " + y[d].str() + " is negative");
        bool const known =
            start && stride && (*start)[d].isConst() && (*stride)[d].isConst() && y[d].isConst() && x[d].isConst();
        if (!known)
            continue;
        std::string const why =
            checkBounds(a.mode, x[d].value(), (*start)[d].value(), y[d].value(), (*stride)[d].value());
        if (!why.empty())
            return ctx.error(where + why);
    }
    ctx.output(0, ctx.type(0), y);
    if (start && stride)
        propagateContent(ctx, y, *start, *stride);
    return {};
}

// By pixels: whole cache lines of every pixel, or whole vectors.
std::vector<ir::Alias> pixelAliases(Extents const& x, Extents const& y, Steps const& s, DataType type, Format format)
{
    for (int d = 0; d < x.rank; ++d)
        if (s.stride[d] != 1 || (d != 1 && (s.start[d] != 0 || x[d] != y[d])))
            return {};
    int64_t const line = isPixelVectors(format) ? vectorOf(format) : kCacheLine / sizeOf(type);
    if (s.start[1] % line != 0 || y[1] % line != 0 || s.start[1] < 0 || s.start[1] > x[1] - y[1])
        return {};
    return {ir::Alias{true, 0, s.start[1]}};
}

// A part of the input that lies in one piece: the dimensions before some axis have one element, those after it are
// taken whole.
std::vector<ir::Alias> aliases(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    auto given = [&](size_t i) { return i < node.inputs.size() && node.inputs[i]; };
    auto data = [&](size_t i) { return given(i) ? in[i] : TensorRef{}; };
    Extents const &x = in[0].dims, &y = out[0].dims;
    if ((given(1) && !in[1].data) || (given(3) && !in[3].data) || y.volume() == 0)
        return {};
    Steps const s = stepsOf(node.attrsAs<Attrs>(), data(1), data(3), x.rank);
    if (in[0].format != out[0].format)
        return {};
    if (in[0].format == Format::kChannelsLast || isPixelRows(in[0].format, x.rank))
        return pixelAliases(x, y, s, in[0].type, in[0].format);
    if (in[0].format != Format::kLinear)
        return {};
    Extents const strides = stridesOf(x);
    bool whole = true; // all dimensions after this one
    int64_t offset = 0;
    for (int d = x.rank - 1; d >= 0; --d) {
        bool const inside = s.start[d] >= 0 && s.start[d] <= x[d] - y[d];
        if (!inside || (y[d] > 1 && (s.stride[d] != 1 || !whole)))
            return {};
        whole = whole && y[d] == x[d];
        offset += s.start[d] * strides[d];
    }
    return {ir::Alias{true, 0, offset}};
}

} // namespace

Attrs partOf(ir::Shape const& x, int axis, int64_t begin, int64_t count)
{
    Attrs a;
    a.start.assign(x.size(), 0);
    a.stride.assign(x.size(), 1);
    for (ir::Dim const& d : x)
        a.size.push_back(d.isConst() ? d.value() : kWhole);
    a.start[size_t(axis)] = begin;
    a.size[size_t(axis)] = count;
    return a;
}

Steps stepsOf(Attrs const& a, TensorRef const& start, TensorRef const& stride, int rank)
{
    Steps s{};
    for (int d = 0; d < rank; ++d) {
        s.start[d] = start.data ? start.getInt(d) : a.start[size_t(d)];
        s.stride[d] = stride.data ? stride.getInt(d) : a.stride[size_t(d)];
    }
    return s;
}

namespace {

void inspect(LayerFacts& facts)
{
    auto const& a = facts.attrs<Attrs>();
    constexpr char const* kModes[] = {"kSTRICT_BOUNDS", "kWRAP", "kCLAMP", "kFILL", "kREFLECT"};
    std::vector<int64_t> const unknown(facts.input(0)->shape.size(), -1);
    facts.kind("Slice");
    facts.add("Start", facts.input(1) ? unknown : a.start);
    facts.add("Stride", facts.input(3) ? unknown : a.stride);
    facts.add("Size", facts.input(2) || contains(a.size, kWhole) ? numbersOf(facts.node.outputs[0]->shape) : a.size);
    facts.add("Mode", kModes[int(a.mode)]);
    facts.addFlag("negativeInfinityPadding", false);
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "slice",
    TW_OP_PARTS(Attrs),
    .inputs = {1, 5},
    .isShapeInput = [](ir::Node const&, size_t i) { return i >= 1 && i <= 3; },
    .isNonNegative =
        [](ir::Node const& n, ir::Signs& signs) { // what it fills with may be negative
            return (n.inputs.size() < 5 || !n.inputs[4]) && ir::ofFirstInput(n, signs);
        },
    .inspect = inspect,
    .aliases = aliases,
    .isCheap = true,
    .readsPart = true,
    .computesShapes = true,
};

} // namespace tw::ops::slice
