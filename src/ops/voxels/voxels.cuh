// SPDX-License-Identifier: Apache-2.0
// Outputs and workspace are cleared; then a block an image goes through its points in their order, THREADS at a time: a
// point's place in its voxel is how many of the cell came before it, in earlier rounds and in this one. Features that want
// the mean follow, a voxel a warp.
//   int THREADS
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/voxels/voxels_params.h"

namespace tw::ops::voxels {

TW_KERNEL voxels_clear(const __grid_constant__ Params p)
{
    i64 const first = i64(blockIdx.x) * blockDim.x + threadIdx.x, step = i64(gridDim.x) * blockDim.x;
    i64 const voxels = i64(p.images) * p.maxVoxels;
    for (i64 i = first; i < voxels * p.maxPoints * p.features; i += step)
        p.voxels[i] = 0;
    for (i64 i = first; i < voxels * 4; i += step)
        p.coordinates[i] = 0;
    for (i64 i = first; i < voxels; i += step)
        p.sizes[i] = 0;
    for (i64 i = first; i < i64(p.images) * p.allCells; i += step)
        p.slots[i] = -1;
}

TW_INLINE bool find(Params const& p, float const* point, int (&cell)[3])
{
#pragma unroll
    for (int d = 0; d < 3; ++d) {
        float const v = point[d];
        if (!(v >= p.least[d] && v < p.most[d]))
            return false;
        cell[d] = min(int(floorf(__fdiv_rn(__fsub_rn(v, p.least[d]), p.size[d]))), p.cells[d] - 1);
    }
    return true;
}

TW_KERNEL __launch_bounds__(THREADS) voxels_fill(const __grid_constant__ Params p)
{
    __shared__ int cells[THREADS], firsts[THREADS], count;
    int const n = int(blockIdx.x), t = int(threadIdx.x);
    float const* const points = p.points + n * p.m * p.c;
    int* const slots = p.slots + n * p.allCells;
    int* const sizes = p.sizes + i64(n) * p.maxVoxels;
    i64 const wanted = p.counts[n], taking = wanted < 0 ? 0 : wanted < p.m ? wanted : p.m;
    if (t == 0)
        count = 0;
    __syncthreads();
    for (i64 begin = 0; begin < taking; begin += THREADS) {
        float const* const point = points + (begin + t) * p.c;
        int cell[3] = {0, 0, 0};
        bool const isIn = begin + t < taking && find(p, point, cell);
        int const at = isIn ? (cell[2] * p.cells[1] + cell[1]) * p.cells[0] + cell[0] : -1;
        cells[t] = at;
        __syncthreads();
        int before = 0;
        for (int i = 0; i < t; ++i)
            before += cells[i] == at;
        int slot = isIn ? slots[at] : 0;
        bool const isFirst = isIn && before == 0 && slot == -1;
        firsts[t] = isFirst;
        __syncthreads();
        if (isFirst) {
            slot = count;
            for (int i = 0; i < t; ++i)
                slot += firsts[i];
            if (slot < p.maxVoxels) {
                slots[at] = slot;
                int* const to = p.coordinates + (i64(n) * p.maxVoxels + slot) * 4;
                to[1] = cell[2];
                to[2] = cell[1];
                to[3] = cell[0];
            } else {
                slots[at] = -2; // there is no voxel for it
            }
        }
        __syncthreads();
        slot = isIn ? slots[at] : -2;
        int const place = slot >= 0 ? sizes[slot] + before : 0;
        if (t == 0) {
            int more = 0;
            for (int i = 0; i < THREADS; ++i)
                more += firsts[i];
            count += more;
        }
        __syncthreads();
        if (slot >= 0) {
            atomicAdd(&sizes[slot], 1);
            if (place < p.maxPoints) {
                float* const to = p.voxels + ((i64(n) * p.maxVoxels + slot) * p.maxPoints + place) * p.features;
                for (int d = 0; d < min(p.c, p.features); ++d)
                    to[d] = point[d];
            }
        }
        __syncthreads();
    }
    if (t == 0)
        p.found[n] = min(count, p.maxVoxels);
}

TW_KERNEL voxels_features(const __grid_constant__ Params p)
{
    i64 const voxel = (i64(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    if (voxel >= i64(p.images) * p.maxVoxels)
        return;
    int const lane = int(threadIdx.x % 32), size = min(p.sizes[voxel], p.maxPoints);
    float* const own = p.voxels + voxel * p.maxPoints * p.features;
    for (int d = 0; d < 3 && size > 0; ++d) {
        float sum = 0;
        for (int i = lane; i < size; i += 32)
            sum += own[i64(i) * p.features + d];
        sum = warpReduce(sum, [](float a, float b) { return a + b; });
        float const mean = __shfl_sync(0xffffffffu, sum, 0) / float(size);
        float const centre = p.least[d] + (float(p.coordinates[voxel * 4 + 3 - d]) + 0.5f) * p.size[d];
        for (int i = lane; i < size; i += 32) {
            float* const point = own + i64(i) * p.features;
            if (p.c + d < p.features)
                point[p.c + d] = point[d] - mean;
            if (p.c + 3 + d < p.features)
                point[p.c + 3 + d] = point[d] - centre;
        }
    }
}

} // namespace tw::ops::voxels
