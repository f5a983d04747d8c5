// SPDX-License-Identifier: Apache-2.0
// NVML with one GPU, at 0000:65:00.0, that draws as many watts as FAKE_NVML_WATTS says. FAKE_NVML: what this machine lets
// programs read: energy and power (by default), power alone, nothing; or where it fails: init.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

namespace {

constexpr int kNotSupported = 3, kNoPermission = 4, kNotFound = 6;

std::string mode()
{
    char const* text = std::getenv("FAKE_NVML");
    return text ? text : "energy";
}

double watts()
{
    char const* text = std::getenv("FAKE_NVML_WATTS");
    return text ? std::strtod(text, nullptr) : 100;
}

int gSessions = 0;
int gDevice = 0;

} // namespace

extern "C" {

int nvmlInit_v2()
{
    if (mode() == "init")
        return kNoPermission;
    ++gSessions;
    return 0;
}

int nvmlShutdown()
{
    --gSessions;
    return 0;
}

// For tests: how many sessions are open.
int fakeNvmlSessions()
{
    return gSessions;
}

char const* nvmlErrorString(int status)
{
    return status == kNotSupported   ? "Not Supported"
           : status == kNoPermission ? "Insufficient Permissions"
           : status == kNotFound     ? "Not Found"
                                     : "Unknown Error";
}

int nvmlDeviceGetHandleByPciBusId_v2(char const* busId, void** device)
{
    *device = &gDevice;
    return std::strcmp(busId, "0000:65:00.0") == 0 ? 0 : kNotFound;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts)
{
    if (device != &gDevice || mode() == "nothing")
        return kNotSupported;
    *milliwatts = static_cast<unsigned>(watts() * 1000);
    return 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules)
{
    using Clock = std::chrono::steady_clock;
    static std::mutex mutex;
    static Clock::time_point last = Clock::now();
    static double total = 8.5e9; // since the driver was loaded
    if (device != &gDevice || mode() != "energy")
        return kNotSupported;
    std::lock_guard const lock(mutex);
    Clock::time_point const now = Clock::now();
    total += watts() * 1000 * std::chrono::duration<double>(now - last).count();
    last = now;
    *millijoules = static_cast<unsigned long long>(total);
    return 0;
}

} // extern "C"
