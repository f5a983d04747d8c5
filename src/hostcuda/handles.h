// SPDX-License-Identifier: Apache-2.0
// Tables of live handles. A handle is a number that is never used again and carries its kind in the top bits, so a
// stale, foreign or mistyped handle is found out by a failed look-up instead of by a crash.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

namespace tw::hostcuda {

enum class HandleKind : std::uint64_t
{
    kStream = 0x51,
    kEvent = 0x52,
    kGraph = 0x53,
    kNode = 0x54,
    kExec = 0x55,
    kPool = 0x56
};

template <class T>
class HandleTable
{
public:
    explicit HandleTable(HandleKind kind) : next_(static_cast<std::uint64_t>(kind) << 56) {}

    template <class Handle>
    Handle add(std::shared_ptr<T> object)
    {
        std::unique_lock const lock(mutex_);
        next_ += 16;
        live_.emplace(next_, std::move(object));
        return reinterpret_cast<Handle>(next_);
    }

    std::shared_ptr<T> find(void const* handle) const
    {
        std::shared_lock const lock(mutex_);
        auto const it = live_.find(reinterpret_cast<std::uint64_t>(handle));
        return it == live_.end() ? nullptr : it->second;
    }

    // Null when there is no such handle, e.g. at the second destruction.
    std::shared_ptr<T> remove(void const* handle)
    {
        std::unique_lock const lock(mutex_);
        auto const it = live_.find(reinterpret_cast<std::uint64_t>(handle));
        if (it == live_.end())
            return nullptr;
        std::shared_ptr<T> object = std::move(it->second);
        live_.erase(it);
        return object;
    }

    std::vector<std::shared_ptr<T>> all() const
    {
        std::shared_lock const lock(mutex_);
        std::vector<std::shared_ptr<T>> objects;
        objects.reserve(live_.size());
        for (auto const& entry : live_)
            objects.push_back(entry.second);
        return objects;
    }

    // The caller destroys what it gets, outside of any lock.
    std::vector<std::shared_ptr<T>> removeAll()
    {
        std::vector<std::shared_ptr<T>> objects = all();
        std::unique_lock const lock(mutex_);
        live_.clear();
        return objects;
    }

private:
    mutable std::shared_mutex mutex_;
    std::unordered_map<std::uint64_t, std::shared_ptr<T>> live_;
    std::uint64_t next_;
};

} // namespace tw::hostcuda
