// SPDX-License-Identifier: Apache-2.0
#include "outputs.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include <fmt/core.h>

#include "compare.h"
#include "json_rows.h"
#include "output_file.h"

namespace tw::trtexec {

namespace {

std::string valueText(double value, nvinfer1::DataType type)
{
    bool const floating = type == nvinfer1::DataType::kFLOAT || type == nvinfer1::DataType::kHALF;
    char text[32];
    std::snprintf(text, sizeof text, floating ? "%g" : "%.0f", value);
    return text;
}

std::string dimensions(Binding const& b)
{
    std::string const dims = dimsText(b.layout.dims);
    return b.layout.batch > 1 ? fmt::format("{}x{}", b.layout.batch, dims) : dims;
}

// But for dimensions of 1: a batch that is implicit is none, and what Caffe calls [n, k] is [k, 1, 1].
bool sameShape(Binding const& b, RecordedTensor const& reference)
{
    if (static_cast<int64_t>(reference.count()) != b.layout.count())
        return false;
    if (b.layout.batch > 1) // stands apart from the dimensions
        return true;
    auto const extents = [](auto const* first, auto const* last) {
        std::vector<int64_t> kept;
        std::copy_if(first, last, std::back_inserter(kept), [](int64_t d) { return d != 1; });
        return kept;
    };
    nvinfer1::Dims const& d = b.layout.dims;
    return extents(d.d, d.d + d.nbDims) ==
           extents(reference.dims.data(), reference.dims.data() + reference.dims.size());
}

} // namespace

void dumpOutputs(Log& log, std::vector<Binding> const& bindings)
{
    log.info("Output Tensors:");
    for (Binding const& b : bindings) {
        if (b.input)
            continue;
        log.info(b.name + ": (" + dimensions(b) + ")");
        std::string values;
        for (int64_t i = 0, n = b.layout.count(); i < n; ++i)
            values += (i ? " " : "") + valueText(b.value(i), b.type);
        log.info(values);
    }
}

std::string outputsJson(std::vector<Binding> const& bindings)
{
    std::vector<Json> rows;
    for (Binding const& b : bindings) {
        if (b.input)
            continue;
        Json values = Json::array();
        for (int64_t i = 0, n = b.layout.count(); i < n; ++i)
            values.push_back(jsonNumber(b.value(i)));
        rows.push_back({{"name", b.name}, {"dimensions", dimensions(b)}, {"values", std::move(values)}});
    }
    return jsonRows(rows);
}

bool compareOutputs(Log& log, std::vector<Binding> const& bindings, ReportingOptions const& reporting)
{
    std::vector<RecordedTensor> const references = readRecorded(reporting.compare, "output");
    std::vector<std::string> names;
    for (Binding const& b : bindings)
        if (!b.input)
            names.push_back(b.name);
    std::vector<size_t> const match = matchRecorded(references, names, reporting.compare);
    log.info("=== Comparison with " + reporting.compare + " ===");
    bool passed = true;
    size_t output = 0;
    for (Binding const& b : bindings) {
        if (b.input)
            continue;
        RecordedTensor const& reference = references[match[output++]];
        if (!sameShape(b, reference)) {
            std::string shape;
            for (int64_t const d : reference.dims)
                shape += fmt::format("{}{}", shape.empty() ? "" : "x", d);
            log.error(b.name + ": shape " + dimensions(b) + ", the recorded one is " + shape);
            passed = false;
            continue;
        }
        std::vector<double> values(static_cast<size_t>(b.layout.count()));
        for (size_t i = 0; i < values.size(); ++i)
            values[i] = b.value(static_cast<int64_t>(i));
        Comparison const comparison = compareTensors(values, reference, reporting.tolerance);
        log.write(comparison.passed ? Level::kInfo : Level::kError, comparisonText(b.name, comparison));
        passed = passed && comparison.passed;
    }
    return passed;
}

namespace {

std::string layerText(nvinfer1::ICudaEngine& engine, nvinfer1::IExecutionContext const* context,
                      nvinfer1::LayerInformationFormat format)
{
    auto const inspector = required(engine.createEngineInspector(), "Creating the engine inspector");
    if (context && !inspector->setExecutionContext(context))
        throw Failure("The engine inspector refuses the execution context");
    char const* information = inspector->getEngineInformation(format);
    if (!information)
        throw Failure("The engine inspector gives no information");
    return information;
}

} // namespace

std::string layerJson(nvinfer1::ICudaEngine& engine, nvinfer1::IExecutionContext const* context)
{
    return layerText(engine, context, nvinfer1::LayerInformationFormat::kJSON);
}

void reportLayers(Log& log, nvinfer1::ICudaEngine& engine, nvinfer1::IExecutionContext const* context,
                  ReportingOptions const& reporting)
{
    if (reporting.dumpLayerInfo) {
        log.info("Layer Information:");
        log.info(layerText(engine, context, nvinfer1::LayerInformationFormat::kONELINE));
    }
    if (!reporting.exportLayerInfo.empty())
        writeFile(reporting.exportLayerInfo, layerJson(engine, context));
}

} // namespace tw::trtexec
