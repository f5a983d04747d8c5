// SPDX-License-Identifier: Apache-2.0
// Loggers and profilers: of Python classes, and the two that print.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "callback.h"
#include "enums.h"
#include "module.h"
#include "owner.h"

namespace tw::python {

namespace {

using nvinfer1::ILogger;
using nvinfer1::IProfiler;
using Severity = ILogger::Severity;

class PythonLogger final : public ILogger
{
public:
    void log(Severity severity, char const* message) noexcept override
    {
        withPython("log", 0, [&] {
            // The text of a model may be no UTF-8.
            nb::object const text =
                nb::steal(PyUnicode_DecodeUTF8(message, Py_ssize_t(std::strlen(message)), "replace"));
            return callRequired<ILogger>(
                *this, "log", 0, [](nb::object const&) { return 0; }, severity, text);
        });
    }
};

class PrintingLogger final : public ILogger
{
public:
    explicit PrintingLogger(Severity least) : minSeverity(least) {}

    void log(Severity severity, char const* message) noexcept override
    {
        if (severity > minSeverity)
            return;
        constexpr char kLetters[] = "FEWIV";
        std::time_t const now = std::time(nullptr);
        std::tm local{};
        localtime_r(&now, &local);
        char stamp[32];
        std::strftime(stamp, sizeof stamp, "%m/%d/%Y-%H:%M:%S", &local);
        std::printf("[%s] [TRT] [%c] %s\n", stamp, kLetters[std::min<int>(int(severity), 4)], message ? message : "");
        std::fflush(stdout);
    }

    Severity minSeverity;
};

class PythonProfiler final : public IProfiler
{
public:
    void reportLayerTime(char const* layer, float ms) noexcept override
    {
        callRequired<IProfiler>(
            *this, "report_layer_time", 0, [](nb::object const&) { return 0; }, layer ? layer : "", ms);
    }
};

class PrintingProfiler final : public IProfiler
{
public:
    void reportLayerTime(char const* layer, float ms) noexcept override
    {
        std::printf("%s: %gms\n", layer ? layer : "", double(ms));
        std::fflush(stdout);
    }
};

// The binding of an interface's method, when there is no class behind it that defines it.
template <class Python, class Interface>
void refuseIfAbstract(Interface& self, char const* method)
{
    if (dynamic_cast<Python*>(&self))
        refuseAbstract(method);
}

} // namespace

ILogger& keptIfFirst(ILogger& logger)
{
    static bool isKept = false; // with the GIL
    if (!isKept && ::getLogger() == &logger) {
        isKept = true;
        nb::find(logger).inc_ref();
    }
    return logger;
}

void bindLogger(nb::module_& m)
{
    nb::class_<ILogger, PythonLogger> logger(
        m, "ILogger", "Receives the library's messages. Derive from it, call its __init__ and define log().");
    orderedEnum<Severity>(logger, "Severity", "Weight of a message, most severe first.")
        .value("INTERNAL_ERROR", Severity::kINTERNAL_ERROR, "A fault inside the library; going on is not possible.")
        .value("ERROR", Severity::kERROR, "A fault of the program or of its inputs.")
        .value("WARNING", Severity::kWARNING, "Something was repaired, replaced or ignored.")
        .value("INFO", Severity::kINFO, "Progress.")
        .value("VERBOSE", Severity::kVERBOSE, "Detail for debugging.")
        .export_values();
    logger.def(nb::init<>())
        .def(
            "log",
            [](ILogger& self, Severity severity, char const* message) {
                refuseIfAbstract<PythonLogger>(self, "ILogger::log");
                self.log(severity, message);
            },
            nb::arg("severity"), nb::arg("msg"), "Takes one message. Called from several threads.");

    defContextManager(logger);

    nb::class_<PrintingLogger, ILogger>(m, "Logger", "Prints messages to the standard output.")
        .def(nb::init<Severity>(), nb::arg("min_severity") = Severity::kWARNING,
             "Prints messages at least as severe as min_severity.")
        .def_rw("min_severity", &PrintingLogger::minSeverity, "Least severe messages that are printed.")
        .def("log", &PrintingLogger::log, nb::arg("severity"), nb::arg("msg"),
             "Prints one message if it is severe enough.");

    nb::class_<IProfiler, PythonProfiler>(
        m, "IProfiler",
        "Receives the time of each layer of a run. Derive from it, call its __init__ and define report_layer_time().")
        .def(nb::init<>())
        .def(
            "report_layer_time",
            [](IProfiler& self, char const* layer, float ms) {
                refuseIfAbstract<PythonProfiler>(self, "IProfiler::reportLayerTime");
                self.reportLayerTime(layer, ms);
            },
            nb::arg("layer_name"), nb::arg("ms"), "Takes the time of one layer in milliseconds.");
    nb::class_<PrintingProfiler, IProfiler>(m, "Profiler", "Prints the time of each layer.")
        .def(nb::init<>())
        .def("report_layer_time", &PrintingProfiler::reportLayerTime, nb::arg("layer_name"), nb::arg("ms"),
             "Prints the time of one layer.");
}

} // namespace tw::python
