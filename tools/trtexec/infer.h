// SPDX-License-Identifier: Apache-2.0
// Runs an engine on one or more streams and records when each query did what.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "bindings.h"
#include "build.h"
#include "device_stream.h"
#include "layer_profile.h"
#include "report.h"

namespace tw::trtexec {

// Forwards layer times to a profile that several contexts share.
class ProfileSink : public nvinfer1::IProfiler
{
public:
    void reportLayerTime(char const* layerName, float ms) noexcept override;
    LayerProfile profile;
};

using Clock = std::chrono::steady_clock;

// One execution context. On a GPU, queries are given ahead: while one is computed, the next one waits on the device
// with its inputs, and copies run beside the computation on streams of their own (all queries have the same inputs, so
// a copy that comes while they are read changes nothing). On the CPU device a query is done when it has been given.
class Lane
{
public:
    Lane(Log& log, Workspace& work, Options const& options, int32_t number);

    // Before the first query; times count from `start`.
    void begin(Clock::time_point start, bool isProfiled);
    bool isFull() const { return active_ == slots_.size(); }
    bool isEmpty() const { return active_ == 0; }
    void give();         // a query; not when full
    QueryTimes finish(); // waits for the oldest query; not when empty
    void end();          // after the last query: outputs are on the host

    nvinfer1::IExecutionContext& context() { return *context_; } // not of a safety engine
    Bindings const& bindings() const { return *bindings_; }

private:
    struct Slot
    {
        explicit Slot(bool spins)
            : inputBegin(spins), inputEnd(spins), computeBegin(spins), computeEnd(spins), outputBegin(spins),
              outputEnd(spins)
        {}
        DeviceEvent inputBegin, inputEnd, computeBegin, computeEnd, outputBegin, outputEnd;
        QueryTimes times; // what is known when the query has been given
    };
    void useEngine(Workspace& work, Options const& options, int32_t number);
    double now() const;
    void compute();
    void giveOnCpu(QueryTimes& times);
    void giveOnGpu(Slot& slot);
    void capture();

    Log& log_;
    InferenceOptions const& inference_;
    std::unique_ptr<nvinfer1::IExecutionContext> context_;
    std::unique_ptr<nvinfer1::safe::IExecutionContext> safeContext_; // of a safety engine, in its place
    DeviceStream inputs_, compute_, outputs_;
    DeviceEvent clock_;                  // that of the GPU began when the host's showed clockMs_
    std::unique_ptr<Bindings> bindings_; // before the context's end, because it holds its addresses
    std::vector<std::unique_ptr<Slot>> slots_;
    size_t next_ = 0, active_ = 0;
    Clock::time_point start_;
    double clockMs_ = 0;
    bool usesGraph_ = false;
};

class Inference
{
public:
    Inference(Log& log, Workspace& work, Options const& options);

    RunTrace run();
    // From the next run on, layer times go to the sink.
    void attachProfiler(ProfileSink& sink);

    // Not of a safety engine.
    nvinfer1::IExecutionContext& firstContext() { return lanes_.front()->context(); }
    Bindings const& outputs() const { return lanes_.front()->bindings(); } // valid after run()

private:
    // In the calling thread: a query of each lane in turn.
    std::vector<QueryTimes> runLanes(std::span<std::unique_ptr<Lane> const> lanes, Clock::time_point start) const;

    Log& log_;
    Options const& options_;
    int32_t batch_ = 1;
    bool isProfiled_ = false; // then no graph is used: layers have times only where they are enqueued
    std::vector<std::unique_ptr<Lane>> lanes_;
};

} // namespace tw::trtexec
