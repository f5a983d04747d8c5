// SPDX-License-Identifier: Apache-2.0
// An engine and the threads of its process: after fork, beside another process on the same CPUs, with several contexts
// at once, and what setMaxThreads limits.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include <cuda_runtime_api.h>
#include <sched.h>
#include <unistd.h>

#include "base/sanitizers.h"
#include "engine/engines.h"
#include "support/forked.h"

using namespace tw::test;

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin)
{
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Layers of 256 x 256 weights on 32 rows: enough work for all threads, a fraction of a millisecond.
struct Products : Maker
{
    static constexpr int32_t kRows = 32, kWidth = 256;
    std::vector<float> weights = std::vector<float>(size_t(kWidth) * kWidth);

    explicit Products(int layers = 3)
    {
        for (size_t i = 0; i < weights.size(); ++i)
            weights[i] = std::sin(float(i)) * 0.1F;
        ITensor* x = input("x", {kRows, kWidth});
        for (int i = 0; i < layers; ++i) {
            ITensor* w =
                network->addConstant(Dims2(kWidth, kWidth), {DataType::kFLOAT, weights.data(), int64_t(weights.size())})
                    ->getOutput(0);
            x = relu(network->addMatrixMultiply(*x, MatrixOperation::kNONE, *w, MatrixOperation::kNONE)->getOutput(0));
        }
        output(x, "y");
        config->setFlag(BuilderFlag::kENABLE_TACTIC_HEURISTIC);
    }
};

std::vector<float> runProducts(IExecutionContext& c, cudaStream_t stream = nullptr)
{
    std::vector<float> x = ramp(size_t(Products::kRows) * Products::kWidth), y(x.size(), -1);
    for (float& v : x)
        v = std::sin(v);
    c.setTensorAddress("x", x.data());
    c.setTensorAddress("y", y.data());
    bool const ok = c.enqueueV3(stream) && cudaStreamSynchronize(stream) == cudaSuccess;
    return ok ? y : std::vector<float>();
}

// The C library makes its heap whole in a child of fork, a sanitizer's may stay locked by another thread.
constexpr bool kForksBesideThreads = !tw::kAddressSanitizer && !tw::kThreadSanitizer;

TEST(Process, EngineWorksInAChildOfFork)
{
    Products m;
    std::unique_ptr<ICudaEngine> engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context before = contextOf(*engine);
    std::vector<float> const want = runProducts(*before);
    ASSERT_FALSE(want.empty());
    std::atomic<bool> stop{false};
    std::thread busy;
    for (int i = 0; i < 10; ++i) {
        if (i == 3 && kForksBesideThreads) // from now on while another thread of the parent runs
            busy = std::thread([&] {
                Context c = contextOf(*engine);
                while (!stop)
                    EXPECT_EQ(runProducts(*c), want);
            });
        pid_t const child = forked(10, [&] {
            Context after = contextOf(*engine);
            for (int k = 0; k < 20; ++k)
                if (runProducts(*before) != want || runProducts(*after) != want)
                    return 1;
            return 0;
        });
        EXPECT_EQ(runProducts(*before), want) << "the parent goes on";
        EXPECT_EQ(statusOf(child), 0) << "round " << i;
    }
    stop = true;
    if (busy.joinable())
        busy.join();
    EXPECT_EQ(runProducts(*before), want);
    EXPECT_EQ(m.errors(), "");
}

// Two processes with two threads each on the same two CPUs: right, and without waiting for each other's time slices.
TEST(Process, TwoOnTheSameCpus)
{
    Products m;
    std::unique_ptr<IHostMemory> const plan = m.plan();
    ASSERT_TRUE(plan) << m.errors();
    auto work = [&] {
        cpu_set_t allowed, two;
        CPU_ZERO(&two);
        if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
            return 1;
        for (int c = 0; c < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++c)
            if (CPU_ISSET(c, &allowed))
                CPU_SET(c, &two);
        if (sched_setaffinity(0, sizeof two, &two) != 0)
            return 2;
        std::unique_ptr<IRuntime> const runtime(createInferRuntime(m.logger));
        std::unique_ptr<ICudaEngine> const engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
        if (!engine)
            return 3;
        Context c = contextOf(*engine);
        std::vector<float> const want = runProducts(*c);
        for (int i = 0; i < 500; ++i)
            if (want.empty() || runProducts(*c) != want)
                return 4;
        return 0;
    };
    auto const begin = Clock::now();
    ASSERT_EQ(statusOf(forked(10, work)), 0);
    double const alone = secondsSince(begin);
    auto const both = Clock::now();
    pid_t const a = forked(10, work), b = forked(10, work);
    EXPECT_EQ(statusOf(a), 0);
    EXPECT_EQ(statusOf(b), 0);
    EXPECT_LT(secondsSince(both), 20 * alone + 2) << "alone: " << alone << " s";
}

// Equal work on as many threads and streams: none may starve. A factor of 8, and ten seconds until it is so, leave room
// for a machine that others use.
TEST(Process, ContextsShareFairly)
{
    constexpr int kContexts = 4;
    Products m;
    std::unique_ptr<ICudaEngine> engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    std::vector<Context> contexts;
    std::vector<cudaStream_t> streams(kContexts);
    for (cudaStream_t& s : streams) {
        contexts.push_back(contextOf(*engine));
        ASSERT_EQ(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), cudaSuccess);
    }
    std::vector<float> const want = runProducts(*contexts[0]);
    std::atomic<int> runs[kContexts]{};
    std::atomic<bool> wasFair{false};
    std::vector<std::thread> threads;
    auto const begin = Clock::now();
    auto isOver = [&] {
        auto const [least, most] = std::minmax_element(std::begin(runs), std::end(runs));
        if (secondsSince(begin) > 0.3 && *least > 0 && 8 * *least >= *most)
            wasFair = true;
        return wasFair || secondsSince(begin) > 10;
    };
    for (int i = 0; i < kContexts; ++i)
        threads.emplace_back([&, i] {
            for (; !isOver(); ++runs[i])
                EXPECT_EQ(runProducts(*contexts[size_t(i)], streams[size_t(i)]), want);
        });
    for (std::thread& t : threads)
        t.join();
    EXPECT_TRUE(wasFair) << "runs: " << runs[0] << " " << runs[1] << " " << runs[2] << " " << runs[3];
    for (cudaStream_t s : streams)
        EXPECT_EQ(cudaStreamDestroy(s), cudaSuccess);
}

