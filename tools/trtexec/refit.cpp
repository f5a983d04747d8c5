// SPDX-License-Identifier: Apache-2.0
#include "refit.h"

#include <algorithm>
#include <chrono>
#include <map>

#include <fmt/core.h>

#include "value_syntax.h"

namespace tw::trtexec {

namespace {

using nvinfer1::LayerType;
using nvinfer1::Weights;
using nvinfer1::WeightsRole;

// Position is the number in nvinfer1::WeightsRole.
constexpr char const* kRoleNames[] = {"Kernel", "Bias", "Shift", "Scale", "Constant", "Any"};

struct Refittable
{
    std::string layer;
    WeightsRole role;
};

std::vector<Refittable> refittableOf(nvinfer1::IRefitter& refitter)
{
    int32_t const count = std::max(refitter.getAll(0, nullptr, nullptr), 0);
    std::vector<char const*> layers(static_cast<size_t>(count));
    std::vector<WeightsRole> roles(static_cast<size_t>(count));
    refitter.getAll(count, layers.data(), roles.data());
    std::vector<Refittable> all;
    for (int32_t i = 0; i < count; ++i)
        all.push_back({layers[static_cast<size_t>(i)], roles[static_cast<size_t>(i)]});
    return all;
}

using WeightsByRole = std::map<std::pair<std::string, WeightsRole>, Weights>;

WeightsByRole weightsOf(nvinfer1::INetworkDefinition const& network)
{
    WeightsByRole weights;
    for (int32_t i = 0; i < network.getNbLayers(); ++i) {
        nvinfer1::ILayer* layer = network.getLayer(i);
        std::string const name = layer->getName();
        auto const kernelAndBias = [&](auto* l) {
            weights[{name, WeightsRole::kKERNEL}] = l->getKernelWeights();
            weights[{name, WeightsRole::kBIAS}] = l->getBiasWeights();
        };
        switch (layer->getType()) {
        case LayerType::kCONVOLUTION:
            kernelAndBias(static_cast<nvinfer1::IConvolutionLayer*>(layer));
            break;
        case LayerType::kDECONVOLUTION:
            kernelAndBias(static_cast<nvinfer1::IDeconvolutionLayer*>(layer));
            break;
        case LayerType::kFULLY_CONNECTED:
            kernelAndBias(static_cast<nvinfer1::IFullyConnectedLayer*>(layer));
            break;
        case LayerType::kSCALE: {
            auto* scale = static_cast<nvinfer1::IScaleLayer*>(layer);
            weights[{name, WeightsRole::kSCALE}] = scale->getScale();
            weights[{name, WeightsRole::kSHIFT}] = scale->getShift();
            break;
        }
        case LayerType::kCONSTANT:
            weights[{name, WeightsRole::kCONSTANT}] = static_cast<nvinfer1::IConstantLayer*>(layer)->getWeights();
            break;
        default:
            break;
        }
    }
    return weights;
}

} // namespace

void dumpRefittable(Log& log, LibraryLogger& logger, nvinfer1::ICudaEngine& engine)
{
    auto const refitter = required(nvinfer1::createInferRefitter(engine, logger), "--dumpRefit: creating the refitter");
    for (Refittable const& r : refittableOf(*refitter)) {
        auto const role = static_cast<size_t>(r.role);
        log.info(r.layer + " " + (role < std::size(kRoleNames) ? kRoleNames[role] : "Any"));
    }
}

void timeRefit(Log& log, LibraryLogger& logger, Workspace& work, bool multithreaded)
{
    constexpr int32_t kThreads = 10;
    if (!work.parsed.network)
        throw Failure(
            "--timeRefit needs the network's weights: build the engine in the same run, without --loadEngine");
    auto const refitter =
        required(nvinfer1::createInferRefitter(*work.engine, logger), "--timeRefit: creating the refitter");
    if (multithreaded && !refitter->setMaxThreads(kThreads))
        throw Failure(fmt::format("--threads: the refitter refuses {} threads", kThreads));
    WeightsByRole const weights = weightsOf(*work.parsed.network);
    std::vector<Refittable> const wanted = refittableOf(*refitter);
    auto const setAll = [&] {
        for (Refittable const& r : wanted) {
            auto const it = weights.find({r.layer, r.role});
            if (it == weights.end() || !refitter->setWeights(r.layer.c_str(), r.role, it->second))
                throw Failure("--timeRefit: the weights of layer '" + r.layer + "' cannot be set");
        }
    };
    setAll();
    if (!refitter->refitCudaEngine()) // warm-up, and the proof that it works
        throw Failure("--timeRefit: the refit failed");
    constexpr int kRuns = 10;
    auto const start = std::chrono::steady_clock::now();
    for (int i = 0; i < kRuns; ++i) {
        setAll();
        if (!refitter->refitCudaEngine())
            throw Failure("--timeRefit: the refit failed");
    }
    double const ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    log.info("Engine refitted in " + numberText(ms / kRuns) + " ms.");
}

} // namespace tw::trtexec
