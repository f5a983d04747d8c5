// SPDX-License-Identifier: Apache-2.0
// What tests of the parser share: a builder with its logger, and models made with the schema's own classes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "tw_onnx.pb.h"

namespace tw::test {

using nvonnxparser::ErrorCode;
using tw_onnx::GraphProto;
using tw_onnx::ModelProto;
using tw_onnx::NodeProto;
using tw_onnx::TensorProto;

constexpr int kFloat = TensorProto::FLOAT, kInt32 = TensorProto::INT32, kInt64 = TensorProto::INT64;

class Logger final : public nvinfer1::ILogger
{
public:
    void log(Severity severity, char const* text) noexcept override
    {
        if (severity == Severity::kWARNING)
            warnings.push_back(text);
        if (severity == Severity::kINFO)
            infos.push_back(text);
        if (severity <= Severity::kERROR)
            errors.push_back(text);
    }
    int count(char const* part) const
    {
        int n = 0;
        for (auto const& w : warnings)
            n += w.find(part) != std::string::npos;
        return n;
    }
    std::vector<std::string> infos, warnings, errors;
};

struct Fixture
{
    Logger logger;
    std::unique_ptr<nvinfer1::IBuilder> builder{nvinfer1::createInferBuilder(logger)};
    std::unique_ptr<nvinfer1::INetworkDefinition> network;
    std::unique_ptr<nvonnxparser::IParser> parser;

    explicit Fixture(bool explicitBatch = true)
        : network(builder->createNetworkV2(
              explicitBatch ? 1u << uint32_t(nvinfer1::NetworkDefinitionCreationFlag::kEXPLICIT_BATCH) : 0)),
          parser(nvonnxparser::createParser(*network, logger))
    {}
    bool parse(std::string const& bytes, char const* path = nullptr)
    {
        return parser->parse(bytes.data(), bytes.size(), path);
    }
    bool parse(ModelProto const& model, char const* path = nullptr) { return parse(model.SerializeAsString(), path); }
    std::string error() const { return parser->getNbErrors() ? parser->getError(0)->desc() : ""; }
    // Builds the network and runs it: what the inputs hold, empty for outputs. Returns the first error.
    std::map<std::string, std::vector<float>> results;
    bool int8 = false; // BuilderFlag::kINT8
    std::string run(std::map<std::string, std::vector<float>> const& tensors)
    {
        std::unique_ptr<nvinfer1::IBuilderConfig> config{builder->createBuilderConfig()};
        if (int8)
            config->setFlag(nvinfer1::BuilderFlag::kINT8);
        std::unique_ptr<nvinfer1::ICudaEngine> engine{builder->buildEngineWithConfig(*network, *config)};
        if (!engine)
            return logger.errors.empty() ? "no engine" : logger.errors[0];
        std::unique_ptr<nvinfer1::IExecutionContext> context{engine->createExecutionContext()};
        results = tensors;
        for (auto& [name, values] : results) {
            nvinfer1::Dims const d = context->getTensorShape(name.c_str());
            if (values.empty())
                values.resize(size_t(std::accumulate(d.d, d.d + d.nbDims, 1, std::multiplies<>())));
            if (!context->setTensorAddress(name.c_str(), values.data()))
                return "no tensor '" + name + "'";
        }
        return context->enqueueV3(nullptr) && logger.errors.empty() ? "" : "no run";
    }
    ErrorCode code() const { return parser->getNbErrors() ? parser->getError(0)->code() : ErrorCode::kSUCCESS; }
};

inline std::vector<float> floats(int n)
{
    std::vector<float> v(size_t(n), 0.F);
    std::iota(v.begin(), v.end(), 0.F);
    return v;
}

inline void addValue(tw_onnx::ValueInfoProto& v, std::string const& name, int type, std::vector<int64_t> const& dims)
{
    v.set_name(name);
    auto& t = *v.mutable_type()->mutable_tensor_type();
    t.set_elem_type(type);
    t.mutable_shape();
    for (int64_t d : dims)
        t.mutable_shape()->add_dim()->set_dim_value(d);
}

inline NodeProto& addNode(GraphProto& g, std::string const& op, std::vector<std::string> const& in,
                          std::vector<std::string> const& out, std::string const& name = "")
{
    NodeProto& n = *g.add_node();
    n.set_op_type(op);
    n.set_name(name);
    for (auto const& i : in)
        n.add_input(i);
    for (auto const& o : out)
        n.add_output(o);
    return n;
}

inline void addInts(NodeProto& node, std::string const& name, std::vector<int64_t> const& values)
{
    auto& a = *node.add_attribute();
    a.set_name(name);
    a.set_type(tw_onnx::AttributeProto::INTS);
    for (int64_t v : values)
        a.add_ints(v);
}

inline void addInt(NodeProto& node, std::string const& name, int64_t value)
{
    auto& a = *node.add_attribute();
    a.set_name(name);
    a.set_type(tw_onnx::AttributeProto::INT);
    a.set_i(value);
}

inline TensorProto& addInitializer(GraphProto& g, std::string const& name, int type, std::vector<int64_t> const& dims)
{
    TensorProto& t = *g.add_initializer();
    t.set_name(name);
    t.set_data_type(type);
    for (int64_t d : dims)
        t.add_dims(d);
    return t;
}
inline TensorProto& addFloats(GraphProto& g, std::string const& name, std::vector<int64_t> const& dims,
                              std::vector<float> const& v)
{
    TensorProto& t = addInitializer(g, name, kFloat, dims);
    for (float x : v)
        t.add_float_data(x);
    return t;
}
inline TensorProto& addIntegers(GraphProto& g, std::string const& name, std::vector<int64_t> const& dims,
                                std::vector<int64_t> const& v, int type = kInt64)
{
    TensorProto& t = addInitializer(g, name, type, dims);
    for (int64_t x : v)
        type == kInt64 ? t.add_int64_data(x) : t.add_int32_data(int32_t(x));
    return t;
}

// y = Conv(x, w) with x [1,1,4,4] and w [1,1,3,3] given as an initializer.
inline ModelProto convModel()
{
    ModelProto m;
    m.set_ir_version(8);
    m.add_opset_import()->set_version(17);
    GraphProto& g = *m.mutable_graph();
    g.set_name("conv");
    addValue(*g.add_input(), "x", TensorProto::FLOAT, {1, 1, 4, 4});
    addValue(*g.add_output(), "y", TensorProto::FLOAT, {1, 1, 2, 2});
    addFloats(g, "w", {1, 1, 3, 3}, floats(9));
    addNode(g, "Conv", {"x", "w"}, {"y"}, "conv1");
    return m;
}

} // namespace tw::test
