/* SPDX-License-Identifier: Apache-2.0 */
/* Short vectors (int4, float2, ...) and dim3, with the sizes and alignments that CUDA publishes. */
#ifndef TW_HOSTCUDA_VECTOR_TYPES_H
#define TW_HOSTCUDA_VECTOR_TYPES_H

#include "host_defines.h"

/* One type of each width: 1 and 3 are packed, 2 and 4 are aligned to their size (16 bytes at most). */
#define TW_HOSTCUDA_VECTORS(T, N, A2, A4)                                                                              \
    struct N##1                                                                                                        \
    {                                                                                                                  \
        T x;                                                                                                           \
    };                                                                                                                 \
    struct N##2                                                                                                        \
    {                                                                                                                  \
        T x, y;                                                                                                        \
    }                                                                                                                  \
    __attribute__((aligned(A2)));                                                                                      \
    struct N##3                                                                                                        \
    {                                                                                                                  \
        T x, y, z;                                                                                                     \
    };                                                                                                                 \
    struct N##4                                                                                                        \
    {                                                                                                                  \
        T x, y, z, w;                                                                                                  \
    }                                                                                                                  \
    __attribute__((aligned(A4)));                                                                                      \
    typedef struct N##1 N##1;                                                                                          \
    typedef struct N##2 N##2;                                                                                          \
    typedef struct N##3 N##3;                                                                                          \
    typedef struct N##4 N##4;

TW_HOSTCUDA_VECTORS(signed char, char, 2, 4)
TW_HOSTCUDA_VECTORS(unsigned char, uchar, 2, 4)
TW_HOSTCUDA_VECTORS(short, short, 4, 8)
TW_HOSTCUDA_VECTORS(unsigned short, ushort, 4, 8)
TW_HOSTCUDA_VECTORS(int, int, 8, 16)
TW_HOSTCUDA_VECTORS(unsigned int, uint, 8, 16)
TW_HOSTCUDA_VECTORS(long, long, 16, 16)
TW_HOSTCUDA_VECTORS(unsigned long, ulong, 16, 16)
TW_HOSTCUDA_VECTORS(long long, longlong, 16, 16)
TW_HOSTCUDA_VECTORS(unsigned long long, ulonglong, 16, 16)
TW_HOSTCUDA_VECTORS(float, float, 8, 16)
TW_HOSTCUDA_VECTORS(double, double, 16, 16)

#undef TW_HOSTCUDA_VECTORS

/* Extents of a grid or a block; missing ones are 1. */
struct dim3
{
    unsigned int x, y, z;
#ifdef __cplusplus
    constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1) : x(vx), y(vy), z(vz) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const
    {
        return uint3{x, y, z};
    }
#endif
};
typedef struct dim3 dim3;

#endif
