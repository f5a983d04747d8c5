// SPDX-License-Identifier: Apache-2.0
// What a build and a run took of the machine beside time: memory and energy.
#pragma once

#include "build.h"
#include "memory_use.h"
#include "power.h"
#include "report.h"

namespace tw::trtexec {

// From before an engine is made to the end of its run.
class RunMemory
{
public:
    RunMemory();
    std::string text() const; // of the host's memory its highest, of the GPU's what is more in use now than at first

private:
    HostPeak host_;
    uint64_t before_ = 0;
};

// `run` may be null: there was none.
void reportMemory(Log& log, Workspace const& work, RunMemory const* run);

// Of the device that the tool uses.
std::unique_ptr<EnergyCounter> openEnergyCounter();
void reportPower(Log& log, PowerMeter const& meter, RunTrace const& trace, ReportingOptions const& reporting);

} // namespace tw::trtexec
