// SPDX-License-Identifier: Apache-2.0
// Of what takes long, a test of every day takes a share, another one each day. TW_TEST_SHARE=1 takes all, as the tests labelled
// `long` do; TW_TEST_SHARE=n every n-th, TW_TEST_DAY=d as on that day.
#pragma once

#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace tw::test {

// Whether number `index` is among one in `share`.
inline bool isInShare(size_t index, size_t share)
{
    if (char const* s = std::getenv("TW_TEST_SHARE"); s && std::atoi(s) > 0)
        share = size_t(std::atoi(s));
    char const* d = std::getenv("TW_TEST_DAY");
    auto const now = std::chrono::system_clock::now().time_since_epoch();
    size_t const today = size_t(std::chrono::duration_cast<std::chrono::hours>(now).count() / 24);
    size_t const day = d ? size_t(std::atoll(d)) : today;
    return index % share == day % share;
}

inline bool isInShare(std::string_view name, size_t share)
{
    return isInShare(size_t(hashText(name)), share);
}

} // namespace tw::test

// In a test: one of another day is a skip that says so.
#define TW_ONE_DAY_IN(share)                                                                                           \
    if (auto const* test = testing::UnitTest::GetInstance()->current_test_info();                                      \
        !tw::test::isInShare(std::string(test->test_suite_name()) + '.' + test->name(), share))                        \
    GTEST_SKIP() << "a test of another day; TW_TEST_SHARE=1 runs all"