// Nanoseconds on a CPU of every thread of this process but the calling one.
std::map<std::string, int64_t> otherThreads()
{
    std::map<std::string, int64_t> out;
    for (auto const& t : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream file(t.path() / "schedstat");
        int64_t ns = 0;
        if (t.path().filename() != std::to_string(gettid()) && file >> ns)
            out[t.path().filename()] = ns;
    }
    return out;
}
// What they ran while `body` did.
template <class F>
double othersMilliseconds(F body)
{
    std::this_thread::sleep_for(std::chrono::milliseconds(5)); // workers go to sleep
    auto const before = otherThreads();
    body();
    double ms = 0;
    for (auto const& [thread, ns] : otherThreads())
        ms += double(ns - (before.count(thread) ? before.at(thread) : 0)) * 1e-6;
    return ms;
}

TEST(Process, MaxThreadsOfARuntimeLimitsLoading)
{
    Products m(24);
    std::unique_ptr<IHostMemory> const plan = m.plan();
    ASSERT_TRUE(plan) << m.errors();
    if (otherThreads().empty())
        GTEST_SKIP() << "one CPU, or /proc/self/task/*/schedstat cannot be read";
    std::unique_ptr<IRuntime> runtime(createInferRuntime(m.logger));
    std::unique_ptr<ICudaEngine> engine;
    auto load = [&] { engine.reset(runtime->deserializeCudaEngine(plan->data(), plan->size())); };
    double shared = 0;
    for (int i = 0; i < 50 && shared == 0; ++i) // a worker may come too late
        shared = othersMilliseconds(load);
    EXPECT_GT(shared, 0);
    ASSERT_TRUE(runtime->setMaxThreads(1));
    EXPECT_EQ(runtime->getMaxThreads(), 1);
    double limited = 1;
    for (int i = 0; i < 50 && limited > 0; ++i) // on a busy machine a worker may still be on its way to sleep
        limited = othersMilliseconds(load);
    EXPECT_EQ(limited, 0);
    ASSERT_TRUE(engine);
    // It limits loading only.
    Context c = contextOf(*engine);
    double running = 0;
    for (int i = 0; i < 50 && running == 0; ++i)
        running = othersMilliseconds([&] { EXPECT_FALSE(runProducts(*c).empty()); });
    EXPECT_GT(running, 0);
    EXPECT_EQ(m.errors(), "");
    EXPECT_FALSE(runtime->setMaxThreads(0));
    EXPECT_TRUE(m.oneError("at least 1"));
    EXPECT_EQ(runtime->getMaxThreads(), 1);
}

TEST(Process, MaxThreadsOfABuilder)
{
    Products one, all;
    EXPECT_FALSE(one.builder->setMaxThreads(0));
    EXPECT_TRUE(one.oneError("at least 1"));
    ASSERT_TRUE(one.builder->setMaxThreads(1));
    EXPECT_EQ(one.builder->getMaxThreads(), 1);
    std::unique_ptr<ICudaEngine> const a = one.engine(), b = all.engine();
    ASSERT_TRUE(a && b) << one.errors() << all.errors();
    Context x = contextOf(*a), y = contextOf(*b);
    EXPECT_EQ(runProducts(*x), runProducts(*y));
    one.builder->reset();
    EXPECT_TRUE(one.builder->setMaxThreads(2));
    EXPECT_EQ(one.builder->getMaxThreads(), 2);
}

} // namespace
