// SPDX-License-Identifier: Apache-2.0
// trtexec: builds, saves, loads and runs engines from the command line.
#include "build.h"
#include "device.h"
#include "infer.h"
#include "layer_information.h"
#include "output_file.h"
#include "outputs.h"
#include "refit.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <exception>
#ifdef TW_TRTEXEC_HAS_PLUGINS
#include <NvInferPlugin.h>
#endif

namespace tw::trtexec {

namespace {

std::string commandLine(int argc, const char* const* argv)
{
    std::string text;
    for (int i = 0; i < argc; ++i)
        text += std::string(i ? " " : "") + argv[i];
    return text;
}

void openLibrary(const std::string& path, const std::string& option)
{
    if (!dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) {
        const char* reason = dlerror();
        throw Failure(option + ": cannot load '" + path + "': " + (reason ? reason : "unknown reason"));
    }
}

void loadPlugins(Log& log, [[maybe_unused]] LibraryLogger& pluginLogger, const SystemOptions& system)
{
#ifdef TW_TRTEXEC_HAS_PLUGINS
    // Most networks need no plugin, so a library that has none is no error here: a network that does need one is
    // refused by its parser, by name.
    if (!initLibNvInferPlugins(&pluginLogger, ""))
        log.verbose("The plugin library offers no plugins");
#endif
    for (const std::string& path : system.plugins) {
        log.info("Loading supplied plugin library: " + path);
        openLibrary(path, "--plugins");
    }
}

// The safe runtime and the consistency checker are libraries of their own, opened by name.
void checkSafety(Log& log, const Options& options)
{
    const BuildOptions& build = options.build;
    if (build.consistency && !build.safe)
        log.warning("--consistency is ignored without --safe");
    if (!build.safe)
        return;
    if (options.system.dlaCore < 0)
        openLibrary("libnvinfer_safe.so.8", "--safe");
    if (build.consistency)
        openLibrary("libnvinfer_checker.so.8", "--consistency");
    if (!build.buildOnly)
        throw Failure("--safe: running safe engines and DLA loadables is not possible yet; add --buildOnly");
    if (build.consistency)
        throw Failure("--consistency: the consistency check of safe engines is not possible yet");
}

bool reportRun(Log& log, nvinfer1::ICudaEngine& engine, Inference& inference, ProfileSink& sink, const Options& options)
{
    const ReportingOptions& reporting = options.reporting;
    const bool separate = options.inference.separateProfileRun && reporting.profiles();
    if (reporting.profiles() && !separate)
        inference.attachProfiler(sink);
    const RunTrace trace = inference.run();
    if (reporting.profiles() && !separate) {
        log.info("The e2e network timing is not reported, because the layer profiler changes it.");
        log.info("--separateProfileRun measures both, one after the other.");
    } else {
        reportPerformance(log, trace, reporting);
        const std::vector<std::string> slow = slowLayerLines(layerJson(engine));
        for (const std::string& line : slow)
            log.info(line);
        if (!slow.empty())
            log.info("");
    }
    if (!reporting.exportTimes.empty())
        writeFile(reporting.exportTimes, timesJson(measuredQueries(trace)));
    if (separate) {
        inference.attachProfiler(sink);
        inference.run();
    }
    if (reporting.dumpOutput)
        dumpOutputs(log, inference.outputs());
    if (!reporting.exportOutput.empty())
        writeFile(reporting.exportOutput, outputsJson(inference.outputs()));
    if (reporting.profiles() && sink.profile.empty())
        throw Failure("The engine reported no layer time to the profiler");
    if (reporting.dumpProfile)
        sink.profile.print(log);
    if (!reporting.exportProfile.empty())
        writeFile(reporting.exportProfile, sink.profile.json());
    if (reporting.compare.empty() || compareOutputs(log, inference.outputs(), reporting))
        return true;
    if (const std::string types = layerTypesLine(layerJson(engine)); !types.empty())
        log.info(types);
    return false;
}

bool runTool(Log& log, LibraryLogger& logger, LibraryLogger& pluginLogger, const Options& options)
{
    for (const std::string& line : echoLines(options))
        log.info(line);
    for (const std::string& warning : options.warnings)
        log.warning(warning);
    selectDevice(options.system);
    printDevice(log);
    const ReportingOptions& reporting = options.reporting;
    for (const std::string* path : {&options.build.saveEngine, &reporting.exportTimes, &reporting.exportOutput,
                                    &reporting.exportProfile, &reporting.exportLayerInfo})
        if (!path->empty())
            checkWritable(*path);
    checkSafety(log, options);
    loadPlugins(log, pluginLogger, options.system);

    Workspace work;
    obtainPlan(log, logger, options, work);
    if (options.inference.timeDeserialize)
        return timeDeserialization(log, logger, work);
    const bool inspects = reporting.dumpLayerInfo || !reporting.exportLayerInfo.empty() || reporting.dumpRefit;
    if (options.build.buildOnly && !inspects && !options.inference.timeRefit) {
        log.info("Skipped inference phase since --buildOnly is added.");
        return true;
    }
    deserialize(log, logger, options, work);
    if (reporting.dumpRefit)
        dumpRefittable(log, logger, *work.engine);
    if (options.inference.timeRefit)
        timeRefit(log, logger, work, options.inference.threads);
    if (options.build.buildOnly) {
        reportLayers(log, *work.engine, nullptr, reporting);
        log.info("Skipped inference phase since --buildOnly is added.");
        return true;
    }
    if (!reporting.compare.empty() && options.inference.inputFiles.empty() && work.recordedInputs.empty())
        log.warning("--compare without --loadInputs or --loadInputsFrom compares the outputs of random inputs");
    ProfileSink sink; // outlives the contexts that report to it
    Inference inference(log, work, options);
    reportLayers(log, *work.engine, &inference.firstContext(), reporting);
    return reportRun(log, *work.engine, inference, sink, options);
}

} // namespace

int runMain(int argc, const char* const* argv)
{
    Log log(stdout, stderr, Level::kInfo);
    LibraryLogger logger(log);
    LibraryLogger pluginLogger(log, true);
    const std::string name = "TensorRT.trtexec [TensorRT v" + std::to_string(NV_TENSORRT_VERSION) + "] # ";
    log.plain("&&&& RUNNING " + name + commandLine(argc, argv));
    const auto result = [&](bool passed) {
        log.plain((passed ? "&&&& PASSED " : "&&&& FAILED ") + name + commandLine(argc, argv));
        return passed ? EXIT_SUCCESS : EXIT_FAILURE;
    };
    try {
        if (argc <= 1) {
            log.plain(helpText());
            return result(true);
        }
        const Options options = parseOptions(argc, argv);
        if (options.help) {
            log.plain(helpText());
            return EXIT_SUCCESS;
        }
        for (const std::string& argument : options.unknown)
            log.error("Unknown option: " + argument);
        if (!options.unknown.empty()) {
            log.plain(helpText());
            return result(false);
        }
        log.setThreshold(options.reporting.verbose ? Level::kVerbose : Level::kInfo);
        return result(runTool(log, logger, pluginLogger, options));
    } catch (const UsageError& error) {
        log.error(error.what());
        log.plain(helpText());
    } catch (const LibraryFailure& error) {
        const std::string why = error.isWarning() ? log.lastLibraryWarning() : log.lastLibraryError();
        log.error(error.what() + (why.empty() ? ": the library gives no reason" : ": " + why));
    } catch (const std::bad_alloc&) {
        log.error("Out of host memory");
    } catch (const std::exception& error) {
        log.error(error.what());
    }
    return result(false);
}

} // namespace tw::trtexec

int main(int argc, char** argv)
{
    return tw::trtexec::runMain(argc, argv);
}
