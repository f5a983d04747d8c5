// SPDX-License-Identifier: Apache-2.0
#include "reference_run.h"

#include <cstring>

#include "precision_edit.h"

namespace tw::trtexec {

namespace {

RecordedTensor tensorOf(Binding const& b)
{
    RecordedTensor t;
    t.name = b.name;
    if (b.layout.batch > 1)
        t.dims.push_back(b.layout.batch);
    for (int32_t i = 0; i < b.layout.dims.nbDims; ++i)
        t.dims.push_back(b.layout.dims.d[i]);
    t.kind = ElementKind::kDouble; // exact for all types
    int64_t const count = b.layout.count();
    t.data.resize(static_cast<size_t>(count) * sizeof(double));
    for (int64_t i = 0; i < count; ++i) {
        double const value = b.value(i);
        std::memcpy(t.data.data() + static_cast<size_t>(i) * sizeof value, &value, sizeof value);
    }
    return t;
}

} // namespace

std::vector<RecordedTensor> inputsOf(Bindings const& bindings)
{
    std::vector<RecordedTensor> inputs;
    for (Binding const& b : bindings.all()) {
        if (!b.input)
            continue;
        if (b.type == nvinfer1::DataType::kINT8)
            throw Failure("input '" + b.name +
                          "' is INT8: the network in FP32 cannot be given the numbers that it stands for; build with "
                          "--inputIOFormats=fp32:chw for a comparison of layers");
        inputs.push_back(tensorOf(b));
    }
    return inputs;
}

RecordedTensor valuesOf(Binding const& binding)
{
    return tensorOf(binding);
}

Options oneQuery(Options const& options)
{
    Options out = options;
    InferenceOptions& inference = out.inference;
    inference.inputFiles.clear();
    inference.iterations = 1;
    inference.warmUpMs = inference.durationSec = inference.sleepMs = inference.idleMs = 0;
    inference.streams = 1;
    inference.threads = inference.cudaGraph = inference.timeRefit = inference.timeDeserialize = false;
    inference.transfers = true;
    return out;
}

ReferenceRun::ReferenceRun(Log& log, LibraryLogger& logger, Options const& options, std::vector<RecordedTensor> inputs,
                           bool marksAll)
    : options_(oneQuery(inFp32(options)))
{
    Quiet const quiet(log, options);
    work_.recordedInputs = std::move(inputs);
    options_.inference.inputFolder = "the engine's own inputs"; // where messages say that they are from
    buildPlan(log, logger, options_, work_,
              [&](nvinfer1::INetworkDefinition& network, nvinfer1::IBuilderConfig& config) {
                  for (int32_t i = 0; i < network.getNbLayers(); ++i) {
                      nvinfer1::ILayer const& layer = *network.getLayer(i);
                      layers_.insert(layer.getName());
                      for (int32_t k = 0; k < layer.getNbOutputs(); ++k)
                          producers_.try_emplace(layer.getOutput(k)->getName(), layer.getName());
                  }
                  quantized_ = quantizedTensors(network);
                  leavePairsOut(network, [](std::string const&) { return true; });
                  if (hasExplicitQuantization(network)) // of pairs that an output or an INT8 constant needs
                      config.setFlag(nvinfer1::BuilderFlag::kINT8);
                  if (marksAll)
                      markAllTensors(network);
              });
    deserialize(log, logger, options_, work_);
    inference_ = std::make_unique<Inference>(log, work_, options_);
    inference_->run();
    for (Binding const& b : inference_->outputs().all())
        tensors_[b.name] = &b;
}

Binding const* ReferenceRun::find(std::string const& tensor) const
{
    auto const at = tensors_.find(tensor);
    return at == tensors_.end() ? nullptr : at->second;
}

} // namespace tw::trtexec
