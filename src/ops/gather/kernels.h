// SPDX-License-Identifier: Apache-2.0
// What gathers are made of, one table for each instruction set. An index i in [-size, 0) means i + size; one out of
// [-size, size) gives zeros, and nothing is read for it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tw::ops::gather {

struct Kernels
{
    // Block i of y is block j[i] of x.
    void (*blocks)(std::byte const* x, int32_t const* j, int64_t count, int64_t size, int64_t blockBytes, std::byte* y);
    // y[i] = x[j[i] * step + i * along], elements of 4 bytes; all of these positions are below 2^31. By the vector's
    // own gather.
    void (*words)(uint32_t const* x, int32_t const* j, int64_t count, int64_t size, int64_t step, int64_t along,
                  uint32_t* y);
};

} // namespace tw::ops::gather

namespace tw::baseline { // that every x86-64 has: no `words`
extern ops::gather::Kernels const kGather;
}
namespace tw::avx2 {
extern ops::gather::Kernels const kGather;
}
namespace tw::avx512 {
extern ops::gather::Kernels const kGather;
}
