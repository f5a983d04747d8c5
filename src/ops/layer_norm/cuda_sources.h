// SPDX-License-Identifier: Apache-2.0
// What the CUDA tactics of this folder share.
#pragma once

#include "ops/layer_norm/layer_norm_params.h"
#include "ops/layer_norm/layout.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::layer_norm {

extern CudaTactic const kRows, kChunks, kColumns, kPixels;

// Elements of 16 bytes.
inline int64_t packWidth(Problem const& problem)
{
    return 16 / sizeOf(problem.inputs[0].type);
}
// The constants before layer_norm.cuh.
std::string constantsOf(Problem const& problem);
// Those that row_weights.cuh wants as well.
std::string rowConstantsOf(Problem const& problem, Layout const& layout, int64_t width);
void setTensors(Attrs const& a, RunArgs const& args, Tensors& p);
// Whether addresses allow packs of 16 bytes.
bool isAligned(Tensors const& p);
void setRows(Layout::Sizes const& s, RunArgs const& args, RowParams& p);
// Formats of x and y by pixels whose channels are dimension 1; linear ones first.
std::vector<Formats> withPixels(Problem const& problem);

} // namespace tw::ops::layer_norm
