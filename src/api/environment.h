// SPDX-License-Identifier: Apache-2.0
// What the library reads from the process environment: nothing below src/api does. Builders and runtimes read it once,
// when they are made.
#pragma once

#include "base/result.h"

namespace tw::api {

struct Environment
{
    // TENSORWRIGHT_STRICT_PLAN=1: plans of another version or another device are refused, as 8.5 does.
    bool strictPlan = false;
    // TENSORWRIGHT_NUM_THREADS: threads of the CPU device, the caller included; 0: one for each CPU of the process.
    // Counts where the thread pool of the process is made, at its first use.
    int threads = 0;
};

// TENSORWRIGHT_DEVICE (cpu, cuda, cuda:N) must name a device that this build has; every variable a value that it knows.
Result<Environment> readEnvironment();

} // namespace tw::api
