// SPDX-License-Identifier: Apache-2.0
// A program as it was written for CUDA 11: it asks for the device's clocks and prints a half. It must compile with any
// toolkit. Exit status 77: it compiled, but there is no GPU to ask.
#include <cstdio>
#include <iostream>
#include <sstream>

#include TW_RUNTIME_HEADER
#include <cuda_fp16.h>

#include "NvInfer.h"

static void describe(cudaDeviceProp const& prop)
{
    std::printf("%s: %d MHz, memory %d MHz, %d bits\n", prop.name, prop.clockRate / 1000, prop.memoryClockRate / 1000,
                prop.memoryBusWidth);
}

std::string text(__half h)
{
    std::ostringstream s;
    s << h;
    return s.str();
}

int main()
{
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        std::printf("SKIP: no GPU (the program itself compiled)\n");
        return 77;
    }
    cudaDeviceProp prop;
    if (cudaGetDeviceProperties(&prop, 0) != cudaSuccess)
        return 1;
    int chosen = -1;
    if (cudaChooseDevice(&chosen, &prop) != cudaSuccess || chosen < 0)
        return 1;
    describe(prop);
    struct cudaDeviceProp again;
    if (cudaGetDeviceProperties(&again, 0) != cudaSuccess || again.clockRate != prop.clockRate)
        return 1;
    std::printf("half: %s\n", text(__float2half(1.5F)).c_str());
    return prop.clockRate > 0 && prop.memoryClockRate > 0 && prop.deviceOverlap >= 0 &&
                   text(__float2half(1.5F)) == "1.5"
               ? 0
               : 1;
}
