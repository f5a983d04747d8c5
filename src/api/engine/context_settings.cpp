// SPDX-License-Identifier: Apache-2.0
// IExecutionContext: names, profilers, recorders and what else is set and read back.
#include "api/engine/engine.h"
#include "api/engine/layer_observers.h"

using namespace tw;
using namespace tw::api;

namespace nvinfer1 {

TW_PROPERTY(IExecutionContext, bool, setDebugSync, getDebugSync, debugSync)
TW_PROPERTY(IExecutionContext, IProfiler*, setProfiler, getProfiler, profiler)
TW_GETTER(IExecutionContext, ICudaEngine const&, getEngine, *self.engine)
void IExecutionContext::setName(char const* name) noexcept
{
    guardedVoid(objectOf(*this), [&](ContextObject& c) -> Result<void> {
        if (!name)
            return invalidArgument("IExecutionContext::setName: the name is a null pointer");
        c.name = name;
        return {};
    });
}
TW_GETTER(IExecutionContext, char const*, getName, self.name.c_str())
TW_RECORDER_METHODS(IExecutionContext)
TW_PROPERTY(IExecutionContext, bool, setEnqueueEmitsProfile, getEnqueueEmitsProfile, emitsProfile)
bool IExecutionContext::reportToProfiler() const noexcept
{
    ContextObject& c = objectOf(*this);
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
TW_PROPERTY(IExecutionContext, size_t, setPersistentCacheLimit, getPersistentCacheLimit, persistentCacheLimit)
bool IExecutionContext::setNvtxVerbosity(ProfilingVerbosity verbosity) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](ContextObject& c) -> Result<bool> {
        auto const rank = [](ProfilingVerbosity v) {
            return v == ProfilingVerbosity::kNONE ? 0 : v == ProfilingVerbosity::kLAYER_NAMES_ONLY ? 1 : 2;
        };
        int const number = static_cast<int>(verbosity);
        if (number < 0 || number >= EnumMax<ProfilingVerbosity>())
            return invalidArgument("setNvtxVerbosity: verbosity {} does not exist", number);
        if (rank(verbosity) > rank(static_cast<ProfilingVerbosity>(c.state->core->contents().profilingVerbosity)))
            return invalidArgument("setNvtxVerbosity: the engine was built with less profiling verbosity");
        c.nvtxVerbosity = verbosity;
        return true;
    });
}
TW_GETTER(IExecutionContext, ProfilingVerbosity, getNvtxVerbosity, self.nvtxVerbosity)

} // namespace nvinfer1
