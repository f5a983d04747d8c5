// SPDX-License-Identifier: Apache-2.0
#include "tune/timing_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/byte_stream.h"
#include "base/hash.h"

namespace tw::tune {

namespace {

constexpr char kMagic[8] = {'T', 'W', 'T', 'C', 'A', 'C', 'H', 'E'};
constexpr uint32_t kFormat = 3;                // 2: rivals; 3: hashed by XXH3
constexpr uint32_t kVersion[4] = {8, 5, 3, 1}; // of the library: a cache is good for exactly one

bool isSound(std::string_view key, CacheEntry const& e)
{
    return !key.empty() && key.size() <= TimingCache::kMaxKeyBytes && e.config.size() <= TimingCache::kMaxConfig &&
           std::isfinite(e.microseconds) && e.microseconds >= 0 && e.rivals.size() <= TimingCache::kMaxRivals &&
           std::ranges::all_of(e.rivals, [](plan::Rival const& r) {
               return std::isfinite(r.microseconds) && r.name.size() <= TimingCache::kMaxRivalBytes &&
                      r.reason.size() <= TimingCache::kMaxRivalBytes;
           });
}

Error damaged(std::string const& how)
{
    return invalidArgument("timing cache: the bytes are damaged: {}", how);
}

} // namespace

std::string TimingCache::fingerprint() const
{
    std::lock_guard lock(mutex_);
    return fingerprint_;
}
size_t TimingCache::size() const
{
    std::lock_guard lock(mutex_);
    return entries_.size();
}
std::optional<CacheEntry> TimingCache::find(std::string_view key) const
{
    std::lock_guard lock(mutex_);
    auto const it = entries_.find(key);
    return it == entries_.end() ? std::nullopt : std::optional(it->second);
}
bool TimingCache::insert(std::string const& key, CacheEntry entry)
{
    if (!isSound(key, entry))
        return false;
    std::lock_guard lock(mutex_);
    entries_.insert_or_assign(key, std::move(entry));
    return true;
}
void TimingCache::clear()
{
    std::lock_guard lock(mutex_);
    entries_.clear();
}

Result<void> TimingCache::combine(TimingCache const& other, bool ignoreMismatch)
{
    if (&other == this)
        return {};
    std::scoped_lock lock(mutex_, other.mutex_);
    if (other.fingerprint_ != fingerprint_ && !ignoreMismatch)
        return invalidArgument("timing cache: the other cache was measured on '{}', this one is of '{}'; pass "
                               "ignoreMismatch to use it all the same",
                               other.fingerprint_, fingerprint_);
    Entries copy = other.entries_; // before anything changes: an exception leaves this cache as it was
    entries_.merge(copy);
    return {};
}

std::string TimingCache::serialize() const
{
    std::lock_guard lock(mutex_);
    ByteWriter to{std::string(kMagic, sizeof kMagic)};
    to.put(kFormat);
    for (uint32_t v : kVersion)
        to.put(v);
    to.putText(fingerprint_.substr(0, kMaxFingerprintBytes));
    to.put(uint64_t(entries_.size()));
    for (auto const& [key, e] : entries_) {
        to.putText(key);
        to.put(e.tactic);
        to.put(uint32_t(e.config.size()));
        for (int64_t c : e.config)
            to.put(c);
        to.put(e.microseconds);
        to.put(uint32_t(e.rivals.size()));
        for (plan::Rival const& r : e.rivals) {
            to.putText(r.name);
            to.put(r.microseconds);
            to.putText(r.reason);
        }
    }
    to.put(hashBytes(to.out.data(), to.out.size()));
    return std::move(to.out);
}

Result<TimingCache::Loaded> TimingCache::deserialize(void const* bytes, size_t sizeBytes,
                                                     std::string const& fingerprint)
{
    if (sizeBytes == 0)
        return Loaded{std::make_unique<TimingCache>(fingerprint), ""};
    if (!bytes)
        return invalidArgument("timing cache: a null pointer with size {}", sizeBytes);
    ByteReader in{static_cast<char const*>(bytes), static_cast<char const*>(bytes) + sizeBytes};
    if (sizeBytes < sizeof kMagic || std::memcmp(in.at, kMagic, sizeof kMagic) != 0)
        return invalidArgument("timing cache: these {} bytes are no timing cache", sizeBytes);
    in.at += sizeof kMagic;
    auto const format = in.get<uint32_t>();
    uint32_t version[4] = {};
    for (uint32_t& v : version)
        v = in.get<uint32_t>();
    if (!in.ok)
        return damaged("the header is cut off");
    if (format != kFormat || std::memcmp(version, kVersion, sizeof version) != 0) {
        std::string text;
        for (uint32_t v : version)
            text += fmt::format("{}{}", text.empty() ? "" : ".", v);
        return Loaded{std::make_unique<TimingCache>(fingerprint),
                      fmt::format("timing cache: written by version {} (format {}), this is 8.5.3.1 (format {}): "
                                  "starting with an empty cache",
                                  text, format, kFormat)};
    }
    // The hash stands at the end, so everything before it is checked as a whole before any of it is used.
    uint64_t expected = 0;
    if (!in.has(sizeof expected))
        return damaged("the hash is cut off");
    in.end -= sizeof expected;
    std::memcpy(&expected, in.end, sizeof expected);
    if (hashBytes(bytes, sizeBytes - sizeof expected) != expected)
        return damaged("the hash does not fit the contents");

    auto cache = std::make_unique<TimingCache>(in.getText(kMaxFingerprintBytes));
    auto const count = in.get<uint64_t>();
    for (uint64_t i = 0; in.ok && i < count; ++i) {
        std::string key = in.getText(kMaxKeyBytes);
        CacheEntry e;
        e.tactic = in.get<uint64_t>();
        auto const n = in.get<uint32_t>();
        if (!in.ok || n > kMaxConfig)
            return damaged(fmt::format("entry {} is not one", i));
        e.config.reserve(n);
        for (uint32_t k = 0; k < n; ++k)
            e.config.push_back(in.get<int64_t>());
        e.microseconds = in.get<double>();
        auto const rivals = in.get<uint32_t>();
        if (!in.ok || rivals > kMaxRivals)
            return damaged(fmt::format("entry {} is not one", i));
        for (uint32_t k = 0; in.ok && k < rivals; ++k) {
            plan::Rival r;
            r.name = in.getText(kMaxRivalBytes);
            r.microseconds = in.get<double>();
            r.reason = in.getText(kMaxRivalBytes);
            e.rivals.push_back(std::move(r));
        }
        if (!in.ok || !isSound(key, e))
            return damaged(fmt::format("entry {} is not one", i));
        // Keys stand in rising order: anything else was not written by serialize().
        if (!cache->entries_.empty() && key <= cache->entries_.rbegin()->first)
            return damaged(fmt::format("entry {} is out of order", i));
        cache->entries_.emplace_hint(cache->entries_.end(), std::move(key), std::move(e));
    }
    if (!in.isAtEnd())
        return damaged(in.ok ? "bytes after the last entry" : "the entries are cut off");
    return Loaded{std::move(cache), ""};
}

} // namespace tw::tune
