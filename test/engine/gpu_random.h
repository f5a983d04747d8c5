// SPDX-License-Identifier: Apache-2.0
// Random networks that a seed gives, for an engine on a GPU beside one on the CPU (gpu_random.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <NvInfer.h>

namespace gpu_random {

class Draw
{
public:
    explicit Draw(uint64_t seed) : random_(seed) {}
    int from(int low, int high) { return low + int(random_() % uint64_t(high - low + 1)); }
    bool chance(int percent) { return from(0, 99) < percent; }
    float real(float low, float high) { return low + (high - low) * float(random_() >> 40) / float(1 << 24); }
    template <class T>
    T of(std::vector<T> const& list)
    {
        return list[size_t(from(0, int(list.size()) - 1))];
    }

private:
    std::mt19937_64 random_;
};

inline nvinfer1::Dims dimsOf(std::vector<int> const& list)
{
    nvinfer1::Dims d{};
    for (int v : list)
        d.d[d.nbDims++] = v;
    return d;
}
inline int64_t volume(nvinfer1::Dims const& d)
{
    int64_t count = 1;
    for (int i = 0; i < d.nbDims; ++i)
        count *= d.d[i];
    return count;
}

struct Input
{
    std::string name;
    nvinfer1::DataType type; // kFLOAT or kINT32, of which each run draws numbers from low to high
    int64_t count;
    float low, high;
};

// Those of weights.
inline std::vector<float> numbersOf(uint64_t seed, std::string const& name, bool isRenewed, int64_t count, float low,
                                    float high)
{
    Draw draw(seed * 1000003 + std::hash<std::string>()(name) + (isRenewed ? 77 : 0));
    std::vector<float> numbers;
    for (int64_t i = 0; i < count; ++i)
        numbers.push_back(draw.real(low, high));
    return numbers;
}

// A network that is made, its inputs, and numbers of its weights, which live as long.
class Maker
{
public:
    // Of the weights that `renewed` names there are other numbers than without it.
    Maker(nvinfer1::INetworkDefinition& network, nvinfer1::IBuilderConfig& builderConfig, uint64_t seed,
          std::set<std::string> names = {})
        : n(network), config(builderConfig), draw(seed), seed_(seed), renewed_(std::move(names))
    {}

    nvinfer1::ITensor* input(std::string const& name, nvinfer1::DataType type, std::vector<int> const& dims, float low,
                             float high)
    {
        inputs.push_back({name, type, volume(dimsOf(dims)), low, high});
        return n.addInput(name.c_str(), type, dimsOf(dims));
    }
    void output(nvinfer1::ITensor* t)
    {
        t->setName(("y" + std::to_string(outputs++)).c_str());
        n.markOutput(*t);
    }
    nvinfer1::Weights weights(std::string const& name, int64_t count, float low, float high)
    {
        floats_.push_back(numbersOf(seed_, name, renewed_.count(name) > 0, count, low, high));
        return {nvinfer1::DataType::kFLOAT, floats_.back().data(), count};
    }
    nvinfer1::ITensor* constant(std::vector<int> const& dims, float low, float high)
    {
        std::string const name = "constant " + std::to_string(floats_.size());
        return n.addConstant(dimsOf(dims), weights(name, volume(dimsOf(dims)), low, high))->getOutput(0);
    }
    nvinfer1::ITensor* number(float v)
    {
        floats_.push_back({v});
        return n.addConstant(dimsOf({}), {nvinfer1::DataType::kFLOAT, floats_.back().data(), 1})->getOutput(0);
    }
    nvinfer1::ITensor* integer(int32_t v)
    {
        integers_.push_back(v);
        return n.addConstant(dimsOf({}), {nvinfer1::DataType::kINT32, &integers_.back(), 1})->getOutput(0);
    }
    nvinfer1::ITensor* binary(nvinfer1::ITensor* a, nvinfer1::ITensor* b, nvinfer1::ElementWiseOperation o)
    {
        return n.addElementWise(*a, *b, o)->getOutput(0);
    }
    nvinfer1::ITensor* tanh(nvinfer1::ITensor* a)
    {
        return n.addActivation(*a, nvinfer1::ActivationType::kTANH)->getOutput(0);
    }

    nvinfer1::INetworkDefinition& n;
    nvinfer1::IBuilderConfig& config;
    Draw draw;
    std::vector<Input> inputs;
    int outputs = 0;

private:
    uint64_t seed_;
    std::set<std::string> renewed_;
    std::deque<std::vector<float>> floats_;
    std::deque<int32_t> integers_;
};

// What refit sets: a layer, the role, and the name and numbers that Maker::weights() knows.
struct Refitted
{
    std::string layer;
    nvinfer1::WeightsRole role;
    std::string weights;
    int64_t count;
    float low, high;
};

struct Kind
{
    char const* name;
    std::function<void(Maker&)> define;
    int count; // seeds of a run
    // Two outputs agree: at most `outliers` of the elements differ by more than `near`, none by more than `far`, as parts
    // of the largest magnitude (of 1 at least).
    double near, outliers, far;
    std::function<std::vector<Refitted>(Maker&)> defineRefitted = nullptr; // instead of define
};

void defineFlow(Maker& m);
void defineRecurrence(Maker& m);
void defineQuantized(Maker& m);
std::vector<Refitted> defineRefitted(Maker& m);

} // namespace gpu_random
