/* SPDX-License-Identifier: Apache-2.0 */
/* Execution-space words of CUDA C++. This is a host-only stand-in, so they all vanish. */
#ifndef TW_HOSTCUDA_HOST_DEFINES_H
#define TW_HOSTCUDA_HOST_DEFINES_H

#ifndef __host__
#define __host__
#endif
#ifndef __device__
#define __device__
#endif
#ifndef __global__
#define __global__
#endif
#ifndef __forceinline__
#define __forceinline__ __inline__ __attribute__((always_inline))
#endif
#ifndef CUDARTAPI
#define CUDARTAPI
#endif
#ifndef CUDART_CB
#define CUDART_CB
#endif

#endif
