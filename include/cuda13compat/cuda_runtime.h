// SPDX-License-Identifier: Apache-2.0
// The toolkit's cuda_runtime.h includes the cuda_runtime_api.h that lies beside it: ours has to be added behind it.
#ifndef TENSORWRIGHT_CUDA13COMPAT_CUDA_RUNTIME_H
#define TENSORWRIGHT_CUDA13COMPAT_CUDA_RUNTIME_H

#if defined(__GNUC__)
#pragma GCC system_header // include_next is an extension
#endif

#if __has_include_next(<cuda_runtime.h>)
#include_next <cuda_runtime.h>
#endif
#include "cuda_runtime_api.h"

#endif
