// SPDX-License-Identifier: Apache-2.0
#include "resources.h"

#include <cstdlib>

#include "device_memory.h"
#include "output_file.h"

namespace tw::trtexec {

namespace {

uint64_t usedOnGpu()
{
    if (!usesGpu())
        return 0;
    DeviceMemoryState const now = deviceMemoryState();
    return now.totalBytes - now.freeBytes;
}

} // namespace

RunMemory::RunMemory() : before_(usedOnGpu()) {}

std::string RunMemory::text() const
{
    uint64_t const used = usedOnGpu();
    return memoryText(host_, used > before_ ? used - before_ : 0);
}

void reportMemory(Log& log, Workspace const& work, RunMemory const* run)
{
    if (work.buildMemory.empty() && !run)
        return;
    log.info("=== Memory summary ===");
    if (!work.buildMemory.empty())
        log.info("Peak Build Memory: " + work.buildMemory);
    if (run)
        log.info("Peak Run Memory: " + run->text());
    log.info("");
}

std::unique_ptr<EnergyCounter> openEnergyCounter()
{
    if (usesGpu())
        return openNvml(gpuPciBusId());
    char const* folder = std::getenv("TENSORWRIGHT_POWERCAP");
    return openRapl(folder ? folder : "/sys/class/powercap");
}

void reportPower(Log& log, PowerMeter const& meter, RunTrace const& trace, ReportingOptions const& reporting)
{
    std::vector<QueryTimes> const queries = measuredQueries(trace);
    MeasuredTime const time = measuredTime(queries);
    auto const moment = [&](double ms) {
        return trace.start +
               std::chrono::duration_cast<PowerMeter::Clock::duration>(std::chrono::duration<double, std::milli>(ms));
    };
    PowerUse const use =
        meter.use(moment(time.beginMs), moment(time.endMs), static_cast<double>(queries.size()) * trace.batch);
    for (std::string const& line : powerLines(use))
        log.info(line);
    log.info("");
    if (!reporting.exportPower.empty())
        writeFile(reporting.exportPower, powerJson(use));
}

} // namespace tw::trtexec
