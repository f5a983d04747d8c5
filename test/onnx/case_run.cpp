// SPDX-License-Identifier: Apache-2.0
#include "case_run.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>

#include <sys/stat.h>

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "case_data.h"
#include "cuda_runtime_api.h"

namespace tw::test {

namespace {

// Ends a case: `stage` failed with `message`.
struct Stop
{
    std::string stage, message;
};

class Logger final : public nvinfer1::ILogger
{
public:
    explicit Logger(bool verbose) : verbose_(verbose) {}
    void log(Severity severity, char const* text) noexcept override
    {
        if (verbose_)
            std::fprintf(stderr, "  [%d] %s\n", int(severity), text);
        if (severity <= Severity::kERROR && first_.empty())
            first_ = text;
        if (severity == Severity::kWARNING && std::strstr(text, "an initializer counts as it is"))
            wantsInitializer_ = true;
    }
    std::string const& firstError() const { return first_; }
    // A warning says that an input is taken less exactly than an initializer: the scales of Resize.
    bool wantsInitializer() const { return wantsInitializer_; }
    void clear()
    {
        first_.clear();
        wantsInitializer_ = false;
    }

private:
    bool verbose_;
    std::string first_;
    bool wantsInitializer_ = false;
};

// A device buffer that grows when the engine asks for it.
class Output final : public nvinfer1::IOutputAllocator
{
public:
    ~Output() override { cudaFree(data); }
    void* reallocateOutput(char const*, void*, uint64_t size, uint64_t) noexcept override
    {
        if (size > capacity) {
            cudaFree(data);
            data = nullptr;
            capacity = cudaMalloc(&data, size) == cudaSuccess ? size : 0;
        }
        return data;
    }
    void notifyShape(char const*, nvinfer1::Dims const& d) noexcept override { dims = d; }

