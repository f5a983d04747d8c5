// SPDX-License-Identifier: Apache-2.0
// Loops and conditionals as programs use them: beam search, streams of unknown length, sizes from anywhere, many values.
#include "api/control_flow_programs.h"

namespace tw::test {

namespace {

TEST_F(Programs, AShapeInputThatOnlyABodyReads)
{
    ITensor *x = input("x", {4, 4}), *s = input("s", {2}, DataType::kINT32);
    values["s"] = {{1, 1}, {2, 2}, {4, 4}};
    ILoop* loop = counted(integer(3));
    IRecurrenceLayer* r = loop->addRecurrence(*x);
    r->setInput(1, *sum(r->getOutput(0), x));
    ISliceLayer* corner = net.addSlice(*r->getOutput(0), dims({0, 0}), dims({1, 1}), dims({1, 1}));
    corner->setInput(2, *s);
    output(stack(loop, reduce(corner->getOutput(0), ReduceOperation::kSUM, 3), integer(3)), "y");
    EXPECT_TRUE(s->isShapeTensor());
    Numbers in{{4, 4}, {}};
    for (int i = 0; i < 16; ++i)
        in.values.push_back(i);
    expect({in, {{2}, {2, 2}}}, {{{3}, {10, 20, 30}}});
    expect({in, {{2}, {1, 3}}}, {{{3}, {3, 6, 9}}});
    ASSERT_TRUE(engine_);
    EXPECT_TRUE(engine_->isShapeInferenceIO("s"));
}

TEST_F(Programs, AShapeInputThatOnlyABranchReads)
{
    ITensor *x = input("x", {4, 4}), *s = input("s", {2}, DataType::kINT32), *c = input("c", {}, DataType::kBOOL);
    values["s"] = {{1, 1}, {2, 2}, {4, 4}};
    IIfConditional* choice = net.addIfConditional();
    choice->setCondition(*c);
    ITensor* inside = choice->addInput(*x)->getOutput(0);
    ISliceLayer* corner = net.addSlice(*inside, dims({0, 0}), dims({1, 1}), dims({1, 1}));
    corner->setInput(2, *s);
    ITensor *a = reduce(corner->getOutput(0), ReduceOperation::kSUM, 3), *b = reduce(inside, ReduceOperation::kMAX, 3);
    output(choice->addOutput(*a, *b)->getOutput(0), "y");
    EXPECT_TRUE(s->isShapeTensor());
    Numbers in{{4, 4}, {}};
    for (int i = 0; i < 16; ++i)
        in.values.push_back(i);
    expect({in, {{2}, {2, 2}}, number(1)}, {number(10)});
    expect({in, {{2}, {2, 2}}, number(0)}, {number(15)});
    ASSERT_TRUE(engine_);
    EXPECT_TRUE(engine_->isShapeInferenceIO("s"));
}

TEST_F(Programs, ManyCarriedValuesAndALengthBehindThem)
{
    constexpr int kMany = 40;
    ITensor *x = input("x", {2}), *y = input("y", {}, DataType::kINT32);
    values["y"] = {{2}, {3}, {6}};
    ILoop* loop = counted(integer(2));
    ITensor* before = x;
    for (int i = 0; i < kMany; ++i) {
        IRecurrenceLayer* r = loop->addRecurrence(*x);
        r->setInput(1, *sum(r->getOutput(0), before));
        before = r->getOutput(0);
        if (i + 1 == kMany)
            output(last(loop, before), "last");
    }
    output(stack(loop, before, y), "all");
    EXPECT_TRUE(y->isShapeTensor());
    // r[i] = r[i] + r[i - 1]: after two trips 1, 3, 4, 4, ... times x, as x is 1 before the first.
    expect({{{2}, {1, 10}}, number(3)}, {{{2}, {4, 40}}, {{3, 2}, {1, 10, 2, 20, 0, 0}}});
}

TEST_F(Programs, BeamSearch)
{
    constexpr int kBeams = 3, kWords = 5, kMost = 12;
    std::vector<float> table;
    for (int i = 0; i < kWords * kWords; ++i)
        table.push_back(float((i * 37 + 11) % 23) / -8.0F - float(i) / 64);
    ITensor* logits = floats({kWords, kWords}, table); // [last word, next word]
    ITensor* start = input("start", {kBeams}, DataType::kINT32);
    ITensor* limit = input("limit", {}, DataType::kFLOAT);
    ILoop* loop = counted(integer(kMost));
    IRecurrenceLayer* words = loop->addRecurrence(*start);
    IRecurrenceLayer* scores = loop->addRecurrence(*floats({kBeams}, {0, -0.1F, -0.2F}));
    ITensor* best = reduce(scores->getOutput(0), ReduceOperation::kMAX);
    loop->addTripLimit(*less(limit, best), TripLimit::kWHILE);
    ITensor* rows = net.addGather(*logits, *words->getOutput(0), 0)->getOutput(0); // [beams, words]
    ITensor* all = reshape(sum(rows, reshape(scores->getOutput(0), {kBeams, 1})), {kBeams * kWords});
    ITopKLayer* top = net.addTopK(*all, TopKOperation::kMAX, kBeams, 1);
    ITensor* count = constant<int32_t>({1}, {kWords}, DataType::kINT32);
    ITensor* beam = op(ElementWiseOperation::kFLOOR_DIV, top->getOutput(1), count);
    ITensor* word = op(ElementWiseOperation::kSUB, top->getOutput(1), product(beam, count));
    words->setInput(1, *word);
    scores->setInput(1, *top->getOutput(0));
    output(stack(loop, word, nullptr), "words");
    output(stack(loop, beam, integer(kMost), LoopOutput::kREVERSE), "beams");
    output(last(loop, scores->getOutput(0)), "scores");
    for (float end : {-3.0F, 1.0F, -100.0F, -1.0F}) {
        std::vector<int> w{0, 1, 2};
        std::vector<float> s{0, -0.1F, -0.2F};
        Numbers words0{{0, kBeams}, {}}, beams0{{kMost, kBeams}, std::vector<double>(kMost * kBeams)};
        int trips = 0;
        for (; trips<kMost&& * std::max_element(s.begin(), s.end())> end; ++trips) {
            std::vector<float> sums;
            for (int b = 0; b < kBeams; ++b)
                for (int k = 0; k < kWords; ++k)
                    sums.push_back(table[size_t(w[size_t(b)] * kWords + k)] + s[size_t(b)]);
            std::vector<int> order(sums.size());
            std::iota(order.begin(), order.end(), 0);
            std::stable_sort(order.begin(), order.end(),
                             [&](int a, int b) { return sums[size_t(a)] > sums[size_t(b)]; });
            for (int b = 0; b < kBeams; ++b) {
                s[size_t(b)] = sums[size_t(order[size_t(b)])];
                w[size_t(b)] = order[size_t(b)] % kWords;
                words0.values.push_back(w[size_t(b)]);
                beams0.values[size_t((kMost - 1 - trips) * kBeams + b)] = order[size_t(b)] / kWords;
            }
        }
        words0.shape[0] = trips;
        expect({{{kBeams}, {0, 1, 2}}, number(end)}, {words0, beams0, {{kBeams}, {s.begin(), s.end()}}});
    }
}

TEST_F(Programs, AReverseIteratorOfWhichTheCountTakesAPart)
{
    ITensor *x = input("x", {2, -1}), *n = input("n", {}, DataType::kINT32);
    profiles["x"] = {{2, 1}, {2, 3}, {2, 6}};
    ILoop* loop = counted(n);
    ITensor *back = loop->addIterator(*x, 1, true)->getOutput(0), *forth = loop->addIterator(*x, 1)->getOutput(0);
    output(stack(loop, back, nullptr, LoopOutput::kCONCATENATE, 1), "back");
    output(stack(loop, forth, nullptr, LoopOutput::kREVERSE, 0), "forth");
    if (n->isShapeTensor())
        values["n"] = {{0}, {1}, {6}};
    expect({{{2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}}, number(2)}, {{{2, 2}, {4, 3, 8, 7}}, {{2, 2}, {2, 6, 1, 5}}});
    expect({{{2, 1}, {1, 2}}, number(1)}, {{{2, 1}, {1, 2}}, {{1, 2}, {1, 2}}});
    expect({{{2, 2}, {1, 2, 3, 4}}, number(0)}, {{{2, 0}, {}}, {{0, 2}, {}}});
    EXPECT_EQ(execute(engine_.get(), {{{2, 1}, {1, 2}}, number(2)}).size(), 0U) << "past the end";
    EXPECT_NE(errors(), "");
    expect({{{2, 1}, {1, 2}}, number(1)}, {{{2, 1}, {1, 2}}, {{1, 2}, {1, 2}}});
}

TEST_F(Programs, CountsAreDimensions)
{
    ITensor* x = input("x", {-1, 2});
    profiles["x"] = {{0, 2}, {3, 2}, {9, 2}};
    ITensor* n = extent(x, 0);
    ILoop* loop = counted(n);
    IRecurrenceLayer* r = loop->addRecurrence(*floats({2}, {0, 0}));
    ITensor* next = sum(r->getOutput(0), loop->addIterator(*x)->getOutput(0));
    r->setInput(1, *next);
    output(stack(loop, next, n), "sums");
    output(last(loop, r->getOutput(0)), "sum");
    expect({{{3, 2}, {1, 2, 3, 4, 5, 6}}}, {{{3, 2}, {1, 2, 4, 6, 9, 12}}, {{2}, {9, 12}}});
    expect({{{0, 2}, {}}}, {{{0, 2}, {}}, {{2}, {0, 0}}});
    expect({{{1, 2}, {7, 8}}}, {{{1, 2}, {7, 8}}, {{2}, {7, 8}}});
}

// for a in rows: for b in a: ..., over two dynamic dimensions, and the same by an inner loop of another length each time.
TEST_F(Programs, TriangleOfTwoDynamicDimensions)
{
    ITensor* x = input("x", {-1, -1});
    profiles["x"] = {{1, 1}, {3, 3}, {5, 5}};
    ITensor *rows = extent(x, 0), *columns = extent(x, 1);
    ILoop* outer = counted(rows);
    ITensor* row = outer->addIterator(*x)->getOutput(0);
    ITensor* i = tripNumber(outer);
    ILoop* inner = counted(op(ElementWiseOperation::kMIN, columns, sum(i, integer(1)))); // row i: i + 1 elements
    ITensor* element = inner->addIterator(*row)->getOutput(0);
    IRecurrenceLayer* total = inner->addRecurrence(*floats({}, {0}));
    total->setInput(1, *sum(total->getOutput(0), element));
    ITensor* rowSum = last(inner, total->getOutput(0));
    ITensor* part = stack(inner, element, columns); // zeros behind
    output(stack(outer, rowSum, rows), "sums");
    output(stack(outer, part, rows, LoopOutput::kREVERSE, 1), "parts");
    expect({{{3, 2}, {1, 2, 3, 4, 5, 6}}}, {{{3}, {1, 7, 11}}, {{2, 3}, {5, 3, 1, 6, 4, 0}}});
    expect({{{1, 3}, {1, 2, 3}}}, {{{1}, {1}}, {{3, 1}, {1, 0, 0}}});
}

TEST_F(Programs, EveryTypeIsCarriedAndStacked)
{
    ITensor *f = input("f", {2}), *h = input("h", {2}, DataType::kHALF), *n = input("n", {2}, DataType::kINT32),
            *b = input("b", {2}, DataType::kBOOL);
    ILoop* loop = counted(integer(3));
    auto flip = [&](ITensor* t) { return net.addUnary(*t, UnaryOperation::kNOT)->getOutput(0); };
    int k = 0;
    for (ITensor* t : {f, h, n, b}) {
        IRecurrenceLayer* r = loop->addRecurrence(*t);
        r->setInput(1, t == b ? *flip(r->getOutput(0)) : *sum(r->getOutput(0), t));
        std::string const name = t->getName();
        output(last(loop, r->getOutput(0)), ("last_" + name).c_str());
        auto const kind = k % 2 == 0 ? LoopOutput::kCONCATENATE : LoopOutput::kREVERSE;
        output(stack(loop, r->getOutput(0), integer(3), kind, k++ / 2), ("all_" + name).c_str());
        EXPECT_EQ(r->getOutput(0)->getType(), t->getType());
    }
    expect({{{2}, {1, 2}}, {{2}, {3, 4}}, {{2}, {5, 6}}, {{2}, {0, 1}}}, {{{2}, {4, 8}},
                                                                          {{3, 2}, {1, 2, 2, 4, 3, 6}},
                                                                          {{2}, {12, 16}},
                                                                          {{3, 2}, {9, 12, 6, 8, 3, 4}},
                                                                          {{2}, {20, 24}},
                                                                          {{2, 3}, {5, 10, 15, 6, 12, 18}},
                                                                          {{2}, {1, 0}},
                                                                          {{2, 3}, {0, 1, 0, 1, 0, 1}}});
}

TEST_F(Programs, EveryKindOfValueIsANextValueAndAResult)
{
    ITensor *x = input("x", {3, 2}), *y = input("y", {2});
    ILoop* loop = counted(integer(3));
    ITensor* row = loop->addIterator(*x)->getOutput(0);
    IRecurrenceLayer *last1 = loop->addRecurrence(*y), *invariant = loop->addRecurrence(*y),
                     *same = loop->addRecurrence(*y);
    last1->setInput(1, *row);
    invariant->setInput(1, *floats({2}, {8, 9}));
    same->setInput(1, *same->getOutput(0));
    output(last(loop, last1->getOutput(0)), "row");
    output(last(loop, last1->getOutput(0)), "again");
    output(stack(loop, last1->getOutput(0), integer(3)), "delayed");
    output(stack(loop, row, integer(3), LoopOutput::kREVERSE), "rows");
    output(stack(loop, row, integer(4), LoopOutput::kCONCATENATE, 1), "columns");
    output(stack(loop, y, integer(3)), "invariants");
    output(last(loop, invariant->getOutput(0)), "constant");
    output(last(loop, same->getOutput(0)), "same");
    expect({{{3, 2}, {1, 2, 3, 4, 5, 6}}, {{2}, {-1, -2}}}, {{{2}, {5, 6}},
                                                             {{2}, {5, 6}},
                                                             {{3, 2}, {-1, -2, 1, 2, 3, 4}},
                                                             {{3, 2}, {5, 6, 3, 4, 1, 2}},
                                                             {{2, 4}, {1, 3, 5, 0, 2, 4, 6, 0}},
                                                             {{3, 2}, {-1, -2, -1, -2, -1, -2}},
                                                             {{2}, {8, 9}},
                                                             {{2}, {-1, -2}}});
}

TEST_F(Programs, NumbersOfNonZerosInALoop)
{
    ITensor* x = input("x", {3, 4});
    ILoop* loop = counted(integer(3));
    ITensor* row = loop->addIterator(*x)->getOutput(0);
    ITensor* places = net.addNonZero(*row)->getOutput(0); // [1, n]
    ITensor* taken = net.addGather(*row, *reshape(places, {-1}), 0)->getOutput(0);
    IRecurrenceLayer* total = loop->addRecurrence(*integer(0));
    total->setInput(
        1,
        *sum(total->getOutput(0),
             scalarOf(
                 net.addSlice(*net.addShape(*places)->getOutput(0), dims({1}), dims({1}), dims({1}))->getOutput(0))));
    output(stack(loop, reduce(taken, ReduceOperation::kPROD), integer(3)), "products");
    output(last(loop, total->getOutput(0)), "total");
    expect({{{3, 4}, {1, 0, 2, 3, 0, 0, 0, 0, 4, 5, 6, 7}}}, {{{3}, {6, 1, 840}}, number(7)});
}

TEST_F(Programs, PartsOfDifferentSizesAreNoStack)
{
    ITensor* x = input("x", {2, 3});
    ILoop* loop = counted(integer(2));
    ITensor* places = net.addNonZero(*loop->addIterator(*x)->getOutput(0))->getOutput(0);
    output(stack(loop, places, integer(2)), "places");
    expect({{{2, 3}, {1, 0, 2, 0, 1, 1}}}, {{{2, 1, 2}, {0, 2, 1, 2}}});
    EXPECT_EQ(execute(engine_.get(), {{{2, 3}, {1, 0, 2, 0, 0, 1}}}).size(), 0U);
    EXPECT_TRUE(contains(errors(), "iteration 1")) << errors();
    expect({{{2, 3}, {0, 0, 2, 0, 0, 1}}}, {{{2, 1, 1}, {2, 2}}});
}

// What an inner branch decides has no bound that the outer one knows of.
TEST_F(Programs, SizesOfInnerBranches)
{
    ITensor *x = input("x", {-1, 2}), *a = input("a", {}), *b = input("b", {});
    profiles["x"] = {{1, 2}, {2, 2}, {4, 2}};
    auto isNegative = [&](ITensor* t) { return less(t, floats({}, {0})); };
    IIfConditional* outer = net.addIfConditional();
    outer->setCondition(*isNegative(a));
    ITensor *inside = outer->addInput(*x)->getOutput(0), *which = outer->addInput(*b)->getOutput(0);
    IIfConditional* inner = net.addIfConditional();
    inner->setCondition(*isNegative(which));
    ITensor* in = inner->addInput(*inside)->getOutput(0);
    ITensor* total = net.addReduce(*in, ReduceOperation::kSUM, 1, true)->getOutput(0);
    ITensor* some = inner->addOutput(*total, *sum(in, in))->getOutput(0);
    output(outer->addOutput(*sum(some, some), *inside)->getOutput(0), "y");
    expect({{{3, 2}, {1, 2, 3, 4, 5, 6}}, number(-1), number(-1)}, {{{1, 2}, {18, 24}}});
    expect({{{3, 2}, {1, 2, 3, 4, 5, 6}}, number(-1), number(1)}, {{{3, 2}, {4, 8, 12, 16, 20, 24}}});
    expect({{{2, 2}, {1, 2, 3, 4}}, number(1), number(1)}, {{{2, 2}, {1, 2, 3, 4}}});
}

// A list that grows by an element in each trip: what is carried keeps its shape, and the error names it.
TEST_F(Programs, CarriedValuesThatGrowAreRefusedByName)
{
    ITensor* x = input("x", {-1});
    profiles["x"] = {{1}, {2}, {4}};
    ILoop* loop = counted(integer(2));
    IRecurrenceLayer* list = loop->addRecurrence(*x);
    ITensor* const parts[] = {list->getOutput(0), floats({1}, {7})};
    IConcatenationLayer* longer = net.addConcatenation(parts, 2);
    longer->setAxis(0);
    list->getOutput(0)->setName("list");
    longer->getOutput(0)->setName("longer");
    list->setInput(1, *longer->getOutput(0));
    output(last(loop, list->getOutput(0)), "y");
    interpret({{{2}, {1, 2}}});
    EXPECT_TRUE(contains(problem, "carried value 0")) << problem;
    auto const engine = build();
    EXPECT_TRUE(!engine || execute(engine.get(), {{{2}, {1, 2}}}).empty());
    for (char const* part : {"longer", "[2]", "[3]"})
        EXPECT_TRUE(contains(errors(), part)) << errors();
}

TEST_F(Programs, TheResultOfALoopDecidesAnother)
{
    ITensor* x = input("x", {}, DataType::kFLOAT);
    ILoop* halve = counted(integer(100)); // how often until it is below 1
    IRecurrenceLayer* r = halve->addRecurrence(*x);
    r->setInput(1, *product(r->getOutput(0), floats({}, {0.5F})));
    halve->addTripLimit(*less(floats({}, {1}), r->getOutput(0)), TripLimit::kWHILE);
    ITensor* times = last(halve, tripNumber(halve));
    ILoop* second = counted(times);
    ITensor* i = tripNumber(second);
    output(stack(second, i, nullptr), "numbers");
    ILoop* third = counted(integer(2));
    output(stack(third, sum(tripNumber(third), times), integer(2)), "times");
    expect({number(9)}, {{{4}, {0, 1, 2, 3}}, {{2}, {4, 5}}});
    expect({number(0.5)}, {{{0}, {}}, {{2}, {0, 1}}});
}

TEST_F(Programs, BranchesOfSizesThatDataDecide)
{
    ITensor *x = input("x", {4}), *c = input("c", {}, DataType::kBOOL);
    IIfConditional* choice = net.addIfConditional();
    choice->setCondition(*c);
    ITensor* in = choice->addInput(*x)->getOutput(0);
    ITensor* a = net.addNonZero(*in)->getOutput(0);
    ITensor* b = net.addNonZero(*net.addActivation(*in, ActivationType::kRELU)->getOutput(0))->getOutput(0);
    ITensor* y = choice->addOutput(*a, *b)->getOutput(0);
    output(sum(y, constant<int32_t>({1, 1}, {10}, DataType::kINT32)), "y");
    expect({{{4}, {1, 0, -2, 3}}, number(1)}, {{{1, 3}, {10, 12, 13}}});
    expect({{{4}, {1, 0, -2, 3}}, number(0)}, {{{1, 2}, {10, 13}}});
    expect({{{4}, {0, 0, -2, 0}}, number(0)}, {{{1, 0}, {}}});
}

TEST_F(Programs, ThreadsWithContextsOfTheirOwn)
{
    ITensor *x = input("x", {16, 3}), *limit = input("limit", {});
    ILoop* loop = counted(integer(16));
    IRecurrenceLayer* r = loop->addRecurrence(*floats({3}, {0, 0, 0}));
    ITensor* next = sum(r->getOutput(0), loop->addIterator(*x)->getOutput(0));
    r->setInput(1, *next);
    loop->addTripLimit(*less(reduce(r->getOutput(0), ReduceOperation::kMAX), limit), TripLimit::kWHILE);
    output(last(loop, r->getOutput(0)), "y");
    auto const engine = build();
    ASSERT_TRUE(engine) << errors();
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            std::unique_ptr<IExecutionContext> const c(engine->createExecutionContext());
            for (int round = 0; round < 50; ++round) {
                std::vector<float> in(16 * 3, 1.0F), y(3);
                float bound = float((t * 7 + round) % 20);
                c->setTensorAddress("x", in.data());
                c->setTensorAddress("limit", &bound);
                c->setTensorAddress("y", y.data());
                bool const ok = c->enqueueV3(nullptr);
                wrong += !ok || y != std::vector<float>(3, float(std::min(16, int(bound))));
            }
        });
    for (auto& t : threads)
        t.join();
    EXPECT_EQ(wrong, 0) << errors();
}

