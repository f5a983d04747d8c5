// SPDX-License-Identifier: Apache-2.0
// Every function of the driver as "not supported"; fake_cuda_driver.cpp has those that the tests need.
#include "device/cuda/driver.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

using namespace tw::cuda;

#define TW_CUDA_DRIVER_NEW(name, symbol, parameters)
#define TW_CUDA_DRIVER(name, symbol, parameters)                                                                       \
    extern "C" int fake_##name parameters __asm__(symbol);                                                             \
    extern "C" __attribute__((weak)) int fake_##name parameters                                                        \
    {                                                                                                                  \
        return 801;                                                                                                    \
    }
#include "device/cuda/driver.def"
