// SPDX-License-Identifier: Apache-2.0
#include "registry.h"

#include <mutex>

#include "state.h"

namespace tw::hostcuda {

bool Registry::add(Allocation const& allocation)
{
    std::unique_lock const lock(mutex_);
    auto const next = byBase_.lower_bound(allocation.base);
    if (next != byBase_.end() && next->first - allocation.base < allocation.sizeBytes)
        return false;
    if (next != byBase_.begin()) {
        Allocation const& before = std::prev(next)->second;
        if (allocation.base - before.base < before.sizeBytes)
            return false;
    }
    byBase_.emplace_hint(next, allocation.base, allocation);
    return true;
}

std::optional<Allocation> Registry::remove(void const* ptr, MemoryKind kind)
{
    std::unique_lock const lock(mutex_);
    auto const it = byBase_.find(reinterpret_cast<std::uintptr_t>(ptr));
    if (it == byBase_.end() || it->second.kind != kind)
        return std::nullopt;
    Allocation const allocation = it->second;
    byBase_.erase(it);
    return allocation;
}

std::optional<Allocation> Registry::find(void const* ptr) const
{
    std::uintptr_t const address = reinterpret_cast<std::uintptr_t>(ptr);
    std::shared_lock const lock(mutex_);
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
    std::unique_lock const lock(mutex_);
    std::vector<Allocation> all;
    all.reserve(byBase_.size());
    for (auto const& entry : byBase_)
        all.push_back(entry.second);
    byBase_.clear();
    return all;
}

Registry& registry()
{
    return state().registry;
}

} // namespace tw::hostcuda
