// SPDX-License-Identifier: Apache-2.0
// y[.., j] = sum_p x[.., p] w[j, p] + bias[j], the weights w [n, k] being integers of few bits in blocks along k:
// w[j, p] = scale[j, g] (q[j, p] - zero[j, g]), g = p / block, or groups[p] where that is given. q lies in i32 numbers
// [n, blocks, block bits / 32], its bits in order of p, the lowest first: what com.microsoft's MatMulNBits has as bytes.
// Zeros that are not given are 2^(bits - 1). y has the type of x; scales and zeros have one of their own. Where the node says so, x may be rounded
// to 8 bits in the blocks of the weights: x[p] = s q, |q| <= 127, s = max |x| / 127 over the block.
#pragma once

#include "base/extents.h"
#include "ir/attrs.h"

namespace tw::ops::nbit_product {

enum Input
{
    kX,       // [.., k]
    kWeights, // i32 [n, blocks, words]
    kScales,  // [n, blocks]
    kZeros,   // [n, blocks], may be absent
    kBias,    // [n] of x's type, may be absent
    kGroups,  // i32 [k], may be absent: numbers outside of the blocks count as the nearest one
    kInputs
};

struct Attrs : ir::AttrsOf<Attrs>
{
    int64_t k = 0;
    int64_t bits = 4;   // 2, 4, 8
    int64_t block = 32; // a multiple of 16; the last one may reach beyond k
    bool roundsX = false;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "k", k);
        v.field(2, "bits", bits);
        v.field(3, "block", block);
        v.field(4, "rounds_x", roundsX);
    }

    int64_t blocks() const { return (k + block - 1) / block; }
    int64_t words() const { return block * bits / 32; } // of a block of a row
    // q of row j at p.
    int quantized(int32_t const* weights, int64_t j, int64_t p) const
    {
        int64_t const inBlock = p % block * bits;
        uint32_t const word = uint32_t(weights[(j * blocks() + p / block) * words() + inBlock / 32]);
        return int(word >> (inBlock % 32) & ((1U << bits) - 1));
    }
    int64_t group(int32_t const* groups, int64_t p) const
    {
        if (!groups)
            return p / block;
        return groups[p] < 0 ? 0 : groups[p] < blocks() ? groups[p] : blocks() - 1;
    }
    double middle() const { return double(1 << (bits - 1)); }
};

} // namespace tw::ops::nbit_product
