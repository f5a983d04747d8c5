// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/emitter.h"

#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tw::kernels::jit {

namespace {

// mov eax, value; ret
std::vector<uint8_t> returning(uint8_t value)
{
    return {0xb8, value, 0, 0, 0, 0xc3};
}
Code made(std::vector<uint8_t> const& bytes)
{
    auto code = Code::make(bytes.data(), bytes.size());
    EXPECT_TRUE(code.ok()) << code.error().message;
    return std::move(*code);
}
int call(Code const& c)
{
    return c.entry<int (*)()>()();
}

TEST(Code, EqualFunctionsAreOne)
{
    Code const one = made(returning(1)), same = made(returning(1)), other = made(returning(2));
    EXPECT_EQ(one.entry<void*>(), same.entry<void*>());
    EXPECT_NE(one.entry<void*>(), other.entry<void*>());
    EXPECT_EQ(call(one), 1);
    EXPECT_EQ(call(other), 2);
    EXPECT_FALSE(Code::make(nullptr, 0).ok());
}

TEST(Code, IsMadeAndDroppedByManyThreads)
{
    auto work = [] {
        for (int i = 0; i < 2000; ++i) {
            Code const code = made(returning(uint8_t(i % 3)));
            ASSERT_EQ(call(code), i % 3);
        }
    };
    std::thread a(work), b(work);
    work();
    a.join();
    b.join();
}

} // namespace

} // namespace tw::kernels::jit
