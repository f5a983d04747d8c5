// SPDX-License-Identifier: Apache-2.0
// Builds an engine from an ONNX file, saves and loads its plan, runs it on recorded inputs and compares with recorded
// outputs: the whole way of a TensorRT 8.5 program, written against the public headers only.
//
//   onnx_inference model.onnx folder
//
// `folder` holds test_data_set_N/input_K.pb[.gz] and output_K.pb[.gz], in the order of the model's inputs and outputs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <NvInfer.h>
#include <NvOnnxParser.h>
#include <cuda_runtime_api.h>

#include "tensor_file.h"

namespace {

class Logger : public nvinfer1::ILogger
{
public:
    void log(Severity severity, char const* message) noexcept override
    {
        if (severity <= Severity::kWARNING)
            std::fprintf(stderr, "[%s] %s\n", severity <= Severity::kERROR ? "E" : "W", message);
    }
};

void require(bool condition, std::string const& what)
{
    if (!condition)
        throw std::runtime_error(what);
}
void check(cudaError_t status)
{
    require(status == cudaSuccess, cudaGetErrorString(status));
}

struct DataSet
{
    std::string folder;
    std::vector<TensorFile> inputs, outputs;
};

std::vector<TensorFile> readNumbered(std::string const& prefix)
{
    std::vector<TensorFile> list;
    for (int k = 0;; ++k) {
        TensorFile t;
        std::string const name = prefix + std::to_string(k) + ".pb";
        if (!readTensorFile(name, t) && !readTensorFile(name + ".gz", t))
            return list;
        list.push_back(t);
    }
}

std::vector<DataSet> readDataSets(std::string const& folder)
{
    std::vector<DataSet> sets;
    for (int n = 0; n < 100; ++n) { // numbers may have gaps
        DataSet s;
        s.folder = folder + "/test_data_set_" + std::to_string(n);
        s.inputs = readNumbered(s.folder + "/input_");
        s.outputs = readNumbered(s.folder + "/output_");
        if (!s.outputs.empty())
            sets.push_back(s);
    }
    return sets;
}

nvinfer1::Dims toDims(std::vector<int64_t> const& dims)
{
    nvinfer1::Dims d{};
    d.nbDims = static_cast<int32_t>(dims.size());
    std::copy(dims.begin(), dims.end(), d.d);
    return d;
}

// TensorRT 8.5 has no 64-bit integers: such inputs are bound as INT32.
std::string toEngineType(TensorFile const& t)
{
    if (t.type != TensorFile::kInt64)
        return t.bytes;
    std::string out;
    for (int64_t i = 0; i < t.count(); ++i) {
        int64_t wide;
        std::memcpy(&wide, t.bytes.data() + 8 * i, 8);
        int32_t const narrow = static_cast<int32_t>(wide);
        out.append(reinterpret_cast<char const*>(&narrow), 4);
    }
    return out;
}

std::unique_ptr<nvinfer1::IHostMemory> buildPlan(Logger& logger, std::string const& model,
                                                 std::vector<DataSet> const& sets)
{
    std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
    require(builder != nullptr, "createInferBuilder failed");
    auto const flags = 1U << static_cast<uint32_t>(nvinfer1::NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
    std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(flags));
    std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
    require(parser->parseFromFile(model.c_str(), static_cast<int>(nvinfer1::ILogger::Severity::kWARNING)),
            "cannot parse " + model);
    std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
    // A model that was trained or calibrated with quantization says by itself what is INT8; the flag permits it.
    for (int32_t i = 0; i < network->getNbLayers(); ++i)
        if (network->getLayer(i)->getType() == nvinfer1::LayerType::kQUANTIZE ||
            network->getLayer(i)->getType() == nvinfer1::LayerType::kDEQUANTIZE)
            config->setFlag(nvinfer1::BuilderFlag::kINT8);

    // One profile that covers the shapes of all data sets.
    nvinfer1::IOptimizationProfile* profile = builder->createOptimizationProfile();
    bool dynamic = false;
    for (int32_t i = 0; i < network->getNbInputs(); ++i) {
        nvinfer1::ITensor* input = network->getInput(i);
        nvinfer1::Dims const declared = input->getDimensions();
        if (std::none_of(declared.d, declared.d + declared.nbDims, [](int32_t d) { return d < 0; }))
            continue;
        dynamic = true;
        nvinfer1::Dims least = toDims(sets[0].inputs.at(static_cast<size_t>(i)).dims), most = least;
        for (DataSet const& s : sets) {
            for (int32_t d = 0; d < least.nbDims; ++d) {
                int32_t const size =
                    static_cast<int32_t>(s.inputs.at(static_cast<size_t>(i)).dims.at(static_cast<size_t>(d)));
                least.d[d] = std::min(least.d[d], size);
                most.d[d] = std::max(most.d[d], size);
            }
        }
        require(profile->setDimensions(input->getName(), nvinfer1::OptProfileSelector::kMIN, least) &&
                    profile->setDimensions(input->getName(), nvinfer1::OptProfileSelector::kOPT, most) &&
                    profile->setDimensions(input->getName(), nvinfer1::OptProfileSelector::kMAX, most),
                "profile refused");
    }
    if (dynamic)
        require(config->addOptimizationProfile(profile) >= 0, "addOptimizationProfile failed");
    std::unique_ptr<nvinfer1::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    require(plan != nullptr, "the build failed");
    return plan;
}

// Largest difference that is not allowed: |got - want| <= 1e-5 max|want| + 1e-4 |want| must hold for every element.
bool compare(std::string const& name, float const* got, TensorFile const& want)
{
    std::vector<float> reference(static_cast<size_t>(want.count()));
    std::memcpy(reference.data(), want.bytes.data(), reference.size() * sizeof(float));
    double largest = 0, worst = 0, dot = 0, gg = 0, ww = 0;
    for (float v : reference)
        largest = std::max(largest, std::fabs(static_cast<double>(v)));
    bool good = true;
    for (size_t i = 0; i < reference.size(); ++i) {
        double const g = got[i], w = reference[i], difference = std::fabs(g - w);
        worst = std::max(worst, difference);
        good = good && difference <= 1e-5 * largest + 1e-4 * std::fabs(w);
        dot += g * w;
        gg += g * g;
        ww += w * w;
    }
    double const cosine = gg > 0 && ww > 0 ? dot / std::sqrt(gg * ww) : gg == ww;
    good = good && cosine >= 0.999999;
    std::printf("  %-28s max |difference| %.3g of %.3g, cosine %.9f: %s\n", name.c_str(), worst, largest, cosine,
                good ? "equal" : "DIFFERENT");
    return good;
}

// Memory of one output. Its shape may depend on the data, so that only the run knows it.
class Output : public nvinfer1::IOutputAllocator
{
public:
    ~Output() override { static_cast<void>(cudaFree(device_)); }
    void* reallocateOutput(char const*, void*, uint64_t size, uint64_t) noexcept override
    {
        if (size > size_ || !device_) {
            static_cast<void>(cudaFree(device_));
            device_ = nullptr;
            size_ = std::max<uint64_t>(size, 1);
            if (cudaMalloc(&device_, size_) != cudaSuccess)
                return nullptr;
        }
        return device_;
    }
    void notifyShape(char const*, nvinfer1::Dims const& dims) noexcept override { dims_ = dims; }

