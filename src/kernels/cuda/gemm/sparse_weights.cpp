// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/sparse_weights.h"

#include <cstring>

#include "kernels/cuda/common/generate.h"

namespace tw::cuda::gemm_sparse {

namespace {

constexpr int64_t kGroup = 4;

bool isZero(uint16_t half)
{
    return (half & 0x7fff) == 0;
}
bool isZero(int8_t v)
{
    return v == 0;
}

// Where the two elements of a group stand, in ascending order, as zeros where fewer are others. False: there are more.
template <class T>
bool placesOf(T const* group, int (&places)[2])
{
    int found = 0;
    for (int i = 0; i < kGroup; ++i) {
        if (isZero(group[i]))
            continue;
        if (found == 2)
            return false;
        places[found++] = i;
    }
    if (found == 0)
        places[0] = 0;
    if (found < 2) { // two places that differ
        int const other = places[0];
        places[0] = other == 3 ? 0 : other;
        places[1] = other == 3 ? 3 : other + 1;
    }
    return true;
}

// Row `row` of a block, of one step of dense elements.
template <class T>
bool packRow(T const* from, int64_t row, char* block)
{
    constexpr int64_t kStep = stepOf(sizeof(T)), kInstruction = kStep / 2;
    constexpr bool kHalf = sizeof(T) == 2;
    int64_t const high = row % 16 / 8;
    for (int64_t k = 0; k < kStep; k += kGroup) {
        int places[2];
        if (!placesOf(from + k, places))
            return false;
        int64_t const instruction = k / kInstruction, inIt = k % kInstruction,
                      byte = inIt / 2 * int64_t(sizeof(T)); // of the row's 32
        T const left[2] = {from[k + places[0]], from[k + places[1]]};
        std::memcpy(block + instruction * 2048 + byte / 16 * 1024 + row * 16 + byte % 16, left, sizeof left);
        int64_t const inFour = kHalf ? k / 16 : inIt / 32 * 2 + high, bit = kHalf ? high * 16 + k % 16 : k % 32,
                      thread = row / 16 * 32 + row % 8 * 4 + inFour;
        char* const at = block + kElementBytes + (kHalf ? 0 : instruction * 512) + thread * 4;
        uint32_t word;
        std::memcpy(&word, at, sizeof word);
        word |= uint32_t(places[0] | places[1] << 2) << bit;
        std::memcpy(at, &word, sizeof word);
    }
    return true;
}

template <class T>
std::optional<std::string> packRows(T const* dense, int64_t rows, int64_t k)
{
    constexpr int64_t kStep = stepOf(sizeof(T)), kBytes = blockBytes(sizeof(T));
    int64_t const steps = k / kStep, blocks = ceilDiv(rows, kBlockRows);
    std::string packed(size_t(blocks * steps * kBytes), '\0');
    T const zeros[kStep] = {};
    for (int64_t b = 0; b < blocks; ++b)
        for (int64_t s = 0; s < steps; ++s)
            for (int64_t r = 0; r < kBlockRows; ++r) {
                int64_t const row = b * kBlockRows + r, at = sizeof(T) == 2 ? r : r / 16 * 16 + r % 2 * 8 + r % 16 / 2;
                if (!packRow(row < rows ? dense + row * k + s * kStep : zeros, at,
                             packed.data() + (b * steps + s) * kBytes))
                    return std::nullopt;
            }
    return packed;
}

} // namespace

std::optional<std::string> packSparse(uint16_t const* dense, int64_t rows, int64_t k)
{
    return packRows(dense, rows, k);
}

std::optional<std::string> packSparse(int8_t const* dense, int64_t rows, int64_t k)
{
    return packRows(dense, rows, k);
}

} // namespace tw::cuda::gemm_sparse
