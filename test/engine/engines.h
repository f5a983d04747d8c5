// SPDX-License-Identifier: Apache-2.0
// Small networks for the tests of engines, and what a client does around them.
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "NvInfer.h"
#include "api/client.h"

namespace tw::test {

using namespace nvinfer1;

using Shape = std::vector<int32_t>;
inline int64_t volume(Shape const& shape)
{
    int64_t n = 1;
    for (int32_t d : shape)
        n *= d;
    return n;
}
// nbDims entries, or {-1000} for dimensions that are not valid.
inline Shape list(Dims const& d)
{
    return d.nbDims < 0 ? Shape{-1000} : Shape(d.d, d.d + d.nbDims);
}

// Builder, network and config of one build; the logger keeps all lines.
struct Maker
{
    explicit Maker(uint32_t networkFlags = 1)
        : builder(createInferBuilder(logger)), network(builder->createNetworkV2(networkFlags)),
          config(builder->createBuilderConfig())
    {}

    KeepingLogger logger;
    std::unique_ptr<IBuilder> builder;
    std::unique_ptr<INetworkDefinition> network;
    std::unique_ptr<IBuilderConfig> config;

    ITensor* input(char const* name, std::vector<int32_t> const& shape, DataType type = DataType::kFLOAT)
    {
        return network->addInput(name, type, dims(shape));
    }
    void output(ITensor* t, char const* name)
    {
        t->setName(name);
        network->markOutput(*t);
    }
    ITensor* relu(ITensor* x) { return network->addActivation(*x, ActivationType::kRELU)->getOutput(0); }
    ITensor* add(ITensor* a, ITensor* b)
    {
        return network->addElementWise(*a, *b, ElementWiseOperation::kSUM)->getOutput(0);
    }
    ITensor* cast(ITensor* x, DataType type)
    {
        IIdentityLayer* l = network->addIdentity(*x);
        l->setOutputType(0, type);
        return l->getOutput(0);
    }
    // One profile; for each input its minimum, optimum and maximum.
    struct Range
    {
        char const* name;
        std::vector<int32_t> min, opt, max;
    };
    IOptimizationProfile* profile(std::vector<Range> const& shapes, std::vector<Range> const& values = {})
    {
        IOptimizationProfile* p = builder->createOptimizationProfile();
        for (Range const& r : shapes) {
            p->setDimensions(r.name, OptProfileSelector::kMIN, dims(r.min));
            p->setDimensions(r.name, OptProfileSelector::kOPT, dims(r.opt));
            p->setDimensions(r.name, OptProfileSelector::kMAX, dims(r.max));
        }
        for (Range const& r : values) {
            p->setShapeValues(r.name, OptProfileSelector::kMIN, r.min.data(), int32_t(r.min.size()));
            p->setShapeValues(r.name, OptProfileSelector::kOPT, r.opt.data(), int32_t(r.opt.size()));
            p->setShapeValues(r.name, OptProfileSelector::kMAX, r.max.data(), int32_t(r.max.size()));
        }
        config->addOptimizationProfile(p);
        return p;
    }
    std::unique_ptr<IHostMemory> plan()
    {
        return std::unique_ptr<IHostMemory>(builder->buildSerializedNetwork(*network, *config));
    }
    // Through a plan and a runtime of its own, which is gone when this returns.
    std::unique_ptr<ICudaEngine> engine()
    {
        std::unique_ptr<IHostMemory> const p = plan();
        if (!p)
            return nullptr;
        std::unique_ptr<IRuntime> const runtime(createInferRuntime(logger));
        return std::unique_ptr<ICudaEngine>(runtime->deserializeCudaEngine(p->data(), p->size()));
    }
    std::string errors() const
    {
        std::string all;
        for (auto const& l : logger.lines)
            if (l.severity <= ILogger::Severity::kERROR)
                all += l.text + "\n";
        return all;
    }
    // The errors since the last call.
    std::string takeErrors()
    {
        std::string const all = errors();
        logger.lines.clear();
        return all;
    }
    // Whether there was exactly one error since the last call, with this text.
    testing::AssertionResult oneError(char const* part)
    {
        int const count = logger.errors();
        std::string const all = takeErrors();
        if (count == 1 && contains(all, part))
            return testing::AssertionSuccess();
        return testing::AssertionFailure() << count << " errors, one with '" << part << "' expected: " << all;
    }
};

using Context = std::unique_ptr<IExecutionContext>;
inline Context contextOf(ICudaEngine& engine)
{
    return Context(engine.createExecutionContext());
}

inline std::vector<float> ramp(size_t count, float from = 0)
{
    std::vector<float> v(count);
    for (size_t i = 0; i < count; ++i)
        v[i] = from + float(i);
    return v;
}

// Keeps an output of any size.
struct Output final : IOutputAllocator
{
    void* reallocateOutput(char const*, void*, uint64_t size, uint64_t) noexcept override
    {
        memory.assign(size / sizeof(float) + 1, -7e30F);
        return memory.data();
    }
    void notifyShape(char const*, Dims const& d) noexcept override { shape = list(d); }
    std::vector<int32_t> integers() const { return values<int32_t>(); }
    std::vector<float> floats() const { return values<float>(); }
    template <class T>
    std::vector<T> values() const
    {
        auto const* first = reinterpret_cast<T const*>(memory.data());
        return std::vector<T>(first, first + volume(shape));
    }
    Shape shape;
    std::vector<float> memory;
};

class Random
{
public:
    explicit Random(uint32_t seed) : generator_(seed) {}
    int upTo(int n) { return int(generator_() % uint32_t(n + 1)); }
    int between(int lo, int hi) { return lo + upTo(hi - lo); }
    bool flip() { return upTo(1) != 0; }

private:
    std::mt19937 generator_;
};

// Sets a variable of the environment for a scope.
struct Variable
{
    Variable(char const* n, char const* value) : name(n) { setenv(n, value, 1); }
    ~Variable() { unsetenv(name); }
    char const* name;
};

} // namespace tw::test
