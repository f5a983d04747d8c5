// SPDX-License-Identifier: Apache-2.0
#include "infer.h"

#include <algorithm>
#include <exception>
#include <thread>

#include <fmt/core.h>

#include "cuda_driver.h"

namespace tw::trtexec {

namespace {

double msBetween(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to)
{
    return std::chrono::duration<double, std::milli>(to - from).count();
}

// Layer ranges for profiling tools can say no more than the engine keeps of its layers.
void setNvtxDetail(nvinfer1::ICudaEngine const& engine, nvinfer1::IExecutionContext& context, ProfilingDetail wanted)
{
    auto const rank = [](ProfilingDetail d) {
        return d == ProfilingDetail::kNone ? 0 : d == ProfilingDetail::kLayerNames ? 1 : 2;
    };
    if (rank(wanted) <= rank(static_cast<ProfilingDetail>(engine.getProfilingVerbosity())))
        context.setNvtxVerbosity(static_cast<nvinfer1::ProfilingVerbosity>(wanted));
}

// The profile that stream `s` uses: its own where the engine has enough, else the first.
void selectProfile(nvinfer1::ICudaEngine const& engine, nvinfer1::IExecutionContext& context, int32_t s)
{
    int32_t const profiles = engine.getNbOptimizationProfiles();
    if (s == 0 || profiles == 0)
        return;
    bool dynamic = false;
    for (int32_t i = 0; i < engine.getNbIOTensors() && !dynamic; ++i)
        dynamic = hasDynamicDim(engine.getTensorShape(engine.getIOTensorName(i)));
    int32_t const profile = s < profiles ? s : 0;
    if (!context.setOptimizationProfileAsync(profile, nullptr) && dynamic)
        throw Failure(fmt::format("--streams: the engine has {} optimization profile(s), stream {} needs one of its "
                                  "own; build with the same --streams",
                                  profiles, s));
}

} // namespace

void ProfileSink::reportLayerTime(char const* layerName, float ms) noexcept
{
    try {
        profile.add(layerName ? layerName : "", ms);
    } catch (...) {
        // No exception may cross the library; a lost record shows as a lower count.
    }
}

Inference::Inference(Log& log, Workspace& work, Options const& options) : log_(log), options_(options)
{
    InferenceOptions const& inference = options.inference;
    bool const implicit = work.engine && work.engine->hasImplicitBatchDimension();
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
    for (int32_t s = 0; s < inference.streams; ++s)
        lanes_.push_back(std::make_unique<Lane>(log, work, options, s));
}

void Inference::attachProfiler(ProfileSink& sink)
{
    isProfiled_ = true;
    for (std::unique_ptr<Lane> const& lane : lanes_)
        lane->context().setProfiler(&sink);
}

Lane::Lane(Log& log, Workspace& work, Options const& options, int32_t number)
    : log_(log), inference_(options.inference), clock_(options.inference.spinWait)
{
    if (!work.safeEngine) {
        useEngine(work, options, number);
        return;
    }
    safeContext_ = required(work.safeEngine->createExecutionContext(), "Creating an execution context");
    bindings_ =
        std::make_unique<Bindings>(log, *work.safeEngine, *safeContext_, options, work.recordedInputs, number == 0);
}

void Lane::useEngine(Workspace& work, Options const& options, int32_t number)
{
    nvinfer1::ICudaEngine& engine = *work.engine;
    context_ = required(engine.createExecutionContext(), "Creating an execution context");
    setNvtxDetail(engine, *context_, options.build.profiling);
    if (!engine.hasImplicitBatchDimension())
        selectProfile(engine, *context_, number);
    if (inference_.persistentCacheRatio > 0) {
        // A CPU has no such part of a cache.
        double const most = usesGpu() ? static_cast<double>(gpuFacts().persistingL2Bytes) : 0;
        auto const limit = static_cast<size_t>(most * inference_.persistentCacheRatio);
        if (number == 0)
            log_.info(fmt::format("Setting persistentCacheLimit to {} bytes.", limit));
        context_->setPersistentCacheLimit(limit);
    }
    bindings_ = std::make_unique<Bindings>(log_, engine, *context_, options, work.recordedInputs, number == 0);
}

double Lane::now() const
{
    return msBetween(start_, Clock::now());
}

void Lane::begin(Clock::time_point start, bool isProfiled)
{
    start_ = start;
    if (!inference_.transfers) {
        bindings_->copyInputs(compute_.handle());
        compute_.synchronize();
    }
    if (inference_.cudaGraph && usesGpu() && !isProfiled && !compute_.hasGraph())
        capture();
    usesGraph_ = compute_.hasGraph() && !isProfiled;
    constexpr size_t kAhead = 2; // one is computed, one waits
    bool const alone = !usesGpu() || isProfiled || inference_.exposeDma || bindings_->hasGrowingOutputs();
    slots_.clear();
    next_ = active_ = 0;
    while (slots_.size() < (alone ? 1 : kAhead))
        slots_.push_back(std::make_unique<Slot>(inference_.spinWait));
    clock_.record(compute_);
    clock_.wait();
    clockMs_ = now();
    compute_.sleep(inference_.sleepMs);
}

void Lane::compute()
{
    if (!(usesGraph_ ? compute_.launch() : bindings_->enqueue(compute_.handle())))
        throw LibraryFailure("Inference failed");
}

void Lane::giveOnCpu(QueryTimes& q)
{
    q.startEnq = q.startH2d = now();
    if (inference_.transfers)
        bindings_->copyInputs(nullptr);
    q.endH2d = q.startCompute = inference_.transfers ? now() : q.startH2d;
    compute();
    q.endCompute = q.startD2h = now();
    if (inference_.transfers)
        bindings_->copyOutputs(nullptr);
    q.endD2h = q.endEnq = inference_.transfers ? now() : q.startD2h;
}

void Lane::giveOnGpu(Slot& slot)
{
    if (inference_.transfers) {
        slot.inputBegin.record(inputs_);
        bindings_->copyInputs(inputs_.handle());
        slot.inputEnd.record(inputs_);
        compute_.waitFor(slot.inputEnd);
    }
    slot.computeBegin.record(compute_);
    slot.times.startEnq = now();
    compute();
    slot.times.endEnq = now();
    slot.computeEnd.record(compute_);
    if (!inference_.transfers)
        return;
    if (bindings_->hasGrowingOutputs())
        compute_.synchronize(); // what is to be copied is known then
    outputs_.waitFor(slot.computeEnd);
    slot.outputBegin.record(outputs_);
    bindings_->copyOutputs(outputs_.handle());
    slot.outputEnd.record(outputs_);
}

void Lane::give()
{
    Slot& slot = *slots_[next_];
    slot.times = {};
    if (usesGpu())
        giveOnGpu(slot);
    else
        giveOnCpu(slot.times);
    next_ = (next_ + 1) % slots_.size();
    ++active_;
}

QueryTimes Lane::finish()
{
    Slot& slot = *slots_[(next_ + slots_.size() - active_) % slots_.size()];
    --active_;
    QueryTimes& q = slot.times;
    if (!usesGpu())
        return q;
    auto const at = [&](DeviceEvent const& event) { return clockMs_ + event.msSince(clock_); };
    (inference_.transfers ? slot.outputEnd : slot.computeEnd).wait();
    q.startCompute = at(slot.computeBegin);
    q.endCompute = at(slot.computeEnd);
    q.startH2d = inference_.transfers ? at(slot.inputBegin) : q.startCompute;
    q.endH2d = inference_.transfers ? at(slot.inputEnd) : q.startCompute;
    q.startD2h = inference_.transfers ? at(slot.outputBegin) : q.endCompute;
    q.endD2h = inference_.transfers ? at(slot.outputEnd) : q.endCompute;
    return q;
}

void Lane::end()
{
    if (!inference_.transfers)
        bindings_->copyOutputs(outputs_.handle());
    outputs_.synchronize();
}

void Lane::capture()
{
    // The first run settles what a capture must not do: shapes, memory.
    if (!bindings_->enqueue(compute_.handle()))
        throw LibraryFailure("Inference failed");
    compute_.synchronize();
    bool captured = compute_.beginCapture();
    if (captured) {
        bool const enqueued = bindings_->enqueue(compute_.handle());
        captured = compute_.endCapture() && enqueued;
    }
    if (!captured)
        log_.warning(
            fmt::format("--useCudaGraph: this network cannot be captured (CUDA driver error {}); running without it",
                        compute_.captureError()));
}

std::vector<QueryTimes> Inference::runLanes(std::span<std::unique_ptr<Lane> const> lanes, Clock::time_point start) const
{
    InferenceOptions const& inference = options_.inference;
    double const endMs = inference.warmUpMs + inference.durationSec * 1000;
    std::vector<QueryTimes> times;
    int64_t measured = 0; // of the first lane; the others have as many, about
    auto const finish = [&](size_t lane) {
        times.push_back(lanes[lane]->finish());
        measured += lane == 0 && times.back().startCompute >= inference.warmUpMs;
    };
    auto const finishAll = [&] {
        for (size_t i = 0; i < lanes.size(); ++i)
            while (!lanes[i]->isEmpty())
                finish(i);
    };
    for (std::unique_ptr<Lane> const& lane : lanes)
        lane->begin(start, isProfiled_);
    while (measured < inference.iterations || msBetween(start, Clock::now()) < endMs) {
        for (size_t i = 0; i < lanes.size(); ++i) {
            if (lanes[i]->isFull())
                finish(i);
            lanes[i]->give();
        }
        if (!usesGpu() || inference.idleMs > 0)
            finishAll();
        if (inference.idleMs > 0)
            std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(inference.idleMs));
    }
    finishAll();
    for (std::unique_ptr<Lane> const& lane : lanes)
        lane->end();
    return times;
}

