// SPDX-License-Identifier: Apache-2.0
#include "api/environment.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "device/thread_pool.h"
#include "passes/caches/fixed_caches.h"

namespace tw::api {

namespace {

constexpr int kMaxTuningSeconds = 86400; // a day

std::string_view variable(char const* name)
{
    char const* value = std::getenv(name);
    return value ? value : "";
}

// A number from 1 to `most`; a variable that is not set leaves `to` as it is.
Result<void> readNumber(char const* name, int most, int& to)
{
    std::string_view const text = variable(name);
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
    if (!text.empty() && (error != std::errc() || end != text.data() + text.size() || to < 1 || to > most))
        return invalidArgument("{}={} must be a number from 1 to {}", name, text, most);
    return {};
}

struct Switch
{
    char const* variable;
    Permission permission;
    bool isPermitted; // where the variable is not set
};
constexpr Switch kSwitches[] = {
    // Builders consider Winograd's convolutions. Engines that have them run them.
    {"TENSORWRIGHT_WINOGRAD", Permission::kWinograd, true},
    // Builders for a CPU consider products whose factors are rounded to BF16 (sums in FP32).
    {"TENSORWRIGHT_CPU_BF16", Permission::kBf16Factors, false},
    // Builders may store FP32 tensors in BF16 and compute with them so, on any device.
    {"TENSORWRIGHT_BF16_TENSORS", Permission::kBf16Tensors, false},
};

// Where compiled kernels are kept: what the variable names, else what programs keep for themselves in a home.
std::string kernelCacheFolder()
{
    std::string_view const given = variable("TENSORWRIGHT_KERNEL_CACHE"), caches = variable("XDG_CACHE_HOME"),
                           home = variable("HOME");
    if (!given.empty())
        return given == "off" ? std::string() : std::string(given);
    if (caches.empty() && home.empty())
        return {};
    return (caches.empty() ? std::string(home) + "/.cache" : std::string(caches)) + "/tensorwright/kernels";
}

bool isCuda(std::string_view device)
{
    if (device.substr(0, 4) != "cuda")
        return false;
    std::string_view const index = device.substr(4);
    return index.empty() ||
           (index.size() > 1 && index[0] == ':' &&
            std::all_of(index.begin() + 1, index.end(), [](unsigned char c) { return std::isdigit(c); }));
}

} // namespace

Result<Environment> readEnvironment()
{
    Environment e;
    std::string_view const device = variable("TENSORWRIGHT_DEVICE");
    if (!device.empty() && device != "cpu" && !isCuda(device))
        return invalidArgument("TENSORWRIGHT_DEVICE={} is no device (allowed: cpu, cuda, cuda:N)", device);
    e.device = device.empty()    ? RequestedDevice::kAny
               : device == "cpu" ? RequestedDevice::kCpu
                                 : RequestedDevice::kCuda;
    if (size_t const colon = device.find(':'); colon != std::string_view::npos)
        e.gpu = std::atoi(std::string(device.substr(colon + 1)).c_str());
    e.nvrtc = variable("TENSORWRIGHT_NVRTC");
    e.kernelCache = kernelCacheFolder();
    e.cublasLt = variable("TENSORWRIGHT_CUBLASLT");
    e.cudnn = variable("TENSORWRIGHT_CUDNN");
    e.virtualEnvironment = variable("VIRTUAL_ENV");
    e.condaPrefix = variable("CONDA_PREFIX");
    e.path = variable("PATH");
    e.nvtxInjection = variable("NVTX_INJECTION64_PATH");
    std::string_view const strict = variable("TENSORWRIGHT_STRICT_PLAN");
    if (!strict.empty() && strict != "0" && strict != "1")
        return invalidArgument("TENSORWRIGHT_STRICT_PLAN={} must be 0 or 1", strict);
    e.strictPlan = strict == "1";
    std::string_view const copy = variable("TENSORWRIGHT_COPY_PLAN");
    if (!copy.empty() && copy != "0" && copy != "1")
        return invalidArgument("TENSORWRIGHT_COPY_PLAN={} must be 0 or 1", copy);
    e.copyPlan = copy == "1";
    TW_TRY(readNumber("TENSORWRIGHT_NUM_THREADS", device::ThreadPool::kMaxThreads, e.threads));
    std::string_view const isa = variable("TENSORWRIGHT_CPU_ISA");
    if (!isa.empty() && isa != "baseline" && isa != "avx2" && isa != "avx512")
        return invalidArgument("TENSORWRIGHT_CPU_ISA={} must be baseline, avx2 or avx512", isa);
    e.isaLimit = isa == "baseline" ? device::IsaLimit::kBaseline
                 : isa == "avx2"   ? device::IsaLimit::kAvx2
                                   : device::IsaLimit::kNone;
    for (Switch const& s : kSwitches) {
        std::string_view const value = variable(s.variable);
        if (!value.empty() && value != "0" && value != "1")
            return invalidArgument("{}={} must be 0 or 1", s.variable, value);
        e.permits.set(s.permission, value.empty() ? s.isPermitted : value == "1");
    }
    // 0: no TF32, whatever BuilderFlag::kTF32 says; other values say nothing, as in 8.5.
    e.permits.set(Permission::kTf32, variable("NVIDIA_TF32_OVERRIDE") != "0");
    e.recordFolder = variable("TENSORWRIGHT_RECORD_TENSORS");
    TW_TRY(readNumber("TENSORWRIGHT_TUNING_SECONDS", kMaxTuningSeconds, e.tuningSeconds));
    TW_TRY(readNumber("TENSORWRIGHT_KV_CAPACITY", passes::kMostCapacity, e.kvCapacity));
    TW_TRY(readNumber("TENSORWRIGHT_KV_PAGES", passes::kMostCapacity, e.kvPages));
    auto const dlaModel = dla::modelOf(variable("TENSORWRIGHT_DLA_MODEL"));
    if (!dlaModel.ok())
        return Error(dlaModel.error()).in("TENSORWRIGHT_DLA_MODEL");
    e.dla = *dlaModel;
    return e;
}

} // namespace tw::api
