// SPDX-License-Identifier: Apache-2.0
// IIfConditional and its layers: settings, rules, laziness, numbers.
#include "api/control_flow.h"
#include "base/sanitizers.h"

namespace tw::test {

using Conditional = ControlFlow;

namespace {

// c ? x + y : x - y
struct PlusMinus
{
    ITensor *c, *x, *y;
    IIfConditional* made;
    IConditionLayer* condition;
    IIfConditionalInputLayer *inX, *inY;
    IElementWiseLayer *plus, *minus;
    IIfConditionalOutputLayer* out;
};

PlusMinus plusMinus(ControlFlow& t)
{
    PlusMinus p{};
    p.c = t.input("c", {}, DataType::kBOOL);
    p.x = t.input("x", {2});
    p.y = t.input("y", {2});
    p.made = t.net.addIfConditional();
    p.condition = p.made->setCondition(*p.c);
    p.inX = p.made->addInput(*p.x);
    p.inY = p.made->addInput(*p.y);
    p.plus = t.net.addElementWise(*p.inX->getOutput(0), *p.inY->getOutput(0), ElementWiseOperation::kSUM);
    p.minus = t.net.addElementWise(*p.inX->getOutput(0), *p.inY->getOutput(0), ElementWiseOperation::kSUB);
    p.out = p.made->addOutput(*p.plus->getOutput(0), *p.minus->getOutput(0));
    t.output(p.out->getOutput(0), "z");
    return p;
}

// Names of the nodes of a graph, and of regions as "name(then: ..., else: ...)".
std::string nodesOf(tw::ir::Graph const& g)
{
    std::string s;
    for (auto const& n : g.nodes) {
        s += (s.empty() ? "" : " ") + n->name;
        if (!n->regions.empty()) {
            std::string inner;
            for (auto const& r : n->regions)
                inner += (inner.empty() ? "" : "; ") + r->name + ": " + nodesOf(*r);
            s += "(" + inner + ")";
        }
    }
    return s;
}

} // namespace

TEST_F(Conditional, LayersSayWhatTheyAre)
{
    PlusMinus const p = plusMinus(*this);
    EXPECT_EQ(p.condition->getType(), LayerType::kCONDITION);
    EXPECT_EQ(p.condition->getNbOutputs(), 0);
    EXPECT_EQ(p.inX->getType(), LayerType::kCONDITIONAL_INPUT);
    EXPECT_EQ(p.out->getType(), LayerType::kCONDITIONAL_OUTPUT);
    EXPECT_EQ(p.out->getNbInputs(), 2);
    EXPECT_EQ(p.out->getInput(0), p.plus->getOutput(0));
    EXPECT_EQ(p.out->getInput(1), p.minus->getOutput(0));
    for (IIfConditionalBoundaryLayer const* l :
         std::vector<IIfConditionalBoundaryLayer*>{p.condition, p.inX, p.inY, p.out})
        EXPECT_EQ(l->getConditional(), p.made);
    EXPECT_EQ(tw::api::str(p.out->getOutput(0)->getDimensions()), "[2]");
    p.made->setName("choice");
    EXPECT_STREQ(p.made->getName(), "choice");
    p.made->setName(nullptr);
    EXPECT_STREQ(p.made->getName(), "choice");
    EXPECT_EQ(logger.errors(), 1);
    EXPECT_EQ(p.made->setCondition(*p.c), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "conditional 'choice' has a condition already")) << errors();
    p.out->setInput(2, *p.x);
    EXPECT_TRUE(contains(logger.lastError(), "input index 2")) << errors();
}

TEST_F(Conditional, ImplicitBatchHasNone)
{
    std::unique_ptr<INetworkDefinition> const implicit(builder->createNetworkV2(0));
    EXPECT_EQ(implicit->addIfConditional(), nullptr);
    EXPECT_TRUE(contains(logger.lastError(), "explicit batch")) << errors();
}

