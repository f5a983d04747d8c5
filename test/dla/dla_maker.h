// SPDX-License-Identifier: Apache-2.0
// A Maker whose builder has a model of a DLA, or none.
#pragma once

#include <cstdlib>
#include <deque>
#include <random>

#include "engine/engines.h"

namespace tw::test {

// While it lives, builders, runtimes and cuDLA devices have that model: "orin", "xavier", or null for none.
class DlaModel
{
public:
    explicit DlaModel(char const* model)
    {
        if (model)
            setenv("TENSORWRIGHT_DLA_MODEL", model, 1);
        else
            unsetenv("TENSORWRIGHT_DLA_MODEL");
    }
    ~DlaModel() { unsetenv("TENSORWRIGHT_DLA_MODEL"); }
    DlaModel(DlaModel const&) = delete;
    DlaModel& operator=(DlaModel const&) = delete;
};

struct DlaMaker : DlaModel, Maker
{
    explicit DlaMaker(char const* model = "orin", uint32_t networkFlags = 1) : DlaModel(model), Maker(networkFlags)
    {
        config->setFlag(BuilderFlag::kFP16);
        config->setDefaultDeviceType(DeviceType::kDLA);
    }
    // Numbers from -1 to 1 that live as long as this.
    Weights weights(int64_t count, uint32_t seed = 1)
    {
        std::mt19937 random(seed);
        std::uniform_real_distribution<float> next(-1, 1);
        kept.emplace_back(size_t(count));
        for (float& v : kept.back())
            v = next(random);
        return {DataType::kFLOAT, kept.back().data(), count};
    }
    IConvolutionLayer* convolution(ITensor* x, int maps, DimsHW kernel, int groups = 1)
    {
        int64_t const channels = x->getDimensions().d[x->getDimensions().nbDims - 3];
        auto* l = network->addConvolutionNd(*x, maps, kernel,
                                            weights(maps * channels / groups * kernel.h() * kernel.w()), weights(maps));
        l->setNbGroups(groups);
        return l;
    }
    bool canRun(ILayer* l)
    {
        logger.lines.clear();
        return config->canRunOnDLA(l);
    }
    // The reason that canRun() gave, "" after true.
    std::string reason() const
    {
        for (auto const& l : logger.lines)
            if (contains(l.text, "cannot run on DLA"))
                return l.text;
        return {};
    }
    std::string linesWith(char const* part) const
    {
        std::string all;
        for (auto const& l : logger.lines)
            if (contains(l.text, part))
                all += l.text + "\n";
        return all;
    }

    std::deque<std::vector<float>> kept;
};

} // namespace tw::test
