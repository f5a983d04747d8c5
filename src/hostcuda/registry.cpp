// SPDX-License-Identifier: Apache-2.0
#include "registry.h"

#include <mutex>

#include "state.h"

namespace tw::hostcuda {

bool Registry::add(const Allocation& allocation)
{
    const std::unique_lock lock(mutex_);
    const auto next = byBase_.lower_bound(allocation.base);
    if (next != byBase_.end() && next->first - allocation.base < allocation.sizeBytes)
        return false;
    if (next != byBase_.begin()) {
        const Allocation& before = std::prev(next)->second;
        if (allocation.base - before.base < before.sizeBytes)
            return false;
    }
    byBase_.emplace_hint(next, allocation.base, allocation);
    return true;
}

std::optional<Allocation> Registry::remove(const void* ptr, MemoryKind kind)
{
    const std::unique_lock lock(mutex_);
    const auto it = byBase_.find(reinterpret_cast<std::uintptr_t>(ptr));
    if (it == byBase_.end() || it->second.kind != kind)
        return std::nullopt;
    const Allocation allocation = it->second;
    byBase_.erase(it);
    return allocation;
}

std::optional<Allocation> Registry::find(const void* ptr) const
{
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(ptr);
    const std::shared_lock lock(mutex_);
    auto it = byBase_.upper_bound(address);
    if (it == byBase_.begin())
        return std::nullopt;
    --it;
    if (address - it->first >= it->second.sizeBytes)
        return std::nullopt;
    return it->second;
}

std::vector<Allocation> Registry::removeAll()
{
    const std::unique_lock lock(mutex_);
    std::vector<Allocation> all;
    all.reserve(byBase_.size());
    for (const auto& entry : byBase_)
        all.push_back(entry.second);
    byBase_.clear();
    return all;
}

Registry& registry()
{
    return state().registry;
}

} // namespace tw::hostcuda
