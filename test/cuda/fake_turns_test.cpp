// SPDX-License-Identifier: Apache-2.0
// Loops that the GPU decides, a few trips to a turn of their node, on the double with CUDA graphs.
#include "cuda/fake_loops.h"
#include "support/update_loops.h"

namespace tw::test {

namespace {

int& turns()
{
    static void* const library = dlopen(TW_FAKE_DRIVER, RTLD_NOW);
    return *static_cast<int*>(dlsym(library, "twFakeTurns"));
}

// Turns of one launch of the graph: two runs on the double, of which each launches it twice.
int turnsOf(int before)
{
    return (turns() - before) / 4;
}

Tensor numbers(DataType type, Extents const& dims, std::vector<double> const& v)
{
    Tensor t(type, dims);
    for (size_t i = 0; i < v.size(); ++i)
        t.ref().set(int64_t(i), v[i]);
    return t;
}

std::vector<double> valuesOf(TensorRef const& t)
{
    std::vector<double> v;
    for (int64_t i = 0; i < t.count(); ++i)
        v.push_back(t.get(i));
    return v;
}

// i = i + 1 while i < limit; a value of `type` is carried along and doubled.
std::string countingUp(std::string const& type)
{
    return R"(graph "g" imported { input %0 "i" i32[] input %1 "x" )" + type + R"( input %2 "limit" i32[]
        node 0 "loop" loop(%0, %1, _, %2) {carried = 2}
          region graph "condition" imported { input %0 "i" i32[] input %1 "x" )" +
           type + R"( input %2 "limit" i32[]
            node 0 "less" elementwise(%0, %2) {operation = 13} -> %3 "go_on" b[] output %3 }
          region graph "body" imported { input %0 "i" i32[] input %1 "x" )" +
           type + R"( input %2 "limit" i32[] const %3 "one" i32[] = [1]
            node 0 "next" elementwise(%0, %3) {operation = 0} -> %4 "next" i32[]
            node 1 "double" elementwise(%1, %1) {operation = 0} -> %5 "double" )" +
           type + R"( output %4 output %5 }
        -> %3 "last" i32[], %4 "y" )" +
           type + " output %3 output %4 }";
}

} // namespace

TEST(FakeTurns, FourShortTripsToATurn)
{
    for (int trips : {0, 1, 3, 4, 5, 8, 9}) {
        SCOPED_TRACE(trips);
        std::vector<Tensor> in;
        in.push_back(numbers(DataType::kInt32, {}, {2}));
        in.push_back(numbers(DataType::kFloat, {3}, {1, 2, 3}));
        in.push_back(numbers(DataType::kInt32, {}, {2.0 + trips}));
        int const before = turns();
        auto ran = runText(countingUp("f32[3]"), in);
        ASSERT_TRUE(ran.ok()) << ran.error().message;
        EXPECT_EQ(turnsOf(before), (trips + 3) / 4);
        EXPECT_EQ(ran->hostWaits, 0);
        double const times = double(1 << trips);
        EXPECT_EQ(valuesOf(ran->outputs[0]), (std::vector<double>{2.0 + trips}));
        EXPECT_EQ(valuesOf(ran->outputs[1]), (std::vector<double>{times, 2 * times, 3 * times}));
    }
}

TEST(FakeTurns, LargeValuesAndLoopsInLoopsGoTripByTrip)
{
    std::vector<Tensor> in;
    in.push_back(one(DataType::kInt32, 0));
    in.push_back(numbers(DataType::kFloat, {140000}, {1}));
    in.push_back(one(DataType::kInt32, 5));
    int before = turns();
    auto large = runText(countingUp("f32[140000]"), in);
    ASSERT_TRUE(large.ok()) << large.error().message;
    EXPECT_EQ(turnsOf(before), 5);
    EXPECT_EQ(large->outputs[1].get(0), 32);

    // while (i != 3) { for (j = 0; j < i; ++j) sum += 1; i = i + 1 }: behind i = 3 nobody knows how long that takes.
    std::vector<Tensor> start;
    start.push_back(one(DataType::kInt32, 0));
    start.push_back(one(DataType::kInt32, 0));
    before = turns();
    auto nested = runText(R"(graph "g" imported { input %0 "i" i32[] input %1 "sum" i32[]
        node 0 "outer" loop(%0, %1, _) {carried = 2}
          region graph "condition" imported { input %0 "i" i32[] input %1 "sum" i32[] const %2 "end" i32[] = [3]
            node 0 "less" elementwise(%0, %2) {operation = 13} -> %3 "go_on" b[] output %3 }
          region graph "body" imported { input %0 "i" i32[] input %1 "sum" i32[] const %2 "one" i32[] = [1]
            node 0 "inner" loop(%1, %0) {carried = 1}
              region graph "condition" imported { input %0 "s" i32[] const %1 "yes" b[] = [1] output %1 }
              region graph "body" imported { input %0 "s" i32[] const %1 "one" i32[] = [1]
                node 0 "t" elementwise(%0, %1) {operation = 0} -> %2 "t" i32[] output %2 }
              -> %3 "added" i32[]
            node 1 "next" elementwise(%0, %2) {operation = 0} -> %4 "next" i32[] output %4 output %3 }
        -> %2 "last" i32[], %3 "total" i32[] output %2 output %3 })",
                          start);
    ASSERT_TRUE(nested.ok()) << nested.error().message;
    EXPECT_EQ(valuesOf(nested->outputs[1]), (std::vector<double>{3}));
    EXPECT_EQ(turnsOf(before), 3 + 2); // of the outer loop, of the inner one for i = 1 and i = 2
}

