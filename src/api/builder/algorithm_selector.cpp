// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/builder/parts.h"
#include "api/network/network.h"
#include "base/hash.h"
#include "base/round.h"

namespace tw::api {

namespace {

using nvinfer1::Dims;

// The nearest public format: channels-last tensors have a pixel stride of their own, which the strides tell.
nvinfer1::TensorFormat formatOf(Format f)
{
    return f == Format::kChannelsLast ? nvinfer1::TensorFormat::kHWC : static_cast<nvinfer1::TensorFormat>(f);
}

Dims stridesOf(ops::TensorSpec const& t, Format format)
{
    Dims s{};
    s.nbDims = t.dims.rank;
    int const axis = format == Format::kLinear ? -1 : channelAxis(format, t.dims.rank);
    int const vector = vectorOf(format);
    // Channels are stepped through in vectors; those of formats by pixels lie in one.
    int64_t next = axis < 0 ? 1 : isByPixel(format) ? pixelStrideOf(format, t.type, t.dims[axis]) : vector;
    for (int d = t.dims.rank - 1; d >= 0; --d) {
        bool const isPixelChannel = d == axis && isByPixel(format);
        s.d[d] = int32_t(isPixelChannel ? 1 : next);
        next *= isPixelChannel ? 1 : d == axis ? divideUp(t.dims[d], vector) : t.dims[d];
    }
    return s;
}

struct IoInfo final : nvinfer1::IAlgorithmIOInfo
{
    IoInfo(ops::TensorSpec const& t, Format f)
        : format(formatOf(f)), type(static_cast<nvinfer1::DataType>(t.type)), strides(stridesOf(t, f))
    {}
    nvinfer1::TensorFormat format;
    nvinfer1::DataType type;
    Dims strides;
};

struct Variant final : nvinfer1::IAlgorithmVariant
{
    int64_t implementation = 0, tactic = 0;
};

// Tensors of a layer as clients count them: inputs that are given and no weights, then outputs.
template <class Use>
void forEachTensor(ops::Problem const& p, Use use)
{
    for (size_t i = 0; i < p.inputs.size(); ++i)
        if (p.inputs[i].present && !p.inputs[i].constant)
            use(p.inputs[i], i, true);
    for (size_t i = 0; i < p.outputs.size(); ++i)
        use(p.outputs[i], i, false);
}

struct Context final : nvinfer1::IAlgorithmContext
{
    explicit Context(tune::SelectorLayer const& layer) : name(layer.problem.node->name)
    {
        forEachTensor(layer.problem, [&](ops::TensorSpec const& t, size_t i, bool isInput) {
            size_t const at = isInput ? i : layer.problem.inputs.size() + i;
            dims.push_back({toPublic(at < layer.minDims.size() ? layer.minDims[at] : t.dims), toPublic(t.dims),
                            toPublic(t.maxDims)});
            ++(isInput ? inputs : outputs);
        });
    }
    std::string name;
    std::vector<std::array<Dims, 3>> dims; // by OptProfileSelector
    int32_t inputs = 0, outputs = 0;
};

struct Algorithm final : nvinfer1::IAlgorithm
{
    Algorithm(tune::SelectorLayer const& layer, tune::Offer const& offer)
        : milliseconds(float(offer.microseconds / 1000)), workspaceBytes(size_t(offer.workspaceBytes))
    {
        variant.implementation = int64_t(offer.tactic);
        Hasher h; // configs are few: their hash tells them apart
        for (int64_t c : offer.config)
            h.number(uint64_t(c));
        variant.tactic = offer.config.empty() ? 0 : int64_t(h.value());
        forEachTensor(layer.problem, [&](ops::TensorSpec const& t, size_t i, bool isInput) {
            io.push_back(std::make_unique<IoInfo>(t, isInput ? offer.formats.inputs[i] : offer.formats.outputs[i]));
        });
    }
    std::vector<std::unique_ptr<IoInfo>> io;
    Variant variant;
    float milliseconds;
    size_t workspaceBytes;
};

TW_OBJECT(nvinfer1::IAlgorithmIOInfo, IoInfo)
TW_OBJECT(nvinfer1::IAlgorithmVariant, Variant)
TW_OBJECT(nvinfer1::IAlgorithmContext, Context)
TW_OBJECT(nvinfer1::IAlgorithm, Algorithm)

class Adapter final : public tune::Selector
{
public:
    Adapter(nvinfer1::IAlgorithmSelector& selector, bool rejectEmpty) : selector_(selector), rejectEmpty_(rejectEmpty)
    {}
    Result<std::vector<int>> select(tune::SelectorLayer const& layer, std::vector<tune::Offer> const& offers) override
    {
        Context const context(layer);
        std::vector<std::unique_ptr<Algorithm>> algorithms;
        std::vector<nvinfer1::IAlgorithm const*> choices;
        for (tune::Offer const& o : offers) {
            algorithms.push_back(std::make_unique<Algorithm>(layer, o));
            choices.push_back(algorithms.back().get());
        }
        int32_t const count = int32_t(choices.size());
        std::vector<int32_t> selection(choices.size(), -1);
        int32_t const selected = selector_.selectAlgorithms(context, choices.data(), count, selection.data());
        auto refuse = [&](std::string const& what) {
            return invalidArgument("algorithm selector: layer '{}': {}", context.name, what);
        };
        if (selected < 0 || selected > count)
            return refuse(fmt::format("selectAlgorithms returned {} for {} choices", selected, count));
        if (selected == 0 && rejectEmpty_)
            return refuse(fmt::format(
                "selectAlgorithms chose none of {}, and BuilderFlag::kREJECT_EMPTY_ALGORITHMS is set", count));
        selection.resize(size_t(selected));
        for (int32_t i : selection)
            if (i < 0 || i >= count)
                return refuse(fmt::format("selectAlgorithms chose number {} of {} choices", i, count));
        return std::vector<int>(selection.begin(), selection.end());
    }
    void report(std::vector<tune::SelectorLayer> const& layers, std::vector<tune::Offer> const& chosen) override
    {
        std::vector<std::unique_ptr<Context>> contexts;
        std::vector<std::unique_ptr<Algorithm>> algorithms;
        std::vector<nvinfer1::IAlgorithmContext const*> contextList;
        std::vector<nvinfer1::IAlgorithm const*> choiceList;
        for (size_t i = 0; i < layers.size(); ++i) {
            contexts.push_back(std::make_unique<Context>(layers[i]));
            algorithms.push_back(std::make_unique<Algorithm>(layers[i], chosen[i]));
            contextList.push_back(contexts.back().get());
            choiceList.push_back(algorithms.back().get());
        }
        selector_.reportAlgorithms(contextList.data(), choiceList.data(), int32_t(choiceList.size()));
    }

private:
    nvinfer1::IAlgorithmSelector& selector_;
    bool rejectEmpty_;
};

} // namespace

std::unique_ptr<tune::Selector> adaptSelector(nvinfer1::IAlgorithmSelector& selector, bool rejectEmpty)
{
    return std::make_unique<Adapter>(selector, rejectEmpty);
}

} // namespace tw::api

