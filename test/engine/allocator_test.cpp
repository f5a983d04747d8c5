// SPDX-License-Identifier: Apache-2.0
// IGpuAllocator on the CPU: weights, activations and what is timed lie in memory of the client, all of it comes back, and
// an allocation that fails anywhere is one error.
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "engine/refits.h"

using namespace tw::test;

namespace {

class Allocator final : public IGpuAllocator
{
public:
    void* allocate(uint64_t size, uint64_t alignment, AllocatorFlags flags) noexcept override
    {
        std::lock_guard const lock(mutex_);
        EXPECT_GT(size, 0U);
        EXPECT_EQ(alignment & (alignment - 1), 0U);
        EXPECT_LE(alignment, 4096U);
        EXPECT_EQ(flags, 0U);
        if (calls++ == failAt)
            return nullptr;
        constexpr size_t kPage = 4096;
        auto* const p = static_cast<char*>(std::aligned_alloc(kPage, (size + kPage) / kPage * kPage + kPage)) + offset;
        live_[p] = size;
        bytes += size;
        most = std::max(most, bytes);
        return p;
    }
    void free(void* memory) noexcept override
    {
        std::lock_guard const lock(mutex_);
        ASSERT_TRUE(memory == nullptr || live_.contains(memory)) << "not of this allocator";
        if (!memory)
            return;
        bytes -= live_[memory];
        live_.erase(memory);
        std::free(static_cast<char*>(memory) - offset);
    }
    size_t live() const { return live_.size(); }
    int calls = 0, failAt = -1;
    uint64_t bytes = 0, most = 0;
    size_t offset = 0;

private:
    std::mutex mutex_;
    std::map<void*, uint64_t> live_;
};

// Convolutions, a depthwise one, a product: kernels that pack weights in ways of their own.
struct PackedNet : Maker
{
    PackedNet()
    {
        ITensor* x = input("x", {1, 16, 12, 12});
        Weights const none{DataType::kFLOAT, nullptr, 0};
        for (int groups : {1, 16, 1}) {
            IConvolutionLayer* l = network->addConvolutionNd(*x, 16, Dims2(3, 3), of(16 * 16 / groups * 9), of(16));
            l->setNbGroups(groups);
            l->setPaddingNd(Dims2(1, 1));
            x = relu(l->getOutput(0));
        }
        output(network->addFullyConnected(*x, 40, of(40 * 16 * 144), none)->getOutput(0), "y");
    }
    Weights of(int64_t count) const { return Weights{DataType::kFLOAT, weights.data(), count}; }
    std::vector<float> weights = std::vector<float>(40 * 16 * 144, 0.01F);
};

TEST(Allocators, SeeTheWeightsOfAnEngine)
{
    for (bool refittable : {false, true}) {
        PackedNet n;
        if (refittable)
            n.config->setFlag(BuilderFlag::kREFIT);
        auto const plan = n.plan();
        ASSERT_TRUE(plan) << n.errors();
        Allocator a;
        {
            std::unique_ptr<IRuntime> const runtime(createInferRuntime(n.logger));
            std::unique_ptr<ICudaEngine> const plain(runtime->deserializeCudaEngine(plan->data(), plan->size()));
            runtime->setGpuAllocator(&a);
            std::unique_ptr<ICudaEngine> const e(runtime->deserializeCudaEngine(plan->data(), plan->size()));
            ASSERT_TRUE(e && plain) << n.errors();
            EXPECT_GT(a.live(), 0U);
            EXPECT_GE(a.bytes, 40U * 16 * 144 * 4) << "of the largest weights alone";
            uint64_t const weights = a.bytes;
            {
                Context const c = contextOf(*e);
                EXPECT_EQ(a.bytes >= weights + e->getDeviceMemorySize(), true);
            }
            EXPECT_EQ(a.bytes, weights);
            EXPECT_EQ(run(*e), run(*plain));
            if (refittable) {
                std::unique_ptr<IRefitter> const refitter(createInferRefitter(*e, n.logger));
                std::vector<float> const w(40 * 16 * 144, 0.5F);
                char const* name = n.network->getLayer(n.network->getNbLayers() - 1)->getName();
                ASSERT_TRUE(refitter->setWeights(name, WeightsRole::kKERNEL,
                                                 Weights{DataType::kFLOAT, w.data(), int64_t(w.size())}));
                std::vector<float> const before = run(*e);
                int const calls = a.calls;
                a.failAt = calls; // the first allocation of the refit
                bool const done = refitter->refitCudaEngine();
                if (a.calls > calls) {
                    EXPECT_FALSE(done);
                    EXPECT_TRUE(n.oneError("IGpuAllocator gave no memory"));
                    EXPECT_EQ(run(*e), before);
                }
                a.failAt = -1;
                EXPECT_TRUE(refitter->refitCudaEngine());
                EXPECT_NE(run(*e), before);
            }
        }
        EXPECT_EQ(a.live(), 0U);
    }
}

TEST(Allocators, AnAllocationThatFailsIsOneError)
{
    PackedNet n;
    auto const plan = n.plan();
    ASSERT_TRUE(plan) << n.errors();
    Allocator a;
    std::unique_ptr<IRuntime> const runtime(createInferRuntime(n.logger));
    runtime->setGpuAllocator(&a);
    n.takeErrors();
    auto load = [&] {
        return std::unique_ptr<ICudaEngine>(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    };
    ASSERT_TRUE(load());
    int const all = a.calls;
    ASSERT_GT(all, 0);
    EXPECT_EQ(a.live(), 0U);
    for (int i = 0; i < all; ++i) {
        a.calls = 0;
        a.failAt = i;
        EXPECT_EQ(load(), nullptr) << "allocation " << i;
        EXPECT_TRUE(n.oneError("the IGpuAllocator gave no memory for")) << "allocation " << i;
        EXPECT_EQ(a.live(), 0U) << "allocation " << i;
    }
    a.failAt = -1;
    a.offset = 8; // not aligned: as none
    EXPECT_EQ(load(), nullptr);
    EXPECT_TRUE(n.oneError("the IGpuAllocator gave no memory for"));
    EXPECT_EQ(a.live(), 0U);
    a.offset = 0;
    EXPECT_TRUE(load());
    runtime->setGpuAllocator(nullptr);
    int const calls = a.calls;
    EXPECT_TRUE(load());
    EXPECT_EQ(a.calls, calls) << "null: the library's own memory again";
}

TEST(Allocators, OfABuild)
{
    PackedNet n;
    Allocator a;
    n.builder->setGpuAllocator(&a);
    auto const plan = n.plan();
    ASSERT_TRUE(plan) << n.errors();
    EXPECT_GT(a.calls, 0) << "outputs and workspaces of what is timed";
    EXPECT_EQ(a.live(), 0U) << "a plan is host memory";
    // Wherever it fails, there is a plan, or an error and no plan; and nothing is left.
    int const all = a.calls;
    for (int i : {0, 1, all / 3, all / 2, all - 1}) {
        a.calls = 0;
        a.failAt = i;
        n.takeErrors();
        auto const less = n.plan();
        EXPECT_EQ(less == nullptr, n.logger.errors() > 0) << i << ": " << n.errors();
        EXPECT_EQ(a.live(), 0U) << i;
    }
    a.failAt = -1;
}

TEST(Allocators, OfEnginesInSeveralThreads)
{
    PackedNet n;
    auto const plan = n.plan();
    ASSERT_TRUE(plan) << n.errors();
    Allocator a;
    std::unique_ptr<IRuntime> const runtime(createInferRuntime(n.logger));
    std::unique_ptr<ICudaEngine> const plain(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    std::vector<float> const want = run(*plain);
    runtime->setGpuAllocator(&a);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 3; ++i) {
                std::unique_ptr<ICudaEngine> const e(runtime->deserializeCudaEngine(plan->data(), plan->size()));
                ASSERT_TRUE(e);
                EXPECT_EQ(run(*e), want);
            }
        });
    for (std::thread& t : threads)
        t.join();
    EXPECT_EQ(a.live(), 0U);
    EXPECT_EQ(n.errors(), "");
}

} // namespace
