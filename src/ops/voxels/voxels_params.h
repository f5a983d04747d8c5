// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::voxels {

struct Params
{
    float const* points = nullptr;
    cuda::i32 const* counts = nullptr;
    float* voxels = nullptr;
    cuda::i32 *coordinates = nullptr, *found = nullptr;
    cuda::i32 *slots = nullptr, *sizes = nullptr; // workspace: of cells, -1: none yet; of voxels; for each image
    cuda::i64 m = 0, allCells = 0;                // points of an image
    cuda::i32 c = 0, maxPoints = 0, maxVoxels = 0, features = 0, images = 0;
    float least[3] = {}, most[3] = {}, size[3] = {};
    cuda::i32 cells[3] = {};
};

} // namespace tw::ops::voxels