RunTrace Inference::run()
{
    log_.info("Starting inference");
    ProfiledRange const profiled;
    RunTrace trace;
    trace.warmUpMs = options_.inference.warmUpMs;
    trace.batch = batch_;
    trace.eagerDevice = !usesGpu();
    Clock::time_point const start = trace.start = Clock::now();
    // The CPU device computes in the calling thread: streams run at once only in threads of their own.
    if (!options_.inference.threads && (lanes_.size() == 1 || usesGpu())) {
        trace.queries = runLanes(lanes_, start);
        return trace;
    }
    std::vector<std::vector<QueryTimes>> times(lanes_.size());
    std::vector<std::exception_ptr> failures(lanes_.size());
    std::vector<std::thread> threads;
    for (size_t s = 0; s < lanes_.size(); ++s)
        threads.emplace_back([&, s] {
            try {
                if (usesGpu())
                    useGpuHere();
                times[s] = runLanes(std::span(lanes_).subspan(s, 1), start);
            } catch (...) {
                failures[s] = std::current_exception();
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    for (std::exception_ptr const& failure : failures)
        if (failure)
            std::rethrow_exception(failure);
    for (std::vector<QueryTimes> const& part : times)
        trace.queries.insert(trace.queries.end(), part.begin(), part.end());
    return trace;
}

} // namespace tw::trtexec
