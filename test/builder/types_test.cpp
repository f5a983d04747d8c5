// SPDX-License-Identifier: Apache-2.0
// Types of whole graphs: what is allowed, the cheapest of it by times that are planted, conversions where they must
// stand; the graph computes what it computed.
#include "builder/types.h"

#include <random>

#include "builder/variants.h"
#include "device/cuda/target.h"
#include "interp/interp.h"
#include "ops/activation/op.h"
#include "ops/convolution/op.h"
#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "ops/layer_norm/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/unary/op.h"
#include "passes/list.h"
#include "runtime/engine_run.h"
#include "support/messages.h"

namespace tw::test {

namespace {

using ops::activation::Kind;
using passes::PrecisionConstraints;
using Operation = ops::elementwise::Operation;

class Maker : public GraphMaker
{
public:
    ir::Value* conv(ir::Value* x, std::string const& name)
    {
        ops::convolution::Attrs a = ops::convolution::Attrs::plain(2);
        a.prePadding = a.postPadding = {1, 1};
        return add(ops::convolution::def(), a, {x, constant(name + ".w", {8, 8, 3, 3}), constant(name + ".b", {8})},
                   name);
    }
    ir::Value* relu(ir::Value* x, std::string const& name)
    {
        return add(ops::activation::def(), ops::activation::Attrs(Kind::kRelu), {x}, name);
    }
    ir::Value* sum(ir::Value* a, ir::Value* b, std::string const& name)
    {
        return add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kSum), {a, b}, name);
    }
    ir::Value* image(std::string name = "x") { return input(std::move(name), ir::shapeOf({1, 8, 4, 4})); }
    // x -> a -> b -> c -> y
    void chain(std::vector<std::string> const& names)
    {
        ir::Value* v = image();
        for (std::string const& name : names)
            v = conv(v, name);
        output(v, "y");
    }
};

struct Times
{
    double half = 1, single = 1;
};

// Microseconds by layer and type; reformats and conversions cost the same everywhere.
struct Clock
{
    std::map<std::string, Times> layers;
    double cast = 1, reformat = 0.5;
    std::map<std::string, int> asked; // problems of each layer

    std::vector<Result<double>> operator()(ops::Problem const& p, std::vector<ops::Formats> const& formats)
    {
        bool const isCopy = p.node->name.rfind("reformat of", 0) == 0;
        auto const& [half, single] = layers[p.node->name];
        std::vector<Result<double>> times;
        for (ops::Formats const& f : formats) {
            if (isCopy)
                times.push_back(p.inputs[0].type == p.outputs[0].type ? reformat : cast);
            else if (f == ops::linearFormats(p))
                times.push_back(p.outputs[0].type == DataType::kHalf ? half : single);
            else
                times.push_back(Error{ErrorCode::kInternal, "planted: linear alone"});
        }
        asked[p.node->name] += int(formats.size());
        return times;
    }
};

struct Assigned
{
    std::unique_ptr<ir::Graph> graph;
    builder::TypeSummary summary;
    passes::NarrowWeights weights;
    Messages log;

    DataType typeOf(std::string const& name) const { return nodeOf(name).outputs[0]->type; }
    ir::Node const& nodeOf(std::string const& name) const
    {
        for (auto const& n : graph->nodes)
            if (n->name == name)
                return *n;
        ADD_FAILURE() << "no node " << name;
        return *graph->nodes[0];
    }
    // "h f h": of the layers named.
    std::string types(std::vector<std::string> const& names) const
    {
        std::string s;
        for (std::string const& name : names)
            s += typeOf(name) == DataType::kHalf ? "h" : "f";
        return s;
    }
};

builder::Options optionsOf(PrecisionConstraints constraints = PrecisionConstraints::kIgnore)
{
    builder::Options options;
    options.fingerprint = "test";
    options.tune.permits = {Permission::kHalf};
    options.constraints = constraints;
    return options;
}

