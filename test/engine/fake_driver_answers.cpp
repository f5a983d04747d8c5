// SPDX-License-Identifier: Apache-2.0
// What the driver that is not one tells of its GPUs: TW_FAKE_INIT (the status of cuInit), TW_FAKE_VERSION, TW_FAKE_GPUS
// and TW_FAKE_CAPABILITY in the environment. Alone it is a driver that lacks functions.
#include <cstdio>
#include <cstdlib>

#include "device/cuda/driver.h"

#define TW_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

int number(char const* variable, int otherwise)
{
    char const* const text = std::getenv(variable);
    return text ? std::atoi(text) : otherwise;
}

} // namespace

TW_EXPORT int cuInit(unsigned)
{
    return number("TW_FAKE_INIT", 0);
}
TW_EXPORT int cuDriverGetVersion(int* version)
{
    *version = number("TW_FAKE_VERSION", 12040);
    return 0;
}
TW_EXPORT int cuDeviceGetCount(int* count)
{
    *count = number("TW_FAKE_GPUS", 1);
    return 0;
}
TW_EXPORT int cuDeviceGet(int* device, int ordinal)
{
    *device = ordinal;
    return 0;
}
TW_EXPORT int cuDeviceGetName(char* name, int bytes, int)
{
    std::snprintf(name, size_t(bytes), "Fake GPU");
    return 0;
}
TW_EXPORT int cuDeviceGetAttribute(int* value, int attribute, int)
{
    int const capability = number("TW_FAKE_CAPABILITY", 80);
    *value = attribute == tw::cuda::kAttributeMajor   ? capability / 10
             : attribute == tw::cuda::kAttributeMinor ? capability % 10
                                                      : 1;
    return 0;
}
TW_EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int)
{
    *bytes = size_t(1) << 30;
    return 0;
}