namespace nvinfer1 {

using namespace tw::api;

TW_GETTER(IAlgorithmIOInfo, TensorFormat, getTensorFormat, self.format)
TW_GETTER(IAlgorithmIOInfo, DataType, getDataType, self.type)
TW_GETTER(IAlgorithmIOInfo, Dims, getStrides, self.strides)

TW_GETTER(IAlgorithmVariant, int64_t, getImplementation, self.implementation)
TW_GETTER(IAlgorithmVariant, int64_t, getTactic, self.tactic)

TW_GETTER(IAlgorithmContext, char const*, getName, self.name.c_str())
Dims IAlgorithmContext::getDimensions(int32_t index, OptProfileSelector select) const noexcept
{
    Context const& c = objectOf(*this);
    int32_t const which = static_cast<int32_t>(select);
    if (index < 0 || index >= int32_t(c.dims.size()) || which < 0 || which >= 3)
        return Dims{-1, {}};
    return c.dims[size_t(index)][size_t(which)];
}
TW_GETTER(IAlgorithmContext, int32_t, getNbInputs, self.inputs)
TW_GETTER(IAlgorithmContext, int32_t, getNbOutputs, self.outputs)

IAlgorithmIOInfo const& IAlgorithm::getAlgorithmIOInfo(int32_t index) const noexcept
{
    static IoInfo const nothing(tw::ops::TensorSpec{}, tw::Format::kLinear); // out of range
    IAlgorithmIOInfo const* io = getAlgorithmIOInfoByIndex(index);
    return io ? *io : nothing;
}
TW_GETTER(IAlgorithm, IAlgorithmVariant const&, getAlgorithmVariant, self.variant)
TW_GETTER(IAlgorithm, float, getTimingMSec, self.milliseconds)
TW_GETTER(IAlgorithm, std::size_t, getWorkspaceSize, self.workspaceBytes)
IAlgorithmIOInfo const* IAlgorithm::getAlgorithmIOInfoByIndex(int32_t index) const noexcept
{
    Algorithm const& a = objectOf(*this);
    return index < 0 || index >= int32_t(a.io.size()) ? nullptr : a.io[size_t(index)].get();
}

} // namespace nvinfer1
