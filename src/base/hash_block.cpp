// SPDX-License-Identifier: Apache-2.0
#include "base/hash_block.h"

#include <cstring>

#include "base/hash.h"

namespace tw {

uint64_t hashBlock(void const* data, size_t size)
{
    // Each word is multiplied by an odd number and rotated into its lane; the lanes go through Hasher at the end.
    constexpr int kLanes = 8;
    constexpr uint64_t kFactor = 0x9e3779b97f4a7c15ull;
    uint64_t lane[kLanes];
    for (int i = 0; i < kLanes; ++i)
        lane[i] = kFactor * uint64_t(i + 1);
    auto const* p = static_cast<unsigned char const*>(data);
    size_t const rest = size % (8 * kLanes), whole = size - rest;
    for (size_t at = 0; at < whole; at += 8 * kLanes) {
        uint64_t word[kLanes];
        std::memcpy(word, p + at, sizeof word);
        for (int i = 0; i < kLanes; ++i) {
            uint64_t const x = lane[i] ^ word[i];
            lane[i] = (x << 29 | x >> 35) * kFactor;
        }
    }
    Hasher h;
    h.number(size);
    for (uint64_t l : lane)
        h.number(l);
    h.bytes(p + whole, rest);
    return h.value();
}

} // namespace tw
