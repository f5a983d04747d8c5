/* SPDX-License-Identifier: Apache-2.0 */
/* cudaProfilerStart and cudaProfilerStop; both succeed and do nothing. */
#ifndef TW_HOSTCUDA_CUDA_PROFILER_API_H
#define TW_HOSTCUDA_CUDA_PROFILER_API_H

#include "cuda_runtime_api.h"

#endif
