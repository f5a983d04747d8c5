// SPDX-License-Identifier: Apache-2.0
// Counts of loops that are network inputs: 8.5 reads them from the binding, as samples do, and asks for no profile.
#include "api/control_flow.h"

namespace tw::test {

namespace {

struct LoopCounts : ControlFlow
{
    // The sum of the first n rows of x [4, 2], and the sums on the way in a stack of 4.
    void rowsOf(ITensor* x, ITensor* count, std::string const& name)
    {
        ILoop* loop = counted(count);
        IRecurrenceLayer* r = loop->addRecurrence(*floats({2}, {0, 0}));
        ITensor* next = sum(r->getOutput(0), loop->addIterator(*x)->getOutput(0));
        r->setInput(1, *next);
        output(last(loop, r->getOutput(0)), (name + ".sum").c_str());
        output(stack(loop, next, integer(4)), (name + ".sums").c_str());
    }
    Numbers x{{4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}};
    static Numbers number(double v) { return {{}, {v}}; }
    static std::vector<Numbers> rowsFor(int trips)
    {
        Numbers sums{{4, 2}, std::vector<double>(8)};
        double a = 0, b = 0;
        for (int i = 0; i < trips; ++i) {
            sums.values[size_t(2 * i)] = a += 2 * i + 1;
            sums.values[size_t(2 * i + 1)] = b += 2 * i + 2;
        }
        return {{{2}, {a, b}}, sums};
    }
};

TEST_F(LoopCounts, AreReadFromTheBindingWithoutAProfile)
{
    ITensor *rows = input("x", {4, 2}), *n = input("n", {}, DataType::kINT32);
    rowsOf(rows, n, "y");
    EXPECT_FALSE(n->isShapeTensor());
    EXPECT_TRUE(n->isExecutionTensor());
    for (int const trips : {3, 0, 4, 1})
        expect({x, number(trips)}, rowsFor(trips));
    ASSERT_TRUE(engine_);
    EXPECT_EQ(engine_->getTensorLocation("n"), TensorLocation::kDEVICE);
    EXPECT_FALSE(engine_->isShapeInferenceIO("n"));
    EXPECT_TRUE(engine_->isExecutionBinding(engine_->getBindingIndex("n")));
    EXPECT_EQ(errors(), "");
    // All bindings in one list, as the samples run it.
    std::unique_ptr<IExecutionContext> const context(engine_->createExecutionContext());
    float in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, last[2] = {}, all[8] = {};
    int32_t trips = 2;
    void* bindings[4] = {};
    bindings[engine_->getBindingIndex("x")] = in;
    bindings[engine_->getBindingIndex("n")] = &trips;
    bindings[engine_->getBindingIndex("y.sum")] = last;
    bindings[engine_->getBindingIndex("y.sums")] = all;
    ASSERT_TRUE(context->executeV2(bindings)) << errors();
    EXPECT_EQ(last[0], 4);
    EXPECT_EQ(last[1], 6);
    trips = 4;
    ASSERT_TRUE(context->executeV2(bindings)) << errors();
    EXPECT_EQ(last[1], 20);
    // More than there are rows.
    EXPECT_EQ(execute(engine_.get(), {x, number(5)}).size(), 0U);
    EXPECT_TRUE(contains(errors(), "layer '")) << errors();
    EXPECT_TRUE(contains(errors(), "is past the extent 4 of the iterated tensor 'x'; the count is 5 (tensor 'n')"))
        << errors();
}

TEST_F(LoopCounts, ThroughLayersAndInLoops)
{
    ITensor *rows = input("x", {4, 2}), *n = input("n", {}, DataType::kINT32), *m = input("m", {1}, DataType::kINT32);
    auto* scalar = net.addShuffle(*m);
    scalar->setReshapeDimensions(Dims{0, {}});
    rowsOf(rows, op(ElementWiseOperation::kMIN, sum(n, integer(1)), scalar->getOutput(0)), "y");
    ILoop* outer = counted(n);
    IRecurrenceLayer* total = outer->addRecurrence(*integer(0));
    ILoop* inner = counted(scalar->getOutput(0));
    IRecurrenceLayer* t = inner->addRecurrence(*total->getOutput(0));
    t->setInput(1, *sum(t->getOutput(0), integer(1)));
    total->setInput(1, *last(inner, t->getOutput(0)));
    output(last(outer, total->getOutput(0)), "total");
    EXPECT_FALSE(n->isShapeTensor());
    EXPECT_FALSE(m->isShapeTensor());
    for (auto const& [a, b] : {std::pair{1, 4}, std::pair{3, 1}, std::pair{0, 0}}) {
        auto expected = rowsFor(std::min(a + 1, b));
        expected.push_back(number(a * b));
        expect({x, number(a), {{1}, {double(b)}}}, expected);
    }
    EXPECT_EQ(errors(), "");
}

// The count and the length are computed from n, but are the same for every n: n stays data.
TEST_F(LoopCounts, ThatAreKnownWhateverTheInput)
{
    ITensor *rows = input("x", {4, 2}), *n = input("n", {}, DataType::kINT32);
    ITensor* none = op(ElementWiseOperation::kSUB, n, n);
    rowsOf(rows, sum(none, integer(2)), "y");
    ILoop* loop = counted(sum(none, integer(3)));
    output(stack(loop, sum(tripNumber(loop), n), sum(integer(3), none)), "trips");
    EXPECT_FALSE(n->isShapeTensor());
    for (int const v : {5, -2}) {
        auto expected = rowsFor(2);
        expected.push_back({{3}, {double(v), double(v + 1), double(v + 2)}});
        expect({x, number(v)}, expected);
    }
    ASSERT_TRUE(engine_);
    EXPECT_FALSE(engine_->isShapeInferenceIO("n"));
    EXPECT_EQ(errors(), "");
}

// A profile for another input has nothing to say about it.
TEST_F(LoopCounts, BesideADynamicInput)
{
    ITensor *rows = input("x", {-1, 2}), *n = input("n", {}, DataType::kINT32);
    profiles["x"] = {{1, 2}, {3, 2}, {4, 2}};
    rowsOf(rows, n, "y");
    expect({x, number(3)}, rowsFor(3));
    expect({x, number(1)}, rowsFor(1));
    ASSERT_TRUE(engine_);
    EXPECT_FALSE(engine_->isShapeInferenceIO("n"));
}

TEST_F(LoopCounts, WithValuesInAProfileAreShapeTensors)
{
    ITensor *rows = input("x", {4, 2}), *n = input("n", {}, DataType::kINT32);
    values["n"] = {{0}, {2}, {4}};
    rowsOf(rows, n, "y");
    expect({x, number(3)}, rowsFor(3));
    ASSERT_TRUE(engine_);
    EXPECT_TRUE(engine_->isShapeInferenceIO("n"));
    EXPECT_EQ(engine_->getTensorLocation("n"), TensorLocation::kHOST);
}

// What else decides a shape needs a profile, and the error says which input.
TEST_F(LoopCounts, ThatAreLengthsTooNeedAProfile)
{
    for (bool const given : {false, true}) { // the length of the stack is the count, whether that is said or not
        struct : ControlFlow
        {
            void TestBody() override {}
        } c;
        ITensor* n = c.input("trips", {}, DataType::kINT32);
        ILoop* loop = c.counted(n);
        c.output(ControlFlow::stack(loop, c.tripNumber(loop), given ? n : nullptr), "y");
        EXPECT_TRUE(n->isShapeTensor());
        EXPECT_FALSE(c.build());
        EXPECT_TRUE(contains(c.errors(), "network input 'trips' is a shape tensor, but no optimization profile"))
            << c.errors();
    }
    input("x", {2});
    ITensor* batch = input("batch", {-1, 3});
    output(sum(batch, batch), "y");
    EXPECT_FALSE(build());
    EXPECT_TRUE(contains(errors(), "network input 'batch' with shape [-1,3] is dynamic, but no optimization profile"))
        << errors();
}

} // namespace

} // namespace tw::test
