// SPDX-License-Identifier: Apache-2.0
// Runs an engine on one or more streams and records when each query did what.
#pragma once

#include "bindings.h"
#include "build.h"
#include "layer_profile.h"
#include "report.h"

#include <memory>
#include <vector>

namespace tw::trtexec {

// Forwards layer times to a profile that several contexts share.
class ProfileSink : public nvinfer1::IProfiler
{
public:
    void reportLayerTime(const char* layerName, float ms) noexcept override;
    LayerProfile profile;
};

class Inference
{
public:
    Inference(Log& log, Workspace& work, const Options& options);

    RunTrace run();
    // From the next run on, layer times go to the sink.
    void attachProfiler(ProfileSink& sink);

    nvinfer1::IExecutionContext& firstContext() { return *streams_.front().context; }
    const Bindings& outputs() const { return *streams_.front().bindings; } // valid after run()

private:
    struct Stream
    {
        std::unique_ptr<nvinfer1::IExecutionContext> context;
        std::unique_ptr<DeviceQueue> queue;
        std::unique_ptr<Bindings> bindings; // before the context's end, because it holds its addresses
    };
    using Clock = std::chrono::steady_clock;
    std::vector<QueryTimes> runStream(Stream& stream, Clock::time_point start) const;
    QueryTimes runQuery(Stream& stream, Clock::time_point start) const;
    void capture(Stream& stream) const;

    Log& log_;
    const Options& options_;
    int32_t batch_ = 1;
    bool isProfiled_ = false; // then no graph is used: layers have times only where they are enqueued
    std::vector<Stream> streams_;
};

} // namespace tw::trtexec
