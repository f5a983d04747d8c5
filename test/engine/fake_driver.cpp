// SPDX-License-Identifier: Apache-2.0
// The functions of a CUDA driver that is not one: all fail but those of fake_driver_answers.cpp, which take their
// place.
#include "device/cuda/driver.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

namespace tw::cuda {

#define TW_CUDA_DRIVER(name, exported, parameters)                                                                     \
    extern "C" __attribute__((visibility("default"), weak)) int name parameters __asm__(exported);                     \
    extern "C" int name parameters                                                                                     \
    {                                                                                                                  \
        return 999; /* CUDA_ERROR_UNKNOWN */                                                                           \
    }
#define TW_CUDA_DRIVER_NEW(name, exported, parameters)
#include "device/cuda/driver.def"

} // namespace tw::cuda