Result<void> assign(Assigned& out, ir::Graph const& g, Clock& clock, builder::Options const& options = optionsOf(),
                    builder::TypePolicy policy = builder::TypePolicy::kLeastTime)
{
    out.graph = g.clone();
    auto const block = runtime::outlineBlock(*out.graph);
    std::vector<runtime::InputState> inputs;
    for (ir::Value const* v : out.graph->inputs)
        inputs.push_back({ir::extentsOf(v->shape), true, {}});
    TW_ASSIGN(auto const shapes, runtime::resolve(*block, inputs));
    auto times = [&](auto const& p, auto const& f) { return clock(p, f); };
    TW_ASSIGN(out.summary, builder::assignTypes(*out.graph, *block, *shapes, *shapes, options, policy, {times, times},
                                                {}, out.weights, out.log));
    return ir::verify(*out.graph);
}

// And the numbers are those of the graph in FP32.
Assigned assigned(ir::Graph const& g, Clock& clock, builder::Options const& options = optionsOf())
{
    Assigned out;
    auto const done = assign(out, g, clock, options);
    EXPECT_TRUE(done.ok()) << done.error().message;
    auto const inputs = randomInputs(g);
    auto const before = interp::run(g, refsOf(inputs)), after = interp::run(*out.graph, refsOf(inputs));
    EXPECT_TRUE(before.ok() && after.ok());
    expectSame(refsOf(*after), *before, 2e-2);
    return out;
}

} // namespace

TEST(Types, LayerThatIsSlowerInHalfIsInFloatBetweenConversions)
{
    Maker m;
    m.chain({"a", "b", "c"});
    Clock clock{{{"a", {1, 5}}, {"b", {10, 2}}, {"c", {1, 5}}}};
    Assigned const t = assigned(m.g, clock);
    EXPECT_EQ(t.types({"a", "b", "c"}), "hfh");
    EXPECT_EQ(t.summary.casts, 4);
    EXPECT_EQ(t.summary.open, 3);
    EXPECT_EQ(t.summary.slower, 1);
    EXPECT_EQ(t.nodeOf("b").inputs[1]->type, DataType::kFloat);
    EXPECT_EQ(t.nodeOf("a").inputs[1]->type, DataType::kHalf);
}

TEST(Types, GainsMustPayForTheConversions)
{
    Maker m;
    m.chain({"a", "b", "c"});
    Clock clock{{{"a", {1, 9}}, {"b", {3, 1.5}}, {"c", {1, 9}}}}; // 1.5 against two conversions
    EXPECT_EQ(assigned(m.g, clock).types({"a", "b", "c"}), "hhh");
    Maker n; // three such pay together
    n.chain({"a", "b1", "b2", "b3", "c"});
    Clock longer{{{"a", {1, 9}}, {"b1", {3, 2}}, {"b2", {3, 2}}, {"b3", {3, 1.5}}, {"c", {1, 9}}}};
    Assigned const t = assigned(n.g, longer);
    EXPECT_EQ(t.types({"a", "b1", "b2", "b3", "c"}), "hfffh");
    EXPECT_EQ(t.summary.casts, 4);
}

TEST(Types, NoConversionAtTheNetworksInputsAndOutputsWhereNothingIsGained)
{
    Maker m;
    m.chain({"a", "b"});
    Clock clock{{{"a", {2, 2.4}}, {"b", {2, 2.4}}}}; // FP16 gains 0.8, its conversions take 2
    Assigned const t = assigned(m.g, clock);
    EXPECT_EQ(t.types({"a", "b"}), "ff");
    EXPECT_EQ(t.summary.casts, 0);
    EXPECT_EQ(t.graph->nodes.size(), 2u);
    EXPECT_EQ(t.graph->outputs[0]->name, "y");
}

TEST(Types, CheapLayersGoWithTheirNeighbours)
{
    Maker m; // conversions beside the convolutions, or two more round the relu
    m.output(m.conv(m.relu(m.conv(m.image(), "a"), "r"), "b"), "y");
    Clock clock{{{"a", {10, 2}}, {"r", {1, 1.5}}, {"b", {10, 2}}}};
    EXPECT_EQ(assigned(m.g, clock).types({"a", "r", "b"}), "fff");
    Clock other{{{"a", {1, 6}}, {"r", {1.5, 1}}, {"b", {1, 6}}}};
    EXPECT_EQ(assigned(m.g, other).types({"a", "r", "b"}), "hhh");
}

