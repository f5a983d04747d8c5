// SPDX-License-Identifier: Apache-2.0
// The point with the least number in its cell makes a voxel of it; voxels have the order of these points, whatever the order is
// in which threads come. Then each voxel gathers the numbers of its points, in any order, and takes the least of them, one
// after the other.
//   int THREADS of a block of points
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/voxels/voxels_params.h"

namespace tw::ops::voxels {

constexpr int kNone = 0x7fffffff;

TW_KERNEL voxels_clear(const __grid_constant__ Params p)
{
    i64 const first = i64(blockIdx.x) * blockDim.x + threadIdx.x, step = i64(gridDim.x) * blockDim.x;
    i64 const voxels = i64(p.images) * p.maxVoxels;
    for (i64 i = first; i < voxels * p.maxPoints * p.features; i += step)
        p.voxels[i] = 0;
    for (i64 i = first; i < voxels * 4; i += step)
        p.coordinates[i] = 0;
    for (i64 i = first; i < voxels; i += step)
        p.sizes[i] = p.filled[i] = 0;
    for (i64 i = first; i < i64(p.images) * p.allCells; i += step)
        p.firsts[i] = kNone;
    for (i64 i = first; i < p.images; i += step)
        p.used[i] = 0;
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

// A thread a point, blocksEach blocks an image.
struct Point
{
    int image, block;
    i64 i;
    TW_INLINE explicit Point(Params const& p)
        : image(int(blockIdx.x) / p.blocksEach), block(int(blockIdx.x) % p.blocksEach),
          i(i64(block) * THREADS + threadIdx.x)
    {}
};

// The cell of each point, -1: none, and the first point of each cell.
TW_KERNEL __launch_bounds__(THREADS) voxels_locate(const __grid_constant__ Params p)
{
    auto const [n, block, i] = Point(p);
    if (i >= p.m)
        return;
    int cell[3], at = -1;
    if (i < p.counts[n] && find(p, p.points + (n * p.m + i) * p.c, cell)) {
        at = (cell[2] * p.cells[1] + cell[1]) * p.cells[0] + cell[0];
        atomicMin(&p.firsts[n * p.allCells + at], int(i));
    }
    p.cellOf[n * p.m + i] = at;
}

TW_INLINE bool isFirst(Params const& p, Point const& point)
{
    int const at = point.i < p.m ? p.cellOf[point.image * p.m + point.i] : -1;
    return at >= 0 && p.firsts[point.image * p.allCells + at] == point.i;
}

// How many first points a block has.
TW_KERNEL __launch_bounds__(THREADS) voxels_count(const __grid_constant__ Params p)
{
    int const firsts = __syncthreads_count(isFirst(p, Point(p)));
    if (threadIdx.x == 0)
        p.blocks[blockIdx.x] = firsts;
}

// A first point's place among them is the number of its voxel, v, and firsts becomes -1 - v.
TW_KERNEL __launch_bounds__(THREADS) voxels_number(const __grid_constant__ Params p)
{
    __shared__ int sums[THREADS / 32], before;
    Point const point(p);
    int const n = point.image, t = int(threadIdx.x), lane = t % 32;
    if (t == 0)
        before = 0;
    __syncthreads();
    int earlier = 0;
    for (int b = t; b < point.block; b += THREADS)
        earlier += p.blocks[i64(n) * p.blocksEach + b];
    if (earlier)
        atomicAdd(&before, earlier);
    bool const makes = isFirst(p, point);
    unsigned const those = __ballot_sync(0xffffffffu, makes);
    if (lane == 0)
        sums[t / 32] = __popc(those);
    __syncthreads();
    int number = before + __popc(those & ((1u << lane) - 1));
    for (int w = 0; w < t / 32; ++w)
        number += sums[w];
    if (makes) {
        int const at = p.cellOf[n * p.m + point.i];
        p.firsts[n * p.allCells + at] = -1 - number;
        if (number < p.maxVoxels) {
            int* const to = p.coordinates + (i64(n) * p.maxVoxels + number) * 4;
            to[1] = at / (p.cells[0] * p.cells[1]);
            to[2] = at / p.cells[0] % p.cells[1];
            to[3] = at % p.cells[0];
        }
    }
    if (point.block + 1 == p.blocksEach && t == THREADS - 1)
        p.found[n] = min(number + makes, p.maxVoxels);
}

// The voxel of a point, counted over all images; -1: none.
TW_INLINE i64 voxelOf(Params const& p, Point const& point)
{
    int const at = point.i < p.m ? p.cellOf[point.image * p.m + point.i] : -1;
    int const number = at < 0 ? p.maxVoxels : -1 - p.firsts[point.image * p.allCells + at];
    return number < p.maxVoxels ? i64(point.image) * p.maxVoxels + number : -1;
}

TW_KERNEL __launch_bounds__(THREADS) voxels_measure(const __grid_constant__ Params p)
{
    i64 const voxel = voxelOf(p, Point(p));
    if (voxel >= 0)
        atomicAdd(&p.sizes[voxel], 1);
}

// A thread a voxel: where its points begin in `list`.
TW_KERNEL voxels_begin(const __grid_constant__ Params p)
{
    i64 const voxel = i64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (voxel < i64(p.images) * p.maxVoxels && p.sizes[voxel] > 0)
        p.begins[voxel] = atomicAdd(&p.used[voxel / p.maxVoxels], p.sizes[voxel]);
}

TW_KERNEL __launch_bounds__(THREADS) voxels_gather(const __grid_constant__ Params p)
{
    Point const point(p);
    i64 const voxel = voxelOf(p, point);
    if (voxel >= 0)
        p.list[point.image * p.m + p.begins[voxel] + atomicAdd(&p.filled[voxel], 1)] = int(point.i);
}

// A warp a voxel.
TW_KERNEL voxels_features(const __grid_constant__ Params p)
{
    i64 const voxel = (i64(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    if (voxel >= i64(p.images) * p.maxVoxels || p.sizes[voxel] == 0)
        return;
    int const lane = int(threadIdx.x % 32), all = p.sizes[voxel], size = min(all, p.maxPoints);
    i64 const n = voxel / p.maxVoxels;
    float* const own = p.voxels + voxel * p.maxPoints * p.features;
    int const* const list = p.list + n * p.m + p.begins[voxel];
    auto const least = [](int a, int b) { return min(a, b); };
    for (int k = 0, last = -1; k < size; ++k) {
        int next = kNone;
        for (int i = lane; i < all; i += 32)
            next = list[i] > last ? min(next, list[i]) : next;
        last = warpReduce(next, least);
        for (int d = lane; d < min(p.c, p.features); d += 32)
            own[i64(k) * p.features + d] = p.points[(n * p.m + last) * p.c + d];
    }
    __syncwarp();
    for (int d = 0; d < 3; ++d) {
        float sum = 0;
        for (int i = lane; i < size; i += 32)
            sum += own[i64(i) * p.features + d];
        sum = warpReduce(sum, [](float a, float b) { return a + b; });
        float const mean = sum / float(size);
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