TEST_F(Conditional, TakesEitherBranch)
{
    plusMinus(*this);
    expect({{{}, {1}}, {{2}, {5, 6}}, {{2}, {1, 2}}}, {{{2}, {6, 8}}});
    expect({{{}, {0}}, {{2}, {5, 6}}, {{2}, {1, 2}}}, {{{2}, {4, 4}}});
}

// ---- what is refused

TEST_F(Conditional, RefusesWhatIsIncomplete)
{
    IIfConditional* c = net.addIfConditional();
    c->setName("half");
    ITensor* x = input("x", {2});
    ITensor* in = c->addInput(*x)->getOutput(0);
    output(sum(x, x), "y");
    refused({"conditional 'half'", "no condition", "setCondition"});
    IConditionLayer* condition = c->setCondition(*x);
    refused({"the condition", "f32[2]", "kBOOL scalar"});
    condition->setInput(0, *input("c", {}, DataType::kBOOL));
    refused({"conditional 'half'", "no output", "addOutput"});
    c->addOutput(*in, *x);
    EXPECT_TRUE(object().toGraph().ok());
}

TEST_F(Conditional, RefusesBranchesOfDifferentShapesAndTypes)
{
    PlusMinus const p = plusMinus(*this);
    p.out->setName("result");
    p.made->setName("choice");
    p.out->setInput(1, *input("w", {3}));
    EXPECT_EQ(p.out->getOutput(0)->getDimensions().nbDims, -1);
    refused({"layer 'result'", "conditional 'choice'", "f32[2]", "f32[3]", "must be equal"});
    p.out->setInput(1, *input("i", {2}, DataType::kINT32));
    refused({"f32[2]", "i32[2]"});
    p.out->setInput(1, *input("r", {1, 2}));
    refused({"f32[2]", "f32[1,2]"});
}

TEST_F(Conditional, RefusesEdgesBetweenBranches)
{
    PlusMinus const p = plusMinus(*this);
    p.made->setName("choice");
    p.plus->setName("shared");
    p.minus->setInput(0, *p.plus->getOutput(0));
    refused({"layer 'shared'", "both branches of conditional 'choice'"});
}

TEST_F(Conditional, RefusesInnerTensorsAsOutputs)
{
    PlusMinus const p = plusMinus(*this);
    p.made->setName("choice");
    net.markOutput(*p.plus->getOutput(0));
    refused({"network output", "inside conditional 'choice'", "addOutput"});
}

TEST_F(Conditional, RefusesValuesThatLeaveWithoutAnOutputLayer)
{
    PlusMinus const p = plusMinus(*this);
    p.made->setName("choice");
    output(sum(p.minus->getOutput(0), p.x), "leak");
    refused({"network output 'leak'", "inside conditional 'choice'"});
}

TEST_F(Conditional, RefusesAConditionFromInside)
{
    PlusMinus const p = plusMinus(*this);
    p.condition->setName("test");
    ITensor* first = net.addReduce(*p.plus->getOutput(0), ReduceOperation::kSUM, 1, false)->getOutput(0);
    p.condition->setInput(0, *less(first, floats({}, {1})));
    refused({"layer 'test'", "outside"});
}

// ---- laziness: figures A, B, C of the guide

