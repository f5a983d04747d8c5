// SPDX-License-Identifier: Apache-2.0
// Assertions beside and inside of loops and conditionals.
#include "api/control_flow_programs.h"

namespace tw::test {

namespace {

struct AssertionsInside : Programs
{
    ITensor* isBelow(ITensor* a, int32_t n) { return less(a, integer(n)); }
    bool holds(ICudaEngine* engine, std::vector<Numbers> const& in)
    {
        logger.lines.clear();
        bool const ran = !execute(engine, in).empty();
        EXPECT_EQ(ran, errors().empty()) << errors();
        EXPECT_TRUE(ran || contains(errors(), "'must hold' does not hold")) << errors();
        return ran;
    }
};

TEST_F(AssertionsInside, BesideALoop)
{
    ITensor* n = input("n", {}, DataType::kINT32);
    values["n"] = {{0}, {2}, {9}};
    ITensor* x = input("x", {2});
    net.addAssertion(*isBelow(n, 5), "must hold");
    ILoop* loop = counted(n);
    IRecurrenceLayer* r = loop->addRecurrence(*x);
    r->setInput(1, *sum(r->getOutput(0), x));
    output(last(loop, r->getOutput(0)), "y");
    auto const engine = build();
    ASSERT_TRUE(engine) << errors();
    EXPECT_TRUE(holds(engine.get(), {number(4), {{2}, {1, 2}}}));
    EXPECT_FALSE(holds(engine.get(), {number(5), {{2}, {1, 2}}}));
    EXPECT_TRUE(holds(engine.get(), {number(0), {{2}, {1, 2}}}));
}

TEST_F(AssertionsInside, OfWhatALoopCounts)
{
    ITensor* n = input("n", {}, DataType::kINT32);
    values["n"] = {{0}, {2}, {9}};
    ILoop* loop = counted(n);
    ITensor* i = tripNumber(loop);
    net.addAssertion(*isBelow(i, 5), "must hold");
    output(stack(loop, i, nullptr), "y");
    auto const engine = build();
    ASSERT_TRUE(engine) << errors();
    EXPECT_TRUE(holds(engine.get(), {number(5)}));
    EXPECT_FALSE(holds(engine.get(), {number(6)}));
    EXPECT_TRUE(holds(engine.get(), {number(0)})) << "no trip, no assertion";
}

TEST_F(AssertionsInside, OfABranch)
{
    ITensor *n = input("n", {}, DataType::kINT32), *c = input("c", {}, DataType::kBOOL);
    values["n"] = {{0}, {2}, {9}};
    IIfConditional* choice = net.addIfConditional();
    choice->setCondition(*c);
    ITensor* in = choice->addInput(*n)->getOutput(0);
    ITensor* next = sum(in, integer(1));
    net.addAssertion(*isBelow(next, 5), "must hold");
    output(choice->addOutput(*next, *product(in, integer(2)))->getOutput(0), "y");
    auto const engine = build();
    ASSERT_TRUE(engine) << errors();
    EXPECT_TRUE(holds(engine.get(), {number(3), number(1)}));
    EXPECT_FALSE(holds(engine.get(), {number(4), number(1)}));
    EXPECT_TRUE(holds(engine.get(), {number(4), number(0)})) << "the other branch";
}

TEST_F(AssertionsInside, OfWhatBothBranchesTakeAndOfAnInnerBranch)
{
    ITensor *n = input("n", {}, DataType::kINT32), *c = input("c", {}, DataType::kBOOL);
    values["n"] = {{0}, {2}, {9}};
    IIfConditional *outer = net.addIfConditional(), *inner = net.addIfConditional();
    outer->setCondition(*c);
    ITensor* in = outer->addInput(*n)->getOutput(0);
    net.addAssertion(*isBelow(sum(in, integer(0)), 9), "must hold"); // of both
    ITensor* next = sum(in, integer(1));
    inner->setCondition(*isBelow(next, 4));
    ITensor* deep = product(inner->addInput(*next)->getOutput(0), integer(3));
    net.addAssertion(*isBelow(deep, 9), "must hold"); // where c and n < 3: n < 2
    ITensor* y = inner->addOutput(*deep, *sum(inner->addInput(*in)->getOutput(0), integer(7)))->getOutput(0);
    output(outer->addOutput(*y, *product(in, integer(2)))->getOutput(0), "y");
    auto const engine = build();
    ASSERT_TRUE(engine) << errors();
    for (int v = 0; v < 10; ++v)
        for (int taken : {0, 1})
            EXPECT_EQ(holds(engine.get(), {number(v), number(taken)}), v < 9 && (!taken || v < 2 || v >= 3))
                << v << " " << taken;
}

TEST_F(AssertionsInside, OfLayersOfBothBranches)
{
    ITensor *n = input("n", {}, DataType::kINT32), *c = input("c", {}, DataType::kBOOL);
    IIfConditional* choice = net.addIfConditional();
    choice->setCondition(*c);
    ITensor *in = choice->addInput(*n)->getOutput(0), *a = sum(in, in), *b = product(in, in);
    net.addAssertion(*less(a, b), "must hold");
    output(choice->addOutput(*a, *b)->getOutput(0), "y");
    refused({"is in both branches of conditional"});
}

TEST_F(AssertionsInside, OfALoopThatNothingNeeds)
{
    ITensor *n = input("n", {}, DataType::kINT32), *x = input("x", {2});
    values["n"] = {{0}, {2}, {9}};
    ILoop* loop = counted(n);
    ITensor* i = tripNumber(loop);
    net.addAssertion(*isBelow(i, 5), "must hold");
    output(sum(x, x), "y");
    auto const engine = build();
    ASSERT_TRUE(engine) << errors();
    EXPECT_TRUE(holds(engine.get(), {number(9), {{2}, {1, 2}}}));
}

TEST_F(AssertionsInside, OfAnInvariantInABody)
{
    ITensor *n = input("n", {}, DataType::kINT32), *x = input("x", {2});
    values["n"] = {{0}, {2}, {9}};
    ILoop* outer = counted(integer(2));
    ITensor* i = tripNumber(outer);
    ILoop* inner = counted(integer(2));
    ITensor* j = sum(sum(tripNumber(inner), i), n); // at most n + 2
    net.addAssertion(*isBelow(j, 5), "must hold");
    IRecurrenceLayer* r = inner->addRecurrence(*cast(i, DataType::kFLOAT));
    r->setInput(1, *sum(r->getOutput(0), cast(j, DataType::kFLOAT)));
    output(stack(outer, last(inner, r->getOutput(0)), integer(2)), "y");
    output(sum(x, x), "z");
    auto const engine = build();
    ASSERT_TRUE(engine) << errors();
    EXPECT_TRUE(holds(engine.get(), {number(2), {{2}, {1, 2}}}));
    EXPECT_FALSE(holds(engine.get(), {number(3), {{2}, {1, 2}}}));
}

} // namespace

} // namespace tw::test
