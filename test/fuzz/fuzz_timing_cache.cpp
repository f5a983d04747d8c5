// SPDX-License-Identifier: Apache-2.0
// Timing cache from untrusted bytes, as they are and with the hash set right, so that the checks behind it are reached.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/hash.h"
#include "tune/timing_cache.h"

namespace {

void load(std::string const& bytes)
{
    auto loaded = tw::tune::TimingCache::deserialize(bytes.data(), bytes.size(), "device");
    if (!loaded.ok() || !loaded->warning.empty() || bytes.empty())
        return;
    // What was taken is written as it was read.
    if (loaded->cache->serialize() != bytes)
        std::abort();
    tw::tune::TimingCache other("device");
    if (!other.combine(*loaded->cache, true).ok() || other.size() != loaded->cache->size())
        std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(uint8_t const* data, size_t size)
{
    std::string bytes(reinterpret_cast<char const*>(data), size);
    load(bytes);
    if (size >= 8) {
        uint64_t const hash = tw::hashBytes(bytes.data(), size - 8);
        std::memcpy(bytes.data() + size - 8, &hash, 8);
        load(bytes);
    }
    return 0;
}
