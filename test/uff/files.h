// SPDX-License-Identifier: Apache-2.0
// UFF files for tests, and the objects round one parse.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "NvUffParser.h"
#include "api/client.h"
#include "tw_uff.pb.h"

namespace tw::test {

inline constexpr int kInt32 = 0x10020, kFloat32 = 0x20020;

class UffFile
{
public:
    UffFile() { graph_.set_id("main"); }

    tw_uff::Data& field(tw_uff::Node& n, std::string const& name)
    {
        auto& entry = *n.add_fields();
        entry.set_key(name);
        return *entry.mutable_value();
    }
    tw_uff::Node& node(std::string const& operation, std::string const& id, std::vector<std::string> const& inputs = {})
    {
        tw_uff::Node& n = *graph_.add_nodes();
        n.set_id(id);
        n.set_operation(operation);
        for (std::string const& input : inputs)
            n.add_inputs(input);
        return n;
    }
    tw_uff::Node& function(std::string const& operation, std::string const& func, std::string const& id,
                           std::vector<std::string> const& inputs)
    {
        tw_uff::Node& n = node(operation, id, inputs);
        field(n, "func").set_s(func);
        return n;
    }
    tw_uff::Node& input(std::string const& id, std::vector<int64_t> const& shape)
    {
        tw_uff::Node& n = node("Input", id);
        field(n, "dtype").set_dtype(kFloat32);
        list(field(n, "shape"), shape);
        return n;
    }
    // With `bytes` of values; -1: as many as the shape needs, of increasing numbers.
    tw_uff::Node& constant(std::string const& id, std::vector<int64_t> const& shape, int type = kFloat32,
                           int64_t bytes = -1)
    {
        tw_uff::Node& n = node("Const", id);
        field(n, "dtype").set_dtype(type);
        list(field(n, "shape"), shape);
        field(n, "values").set_ref("weights_" + id);
        int64_t count = 1;
        for (int64_t d : shape)
            count *= bytes < 0 ? d : 1;
        std::string blob(size_t(bytes < 0 ? 4 * count : bytes), '\0');
        for (int64_t i = 0; bytes < 0 && i < count; ++i) {
            float const f = float(i) / float(count);
            auto const whole = int32_t(i);
            std::memcpy(blob.data() + 4 * i, type == kFloat32 ? static_cast<void const*>(&f) : &whole, 4);
        }
        data("weights_" + id).set_blob(blob);
        return n;
    }
    tw_uff::Node& integers(std::string const& id, std::vector<int32_t> const& values)
    {
        tw_uff::Node& n = constant(id, {int64_t(values.size())}, kInt32);
        data("weights_" + id)
            .set_blob(std::string(reinterpret_cast<char const*>(values.data()), values.size() * sizeof(int32_t)));
        return n;
    }
    tw_uff::Data& data(std::string const& key)
    {
        auto& entry = *file_.add_referenced_data();
        entry.set_key(key);
        return *entry.mutable_value();
    }
    static void list(tw_uff::Data& d, std::vector<int64_t> const& values)
    {
        d.mutable_i_list();
        for (int64_t v : values)
            d.mutable_i_list()->add_val(v);
    }
    std::string bytes(int graphs = 1)
    {
        tw_uff::MetaGraph file = file_;
        file.set_version(1);
        for (int i = 0; i < graphs; ++i)
            *file.add_graphs() = graph_;
        return file.SerializeAsString();
    }

private:
    tw_uff::MetaGraph file_;
    tw_uff::Graph graph_;
};

struct UffClient
{
    KeepingLogger logger;
    std::unique_ptr<nvinfer1::IBuilder> builder{nvinfer1::createInferBuilder(logger)};
    std::unique_ptr<nvinfer1::INetworkDefinition> network{builder->createNetworkV2(0)};
    CountingRecorder recorder;
    std::unique_ptr<nvuffparser::IUffParser> parser{nvuffparser::createUffParser()};

    UffClient() { parser->setErrorRecorder(&recorder); }
    ~UffClient() { parser.reset(); }

    bool parse(std::string const& bytes, nvinfer1::DataType type = nvinfer1::DataType::kFLOAT)
    {
        if (network->getNbInputs() > 0) // of a parse before
            network.reset(builder->createNetworkV2(0));
        return parser->parseBuffer(bytes.data(), bytes.size(), *network, type);
    }
    // The error of a parse that is refused, which the logger and the recorder have both.
    std::string refusal(std::string const& bytes, nvinfer1::DataType type = nvinfer1::DataType::kFLOAT)
    {
        if (parse(bytes, type))
            return "it was parsed";
        std::string const last = static_cast<KeepingLogger const*>(getLogger())->lastError(); // of the process
        return !last.empty() && !recorder.entries.empty() && recorder.entries.back().text == last ? last
                                                                                                  : "no error line";
    }
};

} // namespace tw::test
