// SPDX-License-Identifier: Apache-2.0
// Loops and conditionals over tensors whose sizes are those of the inputs, or that the data decide.
#include "engine_run.h"
#include "ir/shape_values.h"
#include "ir/text.h"

namespace tw::test {

namespace {

EngineUnderTest engineOf(std::string const& text, SymbolSizes const& sizes = {})
{
    auto g = ir::parse(text, ops::find);
    EXPECT_TRUE(g.ok()) << g.error().message;
    GraphMaker m;
    m.g = g.ok() ? std::move(**g) : ir::Graph();
    auto e = makeEngine(m, {sizes});
    EXPECT_TRUE(e.ok()) << e.error().message;
    return e.ok() ? std::move(*e) : EngineUnderTest{};
}

Tensor filled(DataType type, Extents const& dims, std::vector<double> const& values)
{
    Tensor t(type, dims);
    for (size_t i = 0; i < values.size(); ++i)
        t.ref().set(int64_t(i), values[i]);
    return t;
}

std::string const kAlways = "const %9 \"yes\" b[] = [1] output %9 }\n";

// y = sum of x[i] w, all x[i] w stacked; x: f32[N,M], the count is N.
std::string const kRows = R"(graph "g" imported { symbol N 0..16 symbol M 0..16
    input %0 "x" f32[N,M] input %1 "w" f32[M]
    node 0 "shape" shape(%0) -> %2 "s" i32[2]
    node 1 "n" slice(%2) {start = [0], size = [1], stride = [1]} -> %3 "n" i32[1]
    node 2 "loop" loop(%1, %3, %0, _, %1) {carried = 1, iterator_axes = [0], iterator_reverse = [1], stack_axes = [1], stack_reverse = [0]}
      region graph "condition" imported { symbol M 0..16 input %0 "y" f32[M] input %1 "x" f32[M] input %2 "w" f32[M] )" +
                          kAlways + R"(
      region graph "body" imported { symbol M 0..16 input %0 "y" f32[M] input %1 "x" f32[M] input %2 "w" f32[M]
        node 0 "mul" elementwise(%1, %2) {operation = 1} -> %3 "p" f32[M]
        node 1 "add" elementwise(%0, %3) {operation = 0} -> %4 "t" f32[M] output %4 output %3 }
      -> %4 "y" f32[M], %5 "all" f32[M,N]
    node 3 "tanh" activation(%5) {kind = 2, alpha = 0, beta = 0} -> %6 "z" f32[M,N]
    output %4 output %6 })";

// Carried values that keep what they are, then a count of n trips, two lengths of n, and a capture that a shape in the body
// is made of.
std::string manyCarried(int carried)
{
    auto number = [](int i) { return "%" + std::to_string(i); };
    std::string inputs, before, condition, body, results, lasts;
    for (int i = 0; i < carried; ++i) {
        std::string const name = number(i) + " \"c" + std::to_string(i) + "\" f32[2]";
        inputs += "    input " + name + "\n";
        before += number(i) + ", ";
        condition += "      input " + name + "\n";
        body += "      input " + name + "\n";
        results += "      output " + number(i) + "\n";
    }
    int const n = carried, capture = carried;
    for (int i = 0; i < carried; ++i)
        lasts += number(n + 2 + i) + " \"l" + std::to_string(i) + "\" f32[2], ";
    std::string const captured = "      input " + number(capture) + " \"size\" i32[1]\n";
    return "graph \"g\" imported { symbol n.0 1..8\n" + inputs + "    input " + number(n) +
           " \"n\" i32[1] host content [n.0]\n    const " + number(n + 1) + " \"two\" i32[1] = [2]\n" +
           "    node 0 \"loop\" loop(" + before + number(n + 1) + ", " + number(n) + ", " + number(n) + ", " +
           number(n) + ") {carried = " + std::to_string(carried) +
           ", iterator_axes = [], iterator_reverse = [], stack_axes = [0, 0], stack_reverse = [0, 0]}\n" +
           "    region graph \"condition\" imported {\n" + condition + captured + "      const " + number(capture + 1) +
           " \"yes\" b[] = [1]\n      output " + number(capture + 1) + "\n    }\n" +
           "    region graph \"body\" imported { symbol m 0..8\n" + body + captured + "      node 0 \"zeros\" fill(" +
           number(capture) + ") {operation = 1}\n        -> " + number(capture + 1) + " \"z\" f32[m]\n" + results +
           "      output " + number(carried - 1) + "\n      output " + number(carried - 2) + "\n    }\n    -> " +
           lasts + number(2 * n + 2) + " \"s\" f32[n.0,2], " + number(2 * n + 3) + " \"t\" f32[n.0,2]\n  output " +
           number(2 * n + 2) + "\n}\n";
}

} // namespace

