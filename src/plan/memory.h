// SPDX-License-Identifier: Apache-2.0
// Memory planning: offsets in one arena for buffers with lifetimes. Greedy by size with best-fit gaps; on the networks
// we measured it reaches the lower bound (the largest sum of buffers that live at once).
#pragma once

#include <cstdint>
#include <vector>

namespace tw::plan {

inline constexpr int64_t kArenaAlignment = 64; // a cache line; device arenas are aligned to 256 by their allocator

struct Buffer
{
    int32_t firstStep = 0, lastStep = 0; // inclusive
    int64_t sizeBytes = 0;
};

struct MemoryPlan
{
    std::vector<int64_t> offsets; // one for each buffer; multiples of kArenaAlignment
    int64_t arenaBytes = 0;
    int64_t lowerBound = 0; // no plan can be smaller
};

MemoryPlan planMemory(std::vector<Buffer> const& buffers);

} // namespace tw::plan
