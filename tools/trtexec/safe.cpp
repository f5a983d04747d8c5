// SPDX-License-Identifier: Apache-2.0
#include "safe.h"

#include <atomic>

#include <NvInferConsistency.h>
#include <dlfcn.h>
#include <fmt/core.h>

#include "stopwatch.h"
#include "value_syntax.h"

namespace tw::trtexec {

namespace {

constexpr char const* kSafeLibrary = "libnvinfer_safe.so.8";
constexpr char const* kCheckerLibrary = "libnvinfer_checker.so.8";
constexpr char const* kCreateRuntime = "_ZN8nvinfer14safe18createInferRuntimeERNS_7ILoggerE";
constexpr char const* kCreateChecker = "createConsistencyChecker_INTERNAL";

template <class Function>
Function symbolOf(char const* path, char const* name, char const* option)
{
    void* const symbol = dlsym(openLibrary(path, option), name);
    if (!symbol)
        throw Failure(fmt::format("{}: '{}' has no {}", option, path, name));
    return reinterpret_cast<Function>(symbol);
}

// The safe runtime wants one; what it is told stands in the log, too.
class Recorder final : public nvinfer1::IErrorRecorder
{
public:
    int32_t getNbErrors() const noexcept override { return count_; }
    nvinfer1::ErrorCode getErrorCode(int32_t) const noexcept override { return last_; }
    ErrorDesc getErrorDesc(int32_t) const noexcept override { return "see the log"; }
    bool hasOverflowed() const noexcept override { return false; }
    void clear() noexcept override { count_ = 0; }
    bool reportError(nvinfer1::ErrorCode code, ErrorDesc) noexcept override
    {
        last_ = code;
        ++count_;
        return true;
    }
    RefCount incRefCount() noexcept override { return ++references_; }
    RefCount decRefCount() noexcept override { return --references_; }

private:
    std::atomic<int32_t> count_{0}, references_{0};
    std::atomic<nvinfer1::ErrorCode> last_{nvinfer1::ErrorCode::kSUCCESS};
};

} // namespace

void checkSafeOptions(Log& log, Options const& options)
{
    BuildOptions const& build = options.build;
    if (build.consistency && !build.safe)
        log.warning("--consistency is ignored without --safe");
    if (!build.safe)
        return;
    if (options.system.dlaCore < 0)
        openLibrary(kSafeLibrary, "--safe");
    if (build.consistency && options.system.dlaCore >= 0)
        throw Failure(
            "--consistency: the checker is for safety engines, and --safe with --useDLACore makes a DLA loadable");
    if (build.consistency)
        openLibrary(kCheckerLibrary, "--consistency");
    if (build.buildOnly)
        return;
    ReportingOptions const& reporting = options.reporting;
    for (auto const& [asked, option] :
         {std::pair(reporting.profiles(), "--dumpProfile and --exportProfile"),
          std::pair(reporting.dumpRefit, "--dumpRefit"), std::pair(options.inference.timeRefit, "--timeRefit"),
          std::pair(reporting.dumpLayerInfo || !reporting.exportLayerInfo.empty(),
                    "--dumpLayerInfo and --exportLayerInfo"),
          std::pair(!reporting.accuracyReport.empty(), "--accuracyReport")})
        if (asked)
            throw Failure(fmt::format("{}: the safe runtime tells nothing of its layers; leave out --safe", option));
}

bool isConsistent(Log& log, LibraryLogger& logger, Workspace const& work)
{
    log.info("Start consistency checking.");
    auto const create =
        symbolOf<void* (*)(void*, void const*, size_t, int32_t)>(kCheckerLibrary, kCreateChecker, "--consistency");
    auto const checker =
        required(static_cast<nvinfer1::consistency::IConsistencyChecker*>(create(
                     static_cast<nvinfer1::ILogger*>(&logger), work.planData(), work.planSize(), NV_TENSORRT_VERSION)),
                 "Failed to create consistency checker: creating it");
    if (!checker->validate()) {
        log.error("Consistency validation failed.");
        return false;
    }
    log.info("Consistency validation passed.");
    return true;
}

void deserializeSafe(Log& log, LibraryLogger& logger, Workspace& work)
{
    static Recorder recorder; // outlives all that report to it
    work.parsed.network.reset();
    work.parsed = {};
    work.builder.reset();
    Stopwatch const watch;
    auto const create =
        symbolOf<nvinfer1::safe::IRuntime* (*)(nvinfer1::ILogger&)>(kSafeLibrary, kCreateRuntime, "--safe");
    work.safeRuntime = required(create(logger), "Creating the safe runtime");
    work.safeRuntime->setErrorRecorder(&recorder);
    work.safeEngine = required(work.safeRuntime->deserializeCudaEngine(work.planData(), work.planSize()),
                               "Deserializing the safe engine");
    log.info("SafeEngine deserialized in " + numberText(watch.seconds()) + " sec.");
    work.built.reset();
    work.loaded.reset();
}

} // namespace tw::trtexec
