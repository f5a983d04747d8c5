// SPDX-License-Identifier: Apache-2.0
// make_int4(x, y, z, w) and its kin.
#ifndef TW_HOSTCUDA_VECTOR_FUNCTIONS_H
#define TW_HOSTCUDA_VECTOR_FUNCTIONS_H

#include "vector_types.h"

#define TW_HOSTCUDA_MAKE(T, N)                                                                                         \
    inline N##1 make_##N##1(T x)                                                                                       \
    {                                                                                                                  \
        return N##1 {x};                                                                                               \
    }                                                                                                                  \
    inline N##2 make_##N##2(T x, T y)                                                                                  \
    {                                                                                                                  \
        return N##2 {x, y};                                                                                            \
    }                                                                                                                  \
    inline N##3 make_##N##3(T x, T y, T z)                                                                             \
    {                                                                                                                  \
        return N##3 {x, y, z};                                                                                         \
    }                                                                                                                  \
    inline N##4 make_##N##4(T x, T y, T z, T w)                                                                        \
    {                                                                                                                  \
        return N##4 {x, y, z, w};                                                                                      \
    }

TW_HOSTCUDA_MAKE(signed char, char)
TW_HOSTCUDA_MAKE(unsigned char, uchar)
TW_HOSTCUDA_MAKE(short, short)
TW_HOSTCUDA_MAKE(unsigned short, ushort)
TW_HOSTCUDA_MAKE(int, int)
TW_HOSTCUDA_MAKE(unsigned int, uint)
TW_HOSTCUDA_MAKE(long, long)
TW_HOSTCUDA_MAKE(unsigned long, ulong)
TW_HOSTCUDA_MAKE(long long, longlong)
TW_HOSTCUDA_MAKE(unsigned long long, ulonglong)
TW_HOSTCUDA_MAKE(float, float)
TW_HOSTCUDA_MAKE(double, double)

#undef TW_HOSTCUDA_MAKE

#endif
