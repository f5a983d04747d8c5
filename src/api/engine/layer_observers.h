// SPDX-License-Identifier: Apache-2.0
// Who looks on while an engine's layers run: times for IProfiler, ranges for profilers of the whole process.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "device/cuda/device.h"
#include "device/nvtx.h"
#include "ir/op_def.h"
#include "runtime/block.h"

namespace tw::api {

// Times the steps of one run.
class LayerTimes final : public runtime::StepObserver
{
public:
    void before(runtime::LoadedStep const&) override { begin_ = std::chrono::steady_clock::now(); }
    void after(runtime::LoadedStep const& step) override
    {
        std::chrono::duration<float, std::milli> const d = std::chrono::steady_clock::now() - begin_;
        measured_.emplace_back(&step, d.count());
    }
    // Every layer once, in order; 0 for those that these shapes left nothing to do for.
    std::vector<std::pair<std::string, float>> ofLayers(runtime::LoadedBlock const& block) const
    {
        std::vector<std::pair<std::string, float>> out;
        size_t next = 0;
        for (runtime::LoadedStep const& step : block.steps) {
            bool const ran = next < measured_.size() && measured_[next].first == &step;
            out.emplace_back(step.node->name, ran ? measured_[next].second : 0.0F);
            next += ran;
        }
        return out;
    }

private:
    std::chrono::steady_clock::time_point begin_;
    std::vector<std::pair<runtime::LoadedStep const*, float>> measured_;
};

// Times the steps of one run on a GPU: an event before each and one after it. Of a run that is captured: those of
// the latest launch of the graph, which records the events as long as this object lives.
class GpuLayerTimes final : public runtime::StepObserver
{
public:
    GpuLayerTimes(cuda::Device const& device, CUstream_st* stream, bool isCaptured = false)
        : device_(device), driver_(device.driver()), stream_(stream), isCaptured_(isCaptured)
    {}
    GpuLayerTimes(GpuLayerTimes const&) = delete;
    GpuLayerTimes& operator=(GpuLayerTimes const&) = delete;
    ~GpuLayerTimes() override
    {
        cuda::Current const current(device_);
        for (auto const& [step, events] : measured_)
            for (CUevent_st* e : {events.first, events.second})
                if (e)
                    driver_.cuEventDestroy(e);
    }
    // Whether the driver can time captured runs.
    static bool canCapture(cuda::Device const& device) { return device.driver().cuEventRecordWithFlags != nullptr; }
    void before(runtime::LoadedStep const& step) override { measured_.push_back({&step, {record(), nullptr}}); }
    void after(runtime::LoadedStep const&) override { measured_.back().second.second = record(); }
    // Waits for the run. Every layer once, in order; none when nothing has run.
    std::vector<std::pair<std::string, float>> ofLayers(runtime::LoadedBlock const& block) const
    {
        cuda::Current const current(device_);
        std::vector<std::pair<std::string, float>> out;
        size_t next = 0;
        bool hasRun = measured_.empty();
        for (runtime::LoadedStep const& step : block.steps) {
            float ms = 0;
            if (next < measured_.size() && measured_[next].first == &step) {
                auto const [begin, end] = measured_[next++].second;
                if (begin && end && driver_.cuEventSynchronize(end) == cuda::kSuccess)
                    hasRun = driver_.cuEventElapsedTime(&ms, begin, end) == cuda::kSuccess || hasRun;
            }
            out.emplace_back(step.node->name, ms);
        }
        if (!hasRun && isCaptured_)
            out.clear();
        return out;
    }

private:
    CUevent_st* record()
    {
        CUevent_st* e = nullptr;
        if (driver_.cuEventCreate(&e, 0) != cuda::kSuccess)
            return nullptr;
        if (isCaptured_)
            driver_.cuEventRecordWithFlags(e, stream_, cuda::kRecordExternal);
        else
            driver_.cuEventRecord(e, stream_);
        return e;
    }
    cuda::Device const& device_;
    cuda::Driver const& driver_;
    CUstream_st* stream_;
    bool isCaptured_;
    std::vector<std::pair<runtime::LoadedStep const*, std::pair<CUevent_st*, CUevent_st*>>> measured_;
};

// Tells a profiler (NVTX) which layer runs; on a GPU: is put on the stream.
class LayerRanges final : public runtime::StepObserver
{
public:
    LayerRanges(device::Nvtx const& nvtx, bool isDetailed) : nvtx_(nvtx), isDetailed_(isDetailed) {}
    ~LayerRanges() override
    {
        for (; open_ > 0; --open_) // the run has ended early
            nvtx_.pop();
    }
    void before(runtime::LoadedStep const& step) override
    {
        std::string text = step.node->name;
        if (isDetailed_)
            text += " (" + std::string(step.node->op->name) +
                    (step.tactic ? ", " + std::string(step.tactic->name()) : "") + ")";
        nvtx_.push(text.c_str());
        ++open_;
    }
    void after(runtime::LoadedStep const&) override
    {
        nvtx_.pop();
        --open_;
    }

private:
    device::Nvtx const& nvtx_;
    bool isDetailed_;
    int open_ = 0;
};

class Observers final : public runtime::StepObserver
{
public:
    void add(runtime::StepObserver& o) { list_.push_back(&o); }
    // Null: nobody looks.
    runtime::StepObserver* get() { return list_.empty() ? nullptr : this; }
    void before(runtime::LoadedStep const& step) override
    {
        for (runtime::StepObserver* o : list_)
            o->before(step);
    }
    void after(runtime::LoadedStep const& step) override
    {
        for (auto o = list_.rbegin(); o != list_.rend(); ++o)
            (*o)->after(step);
    }

private:
    std::vector<runtime::StepObserver*> list_;
};

} // namespace tw::api
