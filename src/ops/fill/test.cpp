// SPDX-License-Identifier: Apache-2.0
// The state of random fills, which no case can see, and that the numbers are what they are called.

#include <gtest/gtest.h>

#include "interp/interp.h"
#include "ops/fill/op.h"
#include "support/op_case.h"
#include "tactic/reference.h"
#include "tactic/registry.h"

namespace tw::ops::fill {

namespace {

struct Filled
{
    std::vector<double> values;
    uint64_t state = 0;
};

std::unique_ptr<test::CaseGraph> graphOf(Operation operation, int64_t n, double alpha, double beta)
{
    auto a = std::make_shared<Attrs>();
    a->operation = operation;
    a->dims = {n};
    a->alpha = alpha;
    a->beta = beta;
    auto made = test::makeCase(def(), Case{"random", a, {}, {}});
    return made.ok() ? std::move(*made) : nullptr;
}

Filled byReference(Operation operation, int64_t n, uint64_t state, double alpha = 0, double beta = 1)
{
    auto g = graphOf(operation, n, alpha, beta);
    interp::Options options;
    options.randomState = &state;
    auto y = interp::runNode(*g->node, {}, options);
    EXPECT_TRUE(y.ok());
    Filled f;
    for (int64_t i = 0; i < n; ++i)
        f.values.push_back((*y)[0].ref().get(i));
    f.state = state;
    return f;
}

uint64_t stateAfterKernel(Operation operation, int64_t n, uint64_t state)
{
    auto g = graphOf(operation, n, 0, 1);
    Problem problem;
    problem.node = g->node;
    auto kernel = cpuTactics.back()->load(problem, {}, {});
    EXPECT_TRUE(kernel.ok());
    Tensor y(DataType::kFloat, {n});
    std::vector<TensorRef> outputs{y.ref()};
    RunArgs args{{}, outputs, nullptr, &state};
    EXPECT_TRUE((*kernel)->run(args).ok());
    return state;
}

} // namespace

TEST(Fill, RandomRunsMoveTheStateOnAndDiffer)
{
    for (Operation o : {Operation::kRandomUniform, Operation::kRandomNormal}) {
        Filled const first = byReference(o, 100, 7), again = byReference(o, 100, 7);
        Filled const second = byReference(o, 100, first.state);
        EXPECT_EQ(first.values, again.values);
        EXPECT_NE(first.values, second.values);
        EXPECT_EQ(first.state, stateAfterKernel(o, 100, 7));
        // Two short runs are one long one.
        Filled whole = byReference(o, 200, 7);
        std::vector<double> parts = first.values;
        parts.insert(parts.end(), second.values.begin(), second.values.end());
        EXPECT_EQ(whole.values, parts);
    }
}

TEST(Fill, RandomNumbersHaveTheirMoments)
{
    int64_t const n = 200000;
    for (Operation o : {Operation::kRandomUniform, Operation::kRandomNormal}) {
        // uniform on [2, 5): mean 3.5, variance 9/12; normal: mean 2, variance 25
        Filled const f = byReference(o, n, 1, 2, 5);
        bool const isNormal = o == Operation::kRandomNormal;
        double sum = 0, squares = 0, lo = 1e9, hi = -1e9;
        for (double v : f.values) {
            sum += v;
            squares += v * v;
            lo = std::min(lo, v);
            hi = std::max(hi, v);
        }
        double const mean = sum / double(n), variance = squares / double(n) - mean * mean;
        EXPECT_NEAR(mean, isNormal ? 2 : 3.5, isNormal ? 0.06 : 0.01); // five standard errors
        EXPECT_NEAR(variance, isNormal ? 25 : 0.75, isNormal ? 0.4 : 0.01);
        if (!isNormal) {
            EXPECT_GE(lo, 2);
            EXPECT_LE(hi, 5);
        }
    }
}

TEST(Fill, OnlyRandomFillsAreStateful)
{
    EXPECT_TRUE(def().stateful(*graphOf(Operation::kRandomUniform, 3, 0, 1)->node));
    EXPECT_TRUE(def().stateful(*graphOf(Operation::kRandomNormal, 3, 0, 1)->node));
    EXPECT_FALSE(def().stateful(*graphOf(Operation::kLinspace, 3, 0, 1)->node));
}

// The tuner asks for a few elements of large outputs: these alone are computed, as they are among all.
TEST(Fill, TheReferenceComputesWhatIsWanted)
{
    for (Operation o : {Operation::kLinspace, Operation::kRandomUniform, Operation::kRandomNormal}) {
        int64_t const n = 50;
        auto g = graphOf(o, n, 2, 5);
        Tensor all(DataType::kFloat, {n}), some(DataType::kFloat, {n});
        uint64_t state = 7, again = 7;
        RefContext whole(*g->node, {}, {all.ref()}), part(*g->node, {}, {some.ref()});
        whole.randomState = &state;
        part.randomState = &again;
        std::vector<bool> wanted(size_t(n), false);
        wanted[3] = wanted[49] = true;
        part.setWanted(wanted, {3, 49});
        ASSERT_TRUE(reference(whole).ok());
        ASSERT_TRUE(reference(part).ok());
        EXPECT_EQ(state, again);
        for (int64_t i = 0; i < n; ++i)
            EXPECT_EQ(some.ref().get(i), wanted[size_t(i)] ? all.ref().get(i) : 0) << i;
    }
}

} // namespace tw::ops::fill
