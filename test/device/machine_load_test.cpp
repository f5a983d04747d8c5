// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "device/cpu.h"

namespace tw::test {

TEST(MachineLoad, IsBusyAboveItsCpus)
{
    EXPECT_FALSE(device::isBusy(0, 1));
    EXPECT_FALSE(device::isBusy(2.2, 2)) << "all of it may be ours";
    EXPECT_TRUE(device::isBusy(3, 2));
    EXPECT_FALSE(device::isBusy(3, 16));
    EXPECT_GE(device::loadAverage(), 0);
    std::string const line = device::busyLine();
    EXPECT_TRUE(line.empty() || line.find("busy (load ") != std::string::npos) << line;
}

} // namespace tw::test
