// SPDX-License-Identifier: Apache-2.0
// Networks with loops and conditionals for tests: short ways to make layers, and running a network by the interpreter of
// its graph and as an engine.
#pragma once

#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/client.h"
#include "api/network/network.h"
#include "base/tensor.h"
#include "interp/interp.h"

namespace tw::test {

using namespace nvinfer1;
using nvinfer1::DataType; // not tw::DataType

// Elements as doubles, with the shape they came in.
struct Numbers
{
    std::vector<int64_t> shape;
    std::vector<double> values;
    bool operator==(Numbers const&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, Numbers const& n)
{
    out << "[";
    for (int64_t d : n.shape)
        out << d << ",";
    out << "] {";
    for (double v : n.values)
        out << v << ", ";
    return out << "}";
}

struct ControlFlow : testing::Test
{
    KeepingLogger logger;
    std::unique_ptr<IBuilder> builder{createInferBuilder(logger)};
    std::unique_ptr<INetworkDefinition> network{builder->createNetworkV2(1)};
    INetworkDefinition& net = *network;
    std::list<std::vector<char>> kept; // values of constants

    tw::api::NetworkObject& object() { return tw::api::objectOf(net); }
    ITensor* input(char const* name, std::vector<int32_t> const& d, DataType type = DataType::kFLOAT)
    {
        return net.addInput(name, type, dims(d));
    }
    template <class T>
    ITensor* constant(std::vector<int32_t> const& d, std::vector<T> const& v, DataType type)
    {
        kept.emplace_back(v.size() * sizeof(T) + 1);
        if (!v.empty())
            std::memcpy(kept.back().data(), v.data(), v.size() * sizeof(T));
        return net.addConstant(dims(d), {type, v.empty() ? nullptr : kept.back().data(), int64_t(v.size())})
            ->getOutput(0);
    }
    ITensor* floats(std::vector<int32_t> const& d, std::vector<float> const& v)
    {
        return constant(d, v, DataType::kFLOAT);
    }
    ITensor* integer(int32_t v) { return constant<int32_t>({}, {v}, DataType::kINT32); }
    ITensor* op(ElementWiseOperation o, ITensor* a, ITensor* b) { return net.addElementWise(*a, *b, o)->getOutput(0); }
    ITensor* sum(ITensor* a, ITensor* b) { return op(ElementWiseOperation::kSUM, a, b); }
    ITensor* product(ITensor* a, ITensor* b) { return op(ElementWiseOperation::kPROD, a, b); }
    ITensor* less(ITensor* a, ITensor* b) { return op(ElementWiseOperation::kLESS, a, b); }
    ITensor* cast(ITensor* x, DataType type)
    {
        auto* l = net.addIdentity(*x);
        l->setOutputType(0, type);
        return l->getOutput(0);
    }
    void output(ITensor* t, char const* name)
    {
        t->setName(name);
        net.markOutput(*t);
    }
    // A counted loop.
    ILoop* counted(ITensor* count)
    {
        ILoop* loop = net.addLoop();
        loop->addTripLimit(*count, TripLimit::kCOUNT);
        return loop;
    }
    // 0, 1, 2, ... in the trips of the loop.
    ITensor* tripNumber(ILoop* loop)
    {
        IRecurrenceLayer* i = loop->addRecurrence(*integer(0));
        i->setInput(1, *sum(i->getOutput(0), integer(1)));
        return i->getOutput(0);
    }
    static ITensor* last(ILoop* loop, ITensor* t)
    {
        return loop->addLoopOutput(*t, LoopOutput::kLAST_VALUE)->getOutput(0);
    }
    static ITensor* stack(ILoop* loop, ITensor* t, ITensor* length, LoopOutput kind = LoopOutput::kCONCATENATE,
                          int32_t axis = 0)
    {
        ILoopOutputLayer* l = loop->addLoopOutput(*t, kind, axis);
        if (length)
            l->setInput(1, *length);
        return l->getOutput(0);
    }

    static Numbers numbersOf(tw::TensorRef const& t)
    {
        Numbers n;
        for (int d = 0; d < t.dims.rank; ++d)
            n.shape.push_back(t.dims[d]);
        for (int64_t i = 0; i < t.count(); ++i)
            n.values.push_back(t.get(i));
        return n;
    }
    static std::vector<tw::Tensor> tensorsOf(INetworkDefinition const& n, std::vector<Numbers> const& in)
    {
        std::vector<tw::Tensor> out;
        for (size_t i = 0; i < in.size(); ++i) {
            tw::Extents e;
            for (int64_t d : in[i].shape)
                e.push(d);
            out.emplace_back(tw::api::toCore(n.getInput(int32_t(i))->getType()), e);
            for (size_t k = 0; k < in[i].values.size(); ++k)
                out.back().ref().set(int64_t(k), in[i].values[k]);
        }
        return out;
    }

