// SPDX-License-Identifier: Apache-2.0
// ILoop and its layers: settings, rules, numbers.
#include <cmath>

#include "api/control_flow.h"

namespace tw::test {

using Loop = ControlFlow;

namespace {

// x + 1 for count trips.
struct Counting
{
    ILoop* loop;
    ITripLimitLayer* limit;
    IRecurrenceLayer* recurrence;
    ILoopOutputLayer* output;
};

Counting counting(ControlFlow& t, int32_t count)
{
    Counting c{};
    c.loop = t.net.addLoop();
    c.limit = c.loop->addTripLimit(*t.integer(count), TripLimit::kCOUNT);
    c.recurrence = c.loop->addRecurrence(*t.input("x", {2}));
    c.recurrence->setInput(1, *t.sum(c.recurrence->getOutput(0), t.floats({2}, {1, 1})));
    c.output = c.loop->addLoopOutput(*c.recurrence->getOutput(0), LoopOutput::kLAST_VALUE);
    t.output(c.output->getOutput(0), "y");
    return c;
}

} // namespace

TEST_F(Loop, LayersSayWhatTheyAre)
{
    Counting const c = counting(*this, 3);
    EXPECT_EQ(c.limit->getType(), LayerType::kTRIP_LIMIT);
    EXPECT_EQ(c.limit->getTripLimit(), TripLimit::kCOUNT);
    EXPECT_EQ(c.limit->getNbOutputs(), 0);
    EXPECT_EQ(c.limit->getNbInputs(), 1);
    EXPECT_EQ(c.recurrence->getType(), LayerType::kRECURRENCE);
    EXPECT_EQ(c.recurrence->getNbInputs(), 2);
    EXPECT_EQ(c.output->getType(), LayerType::kLOOP_OUTPUT);
    EXPECT_EQ(c.output->getLoopOutput(), LoopOutput::kLAST_VALUE);
    EXPECT_EQ(c.output->getAxis(), 0);
    EXPECT_EQ(c.output->getNbInputs(), 1);
    for (ILoopBoundaryLayer const* l : std::vector<ILoopBoundaryLayer*>{c.limit, c.recurrence, c.output})
        EXPECT_EQ(l->getLoop(), c.loop);
    IIteratorLayer* iterator = c.loop->addIterator(*input("t", {4, 5}), 1, true);
    EXPECT_EQ(iterator->getType(), LayerType::kITERATOR);
    EXPECT_EQ(iterator->getAxis(), 1);
    EXPECT_TRUE(iterator->getReverse());
    EXPECT_EQ(iterator->getOutput(0)->getDimensions().nbDims, 1);
    EXPECT_EQ(iterator->getOutput(0)->getDimensions().d[0], 4);
    iterator->setAxis(0);
    iterator->setReverse(false);
    EXPECT_EQ(iterator->getAxis(), 0);
    EXPECT_FALSE(iterator->getReverse());
    EXPECT_EQ(iterator->getOutput(0)->getDimensions().d[0], 5);
    EXPECT_EQ(c.loop->addIterator(*input("u", {4}))->getAxis(), 0);
    // Nothing is lost through the layer's base.
    EXPECT_EQ(static_cast<ILayer*>(iterator), net.getLayer(net.getNbLayers() - 2));
    EXPECT_EQ(logger.errors(), 0) << errors();
}

TEST_F(Loop, NamesAreKept)
{
    ILoop *a = net.addLoop(), *b = net.addLoop();
    EXPECT_STRNE(a->getName(), b->getName());
    a->setName("outer");
    EXPECT_STREQ(a->getName(), "outer");
    a->setName(nullptr);
    EXPECT_STREQ(a->getName(), "outer");
    EXPECT_EQ(logger.errors(), 1);
    a->setName(std::string(5000, 'a').c_str());
    EXPECT_STREQ(a->getName(), "outer");
    EXPECT_EQ(logger.errors(), 2);
}

TEST_F(Loop, ARecurrenceHasItsShapeBeforeItsNextValueIsSet)
{
    ILoop* loop = counted(integer(2));
    IRecurrenceLayer* r = loop->addRecurrence(*input("x", {-1, 3}, DataType::kINT32));
    EXPECT_EQ(r->getNbInputs(), 1);
    EXPECT_EQ(r->getInput(1), nullptr);
    EXPECT_EQ(tw::api::str(r->getOutput(0)->getDimensions()), "[-1,3]");
    EXPECT_EQ(r->getOutput(0)->getType(), DataType::kINT32);
    EXPECT_EQ(tw::api::str(last(loop, r->getOutput(0))->getDimensions()), "[-1,3]");
    EXPECT_EQ(tw::api::str(stack(loop, r->getOutput(0), integer(7))->getDimensions()), "[7,-1,3]");
    EXPECT_EQ(tw::api::str(stack(loop, r->getOutput(0), integer(7), LoopOutput::kREVERSE, 2)->getDimensions()),
              "[-1,3,7]");
    EXPECT_EQ(tw::api::str(stack(loop, r->getOutput(0), nullptr, LoopOutput::kCONCATENATE, 1)->getDimensions()),
              "[-1,2,3]");
    EXPECT_EQ(logger.errors(), 0) << errors();
}

TEST_F(Loop, ImplicitBatchHasNoLoops)
{
    std::unique_ptr<INetworkDefinition> const implicit(builder->createNetworkV2(0));
    EXPECT_EQ(implicit->addLoop(), nullptr);
    EXPECT_EQ(logger.errors(), 1);
    EXPECT_TRUE(contains(logger.lastError(), "explicit batch")) << errors();
}

TEST_F(Loop, SettersRefuseWhatIsNotThere)
{
    Counting const c = counting(*this, 3);
    int errors = 0;
    auto refusedNow = [&](char const* part) {
        EXPECT_EQ(logger.errors(), ++errors) << part;
        EXPECT_TRUE(contains(logger.lastError(), part)) << logger.lastError();
    };
    EXPECT_EQ(c.loop->addTripLimit(*integer(1), TripLimit::kCOUNT), nullptr);
    refusedNow("kCOUNT already");
    EXPECT_EQ(c.loop->addTripLimit(*integer(1), TripLimit(2)), nullptr);
    refusedNow("trip limit 2 does not exist");
    EXPECT_EQ(c.loop->addLoopOutput(*c.recurrence->getOutput(0), LoopOutput(3)), nullptr);
    refusedNow("loop output 3 does not exist");
    EXPECT_EQ(c.loop->addIterator(*input("t", {4, 5}), -1), nullptr);
    refusedNow("axis -1");
    c.output->setInput(1, *integer(3));
    refusedNow("takes no length");
    c.output->setInput(2, *integer(3));
    refusedNow("input index 2");
    c.recurrence->setInput(2, *integer(3));
    refusedNow("input index 2");
    c.output->setAxis(-2);
    refusedNow("axis -2");
    EXPECT_EQ(c.output->getAxis(), 0);
    std::unique_ptr<INetworkDefinition> const other(builder->createNetworkV2(1));
    EXPECT_EQ(c.loop->addRecurrence(*other->addInput("x", DataType::kFLOAT, dims({1}))), nullptr);
    refusedNow("another network");
    EXPECT_EQ(c.loop->addIterator(*input("s", {}), 0)->getOutput(0)->getDimensions().nbDims, -1);
    refusedNow("scalar");
    EXPECT_EQ(c.loop->addIterator(*input("v", {3}), 1)->getOutput(0)->getDimensions().nbDims, -1);
    refusedNow("axis 1");
    EXPECT_EQ(
        stack(c.loop, c.recurrence->getOutput(0), integer(2), LoopOutput::kCONCATENATE, 2)->getDimensions().nbDims, -1);
    refusedNow("axis 2");
    EXPECT_EQ(stack(c.loop, c.recurrence->getOutput(0), integer(-2))->getDimensions().nbDims, -1);
    refusedNow("-2");
    EXPECT_EQ(stack(c.loop, c.recurrence->getOutput(0), floats({}, {2}))->getDimensions().nbDims, -1);
    refusedNow("kINT32 scalar");
}

// ---- what is refused when the network is built

TEST_F(Loop, RefusesALoopWithoutALimit)
{
    ILoop* loop = net.addLoop();
    loop->setName("endless");
    IRecurrenceLayer* r = loop->addRecurrence(*input("x", {2}));
    r->setInput(1, *sum(r->getOutput(0), r->getOutput(0)));
    output(last(loop, r->getOutput(0)), "y");
    refused({"loop 'endless'", "no trip limit", "addTripLimit"});
}

TEST_F(Loop, RefusesARecurrenceWithoutNextValue)
{
    ILoop* loop = counted(integer(2));
    IRecurrenceLayer* r = loop->addRecurrence(*input("x", {2}));
    r->setName("state");
    output(last(loop, r->getOutput(0)), "y");
    refused({"layer 'state' (Recurrence)", "input 1", "setInput(1"});
}

TEST_F(Loop, RefusesANextValueOfAnotherShapeOrType)
{
    ILoop* loop = counted(integer(2));
    IRecurrenceLayer* r = loop->addRecurrence(*input("x", {2}));
    r->setName("state");
    r->setInput(1, *floats({3}, {1, 2, 3}));
    output(last(loop, r->getOutput(0)), "y");
    refused({"layer 'state'", "f32[2]", "f32[3]"});
    r->setInput(1, *constant<int32_t>({2}, {1, 2}, DataType::kINT32));
    refused({"layer 'state'", "f32[2]", "i32[2]"});
}

TEST_F(Loop, RefusesLimitsOfAnotherType)
{
    Counting const c = counting(*this, 3);
    c.limit->setName("limit");
    c.limit->setInput(0, *floats({}, {3}));
    refused({"layer 'limit'", "the count", "kINT32 scalar"});
    c.limit->setInput(0, *constant<int32_t>({1}, {3}, DataType::kINT32));
    refused({"layer 'limit'", "i32[1]", "rank 0"});
    c.limit->setInput(0, *integer(3));
    c.loop->addTripLimit(*integer(3), TripLimit::kWHILE);
    refused({"the condition", "kBOOL scalar"});
}

TEST_F(Loop, RefusesAReversedIteratorWithoutACount)
{
    ILoop* loop = net.addLoop();
    ITensor* i = tripNumber(loop);
    loop->addTripLimit(*less(i, integer(2)), TripLimit::kWHILE);
    IIteratorLayer* x = loop->addIterator(*input("x", {2}), 0, true);
    x->setName("backwards");
    output(stack(loop, x->getOutput(0), integer(2)), "y");
    refused({"layer 'backwards'", "kCOUNT"});
}

TEST_F(Loop, RefusesTheLastValueOfWhatIsNoRecurrence)
{
    ILoop* loop = counted(integer(2));
    ITensor* i = tripNumber(loop);
    ITensor* twice = sum(i, i);
    ILoopOutputLayer* l = loop->addLoopOutput(*twice, LoopOutput::kLAST_VALUE);
    l->setName("result");
    EXPECT_EQ(l->getOutput(0)->getDimensions().nbDims, -1);
    output(l->getOutput(0), "y");
    refused({"layer 'result'", "kLAST_VALUE", "recurrence"});
    // Another loop's recurrence is none of this one's.
    l->setInput(0, *tripNumber(counted(integer(3))));
    refused({"layer 'result'", "its own"});
}

TEST_F(Loop, RefusesInnerTensorsAsOutputs)
{
    Counting const c = counting(*this, 3);
    c.loop->setName("counting");
    output(sum(c.recurrence->getOutput(0), floats({2}, {1, 1})), "inner");
    refused({"network output 'inner'", "inside loop 'counting'", "addLoopOutput"});
}

TEST_F(Loop, RefusesWhatEntersFromInside)
{
    Counting const c = counting(*this, 3);
    c.loop->setName("counting");
    IRecurrenceLayer* r = c.loop->addRecurrence(*c.recurrence->getOutput(0));
    r->setName("second");
    r->setInput(1, *r->getOutput(0));
    refused({"layer 'second'", "input 0", "inside loop 'counting'", "outside"});
}

TEST_F(Loop, RefusesALengthFromInside)
{
    ILoop* loop = counted(integer(2));
    ITensor* i = tripNumber(loop);
    ILoopOutputLayer* l = loop->addLoopOutput(*i, LoopOutput::kCONCATENATE);
    l->setName("all");
    l->setInput(1, *i);
    output(l->getOutput(0), "y");
    refused({"layer 'all'", "input 1", "outside"});
}

TEST_F(Loop, RefusesLoopsThatCross)
{
    ILoop *a = counted(integer(2)), *b = counted(integer(3));
    a->setName("a");
    b->setName("b");
    IRecurrenceLayer *x = a->addRecurrence(*input("x", {2})), *y = b->addRecurrence(*input("y", {2}));
    x->setInput(1, *y->getOutput(0));
    y->setInput(1, *x->getOutput(0));
    output(last(a, x->getOutput(0)), "z");
    refused({"loop 'a'", "loop 'b'", "do not nest", "addLoopOutput"});
}

TEST_F(Loop, RefusesValuesOfTwoLoopsSideBySide)
{
    ITensor *x = tripNumber(counted(integer(2))), *y = tripNumber(counted(integer(2)));
    auto* l = net.addElementWise(*x, *y, ElementWiseOperation::kSUM);
    l->setName("between");
    net.markOutput(*l->getOutput(0));
    refused({"layer 'between'", "of which none is inside the other"});
}

TEST_F(Loop, RefusesCyclesThroughALoop)
{
    // What goes in depends on what comes out.
    ILoop* loop = net.addLoop();
    loop->setName("round");
    ITensor* i = tripNumber(loop);
    ITripLimitLayer* limit = loop->addTripLimit(*integer(1), TripLimit::kCOUNT);
    ITensor* n = last(loop, i);
    limit->setInput(0, *sum(n, integer(1)));
    output(n, "n");
    refused({"loop 'round'", "cycle"});
}

TEST_F(Loop, RefusesCyclesBesideRecurrences)
{
    ILoop* loop = counted(integer(2));
    ITensor* i = tripNumber(loop);
    auto* l = net.addElementWise(*i, *integer(1), ElementWiseOperation::kSUM);
    ITensor* twice = sum(l->getOutput(0), l->getOutput(0));
    l->setInput(1, *twice);
    output(stack(loop, l->getOutput(0), integer(2)), "y");
    refused({"cycle"});
}

// ---- numbers

TEST_F(Loop, CountsAndRunsNoTrip)
{
    Counting const c = counting(*this, 3);
    expect({{{2}, {1, 2}}}, {{{2}, {4, 5}}});
    for (int32_t count : {0, -2}) {
        engine_.reset();
        c.limit->setInput(0, *integer(count));
        expect({{{2}, {1, 2}}}, {{{2}, {1, 2}}});
    }
}

TEST_F(Loop, TheCountMayBeANetworkInput)
{
    ITensor* n = input("n", {}, DataType::kINT32);
    ILoop* loop = counted(n);
    IRecurrenceLayer* r = loop->addRecurrence(*input("x", {2}));
    r->setInput(1, *product(r->getOutput(0), floats({2}, {2, 3})));
    output(last(loop, r->getOutput(0)), "y");
    output(stack(loop, r->getOutput(0), integer(4)), "all");
    EXPECT_FALSE(n->isShapeTensor()) << "without values in a profile it is data (loop_counts_test.cpp)";
    values["n"] = {{0}, {2}, {5}};
    expect({{{}, {2}}, {{2}, {1, 1}}}, {{{2}, {4, 9}}, {{4, 2}, {1, 1, 2, 3, 0, 0, 0, 0}}});
    expect({{{}, {4}}, {{2}, {1, 1}}}, {{{2}, {16, 81}}, {{4, 2}, {1, 1, 2, 3, 4, 9, 8, 27}}});
    // More trips than the output has room for.
    interpret({{{}, {5}}, {{2}, {1, 1}}});
    EXPECT_TRUE(contains(problem, "5")) << problem;
    int const before = logger.errors();
    EXPECT_TRUE(execute(engine_.get(), {{{}, {5}}, {{2}, {1, 1}}}).empty());
    EXPECT_EQ(logger.errors(), before + 1) << errors();
    EXPECT_TRUE(contains(errors(), "output 'all' has the length 4")) << errors();
}

TEST_F(Loop, WhileEndsWithTheFirstFalse)
{
    // Powers of two below a limit; the condition of the first trip may be false already.
    ITensor* limit = input("limit", {});
    ILoop* loop = net.addLoop();
    IRecurrenceLayer* r = loop->addRecurrence(*floats({}, {1}));
    r->setInput(1, *sum(r->getOutput(0), r->getOutput(0)));
    loop->addTripLimit(*less(r->getOutput(0), limit), TripLimit::kWHILE);
    output(last(loop, r->getOutput(0)), "power");
    output(last(loop, tripNumber(loop)), "trips");
    expect({{{}, {100}}}, {{{}, {128}}, {{}, {7}}});
    expect({{{}, {1}}}, {{{}, {1}}, {{}, {0}}});
}

TEST_F(Loop, WhileAndCountTogether)
{
    ITensor *limit = input("limit", {}, DataType::kINT32), *n = input("n", {}, DataType::kINT32);
    values["n"] = {{0}, {2}, {9}};
    ILoop* loop = counted(n);
    ITensor* i = tripNumber(loop);
    loop->addTripLimit(*less(i, limit), TripLimit::kWHILE);
    output(last(loop, i), "y");
    expect({{{}, {3}}, {{}, {5}}}, {{{}, {3}}});
    expect({{{}, {5}}, {{}, {3}}}, {{{}, {3}}});
}

TEST_F(Loop, IteratesAlongAnyAxisAndBackwards)
{
    ITensor* x = input("x", {2, 3});
    ILoop* rows = counted(integer(2));
    output(stack(rows, rows->addIterator(*x)->getOutput(0), integer(2)), "rows");
    output(stack(rows, rows->addIterator(*x, 0, true)->getOutput(0), integer(2), LoopOutput::kCONCATENATE, 1), "back");
    ILoop* columns = counted(integer(3));
    output(stack(columns, columns->addIterator(*x, 1)->getOutput(0), integer(3)), "transposed");
    output(stack(columns, columns->addIterator(*x, 1)->getOutput(0), integer(4), LoopOutput::kREVERSE), "reversed");
    columns->addIterator(*x, 0); // one that nobody uses, and too short
    expect({{{2, 3}, {2, 3, 5, 4, 6, 8}}}, {{{2, 3}, {2, 3, 5, 4, 6, 8}},
                                            {{3, 2}, {4, 2, 6, 3, 8, 5}},
                                            {{3, 2}, {2, 4, 3, 6, 5, 8}},
                                            {{4, 2}, {0, 0, 5, 8, 3, 6, 2, 4}}});
}

TEST_F(Loop, ANextValueMayBeAnotherRecurrence)
{
    values["n"] = {{0}, {2}, {20}};
    ILoop* loop = counted(input("n", {}, DataType::kINT32));
    IRecurrenceLayer *a = loop->addRecurrence(*integer(0)), *b = loop->addRecurrence(*integer(1));
    a->setInput(1, *b->getOutput(0));
    b->setInput(1, *sum(a->getOutput(0), b->getOutput(0)));
    output(last(loop, a->getOutput(0)), "fibonacci");
    expect({{{}, {10}}}, {{{}, {55}}});
}

TEST_F(Loop, InvariantsAndConstantsAsNextValuesAndResults)
{
    ITensor* x = input("x", {2});
    ILoop* loop = counted(integer(3));
    IRecurrenceLayer *a = loop->addRecurrence(*floats({2}, {1, 2})), *b = loop->addRecurrence(*x);
    a->setInput(1, *x);
    b->setInput(1, *floats({2}, {7, 8}));
    output(last(loop, a->getOutput(0)), "a");
    output(last(loop, b->getOutput(0)), "b");
    output(stack(loop, x, integer(3)), "same");
    output(last(loop, b->getOutput(0)), "again");
    expect({{{2}, {3, 4}}}, {{{2}, {3, 4}}, {{2}, {7, 8}}, {{3, 2}, {3, 4, 3, 4, 3, 4}}, {{2}, {7, 8}}});
}

TEST_F(Loop, ALoopWithoutOutputsDisappears)
{
    ITensor* x = input("x", {2});
    ILoop* loop = counted(integer(3));
    tripNumber(loop);
    loop->addIterator(*x);
    net.addLoop();
    output(sum(x, x), "y");
    auto g = object().toGraph();
    ASSERT_TRUE(g.ok()) << g.error().message;
    EXPECT_EQ((*g)->nodes.size(), 1U);
    expect({{{2}, {3, 4}}}, {{{2}, {6, 8}}});
}

TEST_F(Loop, LoopsNest)
{
    // sum over i < n of (i + number of rows), counted one by one; rows of x are added in the middle.
    ITensor *x = input("x", {3, 2}), *n = input("n", {}, DataType::kINT32);
    values["n"] = {{0}, {2}, {6}};
    ILoop* outer = counted(n);
    ITensor* i = tripNumber(outer);
    IRecurrenceLayer *count = outer->addRecurrence(*integer(0)), *total = outer->addRecurrence(*floats({2}, {0, 0}));
    ILoop* inner = counted(i);
    IRecurrenceLayer* c = inner->addRecurrence(*count->getOutput(0));
    c->setInput(1, *sum(c->getOutput(0), integer(1)));
    ILoop* rows = counted(integer(3));
    IRecurrenceLayer* t = rows->addRecurrence(*total->getOutput(0));
    t->setInput(1, *sum(t->getOutput(0), rows->addIterator(*x)->getOutput(0)));
    count->setInput(1, *last(inner, c->getOutput(0)));
    total->setInput(1, *last(rows, t->getOutput(0)));
    output(last(outer, count->getOutput(0)), "count");
    output(last(outer, total->getOutput(0)), "total");
    output(stack(outer, last(inner, c->getOutput(0)), integer(6)), "counts");
    expect({{{3, 2}, {1, 2, 3, 4, 5, 6}}, {{}, {5}}}, {{{}, {10}}, {{2}, {45, 60}}, {{6}, {0, 1, 3, 6, 10, 0}}});
}

TEST_F(Loop, BodiesUseSizesFromAround)
{
    // x flattened to its own size inside, with a captured shape tensor.
    ITensor* x = input("x", {-1, 2});
    profiles["x"] = {{1, 2}, {3, 2}, {5, 2}};
    ITensor* shape = net.addShape(*x)->getOutput(0);
    ILoop* loop = counted(integer(2));
    IRecurrenceLayer* r = loop->addRecurrence(*x);
    auto* flip = net.addShuffle(*r->getOutput(0));
    flip->setFirstTranspose(Permutation{{1, 0}});
    auto* back = net.addShuffle(*flip->getOutput(0));
    back->setInput(1, *shape);
    r->setInput(1, *back->getOutput(0));
    output(last(loop, r->getOutput(0)), "y");
    ILoop* each =
        counted(net.addShuffle(*net.addSlice(*shape, dims({0}), dims({1}), dims({1}))->getOutput(0))->getOutput(0));
    auto* scalar = static_cast<IShuffleLayer*>(net.getLayer(net.getNbLayers() - 2));
    ASSERT_EQ(scalar->getType(), LayerType::kSHUFFLE);
    scalar->setReshapeDimensions(Dims{0, {}});
    ITensor* row = each->addIterator(*x)->getOutput(0);
    output(stack(each, sum(row, row), nullptr), "twice");
    auto const flipped = [](std::vector<double> const& v) { // [n, 2] -> [2, n] as [n, 2]
        std::vector<double> out;
        for (size_t c = 0; c < 2; ++c)
            for (size_t i = 0; i < v.size() / 2; ++i)
                out.push_back(v[2 * i + c]);
        return out;
    };
    for (int64_t n : {1, 3, 5}) {
        std::vector<double> v, twice;
        for (int64_t i = 0; i < 2 * n; ++i) {
            v.push_back(double(i));
            twice.push_back(double(2 * i));
        }
        expect({{{n, 2}, v}}, {{{n, 2}, flipped(flipped(v))}, {{n, 2}, twice}});
    }
}

TEST_F(Loop, EmptyTensors)
{
    ITensor* x = input("x", {0, 2});
    ILoop* loop = counted(integer(0));
    output(stack(loop, loop->addIterator(*x)->getOutput(0), integer(0)), "y");
    IRecurrenceLayer* r = loop->addRecurrence(*x);
    r->setInput(1, *sum(r->getOutput(0), r->getOutput(0)));
    output(last(loop, r->getOutput(0)), "z");
    expect({{{0, 2}, {}}}, {{{0, 2}, {}}, {{0, 2}, {}}});
}

// A size that only the run knows: a loop that ends early, captured by another loop.
TEST_F(Loop, SizesThatTheRunDecides)
{
    ITensor* limit = input("limit", {}, DataType::kINT32);
    ILoop* first = counted(integer(8));
    ITensor* i = tripNumber(first);
    first->addTripLimit(*less(i, limit), TripLimit::kWHILE);
    ITensor* numbers = stack(first, cast(i, DataType::kFLOAT), nullptr);
    output(numbers, "numbers");
    ILoop* second = counted(integer(3));
    IRecurrenceLayer* r = second->addRecurrence(*numbers);
    r->setInput(1, *sum(r->getOutput(0), numbers));
    output(last(second, r->getOutput(0)), "y");
    EXPECT_EQ(tw::api::str(numbers->getDimensions()), "[-1]");
    for (int64_t size : {3, 1, 8, 0, 20}) {
        int64_t const trips = std::min<int64_t>(size, 8);
        std::vector<double> once, four;
        for (int64_t k = 0; k < trips; ++k) {
            once.push_back(double(k));
            four.push_back(double(4 * k));
        }
        expect({{{}, {double(size)}}}, {{{trips}, once}, {{trips}, four}});
    }
}

// An LSTM cell of layers in a loop over a sequence, both directions, against plain formulas.
TEST_F(Loop, AnLstmSpelledOut)
{
    constexpr int T = 4, B = 2, I = 3, H = 2, G = 4 * H; // gates i f g o
    auto weight = [](int n, int at) { return float((n * 7 + at * 3) % 11 - 5) / 8; };
    std::vector<float> w, r, b;
    for (int n = 0; n < I * G; ++n)
        w.push_back(weight(n, 0));
    for (int n = 0; n < H * G; ++n)
        r.push_back(weight(n, 1));
    for (int n = 0; n < G; ++n)
        b.push_back(weight(n, 2));
    ITensor *x = input("x", {T, B, I}), *W = floats({I, G}, w), *R = floats({H, G}, r), *bias = floats({1, G}, b);
    auto matmul = [&](ITensor* a, ITensor* m) {
        return net.addMatrixMultiply(*a, MatrixOperation::kNONE, *m, MatrixOperation::kNONE)->getOutput(0);
    };
    auto gate = [&](ITensor* all, int g, ActivationType type) {
        ITensor* part = net.addSlice(*all, dims({0, g * H}), dims({B, H}), dims({1, 1}))->getOutput(0);
        return net.addActivation(*part, type)->getOutput(0);
    };
    for (bool reverse : {false, true}) {
        ILoop* loop = counted(integer(T));
        ITensor* zeros = floats({B, H}, std::vector<float>(B * H, 0.0F));
        IRecurrenceLayer *h = loop->addRecurrence(*zeros), *c = loop->addRecurrence(*zeros);
        ITensor* all =
            sum(sum(matmul(loop->addIterator(*x, 0, reverse)->getOutput(0), W), matmul(h->getOutput(0), R)), bias);
        ITensor* cell = sum(product(gate(all, 1, ActivationType::kSIGMOID), c->getOutput(0)),
                            product(gate(all, 0, ActivationType::kSIGMOID), gate(all, 2, ActivationType::kTANH)));
        ITensor* hidden = product(gate(all, 3, ActivationType::kSIGMOID),
                                  net.addActivation(*cell, ActivationType::kTANH)->getOutput(0));
        c->setInput(1, *cell);
        h->setInput(1, *hidden);
        std::string const tail = reverse ? "_back" : "";
        output(stack(loop, hidden, integer(T), reverse ? LoopOutput::kREVERSE : LoopOutput::kCONCATENATE),
               ("all" + tail).c_str());
        output(last(loop, c->getOutput(0)), ("c" + tail).c_str());
    }
    Numbers in{{T, B, I}, {}};
    for (int n = 0; n < T * B * I; ++n)
        in.values.push_back(double(n % 5 - 2) / 2);
    std::vector<double> expected;
    for (bool reverse : {false, true}) {
        std::vector<double> all(T * B * H), hidden(B * H), cell(B * H);
        for (int step = 0; step < T; ++step) {
            int const t = reverse ? T - 1 - step : step;
            for (int n = 0; n < B; ++n) {
                std::vector<double> g(G);
                for (int k = 0; k < G; ++k) {
                    g[size_t(k)] = b[size_t(k)];
                    for (int i = 0; i < I; ++i)
                        g[size_t(k)] += in.values[size_t((t * B + n) * I + i)] * w[size_t(i * G + k)];
                    for (int j = 0; j < H; ++j)
                        g[size_t(k)] += hidden[size_t(n * H + j)] * r[size_t(j * G + k)];
                }
                auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
                for (int j = 0; j < H; ++j) {
                    double& c = cell[size_t(n * H + j)];
                    c = sigmoid(g[size_t(H + j)]) * c + sigmoid(g[size_t(j)]) * std::tanh(g[size_t(2 * H + j)]);
                    all[size_t((t * B + n) * H + j)] = sigmoid(g[size_t(3 * H + j)]) * std::tanh(c);
                }
                for (int j = 0; j < H; ++j)
                    hidden[size_t(n * H + j)] = all[size_t((t * B + n) * H + j)];
            }
        }
        expected.insert(expected.end(), all.begin(), all.end());
        expected.insert(expected.end(), cell.begin(), cell.end());
    }
    auto const engine = build();
    for (auto const& outputs : {interpret({in}), execute(engine.get(), {in})}) {
        std::vector<double> got;
        for (Numbers const& n : outputs)
            got.insert(got.end(), n.values.begin(), n.values.end());
        ASSERT_EQ(got.size(), expected.size()) << problem << errors();
        for (size_t i = 0; i < got.size(); ++i)
            EXPECT_NEAR(got[i], expected[i], 1e-5) << i;
    }
}

TEST_F(Loop, LengthsAreShapeTensors)
{
    ITensor *x = input("x", {2}), *y = input("y", {}, DataType::kINT32);
    values["y"] = {{2}, {3}, {6}};
    ILoop* loop = counted(integer(2));
    output(stack(loop, x, y), "all");
    EXPECT_TRUE(y->isShapeTensor());
    expect({{{2}, {1, 2}}, {{}, {3}}}, {{{3, 2}, {1, 2, 1, 2, 0, 0}}});
}

TEST_F(Loop, LayersKeepTheirNamesAndWishes)
{
    Counting const c = counting(*this, 3);
    c.loop->setName("the loop");
    ILayer* inner = nullptr;
    for (int32_t i = 0; i < net.getNbLayers(); ++i)
        if (net.getLayer(i)->getType() == LayerType::kELEMENTWISE)
            inner = net.getLayer(i);
    ASSERT_NE(inner, nullptr);
    inner->setName("add one");
    inner->setPrecision(DataType::kHALF);
    inner->setOutputType(0, DataType::kHALF);
    inner->getOutput(0)->setName("sum");
    inner->getOutput(0)->setDynamicRange(-2, 2);
    auto g = object().toGraph();
    ASSERT_TRUE(g.ok()) << g.error().message;
    ASSERT_EQ((*g)->nodes.size(), 1U);
    tw::ir::Node const& loop = *(*g)->nodes[0];
    EXPECT_EQ(loop.name, "the loop");
    EXPECT_EQ(loop.outputs[0]->name, "y");
    tw::ir::Node const& add = *loop.regions[1]->nodes[0];
    EXPECT_EQ(add.name, "add one");
    EXPECT_EQ(add.outputs[0]->name, "sum");
    EXPECT_TRUE(object().ranges.contains("sum"));
    EXPECT_TRUE(add.precision.byUser);
    EXPECT_TRUE(add.outputTypes[0].byUser);
    EXPECT_EQ(loop.regions[1]->inputs.size(), 1U) << "constants are inside";
}

} // namespace tw::test
