// SPDX-License-Identifier: Apache-2.0
// Entry points of libnvinfer that belong to no object, and the version marks.
#include "api/entry.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "NvInfer.h"
#include "api/plugin/registry.h"

using namespace tw;
using namespace tw::api;

extern "C" {
// Tools look for this name with `nm -D`.
TENSORRTAPI int32_t tensorrt_version_8_5_3_1 = 0;
int32_t const tensorwright_abi_8_5 = 0; // made visible by its declaration
}

namespace tw::api {

namespace {

struct LiveLoggers
{
    std::mutex mutex;
    std::vector<nvinfer1::ILogger*> list; // one entry for each use, oldest first
};
LiveLoggers& liveLoggers()
{
    static LiveLoggers& loggers = *new LiveLoggers; // never destroyed: static plugin registrars use it at exit
    return loggers;
}

} // namespace

LoggerUse::LoggerUse(nvinfer1::ILogger* logger) : logger_(logger)
{
    std::lock_guard lock(liveLoggers().mutex);
    liveLoggers().list.push_back(logger);
}
LoggerUse::~LoggerUse()
{
    std::lock_guard lock(liveLoggers().mutex);
    auto& list = liveLoggers().list;
    list.erase(std::ranges::find(list, logger_));
}

bool checkClientVersion(nvinfer1::ILogger* logger, int32_t version, char const* what) noexcept
{
    Reporter reporter(logger);
    return guarded<bool>(reporter, false, [&]() -> Result<bool> {
        if (!logger)
            return invalidArgument("{}: the logger is a null pointer", what);
        if (version / 100 != NV_TENSORRT_VERSION / 100)
            return invalidArgument("{}: the program was compiled with headers of version {}, this library is version "
                                   "{}; compile it with the headers of 8.5",
                                   what, version, NV_TENSORRT_VERSION);
        return true;
    });
}

} // namespace tw::api

extern "C" int32_t getInferLibVersion() noexcept
{
    return NV_TENSORRT_VERSION;
}

extern "C" nvinfer1::ILogger* getLogger() noexcept
{
    std::lock_guard lock(liveLoggers().mutex);
    auto const& list = liveLoggers().list;
    return list.empty() ? nullptr : list.front();
}

extern "C" nvinfer1::IPluginRegistry* getPluginRegistry() noexcept
{
    return &processRegistry();
}

extern "C" nvinfer1::IPluginRegistry* nvinfer1::getBuilderPluginRegistry(nvinfer1::EngineCapability capability) noexcept
{
    switch (capability) {
    case EngineCapability::kSTANDARD:
        return &processRegistry();
    case EngineCapability::kSAFETY:
        return &safetyRegistry();
    default:
        return nullptr; // a DLA runs no plugins
    }
}