    void* data = nullptr;
    uint64_t capacity = 0;
    nvinfer1::Dims dims{-1, {}};
};

struct DeviceBuffer
{
    void* data = nullptr;
    ~DeviceBuffer() { cudaFree(data); }
};

std::vector<int64_t> toVector(nvinfer1::Dims const& d)
{
    return {d.d, d.d + std::max(d.nbDims, 0)};
}

// values: what the model says of them.
template <class Values>
std::vector<Recorded> readAll(std::string const& folder, std::string const& kind, Values const& values)
{
    std::vector<Recorded> all;
    struct stat info
    {};
    for (int i = 0;; ++i) {
        std::string const path = folder + "/" + kind + "_" + std::to_string(i) + ".pb";
        if (::stat(path.c_str(), &info) != 0)
            return all;
        all.push_back(readRecorded(path, i < values.size() && values[i].type().has_optional_type()));
    }
}

// By the names that the network's outputs have; of a sequence those of its elements.
std::vector<std::pair<std::string, Recorded>> readOutputs(std::string const& folder, tw_onnx::GraphProto const& graph)
{
    std::vector<std::pair<std::string, Recorded>> all;
    for (int i = 0; i < graph.output_size(); ++i) {
        auto const& output = graph.output(i);
        std::string const path = folder + "/output_" + std::to_string(i) + ".pb";
        if (!output.type().has_sequence_type()) {
            all.emplace_back(output.name(), readRecorded(path, output.type().has_optional_type()));
            readAs(all.back().second, output.type().tensor_type().elem_type());
            continue;
        }
        std::vector<Recorded> const elements = readSequence(path);
        for (size_t k = 0; k < elements.size(); ++k)
            all.emplace_back(output.name() + "_" + std::to_string(k), elements[k]);
    }
    return all;
}

void collect(tw_onnx::GraphProto const& graph, CaseFacts& facts)
{
    // Those behind the ones that the messages here know.
    static std::map<int, char const*> const kNewer{
        {17, "FLOAT8E4M3FN"}, {18, "FLOAT8E4M3FNUZ"}, {19, "FLOAT8E5M2"}, {20, "FLOAT8E5M2FNUZ"}, {21, "UINT4"},
        {22, "INT4"},         {23, "FLOAT4E2M1"},     {24, "FLOAT8E8M0"}, {25, "UINT2"},          {26, "INT2"}};
    auto type = [&](int t) {
        if (auto const it = kNewer.find(t); it != kNewer.end())
            facts.types.insert(it->second);
        else if (tw_onnx::TensorProto::DataType_IsValid(t))
            facts.types.insert(tw_onnx::TensorProto::DataType_Name(tw_onnx::TensorProto::DataType(t)));
    };
    auto valueType = [&](tw_onnx::ValueInfoProto const& v) {
        if (v.type().has_tensor_type())
            type(v.type().tensor_type().elem_type());
        if (v.type().has_sequence_type())
            facts.types.insert("SEQUENCE");
        if (v.type().has_optional_type())
            facts.types.insert("OPTIONAL");
    };
    for (auto const& v : graph.input())
        valueType(v);
    for (auto const& v : graph.output())
        valueType(v);
    for (auto const& t : graph.initializer())
        type(t.data_type());
    for (auto const& node : graph.node()) {
        facts.ops.insert(node.op_type());
        for (auto const& a : node.attribute()) {
            if (a.has_t())
                type(a.t().data_type());
            if (a.has_g())
                collect(a.g(), facts);
            if (a.name() == "to")
                type(int(a.i()));
        }
    }
}

tw_onnx::ModelProto readModel(std::string const& folder)
{
    tw_onnx::ModelProto model;
    if (!model.ParseFromString(readFile(folder + "/model.onnx")))
        throw std::runtime_error("model.onnx cannot be read");
    return model;
}

void checkCuda(cudaError_t status)
{
    if (status != cudaSuccess)
        throw Stop{"run", cudaGetErrorString(status)};
}

struct Imported
{
    std::unique_ptr<nvonnxparser::IParser> parser;
    std::unique_ptr<nvinfer1::INetworkDefinition> network;
};

// Gives the graph inputs that `node` reads beside its data, the first one, as initializers, as a user does on the parser's
// "must be an initializer!" and on the warning that Resize gives. False when there is none.
bool bake(tw_onnx::ModelProto& model, std::string const& folder, int node)
{
    tw_onnx::GraphProto& graph = *model.mutable_graph();
    if (node < 0 || node >= graph.node_size())
        return false;
    std::set<std::string> initializers;
    for (auto const& t : graph.initializer())
        initializers.insert(t.name());
    bool changed = false;
    int recorded = 0;
    for (int i = 0; i < graph.input_size(); ++i) {
        std::string const name = graph.input(i).name();
        if (initializers.count(name))
            continue;
        std::string const path = folder + "/test_data_set_0/input_" + std::to_string(recorded++) + ".pb";
        bool const hasData = graph.node(node).op_type() != "MelWeightMatrix"; // arguments alone
        for (int k = hasData; k < graph.node(node).input_size(); ++k)
            if (graph.node(node).input(k) == name) {
                tw_onnx::TensorProto t;
                if (!t.ParseFromString(readFile(path)))
                    throw std::runtime_error(path + " is not a tensor");
                t.set_name(name);
                *graph.add_initializer() = t;
                changed = true;
                break;
            }
    }
    return changed;
}

Imported import(nvinfer1::IBuilder& builder, tw_onnx::ModelProto model, std::string const& folder, Logger& logger,
                bool& baked)
{
    tw_onnx::ModelProto const original = model;
    for (;;) {
        Imported r;
        r.network.reset(
            builder.createNetworkV2(1u << uint32_t(nvinfer1::NetworkDefinitionCreationFlag::kEXPLICIT_BATCH)));
        if (!r.network)
            throw Stop{"build", "no network"};
        r.parser.reset(nvonnxparser::createParser(*r.network, logger));
        std::string const bytes = model.SerializeAsString();
        bool const isParsed = r.parser->parse(bytes.data(), bytes.size(), (folder + "/model.onnx").c_str());
        if (isParsed && !baked && logger.wantsInitializer()) {
            auto const& nodes = original.graph().node();
            auto const at = std::find_if(nodes.begin(), nodes.end(), [](auto const& n) {
                return n.op_type() == "Resize" || n.op_type() == "Upsample";
            });
            baked = bake(model = original, folder, int(at - nodes.begin()));
            logger.clear();
            if (baked)
                continue;
        }
        if (isParsed)
            return r;
        if (r.parser->getNbErrors() == 0)
            throw Stop{"parse", "no error was recorded"};
        nvonnxparser::IParserError const& e = *r.parser->getError(0);
        if (baked || std::string(e.desc()).find("must be an initializer!") == std::string::npos ||
            !bake(model = original, folder, e.node()))
            throw Stop{"parse", e.desc()};
        baked = true;
        logger.clear();
    }
}

void run(std::string const& folder, bool parseOnly, Logger& logger, bool& baked)
{
    auto fail = [&](char const* stage, std::string const& what) {
        throw Stop{stage, what + (logger.firstError().empty() ? "" : ": " + logger.firstError())};
    };
    std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
    if (!builder)
        fail("build", "no builder");
    tw_onnx::ModelProto const model = readModel(folder);
    Imported const imported = import(*builder, model, folder, logger, baked);
    nvinfer1::INetworkDefinition* const network = imported.network.get();
    if (parseOnly)
        return;

    // Recorded inputs belong to the graph's inputs in order, those with initializers left out.
    std::vector<Recorded> inputs = readAll(folder + "/test_data_set_0", "input", model.graph().input());
    std::vector<std::pair<std::string, Recorded>> outputs = readOutputs(folder + "/test_data_set_0", model.graph());
    for (int i = 0; i < model.graph().input_size() && i < int(inputs.size()); ++i)
        readAs(inputs[size_t(i)], model.graph().input(i).type().tensor_type().elem_type());
    std::set<std::string> initializers;
    for (auto const& t : model.graph().initializer())
        initializers.insert(t.name());
    std::map<std::string, Recorded*> byName;
    size_t next = 0;
    for (auto const& v : model.graph().input())
        if (!initializers.count(v.name()) && next < inputs.size())
            byName[v.name()] = &inputs[next++];

    std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
    nvinfer1::IOptimizationProfile* profile = builder->createOptimizationProfile();
    bool needsProfile = false;
    for (int i = 0; i < network->getNbInputs(); ++i) {
        nvinfer1::ITensor& t = *network->getInput(i);
        auto it = byName.find(t.getName());
        if (it == byName.end())
            fail("read", "no recorded data for input '" + std::string(t.getName()) + "'");
        Recorded const& r = *it->second;
        bool dynamic = false;
        for (int64_t d : toVector(t.getDimensions()))
            dynamic = dynamic || d < 0;
        for (auto which : {nvinfer1::OptProfileSelector::kMIN, nvinfer1::OptProfileSelector::kOPT,
                           nvinfer1::OptProfileSelector::kMAX}) {
            if (dynamic)
                profile->setDimensions(t.getName(), which, toDims(r.dims));
            if (t.isShapeTensor()) {
                std::vector<int32_t> const v(r.values.begin(), r.values.end());
                profile->setShapeValues(t.getName(), which, v.data(), int32_t(v.size()));
            }
        }
        needsProfile = needsProfile || dynamic || t.isShapeTensor();
    }
    if (needsProfile && config->addOptimizationProfile(profile) < 0)
        fail("build", "the optimization profile was refused");
    for (int i = 0; i < network->getNbLayers(); ++i)
        if (nvinfer1::LayerType const type = network->getLayer(i)->getType();
            type == nvinfer1::LayerType::kQUANTIZE || type == nvinfer1::LayerType::kDEQUANTIZE)
            config->setFlag(nvinfer1::BuilderFlag::kINT8);
    std::unique_ptr<nvinfer1::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
    if (!plan)
        fail("build", "no plan");
    std::unique_ptr<nvinfer1::IRuntime> runtime(nvinfer1::createInferRuntime(logger));
    std::unique_ptr<nvinfer1::ICudaEngine> engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    if (!engine)
        fail("load", "no engine");
    std::unique_ptr<nvinfer1::IExecutionContext> context(engine->createExecutionContext());
    if (!context)
        fail("load", "no context");

    std::vector<std::unique_ptr<DeviceBuffer>> buffers;
    std::map<std::string, std::unique_ptr<Output>> results;
    for (int i = 0; i < engine->getNbIOTensors(); ++i) {
        char const* name = engine->getIOTensorName(i);
        if (engine->getTensorIOMode(name) == nvinfer1::TensorIOMode::kOUTPUT) {
            results[name] = std::make_unique<Output>();
            if (!context->setOutputAllocator(name, results[name].get()))
                fail("run", "the allocator of output '" + std::string(name) + "' was refused");
            continue;
        }
        Recorded& r = *byName.at(name);
        if (engine->getTensorDataType(name) != r.type)
            fail("run", "input '" + std::string(name) + "' is " + typeName(engine->getTensorDataType(name)) +
                            " in the engine, the recorded one is " + typeName(r.type));
        if (!context->setInputShape(name, toDims(r.dims)))
            fail("run", "shape " + str(r.dims) + " of input '" + std::string(name) + "' was refused");
        void* address = r.bytes.data();
        if (engine->getTensorLocation(name) == nvinfer1::TensorLocation::kDEVICE) {
            buffers.push_back(std::make_unique<DeviceBuffer>());
            checkCuda(cudaMalloc(&buffers.back()->data, std::max<size_t>(r.bytes.size(), 1)));
            checkCuda(cudaMemcpy(buffers.back()->data, r.bytes.data(), r.bytes.size(), cudaMemcpyHostToDevice));
            address = buffers.back()->data;
        }
        static unsigned char nothing[64];
        if (!context->setTensorAddress(name, address ? address : nothing))
            fail("run", "the address of input '" + std::string(name) + "' was refused");
    }
    cudaStream_t stream = nullptr;
    checkCuda(cudaStreamCreate(&stream));
    bool const enqueued = context->enqueueV3(stream);
    cudaError_t const status = cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    if (!enqueued)
        fail("run", "enqueueV3 failed");
    checkCuda(status);

    for (auto const& [name, want] : outputs) {
        if (!results.count(name))
            throw Stop{"compare", "the engine has no output '" + name + "'"};
        Output const& got = *results[name];
        nvinfer1::DataType const type = engine->getTensorDataType(name.c_str());
        std::string const what = "output '" + name + "': ";
        if (type != want.type)
            throw Stop{"compare", what + "type " + typeName(type) + " instead of " + typeName(want.type)};
        if (toVector(got.dims) != want.dims || got.dims.nbDims < 0)
            throw Stop{"compare", what + "shape " + str(toVector(got.dims)) + " instead of " + str(want.dims)};
        std::vector<unsigned char> bytes(size_t(volume(want.dims)) * sizeOf(type));
        if (!bytes.empty())
            checkCuda(cudaMemcpy(bytes.data(), got.data, bytes.size(), cudaMemcpyDeviceToHost));
        std::string const difference =
            compare(toDoubles(bytes.data(), type, volume(want.dims)), want.values, toleranceFor(want));
        if (!difference.empty())
            throw Stop{"compare", what + difference};
    }
}

// One number or name somewhere in a node, an initializer or an input.
void changeField(tw_onnx::GraphProto& g, std::mt19937& random)
{
    static int64_t const kNumbers[]{0,  1,    -1,        2,         3,         -2,        7,
                                    64, 1000, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, int64_t(1) << 32};
    auto number = [&] { return kNumbers[random() % std::size(kNumbers)]; };
    auto pick = [&](int n) { return int(random() % unsigned(n)); };
    switch (random() % 6) {
    case 0:
    case 1:
        if (g.node_size()) {
            auto& n = *g.mutable_node(pick(g.node_size()));
            if (n.attribute_size()) {
                auto& a = *n.mutable_attribute(pick(n.attribute_size()));
                if (a.ints_size() && random() % 4)
                    a.set_ints(pick(a.ints_size()), number());
                else if (a.type() == tw_onnx::AttributeProto::INTS)
                    a.add_ints(number());
                else if (a.has_i())
                    a.set_i(number());
                else if (a.has_f())
                    a.set_f(float(number()));
                else
                    a.Clear();
            }
        }
        break;
    case 2:
        if (g.node_size()) {
            auto& n = *g.mutable_node(pick(g.node_size()));
            if (n.input_size() && random() % 2)
                n.set_input(pick(n.input_size()), "");
            else if (n.input_size())
                n.mutable_input()->RemoveLast();
            else
                n.add_output("extra");
        }
        break;
    case 3:
        if (g.initializer_size()) {
            auto& t = *g.mutable_initializer(pick(g.initializer_size()));
            if (t.dims_size() && random() % 2)
                t.set_dims(pick(t.dims_size()), number());
            else
                t.set_data_type(pick(18));
        }
        break;
    case 4:
    case 5:
        if (g.input_size()) {
            auto& type = *g.mutable_input(pick(g.input_size()))->mutable_type()->mutable_tensor_type();
            auto& shape = *type.mutable_shape();
            if (shape.dim_size() && random() % 3)
                shape.mutable_dim(pick(shape.dim_size()))->set_dim_value(number());
            else if (random() % 3)
                shape.add_dim()->set_dim_value(number());
            else if (shape.dim_size() && random() % 2)
                shape.mutable_dim()->RemoveLast();
            else
                type.set_elem_type(pick(18));
        }
        break;
    }
}

} // namespace

int runChanged(std::string const& folder, int rounds, unsigned seed, bool build)
{
    std::string const good = readFile(folder + "/model.onnx");
    std::mt19937 random(seed);
    int refused = 0;
    for (int round = 0; round < rounds; ++round) {
        std::string bytes = good;
        if (round % 2) {
            tw_onnx::ModelProto model;
            model.ParseFromString(good);
            for (int i = 0, n = 1 + int(random() % 3); i < n; ++i)
                changeField(*model.mutable_graph(), random);
            bytes = model.SerializeAsString();
        } else {
            for (int i = 0, n = 1 + int(random() % 3); i < n && !bytes.empty(); ++i)
                bytes[random() % bytes.size()] = char(random());
        }
        Logger logger(false);
        std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
        std::unique_ptr<nvinfer1::INetworkDefinition> network(
            builder->createNetworkV2(1u << uint32_t(nvinfer1::NetworkDefinitionCreationFlag::kEXPLICIT_BATCH)));
        std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
        if (!parser->parse(bytes.data(), bytes.size(), (folder + "/model.onnx").c_str())) {
            ++refused;
            continue;
        }
        bool small = build;
        for (int i = 0; i < network->getNbInputs(); ++i) {
            int64_t elements = 1;
            for (int64_t d : toVector(network->getInput(i)->getDimensions()))
                elements = d < 0 || d > 4096 ? INT32_MAX : std::min<int64_t>(elements * d, INT32_MAX);
            small = small && elements <= 1 << 16; // what is built is also run once by the tuner
        }
        if (small) {
            std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
            std::unique_ptr<nvinfer1::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
        }
    }
    return refused;
}

CaseFacts factsOf(std::string const& folder)
{
    CaseFacts facts;
    collect(readModel(folder).graph(), facts);
    return facts;
}

CaseResult runCase(std::string const& folder, bool parseOnly, bool verbose)
{
    Logger logger(verbose);
    bool baked = false;
    try {
        run(folder, parseOnly, logger, baked);
        return {true, baked ? "baked" : "", ""};
    } catch (Stop const& stop) {
        return {false, stop.stage, stop.message};
    } catch (std::exception const& e) {
        return {false, "read", e.what()};
    }
}

} // namespace tw::test
