/* SPDX-License-Identifier: Apache-2.0 */
/* Error codes of the CUDA runtime. */
#ifndef TW_HOSTCUDA_ERRORS_H
#define TW_HOSTCUDA_ERRORS_H

enum cudaError
{
#define TW_CUDA_ERROR(name, number) name = number,
#include "hostcuda_errors.def"
#undef TW_CUDA_ERROR
    cudaErrorApiFailureBase = 10000
};
typedef enum cudaError cudaError_t;

#endif
