// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "device/cuda/device.h"
#include "runtime/execute_cuda.h"

namespace tw::runtime {

namespace {

constexpr size_t kMostEntries = 4; // clients alternate between a few sets of buffers

} // namespace

size_t CudaReplay::graphs() const
{
    return size_t(std::ranges::count_if(entries_, [](Entry const& e) { return e.graph != nullptr; }));
}

CudaReplay::~CudaReplay()
{
    cuda::Current const current(*device_);
    for (Entry const& e : entries_)
        if (e.graph)
            device_->driver().cuGraphExecDestroy(e.graph);
    if (stream_)
        device_->driver().cuStreamDestroy(static_cast<CUstream_st*>(stream_));
}

Result<void> CudaReplay::execute(ExecuteArgs const& args, FunctionRef<Result<void>(void* stream)> run)
{
    cuda::Driver const& driver = device_->driver();
    auto* const stream = static_cast<CUstream_st*>(args.stream);
    int capturing = 0;
    bool const canCapture = driver.cuStreamBeginCapture && driver.cuStreamEndCapture && driver.cuGraphInstantiate &&
                            driver.cuGraphLaunch && driver.cuGraphExecDestroy && driver.cuGraphDestroy;
    if (!canCapture || driver.cuStreamIsCapturing(stream, &capturing) != cuda::kSuccess || capturing)
        return run(args.stream);
    std::vector<void const*> addresses{args.arena};
    for (TensorRef const& t : args.inputs)
        addresses.push_back(t.data);
    for (TensorRef const& t : args.outputs)
        addresses.push_back(t.data);
    auto it = std::ranges::find_if(entries_, [&](Entry const& e) { return e.addresses == addresses; });
    if (it == entries_.end()) {
        if (entries_.size() == kMostEntries) {
            if (entries_.back().graph)
                driver.cuGraphExecDestroy(entries_.back().graph);
            entries_.pop_back();
        }
        entries_.push_front(Entry{std::move(addresses), nullptr, false});
        return run(args.stream);
    }
    entries_.splice(entries_.begin(), entries_, it);
    Entry& entry = entries_.front();
    if (!entry.graph && !entry.failed)
        if (auto captured = capture(entry, run); !captured.ok()) {
            entry.failed = true;
            whyNot_ = std::move(captured).error().message;
        }
    if (!entry.graph)
        return run(args.stream);
    TW_CUDA(driver, cuGraphLaunch(entry.graph, stream));
    return {};
}

Result<void> CudaReplay::capture(Entry& entry, FunctionRef<Result<void>(void* stream)> run)
{
    cuda::Driver const& driver = device_->driver();
    if (!stream_) {
        CUstream_st* made = nullptr;
        TW_CUDA(driver, cuStreamCreate(&made, cuda::kStreamNonBlocking));
        stream_ = made;
    }
    auto* const stream = static_cast<CUstream_st*>(stream_);
    TW_CUDA(driver, cuStreamBeginCapture(stream, cuda::kCaptureRelaxed));
    auto ran = run(stream_);
    void* graph = nullptr;
    auto ended = driver.check(driver.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
    Result<void> made = Result<void>();
    if (ran.ok() && ended.ok() && graph) {
        made = driver.check(driver.cuGraphInstantiate(&entry.graph, graph, 0), "cuGraphInstantiate");
        if (!made.ok())
            entry.graph = nullptr;
    }
    if (graph)
        driver.cuGraphDestroy(graph);
    TW_TRY(std::move(ran));
    TW_TRY(std::move(ended));
    TW_TRY(std::move(made));
    return entry.graph ? Result<void>() : Result<void>(internalError("the run cannot be captured"));
}

} // namespace tw::runtime
