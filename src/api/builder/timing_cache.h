// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "NvInfer.h"
#include "api/property.h"
#include "tune/timing_cache.h"

namespace tw::api {

struct TimingCacheObject final : nvinfer1::ITimingCache
{
    TimingCacheObject(Reporter const& r, std::shared_ptr<tune::TimingCache> c) : reporter(r), cache(std::move(c)) {}
    mutable Reporter reporter;
    std::shared_ptr<tune::TimingCache> cache; // never null; the builder adds to it, although 8.5 passes it as const
};

TW_OBJECT(nvinfer1::ITimingCache, TimingCacheObject)

} // namespace tw::api