TEST_F(Conditional, OnlyWhatDependsOnAnInputLayerIsLazy)
{
    ITensor *c = input("c", {}, DataType::kBOOL), *x = input("x", {2});
    // The true branch: T1, T2, T3 in a row.
    auto unary = [&](ITensor* t, char const* name) {
        auto* l = net.addUnary(*t, UnaryOperation::kNEG);
        l->setName(name);
        return l;
    };
    auto make = [&](int inputAt) { // after how many of the layers the input layer stands; 3: none
        IIfConditional* made = net.addIfConditional();
        made->setName("if");
        made->setCondition(*c);
        ITensor* t = x;
        for (int i = 0; i < 3; ++i) {
            if (i == inputAt)
                t = made->addInput(*t)->getOutput(0);
            t = unary(t, i == 0 ? "T1" : i == 1 ? "T2" : "T3")->getOutput(0);
        }
        return made->addOutput(*t, *x)->getOutput(0);
    };
    char const* const expected[] = {"if(then: T1 T2 T3; else: )", "T1 if(then: T2 T3; else: )",
                                    "T1 T2 if(then: T3; else: )", "T1 T2 T3 if(then: ; else: )"};
    for (int at = 0; at < 4; ++at) {
        ITensor* y = make(at);
        net.markOutput(*y);
        auto g = object().toGraph();
        ASSERT_TRUE(g.ok()) << g.error().message;
        EXPECT_EQ(nodesOf(**g), expected[at]);
        EXPECT_EQ(interpret({{{}, {1}}, {{2}, {1, 2}}}), (std::vector<Numbers>{{{2}, {-1, -2}}})) << problem;
        EXPECT_EQ(interpret({{{}, {0}}, {{2}, {1, 2}}}), (std::vector<Numbers>{{{2}, {1, 2}}})) << problem;
        net.unmarkOutput(*y);
    }
}

// A slice that starts outside of its input fails when it runs; in the branch that is not taken it must not.
TEST_F(Conditional, TheUntakenBranchDoesNotRun)
{
    ITensor *c = input("c", {}, DataType::kBOOL), *x = input("x", {4}), *at = input("at", {1}, DataType::kINT32);
    values["at"] = {{0}, {1}, {9}};
    IIfConditional* made = net.addIfConditional();
    made->setCondition(*c);
    ITensor* in = made->addInput(*x)->getOutput(0);
    auto* slice = net.addSlice(*in, dims({0}), dims({2}), dims({1}));
    slice->setInput(1, *at);
    auto* safe = net.addSlice(*in, dims({0}), dims({2}), dims({1}));
    output(made->addOutput(*safe->getOutput(0), *slice->getOutput(0))->getOutput(0), "y");
    Numbers const x4{{4}, {1, 2, 3, 4}};
    EXPECT_EQ(interpret({{{}, {1}}, x4, {{1}, {9}}}), (std::vector<Numbers>{{{2}, {1, 2}}})) << problem;
    EXPECT_EQ(interpret({{{}, {0}}, x4, {{1}, {2}}}), (std::vector<Numbers>{{{2}, {3, 4}}})) << problem;
    EXPECT_TRUE(interpret({{{}, {0}}, x4, {{1}, {9}}}).empty());
    EXPECT_TRUE(contains(problem, "slice")) << problem;
    auto const engine = build();
    EXPECT_EQ(execute(engine.get(), {{{}, {1}}, x4, {{1}, {9}}}), (std::vector<Numbers>{{{2}, {1, 2}}})) << errors();
    EXPECT_EQ(execute(engine.get(), {{{}, {0}}, x4, {{1}, {2}}}), (std::vector<Numbers>{{{2}, {3, 4}}})) << errors();
    EXPECT_TRUE(execute(engine.get(), {{{}, {0}}, x4, {{1}, {9}}}).empty());
}

namespace {

struct Times final : IProfiler
{
    std::map<std::string, float> ms;
    void reportLayerTime(char const* name, float time) noexcept override { ms[name] = time; }
};

} // namespace