// More moves than a launch takes: nine values, four trips of five stacks, two tensors with a slice more for the
// condition.
TEST(FakeTurns, ManyMoves)
{
    std::string inputs = "input %0 \"i\" i32[] ", regions, results = "output %20 ", outputs, listed = "%0", made;
    for (int i = 1; i < 9; ++i) {
        std::string const v = "%" + std::to_string(i);
        regions += "input " + v + " \"c\" i32[2] ";
        listed += ", " + v;
        results += "output %" + std::to_string(i % 8 + 1) + " "; // they go round
    }
    std::string const seen = "input %0 \"i\" i32[] " + regions + "input %9 \"a\" i32[2] input %10 \"b\" i32[2] ";
    for (int k = 0; k < 5; ++k)
        results += "output %" + std::to_string(k % 2 ? 9 + k / 2 : k + 1) + " ";
    for (int i = 0; i < 9; ++i)
        made += (i ? ", %" : "%") + std::to_string(11 + i) + " \"y\" " + (i ? "i32[2]" : "i32[]");
    for (int k = 0; k < 5; ++k)
        made += ", %" + std::to_string(20 + k) + " \"s\" i32[7,2]";
    for (int i = 0; i < 14; ++i)
        outputs += "output %" + std::to_string(11 + i) + " ";
    std::string const text =
        "graph \"g\" imported { input %0 \"i\" i32[] " + regions +
        "input %9 \"a\" i32[7,2] input %10 \"b\" i32[2,7] const %25 \"seven\" i32[] = [7]\nnode 0 \"loop\" loop(" +
        listed +
        ", _, %9, %10, %25, %25, %25, %25, %25) {carried = 9, iterator_axes = [0, 1], iterator_reverse = [0, 1], "
        "stack_axes = [0, 0, 0, 0, 0], stack_reverse = [0, 1, 0, 0, 1]}\n region graph \"condition\" imported { " +
        seen +
        "const %11 \"five\" i32[2] = [5, 5] const %14 \"axes\" i32[1] = [0]\n"
        "node 0 \"less\" elementwise(%9, %11) {operation = 13} -> %12 \"below\" b[2]\n"
        "node 1 \"first\" gather(%12, %0) {mode = 0, axis = 0, element_wise_dims = 0} -> %13 \"go_on\" b[] output %13 "
        "}\n"
        "region graph \"body\" imported { " +
        seen + "const %11 \"none\" i32[] = [0]\nnode 0 \"i\" elementwise(%0, %11) {operation = 0} -> %20 \"i\" i32[] " +
        results + "}\n-> " + made + " " + outputs + "}";
    std::vector<Tensor> in;
    in.push_back(one(DataType::kInt32, 1));
    for (double i = 1; i < 9; ++i)
        in.push_back(numbers(DataType::kInt32, {2}, {i, 10 * i}));
    in.push_back(numbers(DataType::kInt32, {7, 2}, {9, 1, 9, 2, 9, 3, 9, 0, 9, -1, 9, 5, 9, 9}));
    in.push_back(numbers(DataType::kInt32, {2, 7}, {1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 14, 15, 16, 17}));
    int const before = turns();
    auto g = ir::parse(text, ops::find);
    ASSERT_TRUE(g.ok()) << g.error().message;
    auto want = interp::run(**g, refsOf(in));
    ASSERT_TRUE(want.ok()) << want.error().message;
    auto ran = runOnDouble(**g, refsOf(in));
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    EXPECT_EQ(turnsOf(before), 2);
    EXPECT_EQ(valuesOf((*want)[1].ref()), (std::vector<double>{6, 60})); // five trips
    expectSame(ran->outputs, *want, 0);
}