// Which inputs are shape tensors does not end with the 32nd.
TEST(RegionSizes, LengthsBehindManyCarriedValues)
{
    for (int carried : {2, 31, 32, 33, 70}) {
        auto const g = ir::parse(manyCarried(carried), ops::find);
        ASSERT_TRUE(g.ok()) << g.error().message;
        ir::Node const& loop = *(*g)->nodes[0];
        for (size_t i = 0; i < loop.inputs.size(); ++i)
            EXPECT_EQ(ir::isShapeInput(loop, i), i >= size_t(carried) && i < size_t(carried) + 3) << i;
        EXPECT_TRUE(ir::hostValues(**g).contains((*g)->inputs.back())) << carried;
    }
}

TEST(RegionSizes, OfTheInputs)
{
    auto e = engineOf(kRows, {{"N", {1, 4, 16}}, {"M", {1, 3, 16}}});
    for (auto [n, m] : {std::pair<int64_t, int64_t>{1, 1}, {4, 3}, {16, 16}, {5, 16}, {16, 7}}) {
        auto inputs = randomInputs(*e.imported, {{"N", n}, {"M", m}});
        checkTwice(e, inputs);
        EXPECT_EQ(whyNotCaptured(e, inputs), "");
    }
}

// A loop over the positions of what is not zero: how many, only the data say.
TEST(RegionSizes, IteratedTensorOfDataDependentSize)
{
    auto e = engineOf(R"(graph "g" imported { symbol $0.0 0..6 bound
    input %0 "x" f32[6]
    node 0 "find" non_zero(%0) -> %1 "at" i32[1,$0.0]
    node 1 "shape" shape(%1) -> %2 "s" i32[2]
    node 2 "n" slice(%2) {start = [1], size = [1], stride = [1]} -> %3 "n" i32[1]
    const %4 "zero" i32[1] = [0]
    node 3 "loop" loop(%4, %3, %1) {carried = 1, iterator_axes = [1], iterator_reverse = [0], stack_axes = [0], stack_reverse = [1]}
      region graph "condition" imported { input %0 "y" i32[1] input %1 "x" i32[1] )" +
                      kAlways + R"(
      region graph "body" imported { input %0 "y" i32[1] input %1 "x" i32[1]
        node 0 "add" elementwise(%0, %1) {operation = 0} -> %3 "t" i32[1] output %3 output %3 }
      -> %5 "y" i32[1], %6 "all" i32[$0.0,1]
    output %5 output %6 })");
    for (std::vector<double> const& x :
         {std::vector<double>{0, 1, 0, 2, 3, 0}, {1, 1, 1, 1, 1, 1}, {0, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 0, 0}}) {
        std::vector<Tensor> inputs;
        inputs.push_back(filled(DataType::kFloat, {6}, x));
        checkTwice(e, inputs);
    }
}

// Captured, and carried.
TEST(RegionSizes, CarriedTensorOfDataDependentSize)
{
    auto e = engineOf(R"(graph "g" imported { symbol $0.0 0..6 bound
    input %0 "x" f32[6] input %1 "n" i32[]
    node 0 "find" non_zero(%0) -> %2 "at" i32[1,$0.0]
    node 1 "loop" loop(%2, %1, _, %2) {carried = 1, stack_axes = [2], stack_reverse = [0]}
      region graph "condition" imported { symbol K 0..6 input %0 "y" i32[1,K] input %1 "x" i32[1,K] )" +
                      kAlways + R"(
      region graph "body" imported { symbol K 0..6 input %0 "y" i32[1,K] input %1 "x" i32[1,K]
        node 0 "add" elementwise(%0, %1) {operation = 0} -> %3 "t" i32[1,K] output %3 output %3 }
      -> %3 "y" i32[1,$0.0], %4 "all" i32[1,$0.0,$1.0]
    node 2 "twice" elementwise(%4, %4) {operation = 0} -> %5 "z" i32[1,$0.0,$1.0]
    output %3 output %5 })");
    for (double n : {0.0, 1.0, 5.0}) {
        std::vector<Tensor> inputs;
        inputs.push_back(filled(DataType::kFloat, {6}, {0, 1, 0, 2, 3, 0}));
        inputs.push_back(filled(DataType::kInt32, {}, {n}));
        checkTwice(e, inputs);
    }
}

