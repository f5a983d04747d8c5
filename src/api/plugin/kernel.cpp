// SPDX-License-Identifier: Apache-2.0
#include "api/plugin/kernel.h"

#include <algorithm>

namespace tw::api {

using nvinfer1::Dims;
using ops::plugin::Attrs;
using Interface = ops::plugin::Interface;

namespace {

// What is given for tensors without elements that have no memory.
alignas(64) char kNothing[64];

void setDims(Dims& to, Extents const& from, bool dropsBatch)
{
    to.nbDims = 0;
    for (int i = dropsBatch ? 1 : 0; i < from.rank && to.nbDims < Dims::MAX_DIMS; ++i)
        to.d[to.nbDims++] = int32_t(from[i]);
}

// Of one execution context.
class State final : public ops::Kept
{
public:
    State(PluginPtr p, bool isAttached, std::shared_ptr<PluginHandles> h, ServicesPtr s, PluginTensors const& t)
        : plugin(std::move(p)), tensors(t), pointers(t.descs.size()), isAttached_(isAttached), handles_(std::move(h)),
          services_(std::move(s))
    {}
    ~State() override
    {
        if (isAttached_)
            plugin->detach();
        plugin.reset(); // before its handles
    }
    // Tells a plugin for shapes that vary of new ones.
    void configureFor()
    {
        bool isNew = !isConfigured_;
        for (size_t i = 0; i < tensors.descs.size(); ++i) {
            Dims const &now = tensors.descs[i].dims, &last = configured_.size() > i ? configured_[i] : now;
            isNew = isNew || !std::equal(now.d, now.d + now.nbDims, last.d);
        }
        if (!isNew)
            return;
        configured_.clear();
        for (auto const& d : tensors.descs)
            configured_.push_back(d.dims);
        isConfigured_ = true;
        plugin->configure(tensors);
    }

    PluginPtr plugin;
    PluginTensors tensors; // dimensions of the last run
    std::vector<void*> pointers;

private:
    bool isAttached_;
    bool isConfigured_ = false;
    std::vector<Dims> configured_;
    std::shared_ptr<PluginHandles> handles_;
    ServicesPtr services_;
};

class PluginKernel final : public ops::Kernel, public ops::PerContext
{
public:
    PluginKernel(PluginPtr plugin, ServicesPtr services, PluginTensors tensors, bool dropsBatch, int64_t workspace)
        : plugin_(std::move(plugin)), services_(std::move(services)), tensors_(std::move(tensors)),
          dropsBatch_(dropsBatch), workspace_(workspace)
    {}
    int64_t workspaceBytes(std::span<TensorRef const>, std::span<TensorRef const>) const override { return workspace_; }

    Result<std::shared_ptr<ops::Kept>> makeState(std::shared_ptr<void>& shared) const override
    {
        if (plugin_->interface() == Interface::kV2) // one for all contexts
            return std::shared_ptr<ops::Kept>(std::make_shared<State>(plugin_, false, nullptr, services_, tensors_));
        if (!shared)
            shared = services_->handles();
        auto const handles = std::static_pointer_cast<PluginHandles>(shared);
        TW_ASSIGN(PluginPtr own, plugin_->clone());
        if (own->interface() != plugin_->interface())
            return invalidState("{}: clone() gave a plugin of another interface", own->where());
        own->attach(handles->cudnn(), handles->cublas(), services_->allocator);
        return std::shared_ptr<ops::Kept>(std::make_shared<State>(own, true, handles, services_, tensors_));
    }

