// SPDX-License-Identifier: Apache-2.0
#include "tune/timing_cache.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/hash.h"

namespace tw::tune {

namespace {

constexpr char kMagic[8] = {'T', 'W', 'T', 'C', 'A', 'C', 'H', 'E'};
constexpr uint32_t kFormat = 3;                // 2: rivals; 3: hashed by XXH3
constexpr uint32_t kVersion[4] = {8, 5, 3, 1}; // of the library: a cache is good for exactly one

static_assert(std::endian::native == std::endian::little, "the bytes are written as they lie in memory");

template <class T>
void put(std::string& out, T value)
{
    out.append(reinterpret_cast<char const*>(&value), sizeof value);
}
void putText(std::string& out, std::string_view text)
{
    put(out, uint32_t(text.size()));
    out += text;
}

// Reads on as long as the bytes last; `ok` is false from the first missing byte on.
struct Reader
{
    char const* at;
    char const* end;
    bool ok = true;

    bool has(size_t n) const { return n <= size_t(end - at); }
    template <class T>
    T get()
    {
        T value{};
        if (!ok || !has(sizeof value)) {
            ok = false;
            return value;
        }
        std::memcpy(&value, at, sizeof value);
        at += sizeof value;
        return value;
    }
    std::string getText(size_t limit)
    {
        auto const n = get<uint32_t>();
        if (!ok || n > limit || !has(n)) {
            ok = false;
            return {};
        }
        std::string text(at, n);
        at += n;
        return text;
    }
};

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
    std::string out(kMagic, sizeof kMagic);
    put(out, kFormat);
    for (uint32_t v : kVersion)
        put(out, v);
    putText(out, fingerprint_.substr(0, kMaxFingerprintBytes));
    put(out, uint64_t(entries_.size()));
    for (auto const& [key, e] : entries_) {
        putText(out, key);
        put(out, e.tactic);
        put(out, uint32_t(e.config.size()));
        for (int64_t c : e.config)
            put(out, c);
        put(out, e.microseconds);
        put(out, uint32_t(e.rivals.size()));
        for (plan::Rival const& r : e.rivals) {
            putText(out, r.name);
            put(out, r.microseconds);
            putText(out, r.reason);
        }
    }
    put(out, hashBytes(out.data(), out.size()));
    return out;
}

Result<TimingCache::Loaded> TimingCache::deserialize(void const* bytes, size_t sizeBytes,
                                                     std::string const& fingerprint)
{
    if (sizeBytes == 0)
        return Loaded{std::make_unique<TimingCache>(fingerprint), ""};
    if (!bytes)
        return invalidArgument("timing cache: a null pointer with size {}", sizeBytes);
    Reader in{static_cast<char const*>(bytes), static_cast<char const*>(bytes) + sizeBytes};
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
    if (!in.ok || in.at != in.end)
        return damaged(in.ok ? "bytes after the last entry" : "the entries are cut off");
    return Loaded{std::move(cache), ""};
}

} // namespace tw::tune
