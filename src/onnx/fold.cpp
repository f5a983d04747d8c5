// SPDX-License-Identifier: Apache-2.0
#include "onnx/fold.h"

#include "onnx/model.h"
#include "tw_onnx.pb.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

namespace tw::onnx {

namespace {

// Rearranging copies the data; above this size the network does it at run time instead.
constexpr int64_t kMaxRearranged = 1 << 26;
// Arithmetic is folded for shapes, not for weights, which keep their names for refitting.
constexpr int64_t kMaxComputed = 4096;

using Coordinates = std::vector<int64_t>;

void* dataOf(Constant& c)
{
    return const_cast<void*>(c.values);
}

std::vector<int64_t> stridesOf(Dims const& d)
{
    std::vector<int64_t> s(size_t(d.nbDims), 1);
    for (int i = d.nbDims - 2; i >= 0; --i)
        s[size_t(i)] = s[size_t(i) + 1] * d.d[i + 1];
    return s;
}

// y[p] = x[source(p)] for every position p of `dims`; false when a source index is outside x.
template <class Source>
std::optional<Constant> rearrange(ImportContext& ctx, Constant const& x, Dims const& dims, Source source)
{
    int64_t const n = volume(dims);
    if (n < 0 || n > kMaxRearranged)
        return {};
    Constant y = ctx.newConstant(x.type, dims);
    int64_t const size = sizeOf(x.type);
    Coordinates p(size_t(dims.nbDims), 0);
    for (int64_t i = 0; i < n; ++i) {
        int64_t const from = source(p);
        if (from < 0 || from >= x.count)
            return {};
        std::memcpy(static_cast<char*>(dataOf(y)) + i * size, static_cast<char const*>(x.values) + from * size,
                    size_t(size));
        for (int a = dims.nbDims - 1; a >= 0 && ++p[size_t(a)] == dims.d[a]; --a)
            p[size_t(a)] = 0;
    }
    return y;
}

std::optional<Dims> broadcastDims(Dims const& a, Dims const& b)
{
    Dims y{std::max(a.nbDims, b.nbDims), {}};
    for (int i = 0; i < y.nbDims; ++i) {
        int const ia = i - (y.nbDims - a.nbDims), ib = i - (y.nbDims - b.nbDims);
        int32_t const da = ia < 0 ? 1 : a.d[ia], db = ib < 0 ? 1 : b.d[ib];
        if (da != db && da != 1 && db != 1)
            return {};
        y.d[i] = da == 1 ? db : da;
    }
    return y;
}

// Index in a constant of shape `from` for position p of a shape that it broadcasts to.
int64_t broadcastIndex(Dims const& from, std::vector<int64_t> const& strides, Coordinates const& p)
{
    int64_t index = 0;
    for (int i = 0; i < from.nbDims; ++i)
        if (from.d[i] != 1)
            index += strides[size_t(i)] * p[p.size() - size_t(from.nbDims - i)];
    return index;
}

std::optional<Constant> expanded(ImportContext& ctx, Constant const& x, Dims const& dims)
{
    auto const strides = stridesOf(x.dims);
    return rearrange(ctx, x, dims, [&](Coordinates const& p) { return broadcastIndex(x.dims, strides, p); });
}

// Integers of an attribute (old opsets) or of a constant input (new ones).
std::optional<std::vector<int64_t>> attrOrInput(ImportContext& ctx, char const* attr, int input)
{
    if (ctx.hasAttr(attr))
        return ctx.attrInts(attr);
    if (ctx.isConstant(input) && !isFloating(ctx.input(input).type()))
        return ctx.input(input).constant().ints();
    return {};
}

std::optional<Constant> foldConstant(ImportContext& ctx)
{
    if (ctx.hasAttr("value"))
        return ctx.attrTensor("value");
    if (ctx.hasAttr("value_int"))
        return ctx.intScalar(ctx.attrInt("value_int", 0));
    if (ctx.hasAttr("value_ints"))
        return ctx.intConstant(ctx.attrInts("value_ints"));
    if (ctx.hasAttr("value_float"))
        return ctx.floatConstant({ctx.attrFloat("value_float", 0)}, Dims{0, {}});
    if (ctx.hasAttr("value_floats")) {
        std::vector<float> const v = ctx.attrFloats("value_floats");
        return ctx.floatConstant(v, Dims{1, {int32_t(v.size())}});
    }
    return {};
}

std::optional<Constant> foldShape(ImportContext& ctx)
{
    Dims const d = ctx.input(0).dims();
    int64_t const rank = d.nbDims;
    auto bound = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
    int64_t const start = bound(ctx.attrInt("start", 0)), end = bound(ctx.attrInt("end", rank));
    std::vector<int64_t> v;
    for (int64_t i = start; i < end; ++i) {
        if (d.d[i] < 0)
            return {};
        v.push_back(d.d[i]);
    }
    return ctx.intConstant(v);
}

std::optional<Constant> foldGather(ImportContext& ctx)
{
    Constant const &x = ctx.input(0).constant(), &index = ctx.input(1).constant();
    int const axis = ctx.axis(ctx.attrInt("axis", 0), x.dims.nbDims);
    Dims y{x.dims.nbDims + index.dims.nbDims - 1, {}};
    if (y.nbDims > Dims::MAX_DIMS)
        return {};
    std::copy(x.dims.d, x.dims.d + axis, y.d);
    std::copy(index.dims.d, index.dims.d + index.dims.nbDims, y.d + axis);
    std::copy(x.dims.d + axis + 1, x.dims.d + x.dims.nbDims, y.d + axis + index.dims.nbDims);
    auto const sx = stridesOf(x.dims), si = stridesOf(index.dims);
    return rearrange(ctx, x, y, [&](Coordinates const& p) -> int64_t {
        int64_t at = 0, from = 0;
        for (int i = 0; i < index.dims.nbDims; ++i)
            at += si[size_t(i)] * p[size_t(axis + i)];
        int64_t k = index.intAt(at);
        k += k < 0 ? x.dims.d[axis] : 0;
        if (k < 0 || k >= x.dims.d[axis])
            return -1;
        for (int i = 0; i < x.dims.nbDims; ++i)
            from += sx[size_t(i)] * (i < axis ? p[size_t(i)] : i == axis ? k : p[size_t(i + index.dims.nbDims - 1)]);
        return from;
    });
}

std::optional<Constant> foldReshape(ImportContext& ctx)
{
    Constant const& x = ctx.input(0).constant();
    auto const shape = attrOrInput(ctx, "shape", 1);
    if (!shape || shape->size() > size_t(Dims::MAX_DIMS))
        return {};
    Dims y{int32_t(shape->size()), {}};
    int wildcard = -1;
    int64_t known = 1;
    for (int i = 0; i < y.nbDims; ++i) {
        int64_t v = (*shape)[size_t(i)];
        if (v == 0 && ctx.attrInt("allowzero", 0) == 0) {
            if (i >= x.dims.nbDims)
                return {};
            v = x.dims.d[i];
        }
        if (v < -1 || v > INT32_MAX || (v == -1 && wildcard >= 0))
            return {};
        y.d[i] = int32_t(v);
        if (v == -1)
            wildcard = i;
        else if (__builtin_mul_overflow(known, v, &known))
            return {};
    }
    if (wildcard >= 0) {
        if (known == 0 || x.count % known != 0)
            return {};
        y.d[wildcard] = int32_t(x.count / known);
    }
    if (volume(y) != x.count)
        return {};
    return ctx.reshaped(x, y);
}

std::optional<Constant> foldUnsqueeze(ImportContext& ctx)
{
    Constant const& x = ctx.input(0).constant();
    auto const list = attrOrInput(ctx, "axes", 1);
    if (!list || list->size() + size_t(x.dims.nbDims) > size_t(Dims::MAX_DIMS))
        return {};
    Dims y{x.dims.nbDims + int32_t(list->size()), {}};
    std::vector<int> const axes = ctx.axes(*list, y.nbDims);
    for (int i = 0, from = 0; i < y.nbDims; ++i)
        y.d[i] = std::find(axes.begin(), axes.end(), i) != axes.end() ? 1 : x.dims.d[from++];
    return ctx.reshaped(x, y);
}

std::optional<Constant> foldSqueeze(ImportContext& ctx)
{
    Constant const& x = ctx.input(0).constant();
    auto const list = attrOrInput(ctx, "axes", 1);
    if (!list && ctx.hasInput(1))
        return {};
    std::vector<int> const axes = list ? ctx.axes(*list, x.dims.nbDims) : std::vector<int>();
    Dims y{0, {}};
    for (int i = 0; i < x.dims.nbDims; ++i) {
        bool const drop = list ? std::find(axes.begin(), axes.end(), i) != axes.end() : x.dims.d[i] == 1;
        if (drop && x.dims.d[i] != 1)
            return {};
        if (!drop)
            y.d[y.nbDims++] = x.dims.d[i];
    }
    return ctx.reshaped(x, y);
}

std::optional<Constant> foldConcat(ImportContext& ctx)
{
    Constant const& first = ctx.input(0).constant();
    int const axis = ctx.axis(ctx.attrInt("axis", 0), first.dims.nbDims);
    Dims y = first.dims;
    int64_t extent = 0;
    for (int i = 0; i < ctx.nbInputs(); ++i) {
        Constant const& c = ctx.input(i).constant();
        if (c.dims.nbDims != y.nbDims || c.type != first.type)
            return {};
        for (int a = 0; a < y.nbDims; ++a)
            if (a != axis && c.dims.d[a] != y.d[a])
                return {};
        extent += c.dims.d[axis];
    }
    if (extent > INT32_MAX)
        return {};
    y.d[axis] = int32_t(extent);
    if (volume(y) > kMaxRearranged)
        return {};
    Constant out = ctx.newConstant(first.type, y);
    int64_t outer = 1, inner = sizeOf(first.type);
    for (int a = 0; a < y.nbDims; ++a)
        (a < axis ? outer : inner) *= a == axis ? 1 : y.d[a];
    char* to = static_cast<char*>(dataOf(out));
    for (int64_t o = 0; o < outer; ++o)
        for (int i = 0; i < ctx.nbInputs(); ++i) {
            Constant const& c = ctx.input(i).constant();
            int64_t const bytes = inner * c.dims.d[axis];
            std::memcpy(to, static_cast<char const*>(c.values) + o * bytes, size_t(bytes));
            to += bytes;
        }
    return out;
}

std::optional<Constant> foldSlice(ImportContext& ctx)
{
    Constant const& x = ctx.input(0).constant();
    auto const starts = attrOrInput(ctx, "starts", 1), ends = attrOrInput(ctx, "ends", 2);
    auto list = attrOrInput(ctx, "axes", 3);
    auto steps = attrOrInput(ctx, "steps", 4);
    if (!starts || !ends || starts->size() != ends->size())
        return {};
    if (!list) {
        list.emplace();
        for (size_t i = 0; i < starts->size(); ++i)
            list->push_back(int64_t(i));
    }
    if (!steps)
        steps.emplace(starts->size(), 1);
    std::vector<int> const axes = ctx.axes(*list, x.dims.nbDims);
    if (axes.size() != starts->size() || steps->size() != starts->size())
        return {};
    Dims y = x.dims;
    std::vector<int64_t> from(size_t(y.nbDims), 0), step(size_t(y.nbDims), 1);
    for (size_t i = 0; i < axes.size(); ++i) {
        int64_t const d = x.dims.d[axes[i]], s = (*steps)[i];
        if (s == 0)
            return {};
        auto bound = [&](int64_t v) {
            return s > 0 ? std::clamp<int64_t>(v, 0, d) : std::clamp<int64_t>(v, -1, d - 1);
        };
        int64_t const a = bound((*starts)[i] < 0 ? (*starts)[i] + d : (*starts)[i]);
        int64_t const b = bound((*ends)[i] < 0 ? (*ends)[i] + d : (*ends)[i]);
        int64_t const length = s > 0 ? (b - a + s - 1) / s : (a - b - s - 1) / -s;
        y.d[axes[i]] = int32_t(std::max<int64_t>(length, 0));
        from[size_t(axes[i])] = a;
        step[size_t(axes[i])] = s;
    }
    auto const sx = stridesOf(x.dims);
    return rearrange(ctx, x, y, [&](Coordinates const& p) {
        int64_t at = 0;
        for (size_t i = 0; i < p.size(); ++i)
            at += sx[i] * (from[i] + step[i] * p[i]);
        return at;
    });
}

std::optional<Constant> foldTranspose(ImportContext& ctx)
{
    Constant const& x = ctx.input(0).constant();
    std::vector<int64_t> reversed;
    for (int i = x.dims.nbDims - 1; i >= 0; --i)
        reversed.push_back(i);
    std::vector<int> const perm = ctx.axes(ctx.attrInts("perm", reversed), x.dims.nbDims, "perm");
    if (int(perm.size()) != x.dims.nbDims)
        return {};
    Dims y = x.dims;
    for (int i = 0; i < y.nbDims; ++i)
        y.d[i] = x.dims.d[perm[size_t(i)]];
    auto const sx = stridesOf(x.dims);
    return rearrange(ctx, x, y, [&](Coordinates const& p) {
        int64_t at = 0;
        for (size_t i = 0; i < p.size(); ++i)
            at += sx[size_t(perm[i])] * p[i];
        return at;
    });
}

std::optional<Dims> dimsFrom(Constant const& shape)
{
    if (isFloating(shape.type) || shape.dims.nbDims != 1 || shape.count > Dims::MAX_DIMS)
        return {};
    Dims d{int32_t(shape.count), {}};
    for (int i = 0; i < d.nbDims; ++i) {
        int64_t const v = shape.intAt(i);
        if (v < 0 || v > INT32_MAX)
            return {};
        d.d[i] = int32_t(v);
    }
    return d;
}

std::optional<Constant> foldConstantOfShape(ImportContext& ctx)
{
    auto const dims = dimsFrom(ctx.input(0).constant());
    if (!dims || volume(*dims) > kMaxRearranged)
        return {};
    if (!ctx.hasAttr("value"))
        return ctx.filled(0, DataType::kFLOAT, *dims);
    Constant const v = ctx.attrTensor("value");
    return v.count == 1 ? std::optional<Constant>(ctx.filled(v.floatAt(0), v.type, *dims)) : std::nullopt;
}

std::optional<Constant> foldExpand(ImportContext& ctx)
{
    auto const shape = dimsFrom(ctx.input(1).constant());
    auto const dims = shape ? broadcastDims(ctx.input(0).dims(), *shape) : std::nullopt;
    return dims ? expanded(ctx, ctx.input(0).constant(), *dims) : std::nullopt;
}

std::optional<Constant> foldRange(ImportContext& ctx)
{
    for (int i = 0; i < 3; ++i)
        if (ctx.input(i).constant().count != 1 || ctx.input(i).type() != ctx.input(0).type())
            return {};
    double const start = ctx.input(0).constant().floatAt(0), limit = ctx.input(1).constant().floatAt(0),
                 delta = ctx.input(2).constant().floatAt(0);
    double const n = std::max(0.0, std::ceil((limit - start) / delta));
    if (!(n <= double(kMaxRearranged)))
        return {};
    Constant y = ctx.newConstant(ctx.input(0).type(), Dims{1, {int32_t(n)}});
    for (int64_t i = 0; i < y.count; ++i)
        ctx.store(y, i, start + double(i) * delta);
    return y;
}

std::optional<Constant> foldCast(ImportContext& ctx)
{
    DataType to;
    int64_t const onnxType = ctx.attrInt("to", 0);
    Constant const& x = ctx.input(0).constant();
    if (onnxType < 0 || onnxType > INT32_MAX || !dataTypeOf(int(onnxType), to) || to == DataType::kUINT8 ||
        x.count > kMaxRearranged)
        return {};
    return ctx.converted(x, to);
}

std::optional<Constant> foldNonZero(ImportContext& ctx)
{
    Constant const& x = ctx.input(0).constant();
    if (x.dims.nbDims == 0 || x.count > kMaxRearranged)
        return {};
    std::vector<int64_t> hits;
    for (int64_t i = 0; i < x.count; ++i)
        if (x.floatAt(i) != 0)
            hits.push_back(i);
    Constant y = ctx.newConstant(DataType::kINT32, Dims{2, {x.dims.nbDims, int32_t(hits.size())}});
    auto const strides = stridesOf(x.dims);
    int64_t at = 0;
    for (int a = 0; a < x.dims.nbDims; ++a)
        for (int64_t hit : hits)
            ctx.store(y, at++, double(hit / strides[size_t(a)] % x.dims.d[a]));
    return y;
}

std::optional<Constant> foldUnary(ImportContext& ctx)
{
    Constant const& x = ctx.input(0).constant();
    std::string const& op = ctx.opType();
    bool const real = isFloating(x.type);
    if (x.count > kMaxComputed || ((op == "Not") != (x.type == DataType::kBOOL)) ||
        ((op == "Sqrt" || op == "Reciprocal") && !real))
        return {};
    Constant y = ctx.newConstant(x.type, x.dims);
    for (int64_t i = 0; i < x.count; ++i) {
        double const v = x.floatAt(i);
        ctx.store(y, i,
                  op == "Neg"     ? -v
                  : op == "Abs"   ? std::fabs(v)
                  : op == "Ceil"  ? std::ceil(v)
                  : op == "Floor" ? std::floor(v)
                  : op == "Sqrt"  ? std::sqrt(v)
                  : op == "Not"   ? double(v == 0)
                                  : 1 / v);
    }
    return y;
}

// Doubles hold every INT32, and their sums and products before the wrap that stays unfolded.
std::optional<double> compute(std::string const& op, double a, double b, DataType type)
{
    bool const real = isFloating(type);
    double y = 0;
    if (op == "Add" || op == "Sum")
        y = a + b;
    else if (op == "Sub")
        y = a - b;
    else if (op == "Mul")
        y = a * b;
    else if (op == "Div") {
        if (!real && b == 0)
            return {};
        y = real ? a / b : std::trunc(a / b);
    } else if (op == "Mod") {
        if (b == 0 || real)
            return {};
        y = a - b * std::floor(a / b);
    } else if (op == "Min")
        y = std::min(a, b);
    else if (op == "Max")
        y = std::max(a, b);
    else if (op == "Equal")
        y = a == b;
    else if (op == "Less")
        y = a < b;
    else if (op == "Greater")
        y = a > b;
    else if (op == "LessOrEqual")
        y = a <= b;
    else if (op == "GreaterOrEqual")
        y = a >= b;
    else if (op == "And")
        y = a != 0 && b != 0;
    else if (op == "Or")
        y = a != 0 || b != 0;
    else
        return {};
    if (type == DataType::kINT32 && (y < double(INT32_MIN) || y > double(INT32_MAX)))
        return {};
    return y;
}

std::optional<Constant> foldBinary(ImportContext& ctx)
{
    std::string const& op = ctx.opType();
    if (ctx.nbInputs() != 2 || ctx.hasAttr("broadcast") || ctx.hasAttr("axis") || ctx.attrInt("fmod", 0) != 0)
        return {};
    Constant const &a = ctx.input(0).constant(), &b = ctx.input(1).constant();
    auto const dims = broadcastDims(a.dims, b.dims);
    if (!dims || a.type != b.type || a.type == DataType::kINT8 || volume(*dims) > kMaxComputed)
        return {};
    bool const logic = op == "And" || op == "Or";
    if (logic != (a.type == DataType::kBOOL) && op != "Equal")
        return {};
    bool const truth =
        logic || op == "Equal" || op == "Less" || op == "Greater" || op == "LessOrEqual" || op == "GreaterOrEqual";
    auto const ea = expanded(ctx, a, *dims), eb = expanded(ctx, b, *dims);
    Constant y = ctx.newConstant(truth ? DataType::kBOOL : a.type, *dims);
    for (int64_t i = 0; i < y.count; ++i) {
        auto const v = compute(op, ea->floatAt(i), eb->floatAt(i), a.type);
        if (!v)
            return {};
        ctx.store(y, i, *v);
    }
    return y;
}

std::optional<Constant> foldWhere(ImportContext& ctx)
{
    Constant const &c = ctx.input(0).constant(), &a = ctx.input(1).constant(), &b = ctx.input(2).constant();
    auto dims = broadcastDims(a.dims, b.dims);
    dims = dims ? broadcastDims(*dims, c.dims) : std::nullopt;
    if (!dims || a.type != b.type || volume(*dims) > kMaxComputed)
        return {};
    auto const ec = expanded(ctx, c, *dims), ea = expanded(ctx, a, *dims), eb = expanded(ctx, b, *dims);
    Constant y = ctx.newConstant(a.type, *dims);
    for (int64_t i = 0; i < y.count; ++i)
        ctx.store(y, i, (ec->intAt(i) ? *ea : *eb).floatAt(i));
    return y;
}

std::optional<Constant> foldReduce(ImportContext& ctx)
{
    Constant const& x = ctx.input(0).constant();
    if (x.type != DataType::kINT32 || x.count > kMaxComputed || x.count == 0 || ctx.hasAttr("axes") ||
        ctx.nbInputs() != 1)
        return {};
    double y = ctx.opType() == "ReduceProd" ? 1 : 0;
    for (int64_t i = 0; i < x.count; ++i)
        y = ctx.opType() == "ReduceProd" ? y * x.floatAt(i) : y + x.floatAt(i);
    if (std::fabs(y) > double(INT32_MAX))
        return {};
    Dims dims{ctx.attrInt("keepdims", 1) ? x.dims.nbDims : 0, {1, 1, 1, 1, 1, 1, 1, 1}};
    return ctx.filled(y, x.type, dims);
}

struct Rule
{
    char const* op;
    std::optional<Constant> (*run)(ImportContext&);
};
constexpr Rule kRules[]{{"Gather", foldGather},
                        {"Reshape", foldReshape},
                        {"Unsqueeze", foldUnsqueeze},
                        {"Squeeze", foldSqueeze},
                        {"Concat", foldConcat},
                        {"Slice", foldSlice},
                        {"Transpose", foldTranspose},
                        {"ConstantOfShape", foldConstantOfShape},
                        {"Expand", foldExpand},
                        {"Range", foldRange},
                        {"Cast", foldCast},
                        {"NonZero", foldNonZero},
                        {"Neg", foldUnary},
                        {"Abs", foldUnary},
                        {"Ceil", foldUnary},
                        {"Floor", foldUnary},
                        {"Sqrt", foldUnary},
                        {"Reciprocal", foldUnary},
                        {"Not", foldUnary},
                        {"Add", foldBinary},
                        {"Sub", foldBinary},
                        {"Mul", foldBinary},
                        {"Div", foldBinary},
                        {"Mod", foldBinary},
                        {"Min", foldBinary},
                        {"Max", foldBinary},
                        {"Equal", foldBinary},
                        {"Less", foldBinary},
                        {"Greater", foldBinary},
                        {"LessOrEqual", foldBinary},
                        {"GreaterOrEqual", foldBinary},
                        {"And", foldBinary},
                        {"Or", foldBinary},
                        {"Where", foldWhere},
                        {"ReduceProd", foldReduce},
                        {"ReduceSum", foldReduce}};

// Least number of inputs that a rule reads without asking.
int inputsRead(std::string const& op)
{
    return op == "Range" || op == "Where" ? 3 : op == "Gather" || op == "Expand" ? 2 : 1;
}

} // namespace

bool fold(ImportContext& ctx)
{
    std::string const& op = ctx.opType();
    std::optional<Constant> y;
    if (op == "Constant") {
        y = foldConstant(ctx);
    } else if (op == "Shape" && ctx.hasInput(0)) {
        y = foldShape(ctx);
    } else if (op == "Size" && ctx.hasInput(0)) {
        int64_t const n = volume(ctx.input(0).dims());
        if (n >= 0)
            y = ctx.intScalar(n);
    } else if (op == "Identity" && ctx.isConstant(0)) {
        y = ctx.input(0).constant();
    } else {
        auto const rule = std::find_if(std::begin(kRules), std::end(kRules), [&](Rule const& r) { return op == r.op; });
        if (rule == std::end(kRules) || ctx.nbInputs() < inputsRead(op))
            return false;
        // Optional inputs may be left out; every one that is there has to be a constant.
        for (int i = 0; i < ctx.nbInputs(); ++i)
            if (ctx.hasInput(i) ? !ctx.isConstant(i) : i < inputsRead(op))
                return false;
        if (op == "Concat")
            for (int i = 0; i < ctx.nbInputs(); ++i)
                if (!ctx.hasInput(i))
                    return false;
        y = rule->run(ctx);
    }
    if (!y)
        return false;
    ctx.setOutput(0, Value(std::move(*y)));
    return true;
}

} // namespace tw::onnx
