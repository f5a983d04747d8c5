// SPDX-License-Identifier: Apache-2.0
// Plans in mapped files: the engine does not need the client's mapping once it is loaded. Weights that lie as kernels
// read them stay in the file, which may be replaced or removed; other engines do not need the file. serialize() does.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <sys/mman.h>

#include "engine/engines.h"

using namespace tw::test;

namespace {

struct MappedPlan : testing::Test
{
    Maker m;
    std::string plan, path;
    std::vector<float> weights = ramp(64 * 64, -1), x = ramp(64, -3), expected = std::vector<float>(64, 0);
    std::unique_ptr<IRuntime> runtime;

    void SetUp() override
    {
        ITensor* t = m.input("x", {1, 64});
        ITensor* w = m.network->addConstant(Dims2(64, 64), {DataType::kFLOAT, weights.data(), 64 * 64})->getOutput(0);
        t = m.network->addMatrixMultiply(*t, MatrixOperation::kNONE, *w, MatrixOperation::kNONE)->getOutput(0);
        m.output(t, "y");
        std::unique_ptr<IHostMemory> memory(m.builder->buildSerializedNetwork(*m.network, *m.config));
        ASSERT_NE(memory, nullptr) << m.errors();
        plan.assign(static_cast<char const*>(memory->data()), memory->size());
        char name[] = "/tmp/tensorwright_mapped_XXXXXX";
        int const fd = mkstemp(name);
        ASSERT_GE(fd, 0);
        close(fd);
        path = name;
        write(plan);
        for (int i = 0; i < 64; ++i)
            for (int j = 0; j < 64; ++j)
                expected[size_t(j)] += x[size_t(i)] * weights[size_t(i * 64 + j)];
        runtime.reset(createInferRuntime(m.logger));
    }
    void TearDown() override { std::remove(path.c_str()); }
    void write(std::string const& bytes) { std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes; }

    std::unique_ptr<ICudaEngine> loadMapped()
    {
        std::FILE* f = std::fopen(path.c_str(), "rb");
        void* at = mmap(nullptr, plan.size(), PROT_READ, MAP_PRIVATE, fileno(f), 0);
        std::fclose(f);
        EXPECT_NE(at, MAP_FAILED);
        std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(at, plan.size()));
        munmap(at, plan.size());
        return engine;
    }
    void expectRuns(ICudaEngine& engine)
    {
        std::vector<float> y(64, -1);
        void* bindings[] = {x.data(), y.data()};
        Context c = contextOf(engine);
        ASSERT_TRUE(c->executeV2(bindings));
        for (size_t i = 0; i < y.size(); ++i)
            EXPECT_NEAR(y[i], expected[i], 1e-3 * std::abs(expected[i]) + 1e-2);
    }
};

TEST_F(MappedPlan, SerializesTheSameBytes)
{
    auto engine = loadMapped();
    ASSERT_NE(engine, nullptr) << m.errors();
    expectRuns(*engine);
    std::unique_ptr<IHostMemory> again(engine->serialize());
    ASSERT_NE(again, nullptr) << m.errors();
    EXPECT_EQ(std::string(static_cast<char const*>(again->data()), again->size()), plan);
    std::remove(path.c_str()); // the file itself stays as long as the engine holds it
    again.reset(engine->serialize());
    EXPECT_NE(again, nullptr);
}

TEST_F(MappedPlan, RunsAfterTheFileIsOverwritten)
{
    auto engine = loadMapped();
    ASSERT_NE(engine, nullptr) << m.errors();
    write("short");
    expectRuns(*engine);
    EXPECT_EQ(engine->serialize(), nullptr);
    EXPECT_TRUE(m.oneError("has changed since"));
    std::string other = plan;
    other[other.size() / 2] ^= 1;
    write(other);
    EXPECT_EQ(engine->serialize(), nullptr);
    EXPECT_TRUE(m.oneError("has changed since"));
    expectRuns(*engine);
}

// Convolutions read their filters where they lie in the file.
struct MappedFilters : MappedPlan
{
    Maker c;
    std::vector<float> filters = ramp(64 * 64 * 9, -2), biases = ramp(64, 3), image = ramp(64 * 36, -5), wanted;

    void SetUp() override
    {
        MappedPlan::SetUp();
        for (float& f : filters)
            f /= 64;
        ITensor* t = c.input("x", {1, 64, 6, 6});
        for (int stride : {1, 2}) {
            auto* conv =
                c.network->addConvolutionNd(*t, 64, Dims2(3, 3), {DataType::kFLOAT, filters.data(), 64 * 64 * 9},
                                            {DataType::kFLOAT, biases.data(), 64});
            conv->setPaddingNd(Dims2(1, 1));
            conv->setStrideNd(Dims2(stride, stride));
            t = conv->getOutput(0);
        }
        c.output(t, "y");
        std::unique_ptr<IHostMemory> memory(c.builder->buildSerializedNetwork(*c.network, *c.config));
        ASSERT_NE(memory, nullptr) << c.errors();
        plan.assign(static_cast<char const*>(memory->data()), memory->size());
        write(plan);
        // From memory that the client frees: there is no file.
        std::unique_ptr<ICudaEngine> engine(runtime->deserializeCudaEngine(memory->data(), memory->size()));
        memory.reset();
        ASSERT_NE(engine, nullptr) << m.errors();
        wanted = outputOf(*engine);
        EXPECT_NE(*std::min_element(wanted.begin(), wanted.end()), *std::max_element(wanted.begin(), wanted.end()));
    }
    std::vector<float> outputOf(ICudaEngine& engine)
    {
        std::vector<float> y(64 * 9, -1);
        void* bindings[] = {image.data(), y.data()};
        Context context = contextOf(engine);
        EXPECT_TRUE(context->executeV2(bindings));
        return y;
    }
};

TEST_F(MappedFilters, RunsAfterTheFileIsReplacedAndRemoved)
{
    auto engine = loadMapped();
    ASSERT_NE(engine, nullptr) << m.errors();
    EXPECT_EQ(outputOf(*engine), wanted);
    std::string const own = path;
    path += ".other";
    write("another plan");
    ASSERT_EQ(std::rename(path.c_str(), own.c_str()), 0);
    path = own;
    EXPECT_EQ(outputOf(*engine), wanted);
    std::remove(path.c_str());
    EXPECT_EQ(outputOf(*engine), wanted);
    std::unique_ptr<IHostMemory> again(engine->serialize());
    ASSERT_NE(again, nullptr) << m.errors();
    EXPECT_EQ(std::string(static_cast<char const*>(again->data()), again->size()), plan);
}

TEST_F(MappedFilters, ACopyRunsAfterTheFileIsOverwritten)
{
    setenv("TENSORWRIGHT_COPY_PLAN", "1", 1); // runtimes read it when they are made
    runtime.reset(createInferRuntime(m.logger));
    unsetenv("TENSORWRIGHT_COPY_PLAN");
    auto engine = loadMapped();
    ASSERT_NE(engine, nullptr) << m.errors();
    write("short");
    EXPECT_EQ(outputOf(*engine), wanted);
    std::unique_ptr<IHostMemory> again(engine->serialize());
    ASSERT_NE(again, nullptr) << m.errors();
    EXPECT_EQ(std::string(static_cast<char const*>(again->data()), again->size()), plan);
}

TEST_F(MappedPlan, DamagedFileIsRefused)
{
    std::string bad = plan;
    bad[bad.size() - 300] ^= 4;
    write(bad);
    EXPECT_EQ(loadMapped(), nullptr);
    EXPECT_TRUE(m.oneError("hash"));
}

} // namespace
