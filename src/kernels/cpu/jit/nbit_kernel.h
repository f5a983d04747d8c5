// SPDX-License-Identifier: Apache-2.0
// Emits products of rows by weights of 2, 4 or 8 bits in blocks, whose integers are multiplied as they are. x is given in
// limbs: x = s (a 2^16 + b 2^8 + c), s a scale of each block of a row and a, b, c in [-128, 127] (two limbs: x = s (a 2^8 +
// b), one: x = s a), so that sums of a block are exact, and bytes are multiplied where floats would be unpacked first. Three limbs say a
// number to 2^-24 of the largest of its block, as FP32 says that one; two to 2^-16, one to 2^-8.
//
// A group is as many columns as one or two vectors have lanes. What a kernel reads of a block of it lies in one piece: scales, zeros
// (none, bytes or floats), weights, vector by vector; a lane has 32 bits of a column, in byte j, from the lowest bits on,
// q[j], q[4 + j], q[8 + j] ...: as many as fit. Blocks of a group follow each other, and groups do, so that memory is read in
// one stream. Of x: for each block the pairs {s, -s sum(q) zero} of all rows, zero being 1 where zeros are given; then
// the limbs of all rows, highest first, `block` bytes each.
//
// With no limbs (0) x is given as floats, for each block [block, rows], and a block's weights become floats first, for all rows
// together: what costs less for several rows where products of bytes take three instructions.
#pragma once

#include "kernels/cpu/jit/factors.h"

namespace tw::kernels::jit {

struct NbitForm
{
    enum Zeros : int
    {
        kMiddle, // 2^(bits - 1)
        kBytes,
        kFloats
    };
    int bits = 4, block = 32; // a multiple of 16, up to 256
    int limbs = 3;            // 1, 2, 3; 0: floats
    bool halfScales = false;
    Zeros zeros = kMiddle;
    int vectors = 1; // of a group: with two, x, which the stream of weights drives out of L1, is read half as often

    int zeroBytes() const { return zeros == kBytes ? 1 : zeros == kFloats ? 4 : 0; } // of a column
    int scaleBytes() const { return halfScales ? 2 : 4; }
    int columnBytes() const { return scaleBytes() + zeroBytes() + block * bits / 8; } // of a block
    int rowBytes() const { return limbs == 0 ? 4 * block : 8 + limbs * block; }       // of a block of x
};

struct NbitArgs
{
    void const* weights; // of `groups` groups, one behind the other, `blocks` blocks each
    void const* x;       // of the same blocks
    float* sums;         // [groups, rows, columns of a group]
    int64_t blocks;
    int64_t groups; // > 0
    int64_t adds;   // to what the sums are; 0: they are overwritten
};

// Factors: kByteDots, kByteDotsWide (jit/factors.h) or kBytePairs; of floats any.
class NbitKernel : public Emitted<NbitArgs>
{
public:
    static int mostRows(Isa isa, Factors factors, NbitForm const& form);
    static Result<NbitKernel> emit(Isa isa, Factors factors, NbitForm const& form, int rows);
};

} // namespace tw::kernels::jit
