// SPDX-License-Identifier: Apache-2.0
// y[i] = table[x[i]] for bytes: functions of one i8 number.
#pragma once

#include <cstdint>

#include "kernels/cpu/jit/emitter.h"

namespace tw::kernels::jit {

class ByteTableKernel
{
public:
    // For CPUs with AVX-512 BW and VBMI: the table lies in four registers. With AVX2 each vector of x looks into all sixteen
    // parts of the table, of which its upper bits choose one.
    static Result<ByteTableKernel> emit(Isa isa);
    // table: 256 bytes, of 0 .. 127 and then of -128 .. -1, as the bits of x count.
    void operator()(int8_t const* table, int8_t const* x, int8_t* y, int64_t n) const
    {
        code_.entry<void (*)(int8_t const*, int8_t const*, int8_t*, int64_t)>()(table, x, y, n);
    }

private:
    Code code_;
};

} // namespace tw::kernels::jit
