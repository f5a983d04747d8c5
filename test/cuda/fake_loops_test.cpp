// SPDX-License-Identifier: Apache-2.0
// Control flow as it is put on the stream of a GPU, on a double (fake_cuda_driver.cpp) whose memory is the host's: each
// node runs its reference there. What is computed, and how often the host waits for it. A second program has the double
// with CUDA graphs, whose conditional nodes decide.
#include "cuda/fake_loops.h"

#include <cstdlib>
#include <ctime>

#include "cases/draw.h"

namespace tw::test {

namespace {

void runCase(ops::Case const& c, ir::OpDef const& op)
{
    SCOPED_TRACE(std::string(op.name) + "." + c.name);
    auto made = makeCase(op, c);
    ASSERT_TRUE(made.ok()) << made.error().message;
    CaseGraph& g = **made;
    auto want = interp::run(g.graph, g.graphInputs);
    ASSERT_TRUE(want.ok()) << want.error().message;
    auto ran = runOnDouble(g.graph, g.graphInputs);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    expectSame(ran->outputs, *want, 0);
}

// x = tanh(x) as often as input or constant `n` says, with a stack of all of them.
std::string counted(std::string const& count)
{
    return "graph \"g\" imported { symbol $0.0 0..100 bound input %0 \"x\" f32[4] " + count + R"(
        node 0 "loop" loop(%0, %1) {carried = 1, stack_axes = [0], stack_reverse = [0]}
          region graph "condition" imported { input %0 "x" f32[4] const %1 "yes" b[] = [1] output %1 }
          region graph "body" imported { input %0 "x" f32[4]
            node 0 "tanh" activation(%0) {kind = 2, alpha = 0, beta = 0} -> %1 "y" f32[4] output %1 output %1 })";
}

} // namespace

TEST(FakeLoops, CasesByHand)
{
    for (char const* name : {"conditional", "loop"})
        for (ops::Case const& c : ops::casesOf(name).cases)
            ASSERT_NO_FATAL_FAILURE(runCase(c, *ops::find(name)));
}

// By the seed of the day; TW_TEST_SEED repeats one, TW_TEST_COUNT is how many.
TEST(FakeLoops, RandomLoops)
{
    auto number = [](char const* variable, uint64_t otherwise) {
        char const* const text = std::getenv(variable);
        return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
    };
    uint64_t const seed = number("TW_TEST_SEED", uint64_t(std::time(nullptr) / (24 * 60 * 60)));
    uint64_t const count = number("TW_TEST_COUNT", 60);
    for (ops::OpCases const& op : ops::allCases())
        for (uint64_t i = 0; std::string_view(op.op) == "loop" && i < count; ++i) {
            ops::CaseList list;
            ops::Draw draw(seed + i);
            op.addRandom(list, draw, "seed_" + std::to_string(seed + i));
            ASSERT_NO_FATAL_FAILURE(runCase(list.cases[0], *ops::find("loop")));
        }
}

TEST(FakeLoops, NobodyWaitsForACountedLoop)
{
    std::vector<Tensor> x;
    x.push_back(Tensor(DataType::kFloat, {4}));
    auto constant = runText(
        counted("const %1 \"n\" i32[] = [7]") + "-> %2 \"last\" f32[4], %3 \"all\" f32[7,4] output %2 output %3 }", x);
    ASSERT_TRUE(constant.ok()) << constant.error().message;
    EXPECT_EQ(constant->hostWaits, 0);
    EXPECT_EQ(constant->whyNotCaptured, "");
    EXPECT_EQ(constant->outputs[1].dims, (Extents{7, 4}));
}

TEST(FakeLoops, ACountOnTheDeviceIsWaitedForOnce)
{
    std::vector<Tensor> inputs;
    inputs.push_back(Tensor(DataType::kFloat, {4}));
    inputs.push_back(one(DataType::kInt32, 5));
    auto ran =
        runText(counted("input %1 \"n\" i32[]") + "-> %2 \"last\" f32[4], %3 \"all\" f32[$0.0,4] output %2 }", inputs);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    EXPECT_EQ(ran->hostWaits, 1);
    EXPECT_NE(ran->whyNotCaptured, "");
}

// Three flags move up; the loop goes on while the first is set: two trips.
TEST(FakeLoops, AConditionIsWaitedForBeforeEachTrip)
{
    std::vector<Tensor> inputs;
    for (double v : {1.0, 1.0, 0.0})
        inputs.push_back(one(DataType::kBool, v));
    auto ran = runText(R"(graph "g" imported { input %0 "a" b[] input %1 "b" b[] input %2 "c" b[]
        node 0 "loop" loop(%0, %1, %2) {carried = 3}
          region graph "condition" imported { input %0 "a" b[] input %1 "b" b[] input %2 "c" b[] output %0 }
          region graph "body" imported { input %0 "a" b[] input %1 "b" b[] input %2 "c" b[] output %1 output %2 output %2 }
        -> %3 "x" b[], %4 "y" b[], %5 "z" b[] output %3 })",
                       inputs);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    EXPECT_EQ(ran->hostWaits, kHasNodes ? 0 : 2 + 1);
}

} // namespace tw::test
