// SPDX-License-Identifier: Apache-2.0
// Random shapes and attributes of the ops that have many kernels: by the seed of the day, so that every day other sizes
// are met. A failure names the seed: TW_TEST_SEED repeats it. TW_TEST_COUNT: cases of each op.
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <random>

#include "ops/convolution/op.h"
#include "ops/cumulative_sum/op.h"
#include "ops/elementwise/op.h"
#include "ops/layer_norm/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/pooling/op.h"
#include "ops/reduce/op.h"
#include "ops/run_case.h"
#include "ops/scatter/op.h"
#include "ops/slice/op.h"
#include "ops/softmax/op.h"
#include "tactic/registry.h"

namespace tw::test {

namespace {

using ops::absent;
using ops::Case;
using ops::CaseInput;
using ops::CaseList;
using ops::constant;
using ops::input;

constexpr int64_t kSecondsOfADay = 24 * 60 * 60;
constexpr int kFew = 8;                // cases of each op
constexpr int64_t kMostWork = 400'000; // multiplications of one case: the reference is slow

uint64_t numberFrom(char const* variable, uint64_t otherwise)
{
    char const* text = std::getenv(variable);
    return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}
uint64_t seedOfRun()
{
    static uint64_t const seed = numberFrom("TW_TEST_SEED", uint64_t(std::time(nullptr) / kSecondsOfADay));
    return seed;
}

class Draw
{
public:
    explicit Draw(uint64_t seed) : random_(seed) {}
    int64_t from(int64_t lo, int64_t hi) { return lo + int64_t(random_() % uint64_t(hi - lo + 1)); }
    bool chance(int percent) { return from(1, 100) <= percent; }
    // Beside the widths of vectors and tiles as often as anywhere.
    int64_t size(int64_t most)
    {
        static constexpr int64_t kWidths[] = {4, 6, 8, 12, 14, 16, 24, 32, 48, 64, 96, 128};
        if (chance(50))
            return from(1, most);
        return std::clamp<int64_t>(kWidths[from(0, std::size(kWidths) - 1)] + from(-1, 1), 1, most);
    }
    DataType type() { return chance(75) ? DataType::kFloat : DataType::kHalf; }
    Extents extents(int rank, int64_t most)
    {
        Extents e;
        for (e.rank = 0; e.rank < rank;) {
            int const i = e.rank++;
            e[i] = size(most);
        }
        return e;
    }
    // Until it is small enough.
    template <class F>
    void until(F fits)
    {
        while (!fits())
            continue;
    }

private:
    std::mt19937_64 random_;
};

// None, or one of those that are layers.
ops::FusedActivation activationOf(Draw& d)
{
    if (d.chance(50))
        return {};
    return ops::activation::Kind(d.from(0, ops::activation::kKindCount - 1));
}

// Channels of x and y, window and padding of a convolution, and what stands behind it.
void addWindow(CaseList& list, Draw& d, std::string const& name)
{
    ops::KernelWindowAttrs a;
    Extents x, w, y;
    bool const transposed = d.chance(33);
    d.until([&] {
        int const rank = d.chance(85) ? 2 : 3;
        a = ops::KernelWindowAttrs::plain(rank);
        bool const depthwise = d.chance(20);
        int64_t const c = d.size(80), perGroup = depthwise ? 1 : d.size(80);
        a.groups = depthwise ? c : d.chance(25) ? d.from(2, 4) : 1;
        int64_t const in = depthwise ? c : c * a.groups, out = perGroup * a.groups;
        x = rank == 2 ? Extents{d.from(1, 3), in, 0, 0} : Extents{d.from(1, 2), in, 0, 0, 0};
        w = y = x;
        y[1] = out;
        w[0] = transposed ? in : out;
        w[1] = transposed ? perGroup : in / a.groups;
        int64_t work = x[0] * out * (in / a.groups);
        for (int i = 0; i < rank; ++i) {
            size_t const k = size_t(i);
            x[2 + i] = d.size(rank == 2 ? 40 : 9);
            w[2 + i] = d.chance(30) ? 1 : d.chance(60) ? 3 : d.from(1, 7);
            a.strides[k] = d.chance(60) ? 1 : d.from(1, 3);
            a.dilations[k] = d.chance(80) ? 1 : d.from(1, 3);
            a.prePadding[k] = d.from(0, w[2 + i] / 2 + d.chance(10));
            a.postPadding[k] = d.chance(60) ? a.prePadding[k] : d.from(0, w[2 + i] / 2);
            int64_t const reach = a.dilations[k] * (w[2 + i] - 1) + 1, pad = a.prePadding[k] + a.postPadding[k];
            int64_t const o = transposed
                                  ? (x[2 + i] - 1) * a.strides[k] + reach - pad
                                  : (x[2 + i] + pad - reach < 0 ? 0 : (x[2 + i] + pad - reach) / a.strides[k] + 1);
            if (o < 1)
                return false;
            y[2 + i] = o;
            work *= w[2 + i] * (transposed ? x[2 + i] : o);
        }
        return work <= kMostWork;
    });
    DataType const t = d.type();
    std::vector<CaseInput> in{input(t, x), constant(t, w)};
    bool const residual = d.chance(25);
    if (d.chance(60))
        in.push_back(constant(t, {y[1]}));
    else if (residual)
        in.push_back(ops::absent());
    if (residual)
        in.push_back(input(t, y));
    list.add(name, ops::convolution::Attrs(a, activationOf(d), transposed), in);
}

void addProduct(CaseList& list, Draw& d, std::string const& name)
{
    using enum ops::matrix_multiply::MatrixOperation;
    ops::matrix_multiply::Attrs a;
    Extents x, y;
    d.until([&] {
        int64_t const m = d.chance(20) ? 1 : d.size(140), n = d.size(140), k = d.size(300);
        a.a = d.chance(30) ? kTranspose : kNone;
        a.b = d.chance(30) ? kTranspose : kNone;
        int const batches = int(d.from(0, 2));
        Extents bx = d.extents(batches, 4), by = bx;
        int64_t work = m * n * k;
        for (int i = 0; i < batches; ++i) {
            work *= bx[i];
            if (d.chance(25))
                (d.chance(50) ? bx : by)[i] = 1;
        }
        x = bx, y = by;
        x.rank = y.rank = batches + 2;
        x[batches + (a.a == kTranspose)] = m, x[batches + (a.a != kTranspose)] = k;
        y[batches + (a.b == kTranspose)] = k, y[batches + (a.b != kTranspose)] = n;
        return work <= kMostWork;
    });
    DataType const t = d.type();
    std::vector<CaseInput> in{input(t, x), d.chance(50) ? constant(t, y) : input(t, y)};
    Extents result = x;
    int const last = x.rank - 1;
    for (int i = 0; i + 2 < x.rank; ++i)
        result[i] = std::max(x[i], y[i]);
    result[last - 1] = x[last - (a.a != kTranspose)];
    result[last] = y[last - (a.b == kTranspose)];
    bool const residual = d.chance(30);
    if (d.chance(40))
        in.push_back(constant(t, {result[last]}));
    else if (residual)
        in.push_back(ops::absent());
    if (residual)
        in.push_back(input(t, result));
    a.epilogue.activation = activationOf(d);
    list.add(name, a, in);
}

void addPooling(CaseList& list, Draw& d, std::string const& name)
{
    auto a = ops::pooling::Attrs::plain(ops::pooling::Kind(d.from(0, 2)), {1, 1});
    Extents x{d.from(1, 3), d.size(70), d.size(24), d.size(24)};
    for (size_t i = 0; i < 2; ++i) {
        a.window[i] = d.chance(15) ? x[2 + int(i)] : d.from(1, std::min<int64_t>(4, x[2 + int(i)]));
        a.strides[i] = d.from(1, 3);
        a.prePadding[i] = d.from(0, std::min<int64_t>(a.window[i] - 1, 2));
        a.postPadding[i] = d.from(0, std::min<int64_t>(a.window[i] - 1, 2));
    }
    a.blend = a.kind == ops::pooling::Kind::kMaxAverageBlend ? 0.25F : 0;
    a.excludePadding = d.chance(50);
    list.add(name, a, {input(d.type(), x)});
}

void addReduce(CaseList& list, Draw& d, std::string const& name)
{
    ops::reduce::Attrs a;
    Extents const x = d.extents(int(d.from(1, 4)), 24);
    a.kind = ops::reduce::Kind(d.from(0, 4));
    a.axes = d.from(1, (1 << x.rank) - 1);
    a.keepDims = d.chance(50);
    list.add(name, a, {input(d.type(), x)});
}

void addSoftmax(CaseList& list, Draw& d, std::string const& name)
{
    ops::softmax::Attrs a;
    Extents const x = d.extents(int(d.from(1, 4)), 24);
    a.axis = d.chance(50) ? x.rank - 1 : d.from(0, x.rank - 1);
    list.add(name, a, {input(d.type(), x)});
}

void addNorm(CaseList& list, Draw& d, std::string const& name)
{
    ops::layer_norm::Attrs a;
    Extents const x = d.extents(int(d.from(2, 4)), 40);
    DataType const t = d.type();
    a.axis = d.from(1, x.rank - 1);
    int64_t n = 1;
    for (int i = int(a.axis); i < x.rank; ++i)
        n *= x[i];
    a.hasGamma = d.chance(80);
    a.hasBeta = d.chance(80);
    std::vector<CaseInput> in{input(t, x)};
    for (bool has : {a.hasGamma, a.hasBeta})
        if (has)
            in.push_back(constant(t, {n}));
    list.add(name, a, in);
}

void addElementwise(CaseList& list, Draw& d, std::string const& name)
{
    ops::elementwise::Attrs a;
    a.operation = ops::elementwise::Operation(d.from(0, 5)); // those of floats without a domain of their own, and kDiv
    Extents x = d.extents(int(d.from(1, 4)), 20), y = x;
    for (int i = 0; i < x.rank; ++i)
        if (d.chance(30))
            (d.chance(50) ? x : y)[i] = 1;
    DataType const t = d.type();
    list.add(name, a, {input(t, x), d.chance(30) ? constant(t, y) : input(t, y)});
}

// Every mode; parts of x of a few elements, from anywhere in any direction, start and stride as attributes or inputs.
void addSlice(CaseList& list, Draw& d, std::string const& name)
{
    using ops::slice::Mode;
    static constexpr DataType kTypes[] = {DataType::kFloat, DataType::kHalf, DataType::kInt8,
                                          DataType::kInt32, DataType::kBool, DataType::kUInt8};
    ops::slice::Attrs a;
    a.mode = Mode(d.from(0, int(Mode::kReflect)));
    DataType const t = kTypes[d.from(0, std::size(kTypes) - 1)];
    bool const anywhere = a.mode != Mode::kStrict;
    Extents x;
    for (int64_t rank = d.from(1, 4); x.rank < rank;) {
        int64_t const length = d.chance(20) ? 1 : d.chance(80) ? d.from(1, 6) : d.size(40);
        int64_t size = d.chance(5) ? 0 : d.chance(80) ? d.from(1, 5) : d.size(40), start = d.from(0, length - 1);
        int64_t stride = d.chance(40) ? 1 : d.from(-2, 2);
        if (d.chance(20)) // whole
            size = length, start = 0, stride = 1;
        else if (d.chance(30)) // one element, again and again
            stride = 0;
        else if (anywhere)
            start = d.from(-length - 2, 2 * length + 2);
        else if (stride != 0)
            size = std::min(size, (stride > 0 ? length - 1 - start : start) / std::abs(stride) + 1);
        x.push(length);
        a.start.push_back(start);
        a.size.push_back(size);
        a.stride.push_back(stride);
    }
    auto list32 = [&](std::vector<int64_t> const& v) {
        return constant(DataType::kInt32, {int64_t(v.size())}, std::vector<double>(v.begin(), v.end()));
    };
    std::vector<CaseInput> in{input(t, x), absent(), absent(), absent(), absent()};
    if (d.chance(20))
        in[1] = list32(a.start);
    if (d.chance(20))
        in[3] = list32(a.stride);
    if (a.mode == Mode::kFill && d.chance(50))
        in[4] = input(t, {}, {1});
    list.add(name, a, in);
}

void addCumulativeSum(CaseList& list, Draw& d, std::string const& name)
{
    ops::cumulative_sum::Attrs a;
    Extents const x = d.extents(int(d.from(1, 4)), 24);
    a.axis = d.from(0, x.rank - 1);
    a.exclusive = d.chance(50);
    a.reverse = d.chance(50);
    list.add(name, a, {input(d.chance(30) ? DataType::kInt32 : d.type(), x)});
}

// Indices come from the op's domain: some twice, some outside.
void addScatter(CaseList& list, Draw& d, std::string const& name)
{
    ops::scatter::Attrs a;
    Extents const x = d.extents(int(d.from(1, 4)), 20);
    Extents j, u;
    if (d.chance(50)) {
        a.axis = d.from(0, x.rank - 1);
        for (int i = 0; i < x.rank; ++i)
            u.push(i == a.axis ? d.size(30) : d.from(1, x[i]));
        j = u;
    } else {
        a.mode = ops::scatter::Mode::kNd;
        int const k = int(d.from(1, x.rank)), more = int(d.from(0, 2));
        for (int i = 0; i < more; ++i)
            u.push(d.size(12));
        j = u;
        j.push(k);
        for (int i = k; i < x.rank; ++i)
            u.push(x[i]);
    }
    DataType const t = d.chance(30) ? DataType::kInt8 : d.type();
    list.add(name, a, {input(t, x), input(DataType::kInt32, j), input(t, u)});
}

std::string describe(Case const& c)
{
    std::string s;
    for (CaseInput const& i : c.inputs)
        s += std::string(nameOf(i.type)) + i.dims.str() + " ";
    for (auto const& f : ir::fieldsOf(*c.attrs)) {
        s += f.name + "=";
        for (int64_t v : f.integers)
            s += std::to_string(v) + ",";
        s += " ";
    }
    return s;
}

void addCase(CaseList& list, Draw& d, std::string const& op, std::string const& name)
{
    if (op == "convolution")
        addWindow(list, d, name);
    else if (op == "matrix_multiply")
        addProduct(list, d, name);
    else if (op == "pooling")
        addPooling(list, d, name);
    else if (op == "reduce")
        addReduce(list, d, name);
    else if (op == "softmax")
        addSoftmax(list, d, name);
    else if (op == "layer_norm")
        addNorm(list, d, name);
    else if (op == "scatter")
        addScatter(list, d, name);
    else if (op == "cumulative_sum")
        addCumulativeSum(list, d, name);
    else if (op == "slice")
        addSlice(list, d, name);
    else
        addElementwise(list, d, name);
}

} // namespace

class RandomShapes : public testing::TestWithParam<char const*>
{};

TEST_P(RandomShapes, TacticsAgreeWithReference)
{
    ir::OpDef const* op = ops::find(GetParam());
    ASSERT_TRUE(op);
    uint64_t const count = numberFrom("TW_TEST_COUNT", kFew);
    for (uint64_t i = 0; i < count; ++i) {
        Draw d(seedOfRun() * 1'000'003 + i);
        CaseList list;
        addCase(list, d, op->name, "random_" + std::to_string(seedOfRun()) + "_" + std::to_string(i));
        SCOPED_TRACE("TW_TEST_SEED=" + std::to_string(seedOfRun()) + " TW_TEST_COUNT=" + std::to_string(i + 1) +
                     " test_ops --gtest_filter='*RandomShapes*" + op->name + "': " + describe(list.cases[0]));
        runCase(*op, list.cases[0]);
        if (HasFailure())
            return; // one is enough to look at
    }
}

INSTANTIATE_TEST_SUITE_P(All, RandomShapes,
                         testing::Values("convolution", "matrix_multiply", "pooling", "reduce", "softmax", "layer_norm",
                                         "slice", "scatter", "cumulative_sum", "elementwise"),
                         [](auto const& info) { return std::string(info.param); });

} // namespace tw::test
