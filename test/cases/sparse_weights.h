// SPDX-License-Identifier: Apache-2.0
// Weights that follow 2:4 along one axis, for cases. Multiples of 1/16 up to 1 in size, of i8 whole numbers, the same every time; groups with
// one element or none other than zero are among them, and so is each pair of places.
#pragma once

#include "cases/cases.h"

namespace tw::ops {

inline CaseInput twoOfFour(DataType type, Extents const& dims, int axis)
{
    std::vector<double> values(size_t(dims.volume()), 0);
    int64_t const inner = dims.volume(axis + 1, dims.rank), n = dims[axis];
    uint32_t state = 2463534242u;
    auto draw = [&](uint32_t below) { // xorshift
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        return state / 7 % below;
    };
    for (int64_t outer = 0; outer < dims.volume(0, axis); ++outer)
        for (int64_t group = 0; group < n / 4; ++group)
            for (int64_t i = 0; i < inner; ++i) {
                uint32_t const first = draw(4), second = (first + 1 + draw(3)) % 4;
                for (uint32_t at : {first, second})
                    if (draw(8) != 0)
                        values[size_t((outer * n + group * 4 + at) * inner + i)] =
                            type == DataType::kInt8 ? double(draw(255)) - 127 : (double(draw(33)) - 16) / 16;
            }
    return constant(type, dims, std::move(values));
}

} // namespace tw::ops