    // Outputs of the network's graph by the interpreter, none with an error in `problem`.
    std::vector<Numbers> interpret(std::vector<Numbers> const& in)
    {
        problem.clear();
        auto g = object().toGraph();
        if (!g.ok())
            return problem = g.error().message, std::vector<Numbers>();
        auto valid = tw::ir::verify(**g);
        if (!valid.ok())
            return problem = valid.error().message, std::vector<Numbers>();
        std::vector<tw::Tensor> const storage = tensorsOf(net, in);
        std::vector<tw::TensorRef> refs;
        for (auto const& t : storage)
            refs.push_back(const_cast<tw::Tensor&>(t).ref());
        auto out = tw::interp::run(**g, refs);
        if (!out.ok())
            return problem = out.error().message, std::vector<Numbers>();
        std::vector<Numbers> result;
        for (auto& t : *out)
            result.push_back(numbersOf(t.ref()));
        return result;
    }
    std::string problem;

    std::unique_ptr<ICudaEngine> build()
    {
        std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
        bool hasProfile = false;
        IOptimizationProfile* profile = builder->createOptimizationProfile();
        for (auto const& [name, range] : profiles) {
            hasProfile = true;
            profile->setDimensions(name.c_str(), OptProfileSelector::kMIN, dims(range[0]));
            profile->setDimensions(name.c_str(), OptProfileSelector::kOPT, dims(range[1]));
            profile->setDimensions(name.c_str(), OptProfileSelector::kMAX, dims(range[2]));
        }
        for (auto const& [name, range] : values) {
            hasProfile = true;
            for (int i = 0; i < 3; ++i)
                profile->setShapeValues(name.c_str(), OptProfileSelector(i), range[size_t(i)].data(),
                                        int32_t(range[size_t(i)].size()));
        }
        if (hasProfile)
            config->addOptimizationProfile(profile);
        std::unique_ptr<IHostMemory> const plan(builder->buildSerializedNetwork(net, *config));
        if (!plan)
            return nullptr;
        std::unique_ptr<IRuntime> const runtime(createInferRuntime(logger));
        return std::unique_ptr<ICudaEngine>(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    }
    std::map<std::string, std::vector<std::vector<int32_t>>> profiles, values; // min, opt, max

    // Outputs of an engine; none after an error, which the logger has.
    std::vector<Numbers> execute(ICudaEngine* engine, std::vector<Numbers> const& in, IProfiler* profiler = nullptr)
    {
        if (!engine)
            return {};
        std::unique_ptr<IExecutionContext> const context(engine->createExecutionContext());
        if (profiler)
            context->setProfiler(profiler);
        std::vector<tw::Tensor> storage = tensorsOf(net, in);
        for (size_t i = 0; i < in.size(); ++i) {
            char const* name = net.getInput(int32_t(i))->getName();
            Dims d{};
            for (int64_t e : in[i].shape)
                d.d[d.nbDims++] = int32_t(e);
            context->setInputShape(name, d);
            context->setTensorAddress(name, storage[i].data());
        }
        struct Allocator final : IOutputAllocator
        {
            std::vector<char> bytes = std::vector<char>(64);
            Dims shape{};
            void* reallocateOutput(char const*, void*, uint64_t size, uint64_t) noexcept override
            {
                if (bytes.size() < size)
                    bytes.resize(size);
                return bytes.data();
            }
            void notifyShape(char const*, Dims const& d) noexcept override { shape = d; }
        };
        std::vector<Allocator> allocators(size_t(net.getNbOutputs()));
        for (int32_t i = 0; i < net.getNbOutputs(); ++i)
            context->setOutputAllocator(net.getOutput(i)->getName(), &allocators[size_t(i)]);
        if (!context->enqueueV3(nullptr))
            return {};
        std::vector<Numbers> out;
        for (int32_t i = 0; i < net.getNbOutputs(); ++i) {
            tw::Extents e;
            Dims const d = allocators[size_t(i)].shape;
            for (int k = 0; k < d.nbDims; ++k)
                e.push(d.d[k]);
            out.push_back(
                numbersOf(tw::TensorRef{tw::api::toCore(engine->getTensorDataType(net.getOutput(i)->getName())), e,
                                        allocators[size_t(i)].bytes.data()}));
        }
        return out;
    }

    // The network gives `expected` on `in`, by its graph and as an engine.
    void expect(std::vector<Numbers> const& in, std::vector<Numbers> const& expected)
    {
        EXPECT_EQ(interpret(in), expected) << problem;
        if (!engine_)
            engine_ = build();
        EXPECT_EQ(execute(engine_.get(), in), expected) << errors();
    }
    // The network is refused with exactly this among the words.
    void refused(std::vector<char const*> const& parts)
    {
        auto const g = object().toGraph();
        ASSERT_FALSE(g.ok());
        for (char const* part : parts)
            EXPECT_TRUE(contains(g.error().message, part)) << g.error().message << "\nlacks: " << part;
    }
    std::string errors() const
    {
        std::string all;
        for (auto const& l : logger.lines)
            if (l.severity <= ILogger::Severity::kERROR)
                all += l.text + "\n";
        return all;
    }
    std::unique_ptr<ICudaEngine> engine_;
};

} // namespace tw::test
