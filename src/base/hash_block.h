// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace tw {

// Content hash of a large block: eight lanes side by side, as fast as memory. Another value than hashBytes() gives.
uint64_t hashBlock(void const* data, size_t size);

} // namespace tw