    void const* device() const { return device_; }
    std::vector<int64_t> dims() const { return {dims_.d, dims_.d + dims_.nbDims}; }

private:
    void* device_ = nullptr;
    uint64_t size_ = 0;
    nvinfer1::Dims dims_{};
};

bool runSet(nvinfer1::ICudaEngine& engine, nvinfer1::IExecutionContext& context, DataSet const& set,
            cudaStream_t stream)
{
    std::vector<std::pair<std::string, std::unique_ptr<Output>>> outputs;
    std::vector<void*> owned;
    std::vector<std::string> hostInputs; // alive until the stream is done
    size_t nextInput = 0;
    for (int32_t i = 0; i < engine.getNbIOTensors(); ++i) {
        char const* name = engine.getIOTensorName(i);
        if (engine.getTensorIOMode(name) != nvinfer1::TensorIOMode::kINPUT)
            continue;
        TensorFile const& t = set.inputs.at(nextInput++);
        require(context.setInputShape(name, toDims(t.dims)), std::string("shape refused for ") + name);
        hostInputs.push_back(toEngineType(t));
        void* device = nullptr;
        check(cudaMalloc(&device, std::max<size_t>(hostInputs.back().size(), 1)));
        owned.push_back(device);
        check(cudaMemcpyAsync(device, hostInputs.back().data(), hostInputs.back().size(), cudaMemcpyHostToDevice,
                              stream));
        require(context.setTensorAddress(name, device), "setTensorAddress failed");
    }
    for (int32_t i = 0; i < engine.getNbIOTensors(); ++i) {
        char const* name = engine.getIOTensorName(i);
        if (engine.getTensorIOMode(name) != nvinfer1::TensorIOMode::kOUTPUT)
            continue;
        outputs.emplace_back(name, std::make_unique<Output>());
        require(context.setOutputAllocator(name, outputs.back().second.get()), "setOutputAllocator failed");
    }
    require(context.enqueueV3(stream), "enqueueV3 failed");
    bool good = true;
    for (size_t k = 0; k < outputs.size(); ++k) {
        std::string const& name = outputs[k].first;
        Output const& output = *outputs[k].second;
        TensorFile const& want = set.outputs.at(k);
        require(want.type == TensorFile::kFloat32 && want.dims == output.dims(),
                "output " + name + " has another type or shape than the recorded one");
        std::vector<float> got(static_cast<size_t>(want.count()));
        check(cudaMemcpyAsync(got.data(), output.device(), got.size() * sizeof(float), cudaMemcpyDeviceToHost, stream));
        check(cudaStreamSynchronize(stream));
        good = compare(name, got.data(), want) && good;
        require(context.setOutputAllocator(name.c_str(), nullptr), "setOutputAllocator failed");
    }
    for (void* p : owned)
        check(cudaFree(p));
    return good;
}

int run(std::string const& model, std::string const& folder)
{
    std::vector<DataSet> const sets = readDataSets(folder);
    require(!sets.empty(), "no test_data_set_N with outputs in " + folder);
    Logger logger;
    std::unique_ptr<nvinfer1::IHostMemory> plan = buildPlan(logger, model, sets);
    std::printf("%s: plan of %zu bytes\n", model.c_str(), plan->size());
    std::unique_ptr<nvinfer1::IRuntime> runtime(nvinfer1::createInferRuntime(logger));
    std::unique_ptr<nvinfer1::ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    require(engine != nullptr, "the plan does not load");
    plan.reset();
    std::unique_ptr<nvinfer1::IExecutionContext> context(engine->createExecutionContext());
    require(context != nullptr, "no execution context");
    cudaStream_t stream = nullptr;
    check(cudaStreamCreate(&stream));
    bool good = true;
    for (DataSet const& s : sets) {
        std::printf("%s\n", s.folder.c_str());
        good = runSet(*engine, *context, s, stream) && good;
    }
    check(cudaStreamDestroy(stream));
    return good ? 0 : 1;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s model.onnx folder-with-test_data_sets\n", argv[0]);
        return 2;
    }
    try {
        return run(argv[1], argv[2]);
    } catch (std::exception const& e) {
        std::fprintf(stderr, "error: %s\n", e.what());
        return 1;
    }
}
