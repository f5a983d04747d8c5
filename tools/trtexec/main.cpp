// SPDX-License-Identifier: Apache-2.0
// trtexec: builds, saves, loads and runs engines from the command line.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>

#include <fmt/core.h>

#include "build.h"
#include "device.h"
#include "infer.h"
#include "layer_accuracy.h"
#include "layer_information.h"
#include "loadable_run.h"
#include "output_file.h"
#include "outputs.h"
#include "refit.h"
#include "resources.h"
#include "safe.h"
#ifdef TW_TRTEXEC_HAS_PLUGINS
#include <NvInferPlugin.h>
#endif

namespace tw::trtexec {

namespace {

std::string commandLine(int argc, char const* const* argv)
{
    std::string text;
    for (int i = 0; i < argc; ++i)
        text += std::string(i ? " " : "") + argv[i];
    return text;
}

void loadPlugins(Log& log, [[maybe_unused]] LibraryLogger& pluginLogger, SystemOptions const& system)
{
#ifdef TW_TRTEXEC_HAS_PLUGINS
    // Most networks need no plugin, so a library that has none is no error here: a network that does need one is
    // refused by its parser, by name.
    if (!initLibNvInferPlugins(&pluginLogger, ""))
        log.verbose("The plugin library offers no plugins");
#endif
    for (std::string const& path : system.plugins) {
        log.info("Loading supplied plugin library: " + path);
        openLibrary(path, "--plugins");
    }
}

// The engine's layers beside the model in FP32.
void reportAccuracy(Log& log, LibraryLogger& logger, Workspace const& work, Inference const& inference,
                    Options const& options)
{
    AccuracyReport report;
    report.tolerance = options.reporting.tolerance;
    report.search = work.search;
    report.layers = compareLayers(log, logger, options, *work.engine, inference.outputs());
    for (std::string const& line : accuracyLines(report))
        log.info(line);
    if (!options.reporting.accuracyReport.empty())
        writeFile(options.reporting.accuracyReport, accuracyJson(report));
}

bool reportRun(Log& log, LibraryLogger& logger, Workspace& work, Inference& inference, RunMemory const& memory,
               ProfileSink& sink, Options const& options)
{
    auto const layers = [&] {
        return work.engine ? layerJson(*work.engine) : "{}";
    }; // a safety engine tells nothing of them
    ReportingOptions const& reporting = options.reporting;
    bool const separate = options.inference.separateProfileRun && reporting.profiles();
    if (reporting.profiles() && !separate)
        inference.attachProfiler(sink);
    std::optional<PowerMeter> power;
    if (reporting.power && (!reporting.profiles() || separate)) {
        power.emplace(openEnergyCounter);
        power->start();
    }
    RunTrace const trace = inference.run();
    if (power)
        power->stop();
    if (reporting.profiles() && !separate) {
        log.info("The e2e network timing is not reported, because the layer profiler changes it.");
        log.info("--separateProfileRun measures both, one after the other.");
    } else {
        reportPerformance(log, trace, reporting);
        bool const isSaid = options.build.loadEngine.empty(); // by the builder
        std::vector<std::string> slow = isSaid ? std::vector<std::string>() : slowLayerLines(layers());
        if (std::string const busy = busyLine(); !slow.empty() && !busy.empty())
            slow.insert(slow.begin() + 1, busy);
        for (std::string const& line : slow)
            log.info(line);
        if (!slow.empty())
            log.info("");
    }
    reportMemory(log, work, &memory);
    if (power)
        reportPower(log, *power, trace, reporting);
    if (!reporting.exportTimes.empty())
        writeFile(reporting.exportTimes, timesJson(measuredQueries(trace)));
    if (separate) {
        inference.attachProfiler(sink);
        inference.run();
    }
    if (reporting.dumpOutput)
        dumpOutputs(log, inference.outputs().all());
    if (!reporting.exportOutput.empty())
        writeFile(reporting.exportOutput, outputsJson(inference.outputs().all()));
    if (reporting.profiles() && sink.profile.empty())
        throw Failure("The engine reported no layer time to the profiler");
    if (reporting.dumpProfile)
        sink.profile.print(log);
    if (!reporting.exportProfile.empty())
        writeFile(reporting.exportProfile, sink.profile.json());
    bool const passed = reporting.compare.empty() || compareOutputs(log, inference.outputs().all(), reporting);
    if (!reporting.accuracyReport.empty())
        reportAccuracy(log, logger, work, inference, options);
    if (passed)
        return true;
    if (work.engine && reporting.accuracyReport.empty() && options.model.format != ModelFormat::kAny) {
        try {
            reportAccuracy(log, logger, work, inference, options);
        } catch (Failure const& why) { // what was asked for is the comparison of outputs
            log.warning("The layers cannot be compared with FP32: " + std::string(why.what()));
        }
    }
    if (std::string const types = layerTypesLine(layers()); !types.empty())
        log.info(types);
    return false;
}

bool runTool(Log& log, LibraryLogger& logger, LibraryLogger& pluginLogger, Options const& options)
{
    for (std::string const& line : echoLines(options))
        log.info(line);
    for (std::string const& warning : options.warnings)
        log.warning(warning);
    selectDevice(options.system);
    printDevice(log);
    ReportingOptions const& reporting = options.reporting;
    for (std::string const* path :
         {&options.build.saveEngine, &reporting.exportTimes, &reporting.exportOutput, &reporting.exportProfile,
          &reporting.exportLayerInfo, &reporting.accuracyReport, &reporting.exportPower})
        if (!path->empty())
            checkWritable(*path);
    checkSafeOptions(log, options);
    if (char const* model = std::getenv("TENSORWRIGHT_DLA_MODEL"); model && *model)
        log.info(fmt::format("DLA: {} (model, not the device)", model));
    loadPlugins(log, pluginLogger, options.system);

    Workspace work;
    HostPeak const buildPeak;
    obtainPlan(log, logger, options, work);
    if (options.build.loadEngine.empty())
        work.buildMemory = memoryText(buildPeak, logger.mostBytesOfBuilds());
    if (work.search) {
        for (std::string const& line : curveLines(*work.search))
            log.info(line);
        if (!reporting.accuracyReport.empty()) // again when the layers have been looked at
            writeFile(reporting.accuracyReport, accuracyJson({{}, reporting.tolerance, work.search}));
    }
    if (options.inference.timeDeserialize)
        return timeDeserialization(log, logger, work);
    bool const isSafe = options.build.safe && options.system.dlaCore < 0;
    if (isSafe && options.build.consistency && !isConsistent(log, logger, work))
        return false;
    bool const inspects = reporting.dumpLayerInfo || !reporting.exportLayerInfo.empty() || reporting.dumpRefit;
    if (options.build.buildOnly && !inspects && !options.inference.timeRefit) {
        reportMemory(log, work, nullptr);
        log.info("Skipped inference phase since --buildOnly is added.");
        return true;
    }
    if (options.build.safe && !isSafe) {
        if (options.build.buildOnly)
            throw Failure("A loadable tells nothing of its layers, and has no refit");
        return runLoadable(log, options, work);
    }
    RunMemory const memory;
    if (isSafe)
        deserializeSafe(log, logger, work);
    else
        deserialize(log, logger, options, work);
    if (reporting.dumpRefit)
        dumpRefittable(log, logger, *work.engine);
    if (options.inference.timeRefit)
        timeRefit(log, logger, work, options.inference.threads);
    if (options.build.buildOnly) {
        reportLayers(log, *work.engine, nullptr, reporting);
        reportMemory(log, work, nullptr);
        log.info("Skipped inference phase since --buildOnly is added.");
        return true;
    }
    if (!reporting.compare.empty() && options.inference.inputFiles.empty() && work.recordedInputs.empty())
        log.warning("--compare without --loadInputs or --loadInputsFrom compares the outputs of random inputs");
    ProfileSink sink; // outlives the contexts that report to it
    Inference inference(log, work, options);
    if (!isSafe)
        reportLayers(log, *work.engine, &inference.firstContext(), reporting);
    return reportRun(log, logger, work, inference, memory, sink, options);
}

} // namespace

int runMain(int argc, char const* const* argv)
{
    Log log(stdout, stderr, Level::kInfo);
    LibraryLogger logger(log);
    LibraryLogger pluginLogger(log, true);
    std::string const name = fmt::format("TensorRT.trtexec [TensorRT v{}] # ", NV_TENSORRT_VERSION);
    log.plain("&&&& RUNNING " + name + commandLine(argc, argv));
    auto const result = [&](bool passed) {
        log.plain((passed ? "&&&& PASSED " : "&&&& FAILED ") + name + commandLine(argc, argv));
        return passed ? EXIT_SUCCESS : EXIT_FAILURE;
    };
    try {
        if (argc <= 1) {
            log.plain(helpText());
            return result(true);
        }
        Options const options = parseOptions(argc, argv);
        if (options.help) {
            log.plain(helpText());
            return EXIT_SUCCESS;
        }
        for (std::string const& argument : options.unknown)
            log.error("Unknown option: " + argument);
        if (!options.unknown.empty()) {
            log.plain(helpText());
            return result(false);
        }
        log.setThreshold(options.reporting.verbose ? Level::kVerbose : Level::kInfo);
        return result(runTool(log, logger, pluginLogger, options));
    } catch (UsageError const& error) {
        log.error(error.what());
        log.plain(helpText());
    } catch (LibraryFailure const& error) {
        std::string const why = error.isWarning() ? log.lastLibraryWarning() : log.lastLibraryError();
        log.error(error.what() + (why.empty() ? ": the library gives no reason" : ": " + why));
    } catch (std::bad_alloc const&) {
        log.error("Out of host memory");
    } catch (std::exception const& error) {
        log.error(error.what());
    }
    return result(false);
}

} // namespace tw::trtexec

int main(int argc, char** argv)
{
    return tw::trtexec::runMain(argc, argv);
}
