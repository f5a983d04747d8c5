// SPDX-License-Identifier: Apache-2.0
#include "api/builder/config.h"
#include "api/host_memory.h"

using namespace tw;
using namespace tw::api;

namespace nvinfer1 {

IHostMemory* ITimingCache::serialize() const noexcept
{
    return guarded<IHostMemory*>(objectOf(*this), nullptr, [&](TimingCacheObject const& c) -> Result<IHostMemory*> {
        return new HostMemoryObject(c.cache->serialize());
    });
}

bool ITimingCache::combine(ITimingCache const& inputCache, bool ignoreMismatch) noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](TimingCacheObject const& c) -> Result<bool> {
        TW_TRY(c.cache->combine(*objectOf(inputCache).cache, ignoreMismatch));
        return true;
    });
}

bool ITimingCache::reset() noexcept
{
    return guarded<bool>(objectOf(*this), false, [&](TimingCacheObject const& c) -> Result<bool> {
        c.cache->clear();
        return true;
    });
}

} // namespace nvinfer1