    Result<void> run(ops::RunArgs& args) const override
    {
        std::unique_ptr<ops::Kept> forThisRun;
        std::unique_ptr<ops::Kept>& place = args.kept ? *args.kept : forThisRun;
        if (!place) {
            std::shared_ptr<void> shared;
            TW_ASSIGN(auto state, makeState(shared));
            place = std::make_unique<ops::Lent>(std::move(state));
        }
        return runWith(static_cast<State&>(*static_cast<ops::Lent&>(*place).state), args);
    }

private:
    Result<void> runWith(State& s, ops::RunArgs& args) const
    {
        size_t const inputs = args.inputs.size();
        int32_t batch = -1;
        bool isEmpty = true;
        for (size_t i = 0; i < s.tensors.descs.size(); ++i) {
            TensorRef const& t = i < inputs ? args.inputs[i] : args.outputs[i - inputs];
            setDims(s.tensors.descs[i].dims, t.dims, dropsBatch_);
            s.pointers[i] = t.data ? t.data : kNothing;
            if (dropsBatch_ && batch < 0 && !s.tensors.isBroadcast[i])
                batch = int32_t(t.dims[0]);
            isEmpty = isEmpty && (i < inputs || t.count() == 0);
        }
        batch = batch < 0 ? 1 : batch;
        // Interfaces before IPluginV2Ext need not know of empty tensors.
        if (isEmpty && plugin_->interface() == Interface::kV2)
            return {};
        void* const* const pointers = s.pointers.data();
        auto const stream = static_cast<cudaStream_t>(args.stream);
        int32_t status = 0;
        if (plugin_->interface() == Interface::kDynamicExt) {
            s.configureFor();
            auto const* descs = s.tensors.descs.data();
            status = s.plugin->dynamicExt().enqueue(descs, descs + inputs, pointers, pointers + inputs, args.workspace,
                                                    stream);
        } else {
            status = s.plugin->get().enqueue(batch, pointers, pointers + inputs, args.workspace, stream);
        }
        if (status != 0)
            return failedExecution("{}: enqueue() gave {}, which is no success", plugin_->where(), status);
        return {};
    }

    PluginPtr plugin_; // initialized
    ServicesPtr services_;
    PluginTensors tensors_;
    bool dropsBatch_;
    int64_t workspace_;
};

} // namespace

Result<std::unique_ptr<ops::Kernel>> NetworkPlugin::load(ops::Problem const&) const
{
    return internalError("{}: the network was not prepared for a device", plugin->where());
}

Result<std::unique_ptr<ops::Kernel>> BuildPlugin::load(ops::Problem const& problem) const
{
    PluginTensors tensors = tensorsOf(problem);
    TW_ASSIGN(PluginPtr own, plugin->clone(services_->device()));
    own->configure(tensors);
    TW_TRY(own->initialize());
    TW_ASSIGN(int64_t const workspace, own->workspaceBytes(tensors));
    bool const dropsBatch = problem.node->attrsAs<Attrs>().dropsBatch;
    return std::unique_ptr<ops::Kernel>(
        std::make_unique<PluginKernel>(std::move(own), services_, std::move(tensors), dropsBatch, workspace));
}

std::vector<ops::Formats> EnginePlugin::formats(ops::Problem const& problem) const
{
    ops::Formats f = ops::linearFormats(problem);
    auto const& stored = problem.node->attrsAs<Attrs>().formats;
    size_t const inputs = f.inputs.size();
    for (size_t i = 0; stored.size() == inputs + f.outputs.size() && i < stored.size(); ++i)
        (i < inputs ? f.inputs[i] : f.outputs[i - inputs]) = static_cast<Format>(stored[i]);
    return {f};
}

Result<std::unique_ptr<ops::Kernel>> EnginePlugin::load(ops::Problem const& problem) const
{
    auto const& a = problem.node->attrsAs<Attrs>();
    if (!(formats(problem)[0] == ops::formatsOf(problem)))
        return unsupported(
            "{}: the plan has it in other formats than linear ones, for another device; build the engine here",
            plugin_->where());
    return std::unique_ptr<ops::Kernel>(
        std::make_unique<PluginKernel>(plugin_, services_, tensorsOf(problem), a.dropsBatch, a.workspaceBytes));
}

} // namespace tw::api
