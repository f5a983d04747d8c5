// SPDX-License-Identifier: Apache-2.0
// deserializeCudaEngine() on what is no plan.
#include <random>

#include "bad_input/fixture.h"

using namespace nvinfer1;
using namespace tw::test;

namespace {

using BadPlan = BadInput;

TEST_F(BadPlan, NullEmptyAndForeignBytes)
{
    EXPECT_EQ(runtime->deserializeCudaEngine(nullptr, 100), nullptr);
    expectRefused("null pointer");
    EXPECT_EQ(runtime->deserializeCudaEngine("x", 0), nullptr);
    expectRefused("0 bytes");
    std::string const text(5000, 'x');
    EXPECT_EQ(runtime->deserializeCudaEngine(text.data(), text.size()), nullptr);
    expectRefused("magic");
}

TEST_F(BadPlan, TruncatedAndFlipped)
{
    auto plan = goodPlan();
    ASSERT_NE(plan, nullptr) << lastError();
    forget();
    std::string const good(static_cast<char const*>(plan->data()), plan->size());
    std::mt19937 random(1);
    for (int i = 0; i < 100; ++i) {
        size_t const size = i < 60 ? size_t(i) : random() % good.size();
        EXPECT_EQ(runtime->deserializeCudaEngine(good.data(), size), nullptr) << size;
        expectRefused("plan");
    }
    for (int i = 0; i < 500; ++i) {
        std::string bad = good;
        size_t const bit = random() % (bad.size() * 8);
        bad[bit / 8] = char(bad[bit / 8] ^ (1 << bit % 8));
        EXPECT_EQ(runtime->deserializeCudaEngine(bad.data(), bad.size()), nullptr) << "bit " << bit;
        expectRefused("plan");
    }
    std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(good.data(), good.size()));
    EXPECT_NE(engine, nullptr);
    expectQuiet();
}

TEST_F(BadPlan, OtherVersion)
{
    auto plan = goodPlan();
    ASSERT_NE(plan, nullptr);
    forget();
    std::string bad(static_cast<char const*>(plan->data()), plan->size());
    bad[8] = 9; // the major version stands after the magic
    EXPECT_EQ(runtime->deserializeCudaEngine(bad.data(), bad.size()), nullptr);
    expectRefused("expecting format version 1.10 got 9.10");
}

} // namespace
