// SPDX-License-Identifier: Apache-2.0
// Planted faults that show at some sizes only: whatever an engine may be run with, no wrong kernel is chosen for it.
#include <algorithm>
#include <array>
#include <functional>

#include "builder/build.h"
#include "ops/activation/op.h"
#include "ops/slice/op.h"
#include "support/graph_maker.h"
#include "support/messages.h"
#include "tune/timing_cache.h"

namespace tw::test {

namespace {

constexpr int64_t kColumns = 65;

// ReLU of [n, 65], or the first n of [100] by a slice; wrong where the test says so.
std::function<bool(int64_t n)> isWrongAt;

Result<void> relu(ir::Node const&, ops::RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    for (int64_t i = 0; i < y.count(); ++i)
        y.as<float>()[y.place(i)] = std::max(x.as<float>()[x.place(i)], 0.0F);
    if (y.count() > 0 && isWrongAt(y.dims[0]))
        y.as<float>()[0] = -1;
    return {};
}
Result<void> slice(ir::Node const&, ops::RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    for (int64_t i = 0; i < y.count(); ++i)
        y.as<float>()[i] = x.as<float>()[isWrongAt(y.dims[0]) ? 99 - i : i];
    return {};
}

constexpr char const* kRelu = "activation_planted";
constexpr char const* kSlice = "slice_planted";

// Cheaper than anything by its estimate, so that only a check can keep it out.
class Planted final : public ops::TacticProvider
{
public:
    void tactics(ir::Node const& node, ops::Backend, std::vector<ops::Tactic const*>& out) const override
    {
        static constexpr ops::PlainTactic kPlantedRelu{kRelu, 1, relu}, kPlantedSlice{kSlice, 1, slice};
        if (node.op == &ops::activation::def())
            out.push_back(&kPlantedRelu);
        if (node.op == &ops::slice::def() && !node.outputs[0]->host)
            out.push_back(&kPlantedSlice);
    }
};

struct Outcome
{
    bool ok = false;
    std::string log, chosen; // by the one layer, in the first profile
    std::string chosenNext;  // in the second one
    bool isRefused(std::string const& name, std::string const& where = {}) const
    {
        size_t const at = log.find("tactic " + name + " computes wrong values");
        size_t const begin = at == std::string::npos ? at : log.rfind('\n', at) + 1;
        return at != std::string::npos && chosen != name &&
               log.substr(begin, at - begin).find(where) != std::string::npos;
    }
};

Outcome build(plan::Contents c, tune::TimingCache* cache = nullptr)
{
    Planted const planted;
    ops::TacticProvider const* const providers[] = {&planted};
    Messages log;
    builder::Options options;
    options.fingerprint = "test";
    options.tune.providers = providers;
    options.tune.regionMilliseconds = 5;
    options.tune.cache = cache;
    options.log = &log;
    auto const built = builder::build(c, options);
    EXPECT_TRUE(built.ok()) << built.error().message;
    Outcome out{built.ok(), log.text, {}, {}};
    for (size_t i = 0; built.ok() && i < c.graph->nodes.size(); ++i) {
        if (c.graph->nodes[i]->outputs[0]->host)
            continue;
        out.chosen = c.targets[0].root.steps[i].choice.name;
        plan::Choice const& next = c.targets[0].of(1).steps[i].choice;
        out.chosenNext = next.tactic == 0 ? out.chosen : next.name;
    }
    return out;
}

using Range = std::array<int64_t, 3>; // minimum, optimum, maximum

Outcome buildRelu(std::vector<Range> const& profiles, tune::TimingCache* cache = nullptr)
{
    GraphMaker m;
    ir::Value* x = m.input("x", {ir::Dim::symbol("N"), ir::Dim(kColumns)});
    m.output(m.add(ops::activation::def(), ops::activation::Attrs(), {x}, "relu"), "y");
    plan::Contents c;
    c.graph = m.take();
    c.io.resize(2);
    c.io[0].name = "x";
    c.io[0].isInput = true;
    c.io[1].name = "y";
    for (Range const& r : profiles) {
        plan::ProfileRange range;
        range.hasShape = true;
        range.min = {r[0], kColumns};
        range.opt = {r[1], kColumns};
        range.max = {r[2], kColumns};
        plan::Profile p;
        p.inputs["x"] = range;
        c.profiles.push_back(p);
    }
    return build(std::move(c), cache);
}

// x [100], size [1] an input; starts and strides are numbers.
Outcome buildSlice(Range const& sizes)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({100}));
    ir::Value* size = m.input("size", ir::shapeOf({1}), DataType::kInt32);
    size->host = true;
    size->content = {ir::Dim::symbol("S")};
    ops::slice::Attrs a;
    a.start = {0};
    a.stride = {1};
    m.output(m.add(ops::slice::def(), a, {x, nullptr, size}, "slice"), "y");
    plan::Contents c;
    c.graph = m.take();
    for (char const* name : {"x", "size", "y"}) {
        c.io.emplace_back();
        c.io.back().name = name;
        c.io.back().isInput = *name != 'y';
        c.io.back().isShapeTensor = *name == 's';
    }
    plan::ProfileRange range;
    range.minValues = {int32_t(sizes[0])};
    range.optValues = {int32_t(sizes[1])};
    range.maxValues = {int32_t(sizes[2])};
    plan::Profile p;
    p.inputs["size"] = range;
    c.profiles = {p};
    return build(std::move(c));
}

} // namespace

