// SPDX-License-Identifier: Apache-2.0
// What the tuner measured: problem -> chosen tactic. A cache belongs to one device (its fingerprint); entries whose
// tactic is not there any more are for the tuner to refuse, a key that is not there is a miss.
//
// Bytes (little endian), equal for equal entries whatever the order they came in:
//   magic "TWTCACHE"; u32 format; u32 major, minor, patch, build of the library; text fingerprint; u64 number of
//   entries; entries in the order of their keys: text key, u64 tactic, u32 n, i64 config[n], f64 microseconds, u32 m,
//   m times (text name, f64 microseconds, text reason); u64 hash of all bytes before it.  text: u32 length, bytes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/plan.h"

namespace tw::tune {

struct CacheEntry
{
    uint64_t tactic = 0; // Tactic::id(): name and version
    std::vector<int64_t> config;
    double microseconds = 0;
    std::vector<plan::Rival> rivals;
    bool operator==(CacheEntry const&) const = default;
};

class TimingCache
{
public:
    static constexpr size_t kMaxKeyBytes = 1u << 20;
    static constexpr size_t kMaxFingerprintBytes = 1u << 12;
    static constexpr size_t kMaxConfig = 256;
    static constexpr size_t kMaxRivals = 64, kMaxRivalBytes = 1u << 10; // and bytes of each text

    explicit TimingCache(std::string fingerprint) : fingerprint_(std::move(fingerprint)) {}

    std::string fingerprint() const;
    size_t size() const;
    // A key says everything that decides the choice (regionKey()); all of its text is compared, so that no two problems
    // share an entry.
    std::optional<CacheEntry> find(std::string_view key) const;
    // Replaces what was there. Entries that could not be written (too long a key or config, a time that is no positive
    // number) are not taken: false.
    bool insert(std::string const& key, CacheEntry entry);
    void clear();

    // Adds the entries that are not here yet. An error if `other` is of another device, unless ignoreMismatch; then its
    // entries count as measured here.
    Result<void> combine(TimingCache const& other, bool ignoreMismatch);

    std::string serialize() const;

    struct Loaded
    {
        std::unique_ptr<TimingCache> cache;
        std::string warning; // why the cache is empty although the bytes are sound: another version wrote them
    };
    // An error for damaged bytes. Size 0 gives an empty cache of `fingerprint`.
    static Result<Loaded> deserialize(void const* bytes, size_t sizeBytes, std::string const& fingerprint);

private:
    using Entries = std::map<std::string, CacheEntry, std::less<>>;
    mutable std::mutex mutex_;
    std::string fingerprint_;
    Entries entries_;
};

} // namespace tw::tune
