// SPDX-License-Identifier: Apache-2.0
// Rotary positions in layers, as exporters write them: a pass makes one node of them (passes/attention/fuse_rotary.cpp).
#pragma once

#include "onnx/importer.h"

namespace tw::onnx {

struct Rotary
{
    int64_t turned = 0;      // numbers of each head, from the first one on: even
    bool neighbours = false; // pairs are neighbours, not of the two halves
};

// x [.., size] of four dimensions; cosines and sines [.., turned / 2], broadcast to it.
ITensor& rotated(ImportContext& ctx, ITensor& x, ITensor& cosines, ITensor& sines, Rotary const& how);

// Rows of the table [positions, turned / 2] at input `input`: of places [batch or 1, length] as [batch or 1, length, 1,
// turned / 2] of this type. The dimension of 1 stands at `heads`.
ITensor& rotaryFactors(ImportContext& ctx, int input, ITensor& places, DataType type, int heads, int64_t pairs);

} // namespace tw::onnx