// Nothing bounds the stack but the condition; what is behind it is settled while it runs.
TEST(RegionSizes, StackWithoutABound)
{
    for (int axis : {0, 1})
        for (int reverse : {0, 1}) {
            std::string const flags = "stack_axes = [" + std::to_string(axis) + "], stack_reverse = [" +
                                      std::to_string(reverse) + "]",
                              all = axis == 0 ? "[$0.0,2]" : "[2,$0.0]";
            auto e = engineOf(R"(graph "g" imported { symbol $0.0 0..1000000 bound
    input %0 "x" f32[2] input %1 "limit" f32[2]
    const %2 "two" f32[2] = [2, 1]
    node 0 "loop" loop(%0, _, _, %1, %2) {carried = 1, )" +
                              flags + R"(}
      region graph "condition" imported { input %0 "y" f32[2] input %1 "limit" f32[2] input %2 "two" f32[2]
        node 0 "first" slice(%0) {start = [0], size = [1], stride = [1]} -> %3 "a" f32[1]
        node 1 "last" slice(%1) {start = [0], size = [1], stride = [1]} -> %4 "b" f32[1]
        node 2 "less" elementwise(%3, %4) {operation = 13} -> %5 "go_on" b[1] output %5 }
      region graph "body" imported { input %0 "y" f32[2] input %1 "limit" f32[2] input %2 "two" f32[2]
        node 0 "add" elementwise(%0, %2) {operation = 0} -> %3 "t" f32[2] output %3 output %3 }
      -> %3 "y" f32[2], %4 "all" f32)" +
                              all + R"(
    node 1 "twice" elementwise(%4, %4) {operation = 0} -> %5 "z" f32)" +
                              all + " output %3 output %5 }");
            for (double limit : {-9.0, 1.0, 77.0, 500.0}) {
                std::vector<Tensor> inputs;
                inputs.push_back(filled(DataType::kFloat, {2}, {0.5, 0.25}));
                inputs.push_back(filled(DataType::kFloat, {2}, {limit, limit}));
                checkTwice(e, inputs);
            }
        }
}

TEST(RegionSizes, ErrorsNameTheLimit)
{
    auto e = engineOf(R"(graph "g" imported {
    input %0 "x" f32[3] input %1 "n" i32[] input %2 "length" i32[]
    node 0 "loop" loop(%1, %0, %2) {iterator_axes = [0], iterator_reverse = [0], stack_axes = [0], stack_reverse = [0]}
      region graph "condition" imported { input %0 "x" f32[] )" +
                      kAlways + R"(
      region graph "body" imported { input %0 "x" f32[] output %0 }
      -> %3 "all" f32[$0.0]
    output %3 })");
    auto messageFor = [&](double n, double length) {
        std::vector<Tensor> inputs;
        inputs.push_back(filled(DataType::kFloat, {3}, {1, 2, 3}));
        inputs.push_back(filled(DataType::kInt32, {}, {n}));
        inputs.push_back(filled(DataType::kInt32, {}, {length}));
        runtime::Context context(e.engine);
        context.setProfile(0);
        auto got = runEngine(context, refsOf(inputs));
        return got.ok() ? std::string() : got.error().message;
    };
    ASSERT_NE(e.engine, nullptr);
    EXPECT_EQ(messageFor(3, 3), "");
    EXPECT_NE(messageFor(4, 4).find("past the extent 3 of the iterated tensor 'x'; the count is 4 (tensor 'n')"),
              std::string::npos)
        << messageFor(4, 4);
    EXPECT_NE(messageFor(3, 2).find("layer 'loop': output 'all' has the length 2 (tensor 'length'), 3 iterations"),
              std::string::npos)
        << messageFor(3, 2);
    EXPECT_NE(messageFor(1, -1).find("loop 'loop': the length input 'length' (i32[]) is -1, below 0"),
              std::string::npos)
        << messageFor(1, -1);
}

} // namespace tw::test
