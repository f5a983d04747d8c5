// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include <NvInfer.h>
#include <fmt/core.h>
#include <unistd.h>

#include "device_memory.h"
#include "failure.h"
#include "log.h"
#include "value_syntax.h"

namespace tw::trtexec {

namespace {

struct CpuFacts
{
    std::string name = "CPU";
    double clockGHz = 0;
};

CpuFacts readCpuFacts()
{
    CpuFacts facts;
    std::ifstream file("/proc/cpuinfo");
    std::string line;
    auto const valueOf = [&](char const* key) -> std::string {
        if (!line.starts_with(key))
            return {};
        size_t const start = line.find_first_not_of(" \t", line.find(':') + 1);
        return start == std::string::npos ? std::string() : line.substr(start);
    };
    while (std::getline(file, line)) {
        if (std::string const name = valueOf("model name"); !name.empty())
            facts.name = name;
        if (std::string const mhz = valueOf("cpu MHz"); !mhz.empty())
            facts.clockGHz = std::max(facts.clockGHz, std::strtod(mhz.c_str(), nullptr) / 1000);
    }
    return facts;
}

// What TENSORWRIGHT_DEVICE asks for.
struct Wish
{
    std::string text;
    bool cpu = false, gpu = false;
    int32_t ordinal = -1; // of the GPU; -1: none is named
};

Wish wishFromOutside()
{
    Wish wish;
    char const* variable = std::getenv("TENSORWRIGHT_DEVICE");
    wish.text = variable ? variable : "";
    if (wish.text.empty())
        return wish;
    std::string_view rest = wish.text;
    wish.cpu = rest == "cpu";
    wish.gpu = rest.starts_with("cuda");
    rest.remove_prefix(std::min<size_t>(rest.size(), 4));
    bool known = wish.cpu || (wish.gpu && rest.empty());
    if (wish.gpu && rest.starts_with(":")) {
        rest.remove_prefix(1);
        auto const [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), wish.ordinal);
        known = error == std::errc() && end == rest.data() + rest.size() && wish.ordinal >= 0;
    }
    if (!known)
        throw Failure("TENSORWRIGHT_DEVICE=" + wish.text + " is no device (allowed: cpu, cuda, cuda:N)");
    return wish;
}

} // namespace

void selectDevice(SystemOptions const& system)
{
    setenv("TENSORWRIGHT_ONNX_QUANTIZED_OPS", "1", 1);
    for (auto const& [name, value] : system.variables)
        setenv(name, value, 1);
    if (system.tuningSeconds > 0)
        setenv("TENSORWRIGHT_TUNING_SECONDS", std::to_string(system.tuningSeconds).c_str(), 1);
    if (system.kvCapacity > 0)
        setenv("TENSORWRIGHT_KV_CAPACITY", std::to_string(system.kvCapacity).c_str(), 1);
    if (system.kvPages > 0)
        setenv("TENSORWRIGHT_KV_PAGES", std::to_string(system.kvPages).c_str(), 1);
    if (system.cpuThreads > 0)
        setenv("TENSORWRIGHT_NUM_THREADS", std::to_string(system.cpuThreads).c_str(), 1);

    Wish const wish = wishFromOutside();
    bool const cpu = system.cpu || (!system.deviceGiven && wish.cpu);
    if (!cpu) {
        int32_t const gpus = countGpus();
        int32_t const last = std::max(gpus, 1) - 1; // without a GPU the CPU is device 0, so that scripts run unedited
        bool const named = !system.deviceGiven && wish.ordinal >= 0;
        int32_t const device = named ? wish.ordinal : system.device;
        if (gpus == 0 && wish.gpu)
            throw Failure(
                "TENSORWRIGHT_DEVICE=" + wish.text +
                " asks for a GPU, and there is none that the CUDA driver offers; --device=cpu runs on the CPU");
        if (device > last)
            throw Failure((named ? "TENSORWRIGHT_DEVICE=" + wish.text : fmt::format("--device={}", device)) +
                          ": no such device (allowed: " + (named ? "cuda:0" : "0") +
                          (last > 0 ? fmt::format(" to {}", last) : std::string()) + ", cpu)");
        if (gpus > 0) {
            useGpu(device);
            setenv("TENSORWRIGHT_DEVICE", (fmt::format("cuda:{}", device)).c_str(), 1);
            return;
        }
    }
    // Buffers are host memory, so the library must compute on the CPU.
    setenv("TENSORWRIGHT_DEVICE", "cpu", 1);
}

void printDevice(Log& log)
{
    constexpr int64_t kMiB = 1 << 20;
    log.info("=== Device Information ===");
    if (usesGpu()) {
        GpuFacts const gpu = gpuFacts();
        log.info("Selected Device: " + gpu.name);
        log.info(fmt::format("Compute Capability: {}.{}", gpu.major, gpu.minor));
        log.info(fmt::format("SMs: {}", gpu.multiprocessors));
        log.info("Compute Clock Rate: " + numberText(gpu.clockKHz / 1e6) + " GHz");
        log.info(fmt::format("Device Global Memory: {} MiB", deviceMemoryState().totalBytes / kMiB));
        log.info(fmt::format("Shared Memory per SM: {} KiB", gpu.sharedKiB));
        log.info(fmt::format("Memory Bus Width: {} bits (ECC {})", gpu.busBits, gpu.hasEcc ? "enabled" : "disabled"));
        log.info("Memory Clock Rate: " + numberText(gpu.memoryClockKHz / 1e6) + " GHz");
    } else {
        CpuFacts const cpu = readCpuFacts();
        int64_t const memoryMiB = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE) / kMiB;
        int64_t const l2KiB = std::max<long>(sysconf(_SC_LEVEL2_CACHE_SIZE), 0) / 1024;
        log.info("Selected Device: " + cpu.name);
        // The labels are those of a GPU. What a CPU has not, or does not tell, is 0.
        log.info("Compute Capability: 0.0");
        log.info(fmt::format("SMs: {}", sysconf(_SC_NPROCESSORS_ONLN)));
        log.info("Compute Clock Rate: " + numberText(cpu.clockGHz) + " GHz");
        log.info(fmt::format("Device Global Memory: {} MiB", memoryMiB));
        log.info(fmt::format("Shared Memory per SM: {} KiB", l2KiB));
        log.info("Memory Bus Width: 0 bits (ECC disabled)");
        log.info("Memory Clock Rate: 0 GHz");
    }
    log.info("");
    int32_t const version = getInferLibVersion(); // major * 1000 + minor * 100 + patch
    log.info(fmt::format("TensorRT version: {}.{}.{}", version / 1000, version / 100 % 10, version % 100));
}

} // namespace tw::trtexec
