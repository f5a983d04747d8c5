// SPDX-License-Identifier: Apache-2.0
// Calibrators of all four kinds, which write down what the builder asks them.
#pragma once

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "NvInfer.h"

namespace tw::test {

using namespace nvinfer1;

// What they have in common: batches by input name, and caches.
struct CalibratorState
{
    std::map<std::string, std::vector<std::vector<float>>> batches; // of each input, one after the other
    int32_t batchSize = 1;
    std::string cache, histograms; // read, and written to
    std::vector<std::string> calls;
    std::vector<std::vector<std::string>> names; // of each getBatch()
    double quantile = 1, cutoff = 1;
    size_t next = 0;

    // `count` batches of normally distributed numbers for an input.
    void fill(std::string const& name, size_t elements, size_t count, unsigned seed = 1, float sigma = 1)
    {
        std::mt19937 random(seed);
        std::normal_distribution<float> normal(0, sigma);
        for (size_t i = 0; i < count; ++i) {
            batches[name].emplace_back(elements);
            for (float& x : batches[name].back())
                x = normal(random);
        }
    }
};

template <class Interface>
struct Calibrator : Interface, CalibratorState
{
    int32_t getBatchSize() const noexcept override { return batchSize; }
    bool getBatch(void* bindings[], char const* inputs[], int32_t count) noexcept override
    {
        calls.push_back("getBatch");
        names.emplace_back(inputs, inputs + count);
        bool isThere = false;
        for (int32_t i = 0; i < count; ++i) {
            auto& list = batches[inputs[i]];
            isThere = isThere || next < list.size();
            bindings[i] = next < list.size() && !list[next].empty() ? list[next].data() : nullptr;
        }
        ++next;
        return isThere;
    }
    void const* readCalibrationCache(std::size_t& length) noexcept override
    {
        calls.push_back("readCalibrationCache");
        length = cache.size();
        return cache.empty() ? nullptr : cache.data();
    }
    void writeCalibrationCache(void const* bytes, std::size_t length) noexcept override
    {
        calls.push_back("writeCalibrationCache");
        cache.assign(static_cast<char const*>(bytes), length);
    }
};

using EntropyCalibrator2 = Calibrator<IInt8EntropyCalibrator2>;
using EntropyCalibrator = Calibrator<IInt8EntropyCalibrator>;
using MinMaxCalibrator = Calibrator<IInt8MinMaxCalibrator>;

struct LegacyCalibrator final : Calibrator<IInt8LegacyCalibrator>
{
    double getQuantile() const noexcept override { return quantile; }
    double getRegressionCutoff() const noexcept override { return cutoff; }
    void const* readHistogramCache(std::size_t& length) noexcept override
    {
        calls.push_back("readHistogramCache");
        length = histograms.size();
        return histograms.empty() ? nullptr : histograms.data();
    }
    void writeHistogramCache(void const* bytes, std::size_t length) noexcept override
    {
        calls.push_back("writeHistogramCache");
        histograms.assign(static_cast<char const*>(bytes), length);
    }
};

// Scales of a cache's text by tensor.
inline std::map<std::string, float> scalesOf(std::string const& cache)
{
    std::map<std::string, float> out;
    for (size_t at = cache.find('\n') + 1; at > 0 && at < cache.size();) {
        size_t const end = cache.find('\n', at), colon = cache.rfind(": ", end);
        auto const bits = uint32_t(std::stoul(cache.substr(colon + 2, end - colon - 2), nullptr, 16));
        std::memcpy(&out[cache.substr(at, colon - at)], &bits, sizeof bits);
        at = end + 1;
    }
    return out;
}

} // namespace tw::test
