// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <cstring>

namespace tw {

void Hasher::bytes(void const* data, size_t size)
{
    auto const* p = static_cast<unsigned char const*>(data);
    for (; size >= 8; p += 8, size -= 8) {
        uint64_t word;
        std::memcpy(&word, p, 8);
        number(word);
    }
    uint64_t tail = 0;
    for (size_t i = 0; i < size; ++i)
        tail |= uint64_t(p[i]) << (8 * i);
    number(tail ^ (uint64_t(size) << 56));
}

} // namespace tw
