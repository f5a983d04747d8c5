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
    // Workspace, for each image: the first point of each cell, or -1 - its voxel; of voxels how many points they have, where
    // those begin in `list`, and how many of them stand there; of points their cells; first points of a block of points; how
    // much of `list` is used.
    cuda::i32 *firsts = nullptr, *sizes = nullptr, *begins = nullptr, *filled = nullptr, *cellOf = nullptr,
              *list = nullptr, *blocks = nullptr, *used = nullptr;
    cuda::i64 m = 0, allCells = 0; // points of an image
    cuda::i32 c = 0, maxPoints = 0, maxVoxels = 0, features = 0, images = 0, blocksEach = 0;
    float least[3] = {}, most[3] = {}, size[3] = {};
    cuda::i32 cells[3] = {};
};

} // namespace tw::ops::voxels
