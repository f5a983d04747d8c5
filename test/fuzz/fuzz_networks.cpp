// SPDX-License-Identifier: Apache-2.0
// Networks from untrusted bytes through the public API: refused with a reason, or an engine that gives what the graph's
// interpreter gives, before and after a refit; with the bytes of its plugins damaged, an error or an engine.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "api/network/network.h"
#include "base/tensor.h"
#include "fuzz/random_network.h"
#include "interp/interp.h"
#include "ir/graph.h"
#include "ops/plugin/op.h"
#include "plan/plan.h"

namespace tw::fuzz {

namespace {

using namespace nvinfer1;
using nvinfer1::DataType; // not tw::DataType

class Logger final : public ILogger
{
public:
    void log(Severity severity, char const* message) noexcept override
    {
        if (severity > Severity::kERROR)
            return;
        ++errors;
        last = message;
    }
    [[noreturn]] void finding(std::string const& what) const
    {
        std::fprintf(stderr, "finding: %s; last error: %s\n", what.c_str(), last.c_str());
        std::abort();
    }
    void expectError(char const* what) const
    {
        if (errors == 0)
            finding(std::string(what) + ", and no error");
    }
    int errors = 0;
    std::string last;
};

// y = 2 x + 1
class Doubling final : public IPluginV2DynamicExt
{
public:
    char const* getPluginType() const noexcept override { return "Doubling"; }
    char const* getPluginVersion() const noexcept override { return "1"; }
    int32_t getNbOutputs() const noexcept override { return 1; }
    int32_t initialize() noexcept override { return 0; }
    void terminate() noexcept override {}
    size_t getSerializationSize() const noexcept override { return sizeof kMark; }
    void serialize(void* to) const noexcept override { std::memcpy(to, &kMark, sizeof kMark); }
    void destroy() noexcept override { delete this; }
    void setPluginNamespace(char const*) noexcept override {}
    char const* getPluginNamespace() const noexcept override { return ""; }
    DataType getOutputDataType(int32_t, DataType const* types, int32_t) const noexcept override { return types[0]; }
    Doubling* clone() const noexcept override { return new Doubling; }
    DimsExprs getOutputDimensions(int32_t, DimsExprs const* in, int32_t, IExprBuilder&) noexcept override
    {
        return in[0];
    }
    bool supportsFormatCombination(int32_t at, PluginTensorDesc const* t, int32_t, int32_t) noexcept override
    {
        return t[at].type == DataType::kFLOAT && t[at].format == TensorFormat::kLINEAR;
    }
    void configurePlugin(DynamicPluginTensorDesc const*, int32_t, DynamicPluginTensorDesc const*,
                         int32_t) noexcept override
    {}
    size_t getWorkspaceSize(PluginTensorDesc const*, int32_t, PluginTensorDesc const*, int32_t) const noexcept override
    {
        return 0;
    }
    int32_t enqueue(PluginTensorDesc const* in, PluginTensorDesc const*, void const* const* x, void* const* y, void*,
                    cudaStream_t) noexcept override
    {
        int64_t count = 1;
        for (int i = 0; i < in[0].dims.nbDims; ++i)
            count *= in[0].dims.d[i];
        for (int64_t i = 0; i < count; ++i)
            static_cast<float*>(y[0])[i] = 2 * static_cast<float const*>(x[0])[i] + 1;
        return 0;
    }
    static constexpr uint64_t kMark = 0x31676e696c62756fU;
};

class Creator final : public IPluginCreator
{
public:
    char const* getPluginName() const noexcept override { return "Doubling"; }
    char const* getPluginVersion() const noexcept override { return "1"; }
    PluginFieldCollection const* getFieldNames() noexcept override { return nullptr; }
    IPluginV2* createPlugin(char const*, PluginFieldCollection const*) noexcept override { return nullptr; }
    IPluginV2* deserializePlugin(char const*, void const* data, size_t length) noexcept override
    {
        bool const isOurs = length == sizeof Doubling::kMark && std::memcmp(data, &Doubling::kMark, length) == 0;
        return isOurs ? new Doubling : nullptr;
    }
    void setPluginNamespace(char const*) noexcept override {}
    char const* getPluginNamespace() const noexcept override { return ""; }
};

struct Output final : IOutputAllocator
{
    void* reallocateOutput(char const*, void*, uint64_t size, uint64_t) noexcept override
    {
        bytes.resize(size);
        return bytes.data();
    }
    void notifyShape(char const*, Dims const& d) noexcept override
    {
        shape = {};
        for (int i = 0; i < d.nbDims; ++i)
            shape.push(d.d[i]);
    }
    std::vector<char> bytes;
    Extents shape;
};

// Numbers of one run: x and s.
struct Run
{
    std::vector<float> x;
    int32_t rows = 0, s = 0;
};

// What the network's graph gives; none where the interpreter refuses.
std::vector<Tensor> expected(INetworkDefinition& network, Run const& run)
{
    auto graph = api::objectOf(network).toGraph();
    if (!graph.ok() || !ir::verify(**graph).ok())
        return {};
    Tensor x(tw::DataType::kFloat, {run.rows, 2}), s(tw::DataType::kInt32, {});
    std::copy_n(run.x.begin(), 2 * run.rows, static_cast<float*>(x.data()));
    *static_cast<int32_t*>(s.data()) = run.s;
    interp::Options options;
    options.maxTrips = 1000;
    auto results = interp::run(**graph, {x.ref(), s.ref()}, options);
    return results.ok() ? std::move(*results) : std::vector<Tensor>();
}

class Engine
{
public:
    Engine(Logger& logger, ICudaEngine& engine) : logger_(logger), context_(engine.createExecutionContext())
    {
        if (!context_)
            logger_.finding("no context");
        for (int i = 0; i < engine.getNbIOTensors(); ++i)
            if (char const* name = engine.getIOTensorName(i); engine.getTensorIOMode(name) == TensorIOMode::kOUTPUT)
                names_.push_back(name);
        outputs_.resize(names_.size());
        for (size_t i = 0; i < names_.size(); ++i)
            context_->setOutputAllocator(names_[i], &outputs_[i]);
    }
    bool run(Run const& r)
    {
        logger_.errors = 0;
        x_ = r.x;
        s_ = r.s;
        context_->setInputShape("x", Dims2(r.rows, 2));
        context_->setTensorAddress("x", x_.data());
        context_->setTensorAddress("s", &s_);
        bool const isDone = context_->enqueueV3(nullptr);
        if (!isDone)
            logger_.expectError("a run failed");
        return isDone;
    }
    // Runs where the interpreter gives something; the same then.
    void compare(INetworkDefinition& plain, Run const& r, char const* when)
    {
        std::vector<Tensor> const want = expected(plain, r);
        bool const isDone = run(r);
        if (want.empty())
            return;
        if (!isDone)
            logger_.finding(std::string("the run fails, the interpreter does not, ") + when);
        for (size_t i = 0; i < want.size(); ++i) {
            TensorRef const w = want[i].ref(), y{w.type, outputs_[i].shape, outputs_[i].bytes.data(), w.format};
            bool isEqual = y.dims == w.dims;
            for (int64_t k = 0; isEqual && k < w.count(); ++k)
                isEqual = y.get(k) == w.get(k);
            if (!isEqual)
                logger_.finding("output '" + std::string(names_[i]) + "' is not the interpreter's, " + when);
        }
    }

private:
    Logger& logger_;
    std::unique_ptr<IExecutionContext> context_;
    std::vector<char const*> names_;
    std::vector<Output> outputs_;
    std::vector<float> x_;
    int32_t s_ = 0;
};

void addProfile(IBuilder& builder, IBuilderConfig& config, bool isDynamic)
{
    IOptimizationProfile* profile = builder.createOptimizationProfile();
    int32_t const values[] = {0, 2, 3};
    for (int i = 0; i < 3; ++i) {
        auto const at = OptProfileSelector(i);
        profile->setDimensions("x", at, Dims2(isDynamic ? i + 1 : 3, 2));
        profile->setShapeValues("s", at, &values[i], 1);
    }
    config.addOptimizationProfile(profile);
}

// New weights for what the engine lists, and in the plain network; hostile ones in between are refused.
bool refit(Logger& logger, ICudaEngine& engine, RandomNetwork const& plain, Bytes& bytes)
{
    std::unique_ptr<IRefitter> const refitter(createInferRefitter(engine, logger));
    if (!refitter)
        logger.finding("no refitter");
    int32_t const count = refitter->getAll(0, nullptr, nullptr);
    std::vector<char const*> layers(size_t(count), nullptr);
    std::vector<WeightsRole> roles(size_t(count), WeightsRole::kKERNEL);
    refitter->getAll(count, layers.data(), roles.data());
    for (size_t i = 0; i < layers.size(); ++i) {
        auto const it = plain.weights().find({layers[i], roles[i]});
        if (it == plain.weights().end())
            continue;
        std::vector<float>& v = *it->second;
        Weights const hostile[] = {{DataType::kFLOAT, v.data(), int64_t(v.size()) + 1},
                                   {DataType::kFLOAT, nullptr, int64_t(v.size())},
                                   {DataType::kINT32, v.data(), int64_t(v.size())},
                                   {DataType::kFLOAT, v.data(), -1}};
        if (refitter->setWeights(layers[i], roles[i], hostile[bytes.upTo(3)]) ||
            refitter->setWeights("nobody", roles[i], hostile[0]) ||
            refitter->setWeights(nullptr, WeightsRole(bytes.upTo(20) - 8), hostile[1]))
            logger.finding("a refitter takes what does not fit");
        for (float& w : v)
            w = float(bytes.upTo(4) - 2);
        if (!refitter->setWeights(layers[i], roles[i], {DataType::kFLOAT, v.data(), int64_t(v.size())}))
            logger.finding("a refitter does not take what it lists");
    }
    return refitter->refitCudaEngine();
}

// Bytes of plugins, wherever they stand.
void damage(ir::Graph& graph, Bytes& bytes, bool& isDamaged)
{
    for (auto const& node : graph.nodes) {
        for (auto const& region : node->regions)
            damage(*region, bytes, isDamaged);
        if (node->op != &ops::plugin::def())
            continue;
        auto& data = node->attrsAs<ops::plugin::Attrs>().state.bytes;
        for (int n = bytes.upTo(3); n > 0 && !data.empty(); --n)
            data[size_t(bytes.upTo(int(std::min<size_t>(data.size(), 256)) - 1))] = static_cast<char>(bytes.upTo(255));
        if (bytes.upTo(7) == 0)
            data.resize(size_t(bytes.upTo(40)));
        isDamaged = true;
    }
}

void loadDamaged(Logger& logger, IRuntime& runtime, IHostMemory const& plan, Bytes& bytes, Run const& run)
{
    auto contents = plan::read(static_cast<char const*>(plan.data()), plan.size());
    bool isDamaged = false;
    if (!contents.ok())
        logger.finding("the plan cannot be read");
    damage(*contents->graph, bytes, isDamaged);
    auto const written = isDamaged ? plan::write(*contents) : Result<std::string>(std::string());
    if (!isDamaged || !written.ok())
        return;
    logger.errors = 0;
    std::unique_ptr<ICudaEngine> const engine(runtime.deserializeCudaEngine(written->data(), written->size()));
    if (!engine)
        return logger.expectError("a damaged plan is refused");
    Engine(logger, *engine).run(run);
}

void fuzz(Bytes& bytes)
{
    Logger logger;
    std::unique_ptr<IBuilder> const builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> const network(builder->createNetworkV2(1)), plain(builder->createNetworkV2(1));
    bool const isRefittable = bytes.flip();
    Run runs[3];
    for (Run& r : runs) {
        r.rows = 1 + bytes.upTo(2);
        r.s = bytes.upTo(3);
        for (int i = 0; i < 6; ++i)
            r.x.push_back(float(bytes.upTo(10) - 5));
    }
    Doubling plugin;
    Bytes again = bytes, decisions = bytes;
    RandomNetwork ours(*network, &plugin), theirs(*plain, nullptr);
    if (!ours.make(bytes))
        return logger.expectError("a layer is refused");
    bool const hasPlain = theirs.make(again);
    std::unique_ptr<IBuilderConfig> const config(builder->createBuilderConfig());
    config->setFlag(BuilderFlag::kENABLE_TACTIC_HEURISTIC);
    if (isRefittable)
        config->setFlag(BuilderFlag::kREFIT);
    if (ours.hasPairs())
        config->setFlag(BuilderFlag::kINT8);
    addProfile(*builder, *config, ours.hasDynamicRows());
    logger.errors = 0;
    std::unique_ptr<IHostMemory> const plan(builder->buildSerializedNetwork(*network, *config));
    if (!plan)
        return logger.expectError("no plan");
    std::unique_ptr<IRuntime> const runtime(createInferRuntime(logger));
    std::unique_ptr<ICudaEngine> const engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    if (!engine)
        logger.finding("the plan cannot be loaded");
    {
        Engine e(logger, *engine);
        for (Run& r : runs) {
            r.rows = ours.hasDynamicRows() ? r.rows : 3;
            hasPlain ? e.compare(*plain, r, "as built") : void(e.run(r));
        }
        if (isRefittable && hasPlain) {
            if (refit(logger, *engine, theirs, decisions))
                e.compare(*plain, runs[0], "after a refit");
            else
                logger.expectError("a refit is refused");
        }
        loadDamaged(logger, *runtime, *plan, decisions, runs[0]);
    }
}

} // namespace

} // namespace tw::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***)
{
    setenv("TENSORWRIGHT_MAX_MEMORY_MB", "64", 1);
    static tw::fuzz::Creator creator;
    getPluginRegistry()->registerCreator(creator, "");
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(uint8_t const* data, size_t size)
{
    tw::fuzz::Bytes bytes(data, size);
    tw::fuzz::fuzz(bytes);
    return 0;
}
