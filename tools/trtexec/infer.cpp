// SPDX-License-Identifier: Apache-2.0
#include "infer.h"

#include <algorithm>
#include <exception>
#include <thread>

namespace tw::trtexec {

namespace {

double msBetween(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to)
{
    return std::chrono::duration<double, std::milli>(to - from).count();
}

void sleepMs(double ms)
{
    if (ms > 0)
        std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

// Layer ranges for profiling tools can say no more than the engine keeps of its layers.
void setNvtxDetail(const nvinfer1::ICudaEngine& engine, nvinfer1::IExecutionContext& context, ProfilingDetail wanted)
{
    const auto rank = [](ProfilingDetail d) {
        return d == ProfilingDetail::kNone ? 0 : d == ProfilingDetail::kLayerNames ? 1 : 2;
    };
    if (rank(wanted) <= rank(static_cast<ProfilingDetail>(engine.getProfilingVerbosity())))
        context.setNvtxVerbosity(static_cast<nvinfer1::ProfilingVerbosity>(wanted));
}

// The profile that stream `s` uses: its own where the engine has enough, else the first.
void selectProfile(const nvinfer1::ICudaEngine& engine, nvinfer1::IExecutionContext& context, int32_t s)
{
    const int32_t profiles = engine.getNbOptimizationProfiles();
    if (s == 0 || profiles == 0)
        return;
    bool dynamic = false;
    for (int32_t i = 0; i < engine.getNbIOTensors() && !dynamic; ++i)
        dynamic = hasDynamicDim(engine.getTensorShape(engine.getIOTensorName(i)));
    const int32_t profile = s < profiles ? s : 0;
    if (!context.setOptimizationProfileAsync(profile, nullptr) && dynamic)
        throw Failure("--streams: the engine has " + std::to_string(profiles) + " optimization profile(s), stream " +
                      std::to_string(s) + " needs one of its own; build with the same --streams");
}

} // namespace

void ProfileSink::reportLayerTime(const char* layerName, float ms) noexcept
{
    try {
        profile.add(layerName ? layerName : "", ms);
    } catch (...) {
        // No exception may cross the library; a lost record shows as a lower count.
    }
}

Inference::Inference(Log& log, Workspace& work, const Options& options) : log_(log), options_(options)
{
    nvinfer1::ICudaEngine& engine = *work.engine;
    const InferenceOptions& inference = options.inference;
    const bool implicit = engine.hasImplicitBatchDimension();
    batch_ = implicit ? std::max(inference.batch, 1) : 1;
    if (!implicit && inference.batchGiven)
        log.warning("--batch has no effect: the engine was built with explicit batch; use --shapes");
    if (!implicit)
        log.verbose("Using enqueueV3.");
    if (inference.cudaGraph && !usesGpu())
        log.warning("--useCudaGraph: the CPU device cannot capture a CUDA graph; running without it");
    if (inference.managedMemory && usesGpu())
        useManagedMemory();
    else if (inference.managedMemory)
        log.verbose("--useManagedMemory: host and device share their memory on the CPU device");
    for (int32_t s = 0; s < inference.streams; ++s) {
        Stream stream;
        stream.queue = std::make_unique<DeviceQueue>();
        stream.context = required(engine.createExecutionContext(), "Creating an execution context");
        setNvtxDetail(engine, *stream.context, options.build.profiling);
        if (!implicit)
            selectProfile(engine, *stream.context, s);
        if (inference.persistentCacheRatio > 0) {
            // A CPU has no such part of a cache.
            const double most = usesGpu() ? static_cast<double>(gpuFacts().persistingL2Bytes) : 0;
            const auto limit = static_cast<size_t>(most * inference.persistentCacheRatio);
            if (s == 0)
                log.info("Setting persistentCacheLimit to " + std::to_string(limit) + " bytes.");
            stream.context->setPersistentCacheLimit(limit);
        }
        stream.bindings =
            std::make_unique<Bindings>(log, engine, *stream.context, options, work.recordedInputs, s == 0);
        streams_.push_back(std::move(stream));
    }
}

void Inference::attachProfiler(ProfileSink& sink)
{
    isProfiled_ = true;
    for (Stream& stream : streams_)
        stream.context->setProfiler(&sink);
}

QueryTimes Inference::runQuery(Stream& stream, Clock::time_point start) const
{
    const auto now = [&] { return msBetween(start, Clock::now()); };
    QueryTimes q;
    q.startEnq = now();
    q.startH2d = q.startEnq;
    if (options_.inference.transfers)
        stream.bindings->copyInputs();
    q.endH2d = options_.inference.transfers ? now() : q.startH2d;
    q.startCompute = q.endH2d;
    if (usesGpu())
        q.startEnq = q.endH2d;
    stream.queue->begin();
    const bool launches = stream.queue->hasGraph() && !isProfiled_;
    if (!(launches ? stream.queue->launch() : stream.bindings->enqueue(stream.queue->stream())))
        throw LibraryFailure("Inference failed");
    stream.queue->end();
    const double enqueued = now();
    const double gpuMs = stream.queue->milliseconds();
    q.endCompute = usesGpu() ? q.startCompute + gpuMs : now();
    q.startD2h = usesGpu() ? now() : q.endCompute;
    if (options_.inference.transfers)
        stream.bindings->copyOutputs();
    q.endD2h = options_.inference.transfers ? now() : q.startD2h;
    q.endEnq = usesGpu() ? enqueued : q.endD2h;
    return q;
}

void Inference::capture(Stream& stream) const
{
    // The first run settles what a capture must not do: shapes, memory.
    if (!stream.bindings->enqueue(stream.queue->stream()))
        throw LibraryFailure("Inference failed");
    stream.queue->synchronize();
    bool captured = stream.queue->beginCapture();
    if (captured) {
        const bool enqueued = stream.bindings->enqueue(stream.queue->stream());
        captured = stream.queue->endCapture() && enqueued;
    }
    if (!captured)
        log_.warning("--useCudaGraph: this network cannot be captured (CUDA driver error " +
                     std::to_string(stream.queue->captureError()) + "); running without it");
}

std::vector<QueryTimes> Inference::runStream(Stream& stream, Clock::time_point start) const
{
    const InferenceOptions& inference = options_.inference;
    const double endMs = inference.warmUpMs + inference.durationSec * 1000;
    std::vector<QueryTimes> times;
    int64_t measured = 0;
    if (!inference.transfers)
        stream.bindings->copyInputs();
    if (inference.cudaGraph && usesGpu() && !isProfiled_)
        capture(stream);
    sleepMs(inference.sleepMs);
    while (measured < inference.iterations || msBetween(start, Clock::now()) < endMs) {
        times.push_back(runQuery(stream, start));
        if (times.back().startCompute >= inference.warmUpMs)
            ++measured;
        sleepMs(inference.idleMs);
    }
    if (!inference.transfers)
        stream.bindings->copyOutputs();
    return times;
}

RunTrace Inference::run()
{
    log_.info("Starting inference");
    const ProfiledRange profiled;
    RunTrace trace;
    trace.warmUpMs = options_.inference.warmUpMs;
    trace.batch = batch_;
    const Clock::time_point start = Clock::now();
    if (streams_.size() == 1 && !options_.inference.threads) {
        trace.queries = runStream(streams_.front(), start);
        return trace;
    }
    // The CPU device computes in the calling thread: streams run at once only in threads of their own.
    std::vector<std::vector<QueryTimes>> times(streams_.size());
    std::vector<std::exception_ptr> failures(streams_.size());
    std::vector<std::thread> threads;
    for (size_t s = 0; s < streams_.size(); ++s)
        threads.emplace_back([&, s] {
            try {
                times[s] = runStream(streams_[s], start);
            } catch (...) {
                failures[s] = std::current_exception();
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    for (const std::exception_ptr& failure : failures)
        if (failure)
            std::rethrow_exception(failure);
    for (const std::vector<QueryTimes>& part : times)
        trace.queries.insert(trace.queries.end(), part.begin(), part.end());
    return trace;
}

} // namespace tw::trtexec
