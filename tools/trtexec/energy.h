// SPDX-License-Identifier: Apache-2.0
// Energy as machines count it: RAPL's counters of a CPU, NVML's of a GPU.
#pragma once

#include <memory>
#include <string>

namespace tw::trtexec {

class EnergyCounter
{
public:
    virtual ~EnergyCounter() = default;
    virtual std::string source() const = 0; // in words
    // What was used since some moment. To be called every second or so: counters run over, and some machines tell their
    // power alone. Throws a Failure with the reason.
    virtual double joules() = 0;
};

// All packages of the CPU, by a folder like /sys/class/powercap. Throws a Failure with the reason where it cannot be read.
std::unique_ptr<EnergyCounter> openRapl(std::string const& folder);
// The GPU at this address of the PCI bus, the whole of it. NVML is opened, never linked. Throws like openRapl().
std::unique_ptr<EnergyCounter> openNvml(std::string const& pciBusId);

} // namespace tw::trtexec
