// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/driver_major.h"

#include "device/cuda/driver.h"

namespace tw::cuda {

int driverMajor()
{
    auto const driver = Driver::open();
    return driver.ok() ? (*driver)->version() / 1000 : 0;
}

} // namespace tw::cuda
