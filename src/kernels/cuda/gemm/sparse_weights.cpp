// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/sparse_weights.h"

#include <cstring>

#include "kernels/cuda/common/generate.h"

namespace tw::cuda::gemm_sparse {

namespace {

constexpr int64_t kStep = kStepBytes / 2; // elements, of two instructions
constexpr int64_t kGroup = 4;
constexpr uint16_t kMagnitude = 0x7fff;

// Where the two elements of a group stand, in ascending order, as zeros where fewer are others. False: there are more.
bool placesOf(uint16_t const* group, int (&places)[2])
{
    int found = 0;
    for (int i = 0; i < kGroup; ++i) {
        if ((group[i] & kMagnitude) == 0)
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

// Row `row` of a step, `from` its 64 dense elements.
bool packRow(uint16_t const* from, int64_t row, char* block)
{
    for (int64_t k = 0; k < kStep; k += kGroup) {
        int places[2];
        if (!placesOf(from + k, places))
            return false;
        int64_t const instruction = k / 32, byte = k % 32; // of 16 elements, 2 bytes each
        uint16_t const left[2] = {from[k + places[0]], from[k + places[1]]};
        std::memcpy(block + instruction * 2048 + byte / 16 * 1024 + row * 16 + byte % 16, left, sizeof left);
        int64_t const thread = row / 16 * 32 + row % 8 * 4 + k / 16, bit = row % 16 / 8 * 16 + k % 16;
        uint32_t word;
        char* const at = block + kElementBytes + thread * 4;
        std::memcpy(&word, at, sizeof word);
        word |= uint32_t(places[0] | places[1] << 2) << bit;
        std::memcpy(at, &word, sizeof word);
    }
    return true;
}

} // namespace

std::optional<std::string> packSparse(uint16_t const* dense, int64_t rows, int64_t k)
{
    int64_t const steps = k / kStep, blocks = ceilDiv(rows, kBlockRows);
    std::string packed(size_t(blocks * steps * kBlockBytes), '\0');
    uint16_t const zeros[kStep] = {};
    for (int64_t b = 0; b < blocks; ++b)
        for (int64_t s = 0; s < steps; ++s)
            for (int64_t r = 0; r < kBlockRows; ++r) {
                int64_t const row = b * kBlockRows + r;
                if (!packRow(row < rows ? dense + row * k + s * kStep : zeros, r,
                             packed.data() + (b * steps + s) * kBlockBytes))
                    return std::nullopt;
            }
    return packed;
}

} // namespace tw::cuda::gemm_sparse
