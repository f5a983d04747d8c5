// SPDX-License-Identifier: Apache-2.0
#include "plan/memory.h"

#include <algorithm>
#include <numeric>

#include "base/round.h"

namespace tw::plan {

namespace {

int64_t placedBytes(Buffer const& b)
{
    return roundUp(b.sizeBytes, kArenaAlignment);
}

int64_t lowerBoundOf(std::vector<Buffer> const& buffers)
{
    int32_t steps = 0;
    for (Buffer const& b : buffers)
        steps = std::max(steps, b.lastStep + 1);
    std::vector<int64_t> change(size_t(steps) + 1, 0);
    for (Buffer const& b : buffers) {
        change[size_t(b.firstStep)] += placedBytes(b);
        change[size_t(b.lastStep) + 1] -= placedBytes(b);
    }
    int64_t live = 0, most = 0;
    for (int64_t c : change)
        most = std::max(most, live += c);
    return most;
}

} // namespace

MemoryPlan planMemory(std::vector<Buffer> const& buffers)
{
    MemoryPlan plan;
    plan.offsets.assign(buffers.size(), 0);
    plan.lowerBound = lowerBoundOf(buffers);
    std::vector<size_t> order(buffers.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return buffers[a].sizeBytes > buffers[b].sizeBytes; });
    std::vector<size_t> placed; // by offset
    for (size_t i : order) {
        Buffer const& b = buffers[i];
        int64_t const size = placedBytes(b);
        // The smallest gap between live neighbours that holds the buffer; else after the last of them.
        int64_t best = -1, bestGap = INT64_MAX, end = 0;
        for (size_t j : placed) {
            Buffer const& other = buffers[j];
            if (other.lastStep < b.firstStep || other.firstStep > b.lastStep)
                continue;
            int64_t const gap = plan.offsets[j] - end;
            if (gap >= size && gap < bestGap) {
                best = end;
                bestGap = gap;
            }
            end = std::max(end, plan.offsets[j] + placedBytes(other));
        }
        plan.offsets[i] = best >= 0 ? best : end;
        plan.arenaBytes = std::max(plan.arenaBytes, plan.offsets[i] + size);
        placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                       [&](size_t x, size_t y) { return plan.offsets[x] < plan.offsets[y]; }),
                      i);
    }
    return plan;
}

} // namespace tw::plan
