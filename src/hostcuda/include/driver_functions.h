// SPDX-License-Identifier: Apache-2.0
// make_cudaExtent and its kin.
#ifndef TW_HOSTCUDA_DRIVER_FUNCTIONS_H
#define TW_HOSTCUDA_DRIVER_FUNCTIONS_H

#include "driver_types.h"

static inline struct cudaPitchedPtr make_cudaPitchedPtr(void* ptr, size_t pitch, size_t xsize, size_t ysize)
{
    struct cudaPitchedPtr pitched;
    pitched.ptr = ptr;
    pitched.pitch = pitch;
    pitched.xsize = xsize;
    pitched.ysize = ysize;
    return pitched;
}

static inline struct cudaPos make_cudaPos(size_t x, size_t y, size_t z)
{
    struct cudaPos pos;
    pos.x = x;
    pos.y = y;
    pos.z = z;
    return pos;
}

static inline struct cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth)
{
    struct cudaExtent extent;
    extent.width = width;
    extent.height = height;
    extent.depth = depth;
    return extent;
}

#endif
