// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <type_traits>

#include <dlfcn.h>
#include <fmt/core.h>

#include "energy.h"
#include "failure.h"

namespace tw::trtexec {

namespace {

// What is needed of NVML. Statuses are 0 for success.
struct Nvml
{
    int (*init)() = nullptr;
    int (*shutdown)() = nullptr;
    char const* (*errorText)(int) = nullptr;
    int (*getDevice)(char const*, void**) = nullptr;
    int (*getEnergy)(void*, unsigned long long*) = nullptr; // millijoules since the driver was loaded; since Volta
    int (*getPower)(void*, unsigned*) = nullptr;            // milliwatts

    Nvml()
    {
        void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!library)
            throw Failure(fmt::format("NVML, which tells a GPU's energy, cannot be loaded: {}", dlerror()));
        auto const find = [&](auto& function, char const* name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
            if (!function)
                throw Failure(fmt::format("libnvidia-ml.so.1 has no function {}", name));
        };
        find(init, "nvmlInit_v2");
        find(shutdown, "nvmlShutdown");
        find(errorText, "nvmlErrorString");
        find(getDevice, "nvmlDeviceGetHandleByPciBusId_v2");
        find(getEnergy, "nvmlDeviceGetTotalEnergyConsumption");
        find(getPower, "nvmlDeviceGetPowerUsage");
    }

    void check(int status, char const* function) const
    {
        if (status != 0)
            throw Failure(fmt::format("NVML: {}: {} ({})", function, errorText(status), status));
    }
};

class Session
{
public:
    explicit Session(std::string const& pciBusId)
    {
        nvml.check(nvml.init(), "nvmlInit_v2");
        if (int const status = nvml.getDevice(pciBusId.c_str(), &device); status != 0) {
            nvml.shutdown();
            nvml.check(status, "nvmlDeviceGetHandleByPciBusId_v2");
        }
    }
    ~Session() { nvml.shutdown(); }
    Session(Session const&) = delete;

    Nvml nvml;
    void* device = nullptr;
};

class EnergyOfGpu : public EnergyCounter
{
public:
    explicit EnergyOfGpu(std::unique_ptr<Session> session) : session_(std::move(session)) {}
    std::string source() const override { return "NVML, the GPU's energy counter"; }

    double joules() override
    {
        unsigned long long millijoules = 0;
        session_->nvml.check(session_->nvml.getEnergy(session_->device, &millijoules),
                             "nvmlDeviceGetTotalEnergyConsumption");
        return static_cast<double>(millijoules) / 1000;
    }

private:
    std::unique_ptr<Session> session_;
};

// The integral of the power, for GPUs that do not count energy.
class PowerOfGpu : public EnergyCounter
{
public:
    explicit PowerOfGpu(std::unique_ptr<Session> session)
        : session_(std::move(session)), at_(Clock::now()), watts_(watts())
    {}
    std::string source() const override { return "NVML, the GPU's power, summed up"; }

    double joules() override
    {
        Clock::time_point const now = Clock::now();
        double const power = watts();
        total_ += (watts_ + power) / 2 * std::chrono::duration<double>(now - at_).count();
        at_ = now;
        watts_ = power;
        return total_;
    }

private:
    using Clock = std::chrono::steady_clock;

    double watts() const
    {
        unsigned milliwatts = 0;
        session_->nvml.check(session_->nvml.getPower(session_->device, &milliwatts), "nvmlDeviceGetPowerUsage");
        return milliwatts / 1000.0;
    }

    std::unique_ptr<Session> session_;
    Clock::time_point at_;
    double watts_ = 0, total_ = 0;
};

} // namespace

std::unique_ptr<EnergyCounter> openNvml(std::string const& pciBusId)
{
    auto session = std::make_unique<Session>(pciBusId);
    unsigned long long energy = 0;
    if (session->nvml.getEnergy(session->device, &energy) == 0)
        return std::make_unique<EnergyOfGpu>(std::move(session));
    return std::make_unique<PowerOfGpu>(std::move(session));
}

} // namespace tw::trtexec
