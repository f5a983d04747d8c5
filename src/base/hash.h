// SPDX-License-Identifier: Apache-2.0
// Content hashes (XXH3), the same on every machine: tactic ids, cache keys, plan integrity (not cryptographic).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tw {

// Of everything it was given, one after the other, however it was cut.
class Hasher
{
public:
    Hasher();
    void bytes(void const* data, size_t size);
    void number(uint64_t v) { bytes(&v, sizeof v); }
    void text(std::string_view s)
    {
        number(s.size());
        bytes(s.data(), s.size());
    }
    uint64_t value() const;

private:
    static constexpr size_t kStateBytes = 576, kStateAlignment = 64; // of XXH3_state_t, whose header stays in hash.cpp
    alignas(kStateAlignment) std::byte state_[kStateBytes];
};

uint64_t hashBytes(void const* data, size_t size);
inline uint64_t hashText(std::string_view s)
{
    return hashBytes(s.data(), s.size());
}

// Where no other content with the same hash may be.
struct Hash128
{
    uint64_t low = 0, high = 0;
};
Hash128 hashBytes128(void const* data, size_t size);

} // namespace tw