// The profiler sees a conditional as one layer, whose time is that of the branch taken.
TEST_F(Conditional, TheUntakenBranchTakesNoTime)
{
    constexpr int kSize = 384;
    ITensor *c = input("c", {}, DataType::kBOOL), *x = input("x", {kSize, kSize});
    IIfConditional* made = net.addIfConditional();
    made->setName("choice");
    made->setCondition(*c);
    ITensor* in = made->addInput(*x)->getOutput(0);
    auto* large = net.addMatrixMultiply(*in, MatrixOperation::kNONE, *in, MatrixOperation::kTRANSPOSE);
    large->setName("large");
    auto* eager = net.addUnary(*x, UnaryOperation::kABS);
    eager->setName("eager");
    output(made->addOutput(*large->getOutput(0), *eager->getOutput(0))->getOutput(0), "y");
    auto const engine = build();
    ASSERT_NE(engine, nullptr) << errors();
    std::vector<double> ones(kSize * kSize, 1.0);
    float best[2] = {1e9F, 1e9F};
    for (int run = 0; run < 6; ++run) {
        Times times;
        auto const out = execute(engine.get(), {{{}, {double(run % 2)}}, {{kSize, kSize}, ones}}, &times);
        ASSERT_EQ(out.size(), 1U) << errors();
        EXPECT_EQ(out[0].values[5], run % 2 ? kSize : 1);
        ASSERT_EQ(times.ms.size(), 2U);
        ASSERT_TRUE(times.ms.contains("choice") && times.ms.contains("eager"));
        best[run % 2] = std::min(best[run % 2], times.ms["choice"]);
    }
    if (!tw::kAddressSanitizer && !tw::kThreadSanitizer) { // they make what is no product slow
        EXPECT_LT(best[0] * 3, best[1]) << "0: the product is not needed";
    }
}

// ---- shapes of networks

TEST_F(Conditional, BranchesMayBeEmptyOrConstant)
{
    ITensor *c = input("c", {}, DataType::kBOOL), *x = input("x", {2});
    IIfConditional* made = net.addIfConditional();
    made->setCondition(*c);
    ITensor* in = made->addInput(*x)->getOutput(0);
    output(made->addOutput(*in, *floats({2}, {7, 8}))->getOutput(0), "a");
    output(made->addOutput(*sum(in, in), *x)->getOutput(0), "b");
    output(made->addOutput(*x, *in)->getOutput(0), "same");
    expect({{{}, {1}}, {{2}, {1, 2}}}, {{{2}, {1, 2}}, {{2}, {2, 4}}, {{2}, {1, 2}}});
    expect({{{}, {0}}, {{2}, {1, 2}}}, {{{2}, {7, 8}}, {{2}, {1, 2}}, {{2}, {1, 2}}});
}

TEST_F(Conditional, InputsOfDifferentTypesAndShapes)
{
    ITensor *c = input("c", {}, DataType::kBOOL), *x = input("x", {2, 2}), *i = input("i", {}, DataType::kINT32);
    IIfConditional* made = net.addIfConditional();
    made->setCondition(*c);
    ITensor *inX = made->addInput(*x)->getOutput(0), *inI = made->addInput(*i)->getOutput(0);
    ITensor* total = net.addReduce(*inX, ReduceOperation::kSUM, 3, false)->getOutput(0);
    output(made->addOutput(*total, *cast(sum(inI, inI), DataType::kFLOAT))->getOutput(0), "y");
    expect({{{}, {1}}, {{2, 2}, {1, 2, 3, 4}}, {{}, {5}}}, {{{}, {10}}});
    expect({{{}, {0}}, {{2, 2}, {1, 2, 3, 4}}, {{}, {5}}}, {{{}, {10}}});
}

TEST_F(Conditional, ConditionalsNest)
{
    // sign of x: x < 0 ? -1 : (0 < x ? 1 : 0), scaled by y
    ITensor *x = input("x", {}), *y = input("y", {2}), *zero = floats({}, {0});
    auto scaled = [&](ITensor* t, float by) { return product(t, floats({2}, {by, by})); };
    IIfConditional *outer = net.addIfConditional(), *inner = net.addIfConditional();
    outer->setName("outer");
    inner->setName("inner");
    outer->setCondition(*less(x, zero));
    ITensor *oy = outer->addInput(*y)->getOutput(0), *ox = outer->addInput(*x)->getOutput(0);
    inner->setCondition(*less(zero, ox));
    ITensor* iy = inner->addInput(*oy)->getOutput(0);
    ITensor* innerOut = inner->addOutput(*scaled(iy, 1), *scaled(iy, 0))->getOutput(0);
    output(outer->addOutput(*scaled(oy, -1), *innerOut)->getOutput(0), "z");
    for (double v : {-3.0, 0.0, 2.0}) {
        double const sign = v < 0 ? -1 : v > 0;
        expect({{{}, {v}}, {{2}, {2, 3}}}, {{{2}, {2 * sign, 3 * sign}}});
    }
    auto g = object().toGraph();
    ASSERT_TRUE(g.ok());
    std::string const nodes = nodesOf(**g);
    EXPECT_GT(nodes.find("inner("), nodes.find("outer(")) << nodes;
}