TEST_F(Programs, ALoopIsOneLayerForProfilers)
{
    ITensor* x = input("x", {4});
    ILoop* loop = counted(integer(5));
    loop->setName("repeat");
    IRecurrenceLayer* r = loop->addRecurrence(*net.addActivation(*x, ActivationType::kRELU)->getOutput(0));
    ITensor* t = net.addSoftMax(*r->getOutput(0))->getOutput(0);
    r->setInput(1, *net.addTopK(*t, TopKOperation::kMAX, 4, 1)->getOutput(0));
    output(net.addSoftMax(*last(loop, r->getOutput(0)))->getOutput(0), "y");
    struct Profiler final : IProfiler
    {
        std::vector<std::string> names;
        void reportLayerTime(char const* name, float) noexcept override { names.push_back(name); }
    } p;
    auto const engine = build();
    ASSERT_TRUE(engine) << errors();
    EXPECT_EQ(execute(engine.get(), {{{4}, {1, 2, 3, 4}}}, &p).size(), 1U) << errors();
    EXPECT_EQ(int32_t(p.names.size()), engine->getNbLayers());
    EXPECT_EQ(std::count(p.names.begin(), p.names.end(), "repeat"), 1) << testing::PrintToString(p.names);
}

TEST_F(Programs, PartsThatGrowAreNoStackAndOverwriteNothing)
{
    ITensor* x = input("x", {2, 300});
    ILoop* loop = counted(integer(2));
    ITensor* places = net.addNonZero(*loop->addIterator(*x)->getOutput(0))->getOutput(0);
    output(stack(loop, places, integer(2), LoopOutput::kCONCATENATE, 1), "places");
    auto const engine = build();
    Numbers in{{2, 300}, std::vector<double>(600, 1)};
    std::fill(in.values.begin() + 1, in.values.begin() + 300, 0);
    EXPECT_EQ(execute(engine.get(), {in}).size(), 0U);
    EXPECT_TRUE(contains(errors(), "iteration 1")) << errors();
}

// Only the elements of what the inner loop takes from around say how long its output is.
TEST_F(Programs, LengthsOfInnerLoopsAreDimensionsOfAnInput)
{
    ITensor* x = input("x", {-1, -1});
    profiles["x"] = {{1, 1}, {3, 3}, {5, 5}};
    ITensor *rows = extent(x, 0), *columns = extent(x, 1);
    ILoop* outer = counted(rows);
    ITensor* i = tripNumber(outer);
    ILoop* inner = counted(op(ElementWiseOperation::kMIN, columns, i));
    ITensor* part = stack(inner, sum(tripNumber(inner), i), columns);
    output(stack(outer, part, rows), "rows");
    output(stack(outer, part, rows, LoopOutput::kREVERSE, 1), "columns");
    Numbers const in{{3, 2}, {1, 2, 3, 4, 5, 6}};
    expect({in}, {{{3, 2}, {0, 0, 1, 0, 2, 3}}, {{2, 3}, {2, 1, 0, 3, 0, 0}}});
    expect({{{1, 4}, {1, 2, 3, 4}}}, {{{1, 4}, {0, 0, 0, 0}}, {{4, 1}, {0, 0, 0, 0}}});
}

} // namespace

} // namespace tw::test
