// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tw::cuda {

// The CUDA version that this process's driver is for, 12 or 13; 0: there is none. Code that the libraries of a newer
// one bring or make need not load there, so those of this version are looked for first.
int driverMajor();

} // namespace tw::cuda
