// SPDX-License-Identifier: Apache-2.0
// libnvinfer_plugin: registers the standard plugins. What they are is libnvinfer's matter (src/api/standard_plugins),
// which has a creator for each of them under a namespace of its own.
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "NvInferPlugin.h"

namespace {

using nvinfer1::ILogger;
using nvinfer1::IPluginCreator;
using nvinfer1::IPluginV2;

struct Published
{
    char const *name, *version;
    bool isStatic = false; // registered when the library is loaded, in the empty namespace; else by the client's call
};
constexpr Published kPublished[] = {
    {"BatchTilePlugin_TRT", "1"},
    {"BatchedNMS_TRT", "1"},
    {"BatchedNMSDynamic_TRT", "1"},
    {"BeamStep", "1"},
    {"CachedAttention", "1"},
    {"Clip_TRT", "1"},
    {"CoordConvAC", "1"},
    {"CropAndResize", "1"},
    {"CropAndResizeDynamic", "1"},
    {"CustomEmbLayerNormPluginDynamic", "1", true},
    {"CustomEmbLayerNormPluginDynamic", "2", true},
    {"CustomEmbLayerNormPluginDynamic", "3", true},
    {"CustomFCPluginDynamic", "1", true},
    {"CustomGeluPluginDynamic", "1", true},
    {"CustomQKVToContextPluginDynamic", "1", true},
    {"CustomQKVToContextPluginDynamic", "2", true},
    {"CustomQKVToContextPluginDynamic", "3", true},
    {"CustomSkipLayerNormPluginDynamic", "1", true},
    {"CustomSkipLayerNormPluginDynamic", "2", true},
    {"CustomSkipLayerNormPluginDynamic", "3", true},
    {"CustomSkipLayerNormPluginDynamic", "4", true},
    {"DecodeBbox3DPlugin", "1"},
    {"DetectionLayer_TRT", "1"},
    {"DisentangledAttention_TRT", "1", true},
    {"EfficientNMS_TRT", "1"},
    {"EfficientNMS_ONNX_TRT", "1"},
    {"EfficientNMS_Explicit_TF_TRT", "1"},
    {"EfficientNMS_Implicit_TF_TRT", "1"},
    {"FlattenConcat_TRT", "1"},
    {"GenerateDetection_TRT", "1"},
    {"GenerateSample", "1"},
    {"GridAnchor_TRT", "1"},
    {"GridAnchorRect_TRT", "1"},
    {"GroupNorm", "1"},
    {"GroupNormalizationPlugin", "1", true},
    {"InstanceNormalization_TRT", "1"},
    {"InstanceNormalization_TRT", "2"},
    {"LReLU_TRT", "1"},
    {"LayerNorm", "1"},
    {"MatMulNBits", "1"},
    {"MultilevelCropAndResize_TRT", "1"},
    {"MultilevelProposeROI_TRT", "1"},
    {"MultiscaleDeformableAttnPlugin_TRT", "1"},
    {"NMS_TRT", "1"},
    {"NMSDynamic_TRT", "1"},
    {"Normalize_TRT", "1"},
    {"PillarScatterPlugin", "1"},
    {"PriorBox_TRT", "1"},
    {"Proposal", "1"},
    {"ProposalDynamic", "1"},
    {"ProposalLayer_TRT", "1"},
    {"PyramidROIAlign_TRT", "1"},
    {"ROIAlign_TRT", "1"},
    {"RPROI_TRT", "1"},
    {"Region_TRT", "1"},
    {"Reorg_TRT", "1"},
    {"ResizeNearest_TRT", "1"},
    {"ScatterND", "1"},
    {"SeqLen2Spatial", "1"},
    {"SpecialSlice_TRT", "1"},
    {"Split", "1"},
    {"SplitGeLU", "1"},
    {"TensorScatter", "1"},
    {"VoxelGeneratorPlugin", "1"},
    {"fMHA_V2", "1"},
    {"fMHCA", "1"},
};

IPluginCreator* madeByLibrary(Published const& p)
{
    return getPluginRegistry()->getPluginCreator(p.name, p.version, "tensorwright.standard");
}

// The client's, for the whole process, as in 8.5.
ILogger* theLogger = nullptr;

// While it lives libnvinfer has a logger, though the client made no builder and no runtime yet.
class WithLogger
{
public:
    WithLogger() : runtime_(theLogger && !getLogger() ? nvinfer1::createInferRuntime(*theLogger) : nullptr) {}

private:
    std::unique_ptr<nvinfer1::IRuntime> const runtime_;
};

// A creator of one namespace.
class Creator final : public IPluginCreator
{
public:
    explicit Creator(IPluginCreator& library) : library_(library) {}
    char const* getPluginName() const noexcept override { return library_.getPluginName(); }
    char const* getPluginVersion() const noexcept override { return library_.getPluginVersion(); }
    nvinfer1::PluginFieldCollection const* getFieldNames() noexcept override { return library_.getFieldNames(); }
    IPluginV2* createPlugin(char const* name, nvinfer1::PluginFieldCollection const* fields) noexcept override
    {
        WithLogger const logs;
        return inSpace(library_.createPlugin(name, fields));
    }
    IPluginV2* deserializePlugin(char const* name, void const* data, size_t size) noexcept override
    {
        WithLogger const logs;
        return inSpace(library_.deserializePlugin(name, data, size));
    }
    void setPluginNamespace(char const* space) noexcept override { space_ = space; }
    char const* getPluginNamespace() const noexcept override { return space_.c_str(); }

private:
    IPluginV2* inSpace(IPluginV2* plugin) const
    {
        if (plugin)
            plugin->setPluginNamespace(space_.c_str());
        return plugin;
    }

    IPluginCreator& library_;
    std::string space_;
};

// What this library has registered; taken back when it is unloaded.
class Registered
{
public:
    Registered()
    {
        for (Published const& p : kPublished)
            if (p.isStatic)
                add(p, "");
    }
    ~Registered()
    {
        for (auto const& c : creators_)
            getPluginRegistry()->deregisterCreator(*c);
    }
    // False: there is one of the name, version and namespace already.
    bool add(Published const& p, char const* space)
    {
        std::lock_guard lock(mutex_);
        IPluginCreator* const library = madeByLibrary(p);
        if (!library || getPluginRegistry()->getPluginCreator(p.name, p.version, space))
            return false;
        auto creator = std::make_unique<Creator>(*library);
        if (getPluginRegistry()->registerCreator(*creator, space))
            creators_.push_back(std::move(creator));
        return true;
    }

private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<Creator>> creators_;
};
Registered registered;

} // namespace

extern "C" bool initLibNvInferPlugins(void* logger, char const* libNamespace)
{
    using Severity = ILogger::Severity;
    theLogger = static_cast<ILogger*>(logger);
    ILogger* const log = theLogger ? theLogger : getLogger();
    auto const say = [&](Severity severity, std::string const& line) {
        if (log)
            log->log(severity, line.c_str());
    };
    if (!libNamespace) {
        say(Severity::kERROR, "initLibNvInferPlugins: the namespace is a null pointer");
        return false;
    }
    for (Published const& p : kPublished)
        if (!p.isStatic)
            say(Severity::kVERBOSE, std::string("Plugin creator ") + p.name + " version " + p.version +
                                        (registered.add(p, libNamespace) ? " registered" : " already registered"));
    return true;
}
