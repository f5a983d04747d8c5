// SPDX-License-Identifier: Apache-2.0
// A GPU that is a double (fake_cuda_driver.cpp), of capability 9.0, with a recorder in the compiler's place.
#pragma once

#include <memory>

#include <dlfcn.h>

#include "device/cuda/target.h"

namespace tw::test {

inline Result<std::shared_ptr<cuda::Target const>> fakeTarget()
{
    static void* const library = dlopen(TW_FAKE_DRIVER, RTLD_NOW); // found by everybody under the driver's name
    if (!library)
        return internalError(dlerror());
    *static_cast<int*>(dlsym(library, "twFakeVersion")) = 13000;
    *static_cast<int*>(dlsym(library, "twFakeCapability")) = 90;
    TW_ASSIGN(auto driver, cuda::Driver::open());
    TW_ASSIGN(auto device, cuda::Device::open(driver, 0));
    cuda::SearchPath const recorder{{TW_NVRTC_RECORDER}, {}, {}};
    return std::shared_ptr<cuda::Target const>(
        std::make_shared<cuda::Target>(cuda::Target::of(device, std::make_shared<cuda::LazyCompiler>(recorder))));
}

} // namespace tw::test