TEST(Types, ReadersShareAConversion)
{
    Maker m;
    ir::Value* a = m.conv(m.image(), "a");
    for (char const* name : {"b", "c", "d"})
        m.output(m.conv(a, name));
    // Each of b, c, d gains 0.5 in FP32 and saves the conversion of its output; one conversion serves all three.
    Clock clock{{{"a", {1, 9}}, {"b", {2, 1.5}}, {"c", {2, 1.5}}, {"d", {2, 1.5}}}};
    Assigned const t = assigned(m.g, clock);
    EXPECT_EQ(t.types({"a", "b", "c", "d"}), "hfff");
    EXPECT_EQ(t.summary.casts, 2); // x, and a for all
}

TEST(Types, WhatReadsBothTypesNeedsNoConversion)
{
    Maker m;
    ir::Value* a = m.conv(m.image(), "a");
    ir::Value* less = m.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kLess),
                            {a, m.constant("half", {1, 1, 1, 1}, {0.5})}, "less");
    m.output(m.add(ops::identity::def(), ops::identity::Attrs(DataType::kInt32), {less}, "y"));
    Clock clock{{{"a", {1, 1.9}}}};
    clock.cast = 0.5;
    Assigned const t = assigned(m.g, clock);
    EXPECT_EQ(t.types({"a"}), "h"); // a conversion before the comparison would make FP32 cheaper
    EXPECT_EQ(t.summary.casts, 1);
}

TEST(Types, WhatTheUserSaysIsNotWeighed)
{
    auto build = [](auto say, PrecisionConstraints constraints, Times b) {
        Maker m;
        m.chain({"a", "b", "c"});
        say(*m.g.nodes[1]);
        Clock clock{{{"a", {1, 9}}, {"b", b}, {"c", {1, 9}}}};
        return assigned(m.g, clock, optionsOf(constraints)).types({"a", "b", "c"});
    };
    auto precision = [](DataType t) { return [t](ir::Node& n) { n.precision = {t, true}; }; };
    auto output = [](DataType t) { return [t](ir::Node& n) { n.outputTypes[0] = {t, true}; }; };
    for (auto constraints : {PrecisionConstraints::kPrefer, PrecisionConstraints::kObey}) {
        EXPECT_EQ(build(precision(DataType::kHalf), constraints, {90, 1}), "hhh");
        EXPECT_EQ(build(output(DataType::kHalf), constraints, {90, 1}), "hhh");
        EXPECT_EQ(build(precision(DataType::kFloat), constraints, {1, 90}), "hfh");
        EXPECT_EQ(build(output(DataType::kFloat), constraints, {1, 90}), "hfh");
    }
    // A wish for FP16 alone is a hint.
    EXPECT_EQ(build(precision(DataType::kHalf), PrecisionConstraints::kIgnore, {90, 1}), "hfh");
    EXPECT_EQ(build(precision(DataType::kFloat), PrecisionConstraints::kIgnore, {1, 90}), "hfh");
}

TEST(Types, RangesAreNotWeighedEither)
{
    Maker m;
    ir::Value* e =
        m.add(ops::unary::def(), ops::unary::Attrs(ops::unary::Operation::kExp), {m.conv(m.image(), "a")}, "exp");
    m.output(m.conv(e, "b"), "y");
    Clock clock{{{"a", {1, 90}}, {"exp", {1, 90}}, {"b", {1, 90}}}};
    Assigned const t = assigned(m.g, clock);
    EXPECT_EQ(t.types({"a", "exp", "b"}), "hfh");
    auto const& rivals = t.summary.rivals.at(&t.nodeOf("exp"));
    ASSERT_EQ(rivals.size(), 1u);
    EXPECT_EQ(rivals[0].name, "FP16");
    EXPECT_EQ(rivals[0].microseconds, 0);
    EXPECT_NE(rivals[0].reason.find("range"), std::string::npos);
}

TEST(Types, LosersAreNamedWithTheirTimes)
{
    Maker m;
    m.chain({"a", "b"});
    Clock clock{{{"a", {1, 5}}, {"b", {10, 2}}}};
    Assigned const t = assigned(m.g, clock);
    auto const& a = t.summary.rivals.at(&t.nodeOf("a"));
    auto const& b = t.summary.rivals.at(&t.nodeOf("b"));
    ASSERT_TRUE(a.size() == 1 && b.size() == 1);
    EXPECT_EQ(a[0].name, "FP32");
    EXPECT_EQ(a[0].microseconds, 5);
    EXPECT_EQ(b[0].name, "FP16");
    EXPECT_EQ(b[0].microseconds, 10);
}

