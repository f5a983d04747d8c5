// SPDX-License-Identifier: Apache-2.0
// Products by constant matrices of integers of few bits, by the plugin MatMulNBits.
#pragma once

#include "onnx/importer.h"

namespace tw::onnx {

// w [n, k] = scale (q - zero), its integers in 32-bit numbers as ops/nbit_product/op.h says.
struct FewBitsWeights
{
    int64_t n = 0, k = 0, bits = 4, block = 32;
    Value words, scales;       // [n, blocks, block bits / 32], [n, blocks]
    Value zeros, groups, bias; // [n, blocks], [k], [n]; may be null
    int64_t accuracyLevel = 0; // of ONNX Runtime's operator: 4 lets x be rounded to 8 bits
};

// x w^T + bias.
ITensor& multiplied(ImportContext& ctx, ITensor& x, FewBitsWeights const& w);
// Input 0 times input 1, a matrix [k, n] (isTurned: [n, k]) of a DequantizeLinear in front of the node, by its integers. Null: they
// are none that the plugin takes, and input 1 has its values then.
ITensor* multipliedByIntegers(ImportContext& ctx, bool isTurned);
// A node with a constant of Later::matrix among its inputs: whether the output is such a constant, too.
bool keptInteger(ImportContext& ctx);

} // namespace tw::onnx
