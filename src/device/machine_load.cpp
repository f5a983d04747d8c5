// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>

#include "device/cpu.h"
#include "device/thread_pool.h"

namespace tw::device {

double loadAverage()
{
    double load = 0;
    return getloadavg(&load, 1) == 1 ? load : 0;
}

bool isBusy(double load, int cpus)
{
    constexpr double kOdds = 0.5; // what a quiet machine does on the side
    return load > cpus + kOdds;
}

std::string busyLine()
{
    double const load = loadAverage();
    int const cpus = availableCpus();
    if (!isBusy(load, cpus))
        return {};
    char text[200];
    std::snprintf(
        text, sizeof text,
        "This machine is busy (load %.1f on %d CPUs): times of layers are not those of a quiet one: kernels that "
        "are close to each other are chosen by chance, and none is called slow for its time",
        load, cpus);
    return text;
}

} // namespace tw::device