// A product and the LayerNorm of its rows become one node where both are in FP16 when all is decided, and only there.
TEST(Types, FusionsThatBelongToATypeComeAfterIt)
{
    constexpr int64_t kRows = 1 + (12 << 20) / 512, kInner = 2, kColumns = 256;
    Maker m;
    ir::Value* y = m.add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs(),
                         {m.input("x", {kRows, kInner}), m.constant("w", {kInner, kColumns})}, "mm");
    y = m.sum(m.sum(y, m.constant("b", {1, kColumns}), "bias"), m.input("r", {kRows, kColumns}), "residual");
    ops::layer_norm::Attrs norm;
    norm.axis = 1;
    norm.hasBeta = true;
    m.output(m.add(ops::layer_norm::def(), norm, {y, m.constant("g", {kColumns}), m.constant("h", {kColumns})}, "norm"),
             "y");
    NullLog log;
    ASSERT_TRUE(passes::fuseActivation(m.g, {{}, log}).ok());
    std::string const product = "mm + bias + residual";
    ASSERT_EQ(m.g.nodes[0]->name, product);
    builder::Options options = optionsOf();
    cuda::Target gpu;
    gpu.capability = 90;
    options.cuda = std::make_shared<cuda::Target const>(gpu);
    for (bool isHalf : {false, true}) {
        Times const times = isHalf ? Times{1, 90} : Times{90, 1};
        Clock clock{{{product, times}, {"norm", times}}};
        Assigned t;
        auto const done = assign(t, m.g, clock, options);
        ASSERT_TRUE(done.ok()) << done.error().message;
        std::string const name = isHalf ? product + " + norm" : product;
        EXPECT_EQ(t.types({name}), isHalf ? "h" : "f");
        EXPECT_EQ(t.graph->nodes.size(), isHalf ? 4u : 2u); // with three conversions
        EXPECT_EQ(t.summary.rivals.at(&t.nodeOf(name)).size(), isHalf ? 2u : 1u);
        EXPECT_EQ(t.summary.rivals.size(), isHalf ? 1u : 2u);
    }
}

TEST(Types, ConstantsAreConvertedOnceForAllAttempts)
{
    Maker m;
    m.chain({"a", "b"});
    Clock clock{{{"a", {1, 5}}, {"b", {1, 5}}}};
    Assigned first, second;
    ASSERT_TRUE(assign(first, m.g, clock).ok());
    second.weights = first.weights;
    ASSERT_TRUE(assign(second, m.g, clock, optionsOf(), builder::TypePolicy::kPreferred).ok());
    EXPECT_EQ(second.weights.subnormal, first.weights.subnormal);
    for (char const* name : {"a", "b"})
        EXPECT_EQ(first.nodeOf(name).inputs[1]->constant->data, second.nodeOf(name).inputs[1]->constant->data);
}

TEST(Types, PreferredTypesAskNoClock)
{
    Maker m;
    m.chain({"a", "b"});
    Clock clock{{{"a", {9, 1}}, {"b", {9, 1}}}};
    Assigned t;
    ASSERT_TRUE(assign(t, m.g, clock, optionsOf(), builder::TypePolicy::kPreferred).ok());
    EXPECT_EQ(t.types({"a", "b"}), "hh");
    EXPECT_TRUE(clock.asked.empty());
}

namespace {

// A tactic with an estimate for each type.
class Estimated final : public ops::Tactic
{
public:
    Estimated(double half, double single)
        : Tactic("test_estimated", 1, ops::Backend::kCpu), half_(half), single_(single)
    {}
    double estimate(ops::Problem const& p, ops::Config const&) const override
    {
        return p.outputs[0].type == DataType::kHalf ? half_ : single_;
    }
    Result<std::unique_ptr<ops::Kernel>> load(ops::Problem const&, ops::Config const&,
                                              std::string const&) const override
    {
        return Error{ErrorCode::kInternal, "not to be run"};
    }

private:
    double half_, single_;
};

class EstimatedProvider final : public ops::TacticProvider
{
public:
    EstimatedProvider(double half, double single) : tactic_(half, single) {}
    void tactics(ir::Node const&, ops::Backend, std::vector<ops::Tactic const*>& out) const override
    {
        out.push_back(&tactic_);
    }

private:
    Estimated tactic_;
};

} // namespace

