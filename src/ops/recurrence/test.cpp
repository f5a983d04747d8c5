// SPDX-License-Identifier: Apache-2.0
// What the case table cannot express: phases whose parts' own workers come late, or never.
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ops/recurrence/cpu_pieces.h"

namespace tw::ops::recurrence {

namespace {

constexpr int kParts = 4;
constexpr int64_t kPhases = 50;

// One thread, the last part first: nobody else ever comes.
struct Alone final : Workers
{
    int count() const override { return kParts; }
    void run(int64_t parts, FunctionRef<void(int64_t part, int worker)> body) override
    {
        for (int64_t part = parts - 1; part >= 0; --part)
            body(part, 0);
    }
};

struct Threads final : Workers
{
    int count() const override { return kParts; }
    void run(int64_t parts, FunctionRef<void(int64_t part, int worker)> body) override
    {
        std::vector<std::thread> all;
        for (int64_t part = 0; part < parts; ++part)
            all.emplace_back([=] { body(part, int(part)); });
        for (std::thread& t : all)
            t.join();
    }
};

// Every part once in every phase, and no phase before the one in front of it is done.
void expectPhases(Workers& workers, int parts)
{
    std::mutex mutex;
    std::vector<std::vector<int>> times(size_t(kPhases), std::vector<int>(size_t(parts), 0));
    int64_t done = 0;
    runPhases(workers, kPhases, parts, [&](int64_t phase, int part) {
        std::lock_guard const lock(mutex);
        EXPECT_EQ(done / parts, phase);
        ++done;
        ++times[size_t(phase)][size_t(part)];
    });
    for (auto const& phase : times)
        EXPECT_EQ(phase, std::vector<int>(size_t(parts), 1));
}

TEST(RecurrencePhases, EndWithoutOtherWorkers)
{
    Alone alone;
    expectPhases(alone, kParts);
    expectPhases(alone, 1);
    runPhases(alone, 0, kParts, [](int64_t, int) { ADD_FAILURE() << "there is no phase"; });
}

TEST(RecurrencePhases, FollowEachOtherInThreads)
{
    Threads threads;
    expectPhases(threads, kParts);
}

} // namespace

} // namespace tw::ops::recurrence