TEST_F(Conditional, AConditionalInALoopAndALoopInAConditional)
{
    // Steps of v -> v / 2 or 3 v + 1 down to 1, if asked for; else the first value.
    ITensor *c = input("c", {}, DataType::kBOOL), *v = input("v", {}, DataType::kINT32);
    IIfConditional* asked = net.addIfConditional();
    asked->setCondition(*c);
    ITensor* first = asked->addInput(*v)->getOutput(0);
    ILoop* loop = net.addLoop();
    IRecurrenceLayer* r = loop->addRecurrence(*first);
    ITensor* now = r->getOutput(0);
    loop->addTripLimit(*less(integer(1), now), TripLimit::kWHILE);
    ITensor* half = op(ElementWiseOperation::kFLOOR_DIV, now, integer(2));
    IIfConditional* even = net.addIfConditional();
    even->setCondition(*op(ElementWiseOperation::kEQUAL, sum(half, half), now));
    ITensor* odd = even->addInput(*now)->getOutput(0);
    r->setInput(1, *even->addOutput(*half, *sum(product(odd, integer(3)), integer(1)))->getOutput(0));
    ITensor* steps = last(loop, tripNumber(loop));
    output(asked->addOutput(*steps, *v)->getOutput(0), "steps");
    expect({{{}, {1}}, {{}, {27}}}, {{{}, {111}}});
    expect({{{}, {0}}, {{}, {27}}}, {{{}, {27}}});
}

TEST_F(Conditional, LayersThatDependOnNoInputLayerAreOutside)
{
    ITensor *c = input("c", {}, DataType::kBOOL), *x = input("x", {2});
    IIfConditional* made = net.addIfConditional();
    made->setCondition(*c);
    output(made->addOutput(*sum(x, x), *product(x, x))->getOutput(0), "y");
    auto g = object().toGraph();
    ASSERT_TRUE(g.ok()) << g.error().message;
    EXPECT_EQ((*g)->nodes.size(), 3U);
    expect({{{}, {1}}, {{2}, {3, 4}}}, {{{2}, {6, 8}}});
    expect({{{}, {0}}, {{2}, {3, 4}}}, {{{2}, {9, 16}}});
}

TEST_F(Conditional, SizesMayBeUnknown)
{
    ITensor *c = input("c", {}, DataType::kBOOL), *x = input("x", {-1, 2}), *y = input("y", {-1, 2});
    profiles["x"] = profiles["y"] = {{1, 2}, {2, 2}, {4, 2}};
    IIfConditional* made = net.addIfConditional();
    made->setCondition(*c);
    ITensor *inX = made->addInput(*x)->getOutput(0), *inY = made->addInput(*y)->getOutput(0);
    ITensor* z = made->addOutput(*sum(inX, inX), *sum(inY, inY))->getOutput(0);
    EXPECT_EQ(tw::api::str(z->getDimensions()), "[-1,2]");
    output(z, "z");
    expect({{{}, {1}}, {{3, 2}, {1, 2, 3, 4, 5, 6}}, {{3, 2}, {0, 0, 0, 0, 0, 1}}}, {{{3, 2}, {2, 4, 6, 8, 10, 12}}});
    expect({{{}, {0}}, {{3, 2}, {1, 2, 3, 4, 5, 6}}, {{3, 2}, {0, 0, 0, 0, 0, 1}}}, {{{3, 2}, {0, 0, 0, 0, 0, 2}}});
}

} // namespace tw::test