TEST(Points, AKernelThatIsRightEverywhereIsKept)
{
    isWrongAt = [](int64_t) { return false; };
    EXPECT_FALSE(buildRelu({{1, 8, 32}}).isRefused(kRelu));
    EXPECT_FALSE(buildSlice({2, 50, 100}).isRefused(kSlice));
    isWrongAt = [](int64_t n) { return n < 4 || n > 40; };
    EXPECT_FALSE(buildRelu({{4, 8, 40}}).isRefused(kRelu)) << "these sizes are not asked for";
}

TEST(Points, WrongAtTheMinimum)
{
    isWrongAt = [](int64_t n) { return n == 1; };
    EXPECT_TRUE(buildRelu({{1, 8, 32}}).isRefused(kRelu, "at the minimum shapes"));
    EXPECT_TRUE(buildRelu({{1, 8, 8}}).isRefused(kRelu, "at the minimum shapes"));
    EXPECT_TRUE(buildRelu({{1, 1 << 18, 1 << 18}}).isRefused(kRelu, "at the minimum shapes"));
}

TEST(Points, WrongAtTheMaximum)
{
    isWrongAt = [](int64_t n) { return n == 32; };
    EXPECT_TRUE(buildRelu({{1, 8, 32}}).isRefused(kRelu, "at the maximum shapes"));
}

TEST(Points, WrongAtOddSizes)
{
    isWrongAt = [](int64_t n) { return n % 2 != 0 && n > 1; };
    for (Range const& r : {Range{1, 8, 32}, Range{2, 4, 4}, Range{2, 64, 64}, Range{8, 8, 10}})
        EXPECT_TRUE(buildRelu({r}).isRefused(kRelu, "at shapes between minimum and maximum")) << r[0] << " " << r[2];
}

// The maximum takes 2 x 1.3 GB: the largest size that fits is taken in its place.
TEST(Points, WrongAtLargeSizes)
{
    isWrongAt = [](int64_t n) { return n > 10'000; };
    EXPECT_TRUE(buildRelu({{1, 8, 5'000'000}}).isRefused(kRelu, "at shapes between minimum and maximum"));
}

// Each profile has its kernels: what is wrong in one is refused there alone.
TEST(Points, WrongInOneProfile)
{
    std::vector<Range> const profiles = {{1, 4, 8}, {16, 100, 300}};
    for (auto const& [n, where] :
         {std::pair<int64_t, char const*>{16, "at the minimum shapes of optimization profile 1"},
          {100, ""}, // the optimum, where all others are checked first
          {300, "at the maximum shapes of optimization profile 1"},
          {8, "at the maximum shapes of optimization profile 0"}}) {
        isWrongAt = [at = n](int64_t rows) { return rows == at; };
        Outcome const out = buildRelu(profiles);
        EXPECT_NE(out.log.find(where), std::string::npos) << where << out.log;
        EXPECT_NE(out.log.find(std::string(kRelu) + " computes wrong values"), std::string::npos) << where << out.log;
        EXPECT_EQ(out.log.find(n > 8 ? "of optimization profile 0" : "of optimization profile 1"), std::string::npos)
            << out.log;
        EXPECT_NE(n > 8 ? out.chosenNext : out.chosen, kRelu) << where;
    }
    isWrongAt = [](int64_t n) { return n > 8 && n < 16; };
    EXPECT_FALSE(buildRelu(profiles).isRefused(kRelu)) << "these sizes are not asked for";
}

// Sizes that come from the elements of a tensor.
TEST(Points, WrongWhereAShapeTensorHasOtherValues)
{
    for (auto const& [n, where] :
         {std::pair<int64_t, char const*>{2, "at the minimum shapes"}, {100, "at the maximum shapes"}}) {
        isWrongAt = [at = n](int64_t size) { return size == at; };
        EXPECT_TRUE(buildSlice({2, 50, 100}).isRefused(kSlice, where)) << where;
    }
    isWrongAt = [](int64_t size) { return size % 2 != 0; };
    EXPECT_TRUE(buildSlice({2, 50, 100}).isRefused(kSlice, "at shapes between minimum and maximum"));
}

// What was checked at one minimum is not taken for another.
TEST(Points, TimingCachesKnowWhatWasChecked)
{
    tune::TimingCache cache("test");
    isWrongAt = [](int64_t n) { return n == 1; };
    EXPECT_FALSE(buildRelu({{2, 8, 32}}, &cache).isRefused(kRelu));
    EXPECT_TRUE(buildRelu({{1, 8, 32}}, &cache).isRefused(kRelu, "at the minimum shapes"));
}

} // namespace tw::test
