// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "onnx/fold.h"

namespace tw::onnx {

namespace {

// Index in a constant of shape `from` for position p of a shape that it broadcasts to.
int64_t broadcastIndex(Dims const& from, std::vector<int64_t> const& strides, Coordinates const& p)
{
    int64_t index = 0;
    for (int i = 0; i < from.nbDims; ++i)
        if (from.d[i] != 1)
            index += strides[size_t(i)] * p[p.size() - size_t(from.nbDims - i)];
    return index;
}

// Doubles hold every INT32, and their sums and products before the wrap that stays unfolded. Truth values are 0 and 1.
struct Binary
{
    char const* op;
    double (*compute)(double, double);
    bool ofTruth = false, givesTruth = false;
};
constexpr Binary kBinaries[] = {
    {"Add", [](double a, double b) { return a + b; }},
    {"Sub", [](double a, double b) { return a - b; }},
    {"Mul", [](double a, double b) { return a * b; }},
    {"Div", [](double a, double b) { return a / b; }},
    {"Mod", [](double a, double b) { return a - b * std::floor(a / b); }},
    {"Min", [](double a, double b) { return std::min(a, b); }},
    {"Max", [](double a, double b) { return std::max(a, b); }},
    {"Equal", [](double a, double b) { return double(a == b); }, false, true},
    {"Less", [](double a, double b) { return double(a < b); }, false, true},
    {"Greater", [](double a, double b) { return double(a > b); }, false, true},
    {"LessOrEqual", [](double a, double b) { return double(a <= b); }, false, true},
    {"GreaterOrEqual", [](double a, double b) { return double(a >= b); }, false, true},
    {"And", [](double a, double b) { return double(a != 0 && b != 0); }, true, true},
    {"Or", [](double a, double b) { return double(a != 0 || b != 0); }, true, true},
};

} // namespace

std::vector<int64_t> stridesOf(Dims const& d)
{
    std::vector<int64_t> s(size_t(d.nbDims), 1);
    for (int i = d.nbDims - 2; i >= 0; --i)
        s[size_t(i)] = s[size_t(i) + 1] * d.d[i + 1];
    return s;
}

Dims broadcastDims(Dims const& a, Dims const& b)
{
    Dims y{std::max(a.nbDims, b.nbDims), {}};
    for (int i = 0; i < y.nbDims; ++i) {
        int const ia = i - (y.nbDims - a.nbDims), ib = i - (y.nbDims - b.nbDims);
        int32_t const da = ia < 0 ? 1 : a.d[ia], db = ib < 0 ? 1 : b.d[ib];
        staysIf(da != db && da != 1 && db != 1);
        y.d[i] = da == 1 ? db : da;
    }
    return y;
}

Constant expanded(ImportContext& ctx, Constant const& x, Dims const& dims)
{
    auto const strides = stridesOf(x.dims);
    return rearrange(ctx, x, dims, [&](Coordinates const& p) { return broadcastIndex(x.dims, strides, p); });
}

Constant foldUnary(ImportContext& ctx)
{
    Constant const& x = ctx.input(0).constant();
    std::string const& op = ctx.opType();
    bool const real = isFloating(x.type);
    staysIf(x.count > kMaxComputed || ((op == "Not") != (x.type == DataType::kBOOL)) ||
            ((op == "Sqrt" || op == "Reciprocal") && !real));
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

Constant foldBinary(ImportContext& ctx)
{
    std::string const& op = ctx.opType();
    staysIf(ctx.nbInputs() != 2 || ctx.hasAttr("broadcast") || ctx.hasAttr("axis") || ctx.attrInt("fmod", 0) != 0);
    Constant const &a = ctx.input(0).constant(), &b = ctx.input(1).constant();
    Dims const dims = broadcastDims(a.dims, b.dims);
    staysIf(a.type != b.type || a.type == DataType::kINT8 || volume(dims) > kMaxComputed);
    Binary const& binary = *std::ranges::find_if(kBinaries, [&](Binary const& known) { return op == known.op; });
    staysIf(binary.ofTruth != (a.type == DataType::kBOOL) && op != "Equal");
    bool const real = isFloating(a.type), divides = op == "Div" || op == "Mod";
    Constant const ea = expanded(ctx, a, dims), eb = expanded(ctx, b, dims);
    Constant y = ctx.newConstant(binary.givesTruth ? DataType::kBOOL : a.type, dims);
    for (int64_t i = 0; i < y.count; ++i) {
        double const by = eb.floatAt(i);
        staysIf(real ? op == "Mod" : divides && by == 0);
        double v = binary.compute(ea.floatAt(i), by);
        if (op == "Div" && !real)
            v = std::trunc(v);
        staysIf(a.type == DataType::kINT32 && (v < double(INT32_MIN) || v > double(INT32_MAX)));
        ctx.store(y, i, v);
    }
    return y;
}

Constant foldWhere(ImportContext& ctx)
{
    Constant const &c = ctx.input(0).constant(), &a = ctx.input(1).constant(), &b = ctx.input(2).constant();
    Dims const dims = broadcastDims(broadcastDims(a.dims, b.dims), c.dims);
    staysIf(a.type != b.type || volume(dims) > kMaxComputed);
    Constant const ec = expanded(ctx, c, dims), ea = expanded(ctx, a, dims), eb = expanded(ctx, b, dims);
    Constant y = ctx.newConstant(a.type, dims);
    for (int64_t i = 0; i < y.count; ++i)
        ctx.store(y, i, (ec.intAt(i) ? ea : eb).floatAt(i));
    return y;
}

Constant foldReduce(ImportContext& ctx)
{
    Constant const& x = ctx.input(0).constant();
    staysIf(x.type != DataType::kINT32 || x.count > kMaxComputed || x.count == 0 || ctx.hasAttr("axes") ||
            ctx.nbInputs() != 1);
    double y = ctx.opType() == "ReduceProd" ? 1 : 0;
    for (int64_t i = 0; i < x.count; ++i)
        y = ctx.opType() == "ReduceProd" ? y * x.floatAt(i) : y + x.floatAt(i);
    staysIf(std::fabs(y) > double(INT32_MAX));
    Dims dims{ctx.attrInt("keepdims", 1) ? x.dims.nbDims : 0, {1, 1, 1, 1, 1, 1, 1, 1}};
    return ctx.filled(y, x.type, dims);
}

// Updates written into a copy of the data, the last one of an element counting, as the layer does.
Constant foldScatter(ImportContext& ctx)
{
    Constant const &x = ctx.input(0).constant(), &j = ctx.input(1).constant(), &u = ctx.input(2).constant();
    bool const nd = ctx.opType() == "ScatterND";
    staysIf(ctx.attrString("reduction", "none") != "none" || x.type != u.type || isFloating(j.type) ||
            x.dims.nbDims < 1 || j.dims.nbDims < 1 || x.count > kMaxRearranged);
    int const rank = x.dims.nbDims, last = j.dims.nbDims - 1, k = nd ? j.dims.d[last] : 1;
    int const axis = nd ? 0 : ctx.axis(ctx.attrInt("axis", 0), rank);
    staysIf(k < 1 || k > rank);
    Dims want = j.dims; // of the updates
    if (nd) {
        want.nbDims = last + rank - k;
        staysIf(want.nbDims > Dims::MAX_DIMS);
        std::copy(x.dims.d + k, x.dims.d + rank, want.d + last);
    }
    staysIf(toVector(want) != toVector(u.dims) || (!nd && j.dims.nbDims != rank));
    Constant y = ctx.newConstant(x.type, x.dims);
    int64_t const bytes = sizeOf(x.type);
    if (y.count > 0)
        std::memcpy(dataOf(y), x.values, size_t(y.count * bytes));
    auto const sx = stridesOf(x.dims), su = stridesOf(u.dims);
    int64_t const block = nd ? sx[size_t(k - 1)] : 1;
    for (int64_t t = 0; block > 0 && t < u.count / block; ++t) {
        int64_t to = 0;
        for (int d = 0; d < (nd ? k : rank); ++d) {
            bool const byIndex = nd || d == axis;
            int64_t p = byIndex ? j.intAt(nd ? t * k + d : t) : t / su[size_t(d)] % u.dims.d[d];
            p += byIndex && p < 0 ? x.dims.d[d] : 0;
            staysIf(p < 0 || p >= x.dims.d[d]);
            to += p * sx[size_t(d)];
        }
        std::memcpy(static_cast<char*>(dataOf(y)) + to * bytes, static_cast<char const*>(u.values) + t * block * bytes,
                    size_t(block * bytes));
    }
    return y;
}

} // namespace tw::onnx