// What the host knows of a first value says nothing of the later ones.
TEST(FakeTurns, AConditionalInALoopSeesTheValueOfItsTrip)
{
    std::vector<Tensor> in;
    in.push_back(one(DataType::kInt32, 0));
    in.push_back(one(DataType::kInt32, 6));
    auto ran = runText(R"(graph "g" imported { input %0 "i" i32[] input %1 "limit" i32[] const %2 "yes" b[] = [1]
        node 0 "loop" loop(%0, %2, _, %1) {carried = 2}
          region graph "condition" imported { input %0 "i" i32[] input %1 "up" b[] input %2 "limit" i32[]
            node 0 "less" elementwise(%0, %2) {operation = 13} -> %3 "go_on" b[] output %3 }
          region graph "body" imported { input %0 "i" i32[] input %1 "up" b[] input %2 "limit" i32[]
            const %3 "no" b[] = [0]
            node 0 "if" conditional(%1, %0)
              region graph "then" imported { input %0 "i" i32[] const %1 "one" i32[] = [1]
                node 0 "a" elementwise(%0, %1) {operation = 0} -> %2 "next" i32[] output %2 }
              region graph "else" imported { input %0 "i" i32[] const %1 "ten" i32[] = [10]
                node 0 "a" elementwise(%0, %1) {operation = 0} -> %2 "next" i32[] output %2 }
              -> %4 "next" i32[]
            output %4 output %3 }
        -> %3 "last" i32[], %4 "up" b[] output %3 })",
                       in);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    EXPECT_EQ(ran->hostWaits, 0);
    EXPECT_EQ(valuesOf(ran->outputs[0]), (std::vector<double>{11}));
}

// A condition that is a constant, a capture, or a slice.
TEST(FakeTurns, ConditionsThatNoKernelComputes)
{
    auto run = [](std::string const& condition, std::vector<double> const& captured,
                  std::vector<double> const& slices) {
        std::vector<Tensor> in;
        in.push_back(numbers(DataType::kFloat, {2}, {1, 2}));
        in.push_back(numbers(DataType::kInt32, {}, {6}));
        in.push_back(numbers(DataType::kBool, {int64_t(slices.size())}, slices));
        in.push_back(numbers(DataType::kBool, {}, captured));
        std::string const seen = R"(input %0 "x" f32[2] input %1 "slice" b[] input %2 "captured" b[] )";
        return runText("graph \"g\" imported { input %0 \"x\" f32[2] input %1 \"n\" i32[] input %2 \"s\" b[" +
                           std::to_string(slices.size()) +
                           "] input %3 \"captured\" b[]\nnode 0 \"loop\" loop(%0, %1, %2, %3) {carried = 1, "
                           "iterator_axes = [0], iterator_reverse = [0]}\nregion graph \"condition\" imported { " +
                           seen + condition + " }\nregion graph \"body\" imported { " + seen +
                           R"(node 0 "double" elementwise(%0, %0) {operation = 0} -> %3 "y" f32[2] output %3 }
                           -> %4 "y" f32[2] output %4 })",
                       in);
    };
    auto factor = [&](std::string const& condition, std::vector<double> const& captured,
                      std::vector<double> const& slices) -> double {
        auto ran = run(condition, captured, slices);
        EXPECT_TRUE(ran.ok()) << ran.error().message;
        return ran.ok() ? ran->outputs[0].get(0) : -1;
    };
    std::vector<double> const ones(8, 1);
    EXPECT_EQ(factor("const %3 \"no\" b[] = [0] output %3", {1}, ones), 1);
    EXPECT_EQ(factor("output %2", {0}, ones), 1);
    EXPECT_EQ(factor("output %2", {1}, ones), 64); // as the count says
    EXPECT_EQ(factor("output %1", {1}, {1, 1, 1, 0, 1, 1, 1, 1}), 8);
    EXPECT_EQ(factor("output %1", {1}, {1, 1, 1, 1, 0, 1, 1, 1}), 16);
    EXPECT_EQ(factor("output %1", {1}, {1, 1, 1, 1, 1, 0, 1, 1}), 32);
    EXPECT_EQ(factor("output %1", {1}, {0, 1, 1, 1, 1, 1, 1, 1}), 1);
}

TEST(FakeTurns, CachesThatAreUpdatedInPlace)
{
    for (UpdateLoop const& kind : updateLoops()) {
        SCOPED_TRACE(kind.name);
        for (First const first : {First::kGiven, First::kMade, First::kMadeForTwo})
            for (int trips : {0, 1, 4, 5, 6}) {
                SCOPED_TRACE(trips);
                GraphMaker m;
                addUpdateLoop(m, kind, 6, first);
                auto const inputs = updateInputs(m.g, trips);
                auto want = interp::run(m.g, refsOf(inputs));
                ASSERT_TRUE(want.ok()) << want.error().message;
                int const before = turns();
                auto ran = runOnDouble(m.g, refsOf(inputs));
                ASSERT_TRUE(ran.ok()) << ran.error().message;
                EXPECT_EQ(turnsOf(before), kind.aIsOverwritten || kind.bStays ? trips : (trips + 3) / 4);
                EXPECT_EQ(ran->hostWaits, 0);
                expectSame(ran->outputs, *want, 0);
                expectSame(refsOf(inputs), updateInputs(m.g, trips), 0);
            }
    }
}

} // namespace tw::test
