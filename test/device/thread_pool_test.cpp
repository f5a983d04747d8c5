// SPDX-License-Identifier: Apache-2.0
#include "device/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "support/forked.h"

namespace tw::device {

namespace {

using test::forked;
using test::statusOf;

// Every part once, and never two at a time with one worker number.
void expectEachPartOnce(Workers& workers, int64_t parts)
{
    std::vector<std::atomic<int>> seen(static_cast<size_t>(parts));
    std::vector<std::atomic<int>> busy(static_cast<size_t>(workers.count()));
    std::atomic<int> clashes{0};
    workers.run(parts, [&](int64_t part, int worker) {
        ASSERT_LT(worker, workers.count());
        clashes += busy[size_t(worker)]++ != 0;
        seen[size_t(part)]++;
        busy[size_t(worker)]--;
    });
    EXPECT_EQ(clashes.load(), 0);
    for (auto const& s : seen)
        EXPECT_EQ(s.load(), 1);
}

// Some work whose result can be checked.
double sumOfSines(Workers& workers)
{
    constexpr int kParts = 64;
    double part[kParts]{};
    workers.run(kParts, [&](int64_t p, int) {
        for (int i = 0; i < 500; ++i)
            part[p] += std::sin(double(p * 500 + i));
    });
    double sum = 0;
    for (double v : part)
        sum += v;
    return sum;
}

TEST(ThreadPool, EachPartOnce)
{
    for (int threads : {1, 2, 3, 7}) {
        ThreadPool pool(threads);
        EXPECT_EQ(pool.threads(), threads);
        EXPECT_EQ(pool.workers().count(), threads);
        for (int round = 0; round < 200; ++round)
            for (int64_t parts : {0, 1, 2, 5, 64})
                expectEachPartOnce(pool.workers(), parts);
    }
}

TEST(ThreadPool, Limits)
{
    ThreadPool pool(4);
    EXPECT_EQ(pool.workers(2).count(), 2);
    EXPECT_EQ(pool.workers(9).count(), 4);
    for (int round = 0; round < 100; ++round)
        expectEachPartOnce(pool.workers(2), 33);
    std::thread::id const me = std::this_thread::get_id();
    pool.workers(1).run(8, [&](int64_t, int worker) {
        EXPECT_EQ(worker, 0);
        EXPECT_EQ(std::this_thread::get_id(), me);
    });
}

TEST(ThreadPool, CallsFromWithinRunInLine)
{
    ThreadPool pool(3);
    std::atomic<int> inner{0};
    pool.workers().run(6, [&](int64_t, int worker) {
        pool.workers().run(5, [&](int64_t, int innerWorker) {
            EXPECT_EQ(innerWorker, worker);
            ++inner;
        });
    });
    EXPECT_EQ(inner.load(), 30);
}

TEST(ThreadPool, SeveralCallersShareIt)
{
    ThreadPool pool(2);
    double const want = sumOfSines(serialWorkers());
    std::vector<std::thread> callers;
    std::atomic<int> wrong{0};
    for (int c = 0; c < 5; ++c)
        callers.emplace_back([&] {
            for (int i = 0; i < 200; ++i)
                wrong += sumOfSines(pool.workers()) != want;
        });
    for (std::thread& t : callers)
        t.join();
    EXPECT_EQ(wrong.load(), 0);
}

TEST(ThreadPool, WorkersSleepAndWake)
{
    ThreadPool pool(2);
    double const want = sumOfSines(serialWorkers());
    for (int i = 0; i < 20; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(i % 4)); // some longer than a worker spins
        EXPECT_EQ(sumOfSines(pool.workers()), want);
    }
}

TEST(ThreadPool, CallerKeepsItsAffinity)
{
    cpu_set_t before, after;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    ThreadPool pool(0);
    EXPECT_EQ(pool.threads(), availableCpus());
    (void)sumOfSines(pool.workers());
    ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

// What each worker of the pool may run on; a worker that does not come within 10 s is missing.
std::vector<cpu_set_t> affinities(ThreadPool& pool)
{
    int const count = pool.threads();
    std::vector<cpu_set_t> sets(static_cast<size_t>(count));
    std::atomic<int> here{0};
    auto const begin = std::chrono::steady_clock::now();
    pool.workers().run(count, [&](int64_t, int worker) {
        CPU_ZERO(&sets[size_t(worker)]);
        EXPECT_EQ(sched_getaffinity(0, sizeof(cpu_set_t), &sets[size_t(worker)]), 0);
        ++here;
        while (here < count && std::chrono::steady_clock::now() - begin < std::chrono::seconds(10))
            std::this_thread::yield();
    });
    EXPECT_EQ(here.load(), count);
    return sets;
}

TEST(ThreadPool, WorkersArePinnedToOneCpuEach)
{
    if (availableCpus() < 2)
        GTEST_SKIP() << "one CPU: there is nobody to pin";
    cpu_set_t allowed, taken;
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    ThreadPool pool(0);
    std::vector<cpu_set_t> const sets = affinities(pool);
    EXPECT_TRUE(CPU_EQUAL(&sets[0], &allowed)) << "the caller is not";
    CPU_ZERO(&taken);
    for (size_t w = 1; w < sets.size(); ++w) {
        EXPECT_EQ(CPU_COUNT(&sets[w]), 1) << "worker " << w;
        CPU_OR(&taken, &taken, &sets[w]);
    }
    EXPECT_EQ(CPU_COUNT(&taken), int(sets.size()) - 1) << "two workers on one CPU";
    cpu_set_t outside;
    CPU_XOR(&outside, &allowed, &taken);
    EXPECT_EQ(CPU_COUNT(&outside), availableCpus() - int(sets.size()) + 1) << "on a CPU that is not ours";
}

TEST(ThreadPool, MoreThreadsThanCpusAreNotPinned)
{
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    ThreadPool pool(availableCpus() + 1);
    for (cpu_set_t const& set : affinities(pool))
        EXPECT_TRUE(CPU_EQUAL(&set, &allowed));
}

// Callers at once, each with the same work: all get on, and the free worker helps all of them. A factor of 8, and ten
// seconds until it is so, leave room for a machine that others use.
TEST(ThreadPool, CallersShareFairly)
{
    constexpr int kCallers = 4;
    ThreadPool pool(2);
    std::atomic<int> jobs[kCallers]{}, helped[kCallers]{};
    std::vector<std::thread> callers;
    auto const begin = std::chrono::steady_clock::now();
    auto isFair = [&] {
        auto const [least, most] = std::minmax_element(std::begin(jobs), std::end(jobs));
        bool const allHelped = std::all_of(std::begin(helped), std::end(helped), [](auto const& h) { return h > 0; });
        return allHelped && 8 * least->load() >= most->load();
    };
    std::atomic<bool> wasFair{false};
    auto isOver = [&] {
        auto const passed = std::chrono::steady_clock::now() - begin;
        if (passed > std::chrono::milliseconds(300) && isFair())
            wasFair = true;
        return wasFair || passed > std::chrono::seconds(10);
    };
    for (int c = 0; c < kCallers; ++c)
        callers.emplace_back([&, c] {
            for (; !isOver(); ++jobs[c]) {
                std::atomic<int> parts{0};
                pool.workers().run(64, [&](int64_t p, int worker) {
                    double sum = 0;
                    for (int i = 0; i < 200; ++i)
                        sum += std::sin(double(p * 200 + i));
                    parts += worker > 0 && sum < 1e9;
                });
                helped[c] += parts > 0;
            }
        });
    for (std::thread& t : callers)
        t.join();
    EXPECT_TRUE(wasFair);
    for (int c = 0; c < kCallers && !wasFair; ++c)
        ADD_FAILURE() << "caller " << c << ": " << jobs[c] << " jobs, " << helped[c] << " with the worker's help";
}

TEST(ThreadPool, ChildOfForkGetsItsOwn)
{
    double const want = sumOfSines(serialWorkers());
    ThreadPool& parents = processThreadPool();
    EXPECT_EQ(sumOfSines(parents.workers()), want);
    pid_t const child = forked(60, [&] {
        ThreadPool& mine = processThreadPool();
        if (&mine == &parents)
            return 1;
        for (int i = 0; i < 50; ++i)
            if (sumOfSines(mine.workers()) != want)
                return 2;
        return 0;
    });
    EXPECT_EQ(sumOfSines(parents.workers()), want);
    EXPECT_EQ(statusOf(child), 0);
    EXPECT_EQ(&processThreadPool(), &parents);
}

// The parent's workers are in the middle of something, and its locks may be held by nobody in the child.
TEST(ThreadPool, ForkWhileTheParentWorks)
{
    double const want = sumOfSines(serialWorkers());
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0};
    std::thread busy([&] {
        while (!stop)
            wrong += sumOfSines(processThreadPool().workers()) != want;
    });
    for (int i = 0; i < 10; ++i) {
        pid_t const child = forked(60, [&] {
            for (int k = 0; k < 20; ++k)
                if (sumOfSines(processThreadPool().workers()) != want)
                    return 1;
            return 0;
        });
        EXPECT_EQ(statusOf(child), 0) << "child " << i;
    }
    stop = true;
    busy.join();
    EXPECT_EQ(wrong.load(), 0);
}

// Two processes with as many threads each as there are CPUs: both end, right, in reasonable time.
TEST(ThreadPool, TwoProcessesOnTheSameCpus)
{
    double const want = sumOfSines(serialWorkers());
    auto work = [&] {
        ThreadPool pool(0);
        for (int i = 0; i < 2000; ++i)
            if (sumOfSines(pool.workers()) != want)
                return 1;
        return 0;
    };
    auto const begin = std::chrono::steady_clock::now();
    ASSERT_EQ(work(), 0);
    double const alone = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    auto const both = std::chrono::steady_clock::now();
    pid_t const a = forked(60, work), b = forked(60, work);
    EXPECT_EQ(statusOf(a), 0);
    EXPECT_EQ(statusOf(b), 0);
    double const together = std::chrono::duration<double>(std::chrono::steady_clock::now() - both).count();
    // Twice is fair; what is caught here is waiting for each other's time slices, a hundred times slower.
    EXPECT_LT(together, 20 * alone + 2);
}

} // namespace

} // namespace tw::device
