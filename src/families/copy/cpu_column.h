// SPDX-License-Identifier: Apache-2.0
// A column of a matrix at a time, where rows are too short to be copied one by one.
#pragma once

#include <cstdint>
#include <cstring>

namespace tw::ops {

template <class T>
void copyColumnOf(char const* x, int64_t xStep, char* y, int64_t yStep, int64_t rows)
{
    for (int64_t r = 0; r < rows; ++r)
        std::memcpy(y + r * yStep, x + r * xStep, sizeof(T));
}

// Elements of 1, 2, 4 or 8 bytes, one of each row, which lie so many bytes apart. False, and nothing done: elements of other sizes.
inline bool copyColumn(char const* x, int64_t xStep, char* y, int64_t yStep, int64_t bytes, int64_t rows)
{
    switch (bytes) {
    case 1:
        return copyColumnOf<uint8_t>(x, xStep, y, yStep, rows), true;
    case 2:
        return copyColumnOf<uint16_t>(x, xStep, y, yStep, rows), true;
    case 4:
        return copyColumnOf<uint32_t>(x, xStep, y, yStep, rows), true;
    case 8:
        return copyColumnOf<uint64_t>(x, xStep, y, yStep, rows), true;
    default:
        return false;
    }
}

} // namespace tw::ops