TEST(Types, FloatIsTimedWithinTwiceTheEstimate)
{
    constexpr double kTiny = 1e-9; // below all that real tactics estimate
    for (double ratio : {0.5, 1.9, 2.1}) {
        Maker m;
        m.chain({"a"});
        EstimatedProvider const provider(kTiny, ratio * kTiny);
        ops::TacticProvider const* const providers[] = {&provider};
        builder::Options options = optionsOf();
        options.tune.providers = providers;
        Clock clock{{{"a", {9, 1}}}};
        Assigned const t = assigned(m.g, clock, options);
        EXPECT_EQ(t.types({"a"}), ratio < 2 ? "f" : "h") << ratio;
        EXPECT_EQ(t.summary.open, ratio < 2);
        if (ratio > 2) {
            EXPECT_NE(t.summary.rivals.at(&t.nodeOf("a"))[0].reason.find("estimated at"), std::string::npos);
        }
    }
}

// Formats are weighed with the types: FP32 is fast in channels-last alone, and the reformats cost.
TEST(Types, FormatsBelongToTheChoice)
{
    for (double reformat : {2.0, 3.5}) {
        Maker m;
        m.chain({"a", "b", "c"});
        Clock linear{{{"a", {1, 90}}, {"b", {10, 90}}, {"c", {1, 90}}}};
        linear.reformat = reformat;
        Assigned t;
        t.graph = m.g.clone();
        auto const block = runtime::outlineBlock(*t.graph);
        auto const shapes = runtime::resolve(*block, {{{1, 8, 4, 4}, true, {}}});
        ASSERT_TRUE(shapes.ok());
        auto times = [&](ops::Problem const& p, std::vector<ops::Formats> const& formats) {
            std::vector<Result<double>> out = linear(p, formats);
            for (size_t i = 0; i < formats.size(); ++i)
                if (p.node->name == "b" && p.outputs[0].type == DataType::kFloat &&
                    formats[i].inputs[0] == Format::kChannelsLast && formats[i].outputs[0] == Format::kChannelsLast)
                    out[i] = 2.0;
            return out;
        };
        auto done = builder::assignTypes(*t.graph, *block, **shapes, **shapes, optionsOf(),
                                         builder::TypePolicy::kLeastTime, {times, times}, {}, t.weights, t.log);
        ASSERT_TRUE(done.ok()) << done.error().message;
        // 2 + two conversions + two reformats against 10
        EXPECT_EQ(t.types({"a", "b", "c"}), reformat < 3 ? "hfh" : "hhh") << reformat;
    }
}

TEST(Types, RandomGraphsComputeTheSameAndCostNoMoreThanEitherType)
{
    int mixed = 0;
    for (unsigned seed = 0; seed < 40; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 random(seed);
        auto cost = [&] { return double(1 + random() % 100) / 10; };
        Maker m;
        Clock clock;
        clock.cast = cost() / 4;
        std::vector<ir::Value*> values{m.image("x"), m.image("z")};
        for (int n = 0; n < 10; ++n) {
            ir::Value *a = values[random() % values.size()], *b = values[random() % values.size()];
            std::string const name = "n" + std::to_string(n);
            unsigned const kind = random() % 4;
            values.push_back(kind == 0 ? m.relu(a, name) : kind == 1 ? m.conv(a, name) : m.sum(a, b, name));
            clock.layers[name] = {cost(), cost()};
        }
        m.output(values.back(), "last");
        m.output(values[values.size() / 2], "middle");
        Assigned const t = assigned(m.g, clock);
        mixed += t.summary.slower > 0 && t.summary.narrow > 0;
        double mine = t.summary.casts * clock.cast, single = 0;
        for (auto const& [name, times] : clock.layers)
            if (name.front() == 'n') {
                mine += t.typeOf(name) == DataType::kHalf ? times.half : times.single;
                single += times.single;
            }
        EXPECT_LE(mine, 1.05 * single + 1e-9); // FP32 is taken where it gains 5 %
    }
    EXPECT_GT(mixed, 10);
}

} // namespace tw::test
