// SPDX-License-Identifier: Apache-2.0
// Methods that builders, runtimes and refitters have in common. A `maxThreads` of 0: the client has set nothing.
#pragma once

#include <algorithm>

#include "api/entry.h"
#include "api/gpu.h"
#include "api/memory_usage.h"
#include "api/property.h"
#include "device/cpu.h"

namespace tw::api {

inline bool setMaxThreads(Reporter& reporter, int32_t& field, int32_t maxThreads)
{
    if (maxThreads < 1) {
        reporter.error(invalidArgument("setMaxThreads: {} threads; at least 1 is needed", maxThreads));
        return false;
    }
    field = maxThreads;
    return true;
}

// createInferBuilder and createInferRuntime; `method` is one of them.
template <class Public, class Object>
Public* createObject(void* logger, int32_t version, char const* method) noexcept
{
    auto* log = static_cast<nvinfer1::ILogger*>(logger);
    if (!checkClientVersion(log, version, method))
        return nullptr;
    Reporter reporter(log);
    return guarded<Public*>(reporter, nullptr, [&]() -> Result<Public*> {
        TW_ASSIGN(Environment const environment, readEnvironment());
        device::limitIsa(environment.isaLimit);
        MemoryChange const change(nullptr);
        TW_ASSIGN(auto gpu, chooseGpu(environment, reporter));
        change.finish(reporter, "Init CUDA", gpu.get());
        return static_cast<Public*>(new Object(log, environment, std::move(gpu)));
    });
}

} // namespace tw::api

// Stands in namespace nvinfer1.
#define TW_OBJECT_METHODS(Public)                                                                                      \
    TW_RECORDER_METHODS(Public)                                                                                        \
    TW_GETTER(Public, ILogger*, getLogger, self.reporter.logger())                                                     \
    TW_GETTER(Public, int32_t, getMaxThreads, std::max(1, self.maxThreads))                                            \
    bool Public::setMaxThreads(int32_t maxThreads) noexcept                                                            \
    {                                                                                                                  \
        auto& self = objectOf(*this);                                                                                  \
        return tw::api::setMaxThreads(self.reporter, self.maxThreads, maxThreads);                                     \
    }
