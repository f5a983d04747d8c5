// SPDX-License-Identifier: Apache-2.0
// Emitted expressions: rows, steps, tails, stores past the caches, and programs that are refused. What each step
// computes is checked by the cases of the op `pointwise`.
#include <cstdlib>
#include <memory>

#include <gtest/gtest.h>

#include "kernels/cpu/jit/pointwise.h"
#include "ways.h"

namespace tw::test {

namespace {

using namespace kernels::jit;
using C = StepCode;

struct Free
{
    void operator()(float* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<float, Free>;

Buffer buffer(int64_t n, float first, float step)
{
    Buffer b(static_cast<float*>(std::aligned_alloc(64, size_t((n * 4 + 127) / 64 * 64))));
    for (int64_t i = 0; i < n; ++i)
        b.get()[i] = first + step * float(i);
    return b;
}

// y = |x * s + t| with s one number for each row, t one row for all.
PointwiseProgram sample()
{
    return {3, {{C::kMul, 0, 1}, {C::kAdd, 3, 2}, {C::kAbs, 4}}};
}

void checkRows(Isa isa, int64_t rows, int64_t n, int64_t step, bool stream)
{
    auto code = emitPointwise(isa, sample(), {false, true, false}, stream);
    ASSERT_TRUE(code.ok()) << code.error().message;
    constexpr float kGuard = -77;
    Buffer const x = buffer(rows * step, -3, 0.25f), s = buffer(rows, 1, 0.5f), t = buffer(n, 2, -0.125f),
                 y = buffer(rows * step + 16, kGuard, 0);
    PointwiseArgs a{};
    a.x[0] = x.get(), a.x[1] = s.get(), a.x[2] = t.get();
    a.rowBytes[0] = step * 4, a.rowBytes[1] = 4, a.rowBytes[2] = 0;
    a.y = y.get();
    a.yRowBytes = step * 4;
    a.rows = rows;
    a.n = n;
    code->entry<PointwiseFunction>()(&a);
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < step; ++i) {
            float const want = i < n ? std::abs(x.get()[r * step + i] * s.get()[r] + t.get()[i]) : kGuard;
            ASSERT_EQ(y.get()[r * step + i], want) << isaName(isa) << " row " << r << ", element " << i << " of " << n;
        }
    for (int64_t i = 0; i < 16; ++i)
        ASSERT_EQ(y.get()[rows * step + i], kGuard);
}

} // namespace

TEST(PointwiseKernel, RowsStepsAndTails)
{
    for (Isa isa : isas())
        for (int64_t n : {0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64})
            for (int64_t rows : {0, 1, 3})
                for (int64_t gap : {0, 5})
                    checkRows(isa, rows, n, n + gap, false);
}

TEST(PointwiseKernel, StoresPastTheCaches)
{
    for (Isa isa : isas())
        for (int64_t n : {16, 48, 64})
            checkRows(isa, 5, n, 64, true);
}

TEST(PointwiseKernel, ProgramsThatAreRefused)
{
    auto refused = [](PointwiseProgram const& p) { return !checkProgram(p).empty(); };
    EXPECT_FALSE(refused(sample()));
    EXPECT_TRUE(refused({0, {{C::kConstant}}}));
    EXPECT_TRUE(refused({9, {{C::kAdd, 0, 1}}}));
    EXPECT_TRUE(refused({1, {}}));
    EXPECT_TRUE(refused({1, {{C(8), 0, 0}}}));
    EXPECT_TRUE(refused({1, {{C::kAdd, 0, 1}}})); // reads itself
    EXPECT_TRUE(refused({1, {{C::kAdd, 0, -1}}}));
    EXPECT_TRUE(refused({2, {{C::kAbs, 0}}}));               // never reads the second
    EXPECT_TRUE(refused({1, {{C::kAbs, 0}, {C::kAbs, 0}}})); // nor the first step
    EXPECT_TRUE(refused({1, {{C::kActivation, 0, 0, ActivationKind(99)}}}));
    EXPECT_TRUE(refused({1, std::vector<ExpressionStep>(65, {C::kAbs, 0})}));
    PointwiseProgram wide{1, {}}; // all alive until the end
    for (int i = 0; i < 12; ++i)
        wide.steps.push_back({C::kConstant, 0, 0, ActivationKind::kRelu, float(i)});
    for (int i = 0; i < 12; ++i)
        wide.steps.push_back({C::kAdd, i == 0 ? 0 : 12 + i, 12 - i});
    EXPECT_TRUE(refused(wide));
}

} // namespace tw::test
