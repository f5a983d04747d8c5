// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <new>

#define XXH_INLINE_ALL // no library to load at run time
#include <xxhash.h>

namespace tw {

Hasher::Hasher()
{
    static_assert(sizeof(XXH3_state_t) == kStateBytes && alignof(XXH3_state_t) == kStateAlignment);
    XXH3_64bits_reset(new (state_) XXH3_state_t);
}
void Hasher::bytes(void const* data, size_t size)
{
    if (size > 0)
        XXH3_64bits_update(std::launder(reinterpret_cast<XXH3_state_t*>(state_)), data, size);
}
uint64_t Hasher::value() const
{
    return XXH3_64bits_digest(std::launder(reinterpret_cast<XXH3_state_t const*>(state_)));
}

uint64_t hashBytes(void const* data, size_t size)
{
    return XXH3_64bits(data, size);
}
Hash128 hashBytes128(void const* data, size_t size)
{
    XXH128_hash_t const h = XXH3_128bits(data, size);
    return {h.low64, h.high64};
}

} // namespace tw
