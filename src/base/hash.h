// SPDX-License-Identifier: Apache-2.0
// 64-bit content hash, the same on every machine: tactic ids, cache keys, plan integrity (not cryptographic).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tw {

class Hasher
{
public:
    void bytes(void const* data, size_t size);
    void number(uint64_t v)
    {
        state_ ^= v + 0x9e3779b97f4a7c15ull;
        state_ = mix(state_);
    }
    void text(std::string_view s)
    {
        number(s.size());
        bytes(s.data(), s.size());
    }
    uint64_t value() const { return mix(state_ ^ 0x2545f4914f6cdd1dull); }

private:
    // Finalizer of splitmix64: every input bit reaches every output bit.
    static uint64_t mix(uint64_t z)
    {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    uint64_t state_ = 0x6a09e667f3bcc908ull;
};

inline uint64_t hashBytes(void const* data, size_t size)
{
    Hasher h;
    h.bytes(data, size);
    return h.value();
}
inline uint64_t hashText(std::string_view s)
{
    Hasher h;
    h.text(s);
    return h.value();
}

} // namespace tw
