// SPDX-License-Identifier: Apache-2.0
// IExecutionContext: names, profilers, recorders and what else is set and read back.
#include "api/engine.h"
#include "api/layer_observers.h"

using namespace tw;
using namespace tw::api;

namespace nvinfer1 {

namespace {

using tw::api::self;

} // namespace

void IExecutionContext::setDebugSync(bool sync) noexcept
{
    self(this).debugSync = sync;
}
bool IExecutionContext::getDebugSync() const noexcept
{
    return self(this).debugSync;
}
void IExecutionContext::setProfiler(IProfiler* profiler) noexcept
{
    self(this).profiler = profiler;
}
IProfiler* IExecutionContext::getProfiler() const noexcept
{
    return self(this).profiler;
}
ICudaEngine const& IExecutionContext::getEngine() const noexcept
{
    return *self(this).engine;
}
void IExecutionContext::setName(char const* name) noexcept
{
    ContextObject& c = self(this);
    if (!name)
        c.reporter.error(invalidArgument("IExecutionContext::setName: the name is a null pointer"));
    else
        guardedVoid(c.reporter, [&]() -> Result<void> {
            c.name = name;
            return {};
        });
}
char const* IExecutionContext::getName() const noexcept
{
    return self(this).name.c_str();
}
void IExecutionContext::setErrorRecorder(IErrorRecorder* recorder) noexcept
{
    self(this).reporter.setRecorder(recorder);
}
IErrorRecorder* IExecutionContext::getErrorRecorder() const noexcept
{
    return self(this).reporter.recorder();
}
void IExecutionContext::setEnqueueEmitsProfile(bool enqueueEmitsProfile) noexcept
{
    self(this).emitsProfile = enqueueEmitsProfile;
}
bool IExecutionContext::getEnqueueEmitsProfile() const noexcept
{
    return self(this).emitsProfile;
}
bool IExecutionContext::reportToProfiler() const noexcept
{
    ContextObject& c = self(this);
    if (!c.profiler)
        return false;
    return guarded<bool>(c.reporter, false, [&]() -> Result<bool> {
        if (c.isGraphMeant)
            c.keepProfile(c.graphTimes.back().times->ofLayers(*c.graphTimes.back().of->block));
        if (c.lastProfile.empty())
            return false;
        if (c.emitsProfile && !c.isGraphMeant)
            return true; // enqueue has told already
        for (auto const& [layer, ms] : c.lastProfile)
            c.profiler->reportLayerTime(layer.c_str(), ms);
        return true;
    });
}
void IExecutionContext::setPersistentCacheLimit(size_t size) noexcept
{
    self(this).persistentCacheLimit = size;
}
size_t IExecutionContext::getPersistentCacheLimit() const noexcept
{
    return self(this).persistentCacheLimit;
}
bool IExecutionContext::setNvtxVerbosity(ProfilingVerbosity verbosity) noexcept
{
    ContextObject& c = self(this);
    auto const rank = [](ProfilingVerbosity v) {
        return v == ProfilingVerbosity::kNONE ? 0 : v == ProfilingVerbosity::kLAYER_NAMES_ONLY ? 1 : 2;
    };
    int const number = static_cast<int>(verbosity);
    if (number < 0 || number >= EnumMax<ProfilingVerbosity>()) {
        c.reporter.error(invalidArgument("setNvtxVerbosity: verbosity " + std::to_string(number) + " does not exist"));
        return false;
    }
    if (rank(verbosity) > rank(static_cast<ProfilingVerbosity>(c.state->core->contents().profilingVerbosity))) {
        c.reporter.error(invalidArgument("setNvtxVerbosity: the engine was built with less profiling verbosity"));
        return false;
    }
    c.nvtxVerbosity = verbosity;
    return true;
}
ProfilingVerbosity IExecutionContext::getNvtxVerbosity() const noexcept
{
    return self(this).nvtxVerbosity;
}

} // namespace nvinfer1
