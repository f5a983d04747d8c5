// SPDX-License-Identifier: Apache-2.0
#include "layer_accuracy.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "json_rows.h"
#include "reference_run.h"

namespace tw::trtexec {

namespace {

// Runtimes that are made while it lives record what layers make.
class Recording
{
public:
    explicit Recording(std::string const& folder)
    {
        char const* const before = std::getenv(kVariable);
        before_ = before ? before : "";
        setenv(kVariable, folder.c_str(), 1);
    }
    ~Recording()
    {
        if (before_.empty())
            unsetenv(kVariable);
        else
            setenv(kVariable, before_.c_str(), 1);
    }
    Recording(Recording const&) = delete;
    Recording& operator=(Recording const&) = delete;

private:
    static constexpr char const* kVariable = "TENSORWRIGHT_RECORD_TENSORS";
    std::string before_;
};

// The network's name of what the engine calls `name`: passes add these endings to tensors that they quantize or move, and
// the builder " (channels_last)" where a tensor is in two formats.
std::string networkTensor(std::string name, ReferenceRun const& reference)
{
    constexpr std::string_view kEndings[] = {".int8", ".float", ".integers"};
    for (bool again = true; again && !reference.find(name);) {
        again = false;
        if (auto const at = reference.quantized().find(name); at != reference.quantized().end()) {
            name = at->second;
            again = true;
            continue;
        }
        if (size_t const at = name.rfind(" ("); name.ends_with(')') && at != name.npos && at > 0) {
            name.resize(at);
            again = true;
            continue;
        }
        for (std::string_view ending : kEndings)
            if (!again && name.ends_with(ending)) {
                name.resize(name.size() - ending.size());
                again = true;
            }
    }
    return name;
}

// What passes and the builder add has names of its own: those of the network's layers alone, or the layer whose tensor it
// brings into another type or format.
std::vector<std::string> networkLayers(std::vector<std::string> names, std::string const& tensor,
                                       ReferenceRun const& reference)
{
    std::erase_if(names, [&](std::string const& name) { return !reference.layers().contains(name); });
    if (auto const at = reference.producers().find(tensor); names.empty() && at != reference.producers().end())
        names.push_back(at->second);
    return names;
}

std::string precisionText(ElementKind kind)
{
    return kind == ElementKind::kFloat  ? "FP32"
           : kind == ElementKind::kHalf ? "FP16"
           : kind == ElementKind::kInt8 ? "INT8"
                                        : "";
}

// Without dimensions of 1: fusions leave some out.
std::vector<int64_t> coreOf(std::vector<int64_t> dims)
{
    std::erase(dims, 1);
    return dims;
}

// The energy beyond the largest number of 127 steps, by that of all numbers.
double clippedShare(RecordedTensor const& wanted, double step)
{
    double const largest = 127 * step;
    double all = 0, beyond = 0;
    for (size_t i = 0; i < wanted.count(); ++i) {
        double const x = std::fabs(wanted.at(i));
        all += x * x;
        beyond += x > largest ? (x - largest) * (x - largest) : 0;
    }
    return all > 0 ? beyond / all : 0;
}

LayerAccuracy compareOne(Json const& row, std::string const& folder, ReferenceRun const& reference,
                         Tolerance const& tolerance)
{
    LayerAccuracy out;
    out.layer = row.value("Layer", "");
    out.origin = row.value("NetworkLayers", std::vector<std::string>());
    out.tactic = row.value("Tactic", "");
    out.engineTensor = row.value("Tensor", "");
    std::string const file = folder + "/" + row.value("File", "");
    RecordedTensor const made = readNpy(readFile(file), file);
    out.type = precisionText(made.kind);
    out.tensor = networkTensor(out.engineTensor, reference);
    out.origin = networkLayers(std::move(out.origin), out.tensor, reference);
    Binding const* const binding = reference.find(out.tensor);
    if (out.type.empty()) {
        out.reason = "it holds no numbers of the arithmetic";
        return out;
    }
    if (!binding) {
        out.reason =
            "the network has no such tensor: a fusion or a reformat made it, or it is within a loop or conditional";
        return out;
    }
    double scale = 1;
    if (made.kind == ElementKind::kInt8) {
        if (!row.contains("Scale")) {
            out.reason = "the scale of its INT8 numbers is not known";
            return out;
        }
        scale = row["Scale"].get<double>();
    }
    RecordedTensor const wanted = valuesOf(*binding);
    if (coreOf(made.dims) != coreOf(wanted.dims)) {
        out.reason = "its dimensions are not those of the network's tensor";
        return out;
    }
    std::vector<double> values(made.count());
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = made.at(i) * scale;
    out.comparison = compareTensors(values, wanted, tolerance);
    if (made.kind == ElementKind::kInt8)
        out.clippedShare = clippedShare(wanted, scale);
    return out;
}

} // namespace

std::vector<LayerAccuracy> compareLayers(Log& log, LibraryLogger& logger, Options const& options,
                                         nvinfer1::ICudaEngine& engine, Bindings const& inputs)
{
    log.info("Running the network in FP32 to compare layers");
    std::vector<RecordedTensor> given = inputsOf(inputs);
    ReferenceRun const reference(log, logger, options, given, true);
    TemporaryFolder const folder;
    {
        Quiet const quiet(log, options);
        Workspace work;
        work.recordedInputs = std::move(given);
        auto const plan = required(engine.serialize(), "Serializing the engine");
        Options run = oneQuery(options);
        run.inference.inputFolder = "the engine's own inputs";
        Recording const recording(folder.path());
        work.runtime = required(nvinfer1::createInferRuntime(logger), "Creating the runtime");
        work.engine =
            required(work.runtime->deserializeCudaEngine(plan->data(), plan->size()), "Deserializing the engine");
        Inference(log, work, run).run();
    }
    std::string const list = folder.path() + "/tensors.json";
    if (!std::filesystem::exists(list))
        throw Failure("--accuracyReport: this library does not record what layers make");
    std::vector<std::byte> const bytes = readFile(list);
    Json const json = Json::parse(reinterpret_cast<char const*>(bytes.data()),
                                  reinterpret_cast<char const*>(bytes.data()) + bytes.size());
    std::vector<LayerAccuracy> rows;
    for (Json const& row : json.at("Tensors"))
        rows.push_back(compareOne(row, folder.path(), reference, options.reporting.tolerance));
    return rows;
}

} // namespace tw::trtexec
