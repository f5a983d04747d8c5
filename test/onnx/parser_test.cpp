// SPDX-License-Identifier: Apache-2.0
// The parser as a program sees it: errors, untrusted models, weights, names. Models are made here, with the schema's own
// classes.
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "models.h"

namespace {

using namespace tw::test;

// The same with its weights in `location`.
ModelProto externalModel(std::string const& location, std::vector<std::pair<std::string, std::string>> const& more = {})
{
    ModelProto m = convModel();
    TensorProto& w = *m.mutable_graph()->mutable_initializer(0);
    w.clear_float_data();
    w.set_data_location(TensorProto::EXTERNAL);
    auto entry = [&](std::string const& key, std::string const& value) {
        auto& e = *w.add_external_data();
        e.set_key(key);
        e.set_value(value);
    };
    entry("location", location);
    for (auto const& [key, value] : more)
        entry(key, value);
    return m;
}

class Folder
{
public:
    Folder()
    {
        char name[] = "/tmp/tw_onnx_XXXXXX";
        path_ = ::mkdtemp(name);
        ::mkdir((path_ + "/in").c_str(), 0700);
    }
    ~Folder()
    {
        for (char const* f : {"/in/w.bin", "/in/link", "/in/inner", "/in/dir", "/out.bin"}) {
            ::unlink((path_ + f).c_str());
            ::rmdir((path_ + f).c_str());
        }
        ::rmdir((path_ + "/in").c_str());
        ::rmdir(path_.c_str());
    }
    std::string operator/(std::string const& name) const { return path_ + "/" + name; }
    void write(std::string const& name, size_t sizeBytes) const
    {
        std::ofstream(path_ + "/" + name, std::ios::binary) << std::string(sizeBytes, '\0');
    }

private:
    std::string path_;
};

TEST(OnnxParser, ImportsAConvolutionWithNames)
{
    Fixture f;
    ASSERT_TRUE(f.parse(convModel())) << f.error();
    ASSERT_EQ(f.network->getNbInputs(), 1);
    ASSERT_EQ(f.network->getNbOutputs(), 1);
    EXPECT_STREQ(f.network->getInput(0)->getName(), "x");
    EXPECT_STREQ(f.network->getOutput(0)->getName(), "y");
    ASSERT_EQ(f.network->getNbLayers(), 1);
    EXPECT_STREQ(f.network->getLayer(0)->getName(), "conv1");
    EXPECT_EQ(f.parser->getNbErrors(), 0);
    EXPECT_EQ(f.parser->getError(0), nullptr);
    EXPECT_EQ(f.network->getOutput(0)->getDimensions().d[3], 2);
}

TEST(OnnxParser, SupportsOperator)
{
    Fixture f;
    EXPECT_TRUE(f.parser->supportsOperator("Conv"));
    EXPECT_FALSE(f.parser->supportsOperator("QLinearConv"));
    EXPECT_FALSE(f.parser->supportsOperator("NoSuchOperator"));
    EXPECT_FALSE(f.parser->supportsOperator(nullptr));
}

TEST(OnnxParser, BytesThatAreNoModel)
{
    std::string const good = convModel().SerializeAsString();
    Fixture f;
    EXPECT_FALSE(f.parser->parse(nullptr, 10));
    EXPECT_FALSE(f.parser->parse(good.data(), 0));
    EXPECT_FALSE(f.parse(std::string("this is not a protobuf")));
    EXPECT_FALSE(f.parse(good.substr(0, good.size() - 3)));
    EXPECT_EQ(f.parser->getNbErrors(), 4);
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(f.parser->getError(i)->code(), ErrorCode::kMODEL_DESERIALIZE_FAILED);
        EXPECT_EQ(f.parser->getError(i)->node(), -1);
    }
    EXPECT_EQ(f.logger.errors.size(), 4u);
    f.parser->clearErrors();
    EXPECT_EQ(f.parser->getNbErrors(), 0);
    EXPECT_FALSE(f.parser->parseFromFile("/nonexistent/model.onnx", 2));
    EXPECT_FALSE(f.parser->parseFromFile("/tmp", 2));
    EXPECT_FALSE(f.parser->parseFromFile(nullptr, 2));
    EXPECT_EQ(f.parser->getNbErrors(), 3);
}

TEST(OnnxParser, MessagesNestedWithoutEndAreRefused)
{
    // TypeProto{sequence_type{elem_type{...}}}, 100,000 levels: wire fields 4 and 1, lengths written from inside out.
    std::string inner;
    auto wrap = [&](int field) {
        std::string head(1, char(field << 3 | 2));
        for (size_t n = inner.size();; n >>= 7) {
            head += char((n & 127) | (n > 127 ? 128 : 0));
            if (n <= 127)
                break;
        }
        inner = head + inner;
    };
    for (int i = 0; i < 3000; ++i) {
        wrap(1);
        wrap(4);
    }
    wrap(2);  // ValueInfoProto.type
    wrap(11); // GraphProto.input
    wrap(7);  // ModelProto.graph
    Fixture f;
    EXPECT_FALSE(f.parse(inner));
    EXPECT_EQ(f.code(), ErrorCode::kMODEL_DESERIALIZE_FAILED);
}

TEST(OnnxParser, ImplicitBatchIsRefused)
{
    Fixture f(false);
    EXPECT_FALSE(f.parse(convModel()));
    EXPECT_NE(f.error().find("explicit batch"), std::string::npos) << f.error();
}

TEST(OnnxParser, BrokenGraphs)
{
    struct Case
    {
        char const* what;
        std::function<void(ModelProto&)> change;
        ErrorCode code;
    };
    Case const cases[]{
        {"no graph", [](ModelProto& m) { m.clear_graph(); }, ErrorCode::kINVALID_GRAPH},
        {"no operator set", [](ModelProto& m) { m.clear_opset_import(); }, ErrorCode::kINVALID_GRAPH},
        {"which no node", [](ModelProto& m) { m.mutable_graph()->mutable_node(0)->set_input(0, "z"); },
         ErrorCode::kINVALID_GRAPH},
        {"defined twice", [](ModelProto& m) { addNode(*m.mutable_graph(), "Relu", {"x"}, {"y"}); },
         ErrorCode::kINVALID_GRAPH},
        {"defined twice", [](ModelProto& m) { addNode(*m.mutable_graph(), "Relu", {"x"}, {"w"}); },
         ErrorCode::kINVALID_GRAPH},
        {"listed twice", [](ModelProto& m) { *m.mutable_graph()->add_input() = m.graph().input(0); },
         ErrorCode::kINVALID_GRAPH},
        {"listed twice", [](ModelProto& m) { *m.mutable_graph()->add_initializer() = m.graph().initializer(0); },
         ErrorCode::kINVALID_GRAPH},
        {"cycle",
         [](ModelProto& m) {
             addNode(*m.mutable_graph(), "Relu", {"b"}, {"a"});
             addNode(*m.mutable_graph(), "Relu", {"a"}, {"b"});
         },
         ErrorCode::kINVALID_GRAPH},
        {"defined by no node", [](ModelProto& m) { m.mutable_graph()->mutable_output(0)->set_name("q"); },
         ErrorCode::kINVALID_GRAPH},
        {"function 'f' of domain '' is defined twice",
         [](ModelProto& m) {
             m.add_functions()->set_name("f");
             m.add_functions()->set_name("f");
         },
         ErrorCode::kUNSUPPORTED_GRAPH},
        {"sparse", [](ModelProto& m) { m.mutable_graph()->add_sparse_initializer(); }, ErrorCode::kUNSUPPORTED_GRAPH},
        {"not a tensor",
         [](ModelProto& m) { m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_sequence_type(); },
         ErrorCode::kUNSUPPORTED_GRAPH},
        {"COMPLEX64",
         [](ModelProto& m) {
             m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
                 TensorProto::COMPLEX64);
         },
         ErrorCode::kUNSUPPORTED_GRAPH},
        {"rank 9",
         [](ModelProto& m) {
             for (int i = 0; i < 5; ++i)
                 m.mutable_graph()
                     ->mutable_input(0)
                     ->mutable_type()
                     ->mutable_tensor_type()
                     ->mutable_shape()
                     ->add_dim()
                     ->set_dim_value(1);
         },
         ErrorCode::kUNSUPPORTED_GRAPH},
        {"needs 9 elements", [](ModelProto& m) { m.mutable_graph()->mutable_initializer(0)->add_float_data(1); },
         ErrorCode::kINVALID_VALUE},
        {"needs 9 elements", [](ModelProto& m) { m.mutable_graph()->mutable_initializer(0)->set_raw_data("abc"); },
         ErrorCode::kINVALID_VALUE},
        {"dimension 0 is -1", [](ModelProto& m) { m.mutable_graph()->mutable_initializer(0)->set_dims(0, -1); },
         ErrorCode::kINVALID_VALUE},
        {"2^31",
         [](ModelProto& m) {
             m.mutable_graph()->mutable_initializer(0)->set_dims(0, 1 << 30);
             m.mutable_graph()->mutable_initializer(0)->set_dims(1, 1 << 30);
         },
         ErrorCode::kUNSUPPORTED_GRAPH},
    };
    for (auto const& c : cases) {
        ModelProto m = convModel();
        c.change(m);
        Fixture f;
        EXPECT_FALSE(f.parse(m)) << c.what;
        EXPECT_NE(f.error().find(c.what), std::string::npos) << c.what << ": " << f.error();
        EXPECT_EQ(f.code(), c.code) << f.error();
    }
}

TEST(OnnxParser, NodesMayStandInAnyOrder)
{
    ModelProto m = convModel();
    GraphProto& g = *m.mutable_graph();
    g.clear_node();
    addNode(g, "Dropout", {"t"}, {"y"});
    addNode(g, "Conv", {"x", "w"}, {"t"});
    Fixture f;
    EXPECT_TRUE(f.parse(m)) << f.error();
}

TEST(OnnxParser, ErrorsNameTheNode)
{
    ModelProto m = convModel();
    GraphProto& g = *m.mutable_graph();
    g.mutable_node(0)->set_output(0, "t");
    addNode(g, "NoSuchOperator", {"t"}, {"y"}, "strange");
    Fixture f;
    ASSERT_FALSE(f.parse(m));
    nvonnxparser::IParserError const& e = *f.parser->getError(0);
    EXPECT_EQ(e.code(), ErrorCode::kUNSUPPORTED_NODE);
    EXPECT_EQ(e.node(), 1);
    EXPECT_NE(f.error().find("getPluginCreator() could not find Plugin NoSuchOperator version 1"), std::string::npos);
    EXPECT_NE(f.error().find("'strange'"), std::string::npos);
    EXPECT_NE(std::string(e.file()).find("model.cpp"), std::string::npos);
    EXPECT_GT(e.line(), 0);

    Fixture s;
    SubGraphCollection_t parts;
    std::string const bytes = m.SerializeAsString();
    EXPECT_FALSE(s.parser->supportsModel(bytes.data(), bytes.size(), parts));
    ASSERT_EQ(parts.size(), 1u);
    EXPECT_EQ(parts[0].first, std::vector<size_t>{0});
    EXPECT_TRUE(parts[0].second);
    Fixture whole;
    std::string const good = convModel().SerializeAsString();
    EXPECT_TRUE(whole.parser->supportsModel(good.data(), good.size(), parts));
    ASSERT_EQ(parts.size(), 1u);
}

TEST(OnnxParser, UnsupportedOperators)
{
    for (char const* op : {"QLinearConv", "QLinearMatMul", "ConvInteger", "NoSuchMap"}) {
        ModelProto m = convModel();
        NodeProto& n = *m.mutable_graph()->mutable_node(0);
        n.set_op_type(op);
        if (std::string(op) == "NoSuchMap")
            n.add_attribute()->mutable_g();
        Fixture f;
        EXPECT_FALSE(f.parse(m));
        EXPECT_EQ(f.code(), ErrorCode::kUNSUPPORTED_NODE);
        EXPECT_NE(f.error().find(op), std::string::npos) << f.error();
    }
    ModelProto m = convModel();
    m.mutable_graph()->mutable_node(0)->set_domain("com.example");
    Fixture f;
    EXPECT_FALSE(f.parse(m));
    EXPECT_NE(f.error().find("com.example"), std::string::npos) << f.error();
}

TEST(OnnxParser, BadAttributes)
{
    std::vector<std::function<void(NodeProto&)>> const changes{
        [](NodeProto& n) { addInts(n, "strides", {1}); },
        [](NodeProto& n) {
            addInts(n, "strides", {0, 1});
        },
        [](NodeProto& n) {
            addInts(n, "strides", {1, INT64_MAX});
        },
        [](NodeProto& n) {
            addInts(n, "pads", {1, 1, 1});
        },
        [](NodeProto& n) {
            addInts(n, "dilations", {100000, 100000});
        },
        [](NodeProto& n) {
            addInts(n, "kernel_shape", {2, 2});
        },
        [](NodeProto& n) { addInts(n, "group", {1}); },
        [](NodeProto& n) {
            auto& a = *n.add_attribute();
            a.set_name("auto_pad");
            a.set_type(tw_onnx::AttributeProto::STRING);
            a.set_s("SOMEHOW");
        },
        [](NodeProto& n) {
            auto& a = *n.add_attribute();
            a.set_name("group");
            a.set_type(tw_onnx::AttributeProto::INT);
            a.set_i(0);
        },
        [](NodeProto& n) { n.clear_input(); },
        [](NodeProto& n) { n.set_input(1, ""); },
        [](NodeProto& n) { n.add_output("extra"); },
    };
    for (size_t i = 0; i < changes.size(); ++i) {
        ModelProto m = convModel();
        changes[i](*m.mutable_graph()->mutable_node(0));
        Fixture f;
        EXPECT_FALSE(f.parse(m)) << "change " << i;
        EXPECT_EQ(f.parser->getError(0)->node(), 0) << "change " << i;
    }
}

// Equations come from outside: what cannot be computed is named.
TEST(OnnxParser, EquationsOfEinsum)
{
    auto errorOf = [](std::string const& equation) {
        ModelProto m = convModel(); // x [1, 1, 4, 4], w [1, 1, 3, 3]
        NodeProto& n = *m.mutable_graph()->mutable_node(0);
        n.set_op_type("Einsum");
        auto& a = *n.add_attribute();
        a.set_name("equation");
        a.set_type(tw_onnx::AttributeProto::STRING);
        a.set_s(equation);
        Fixture f;
        return f.parse(m) ? std::string() : f.error();
    };
    EXPECT_EQ(errorOf("abcd,abef->cfed"), "");
    for (char const* legal : {"abcd,efgh", "abcc,abef->cf", "...cd,...ef->...cf", "...cd,abef->cf", "Abcd,Abef"})
        EXPECT_EQ(errorOf(legal), "") << legal;
    std::pair<std::string, char const*> const bad[] = {
        {"abcd,abce->de", "'c' is 4 and 3"},
        {"abcd->ab", "has 1 terms, the node has 2 inputs"},
        {"abc,abef->cf", "'abc' stands for an operand of rank 4"},
        {"abcde,abef->cf", "'abcde' stands for an operand of rank 4"},
        {"...a...,abef->bf", "more than one ellipsis"},
        {"abcd,abef->...cf...", "more than one ellipsis"},
        {"ab.cd,abef->cf", "'.' is no letter"},
        {"abcd,abef->cx", "no operand has 'x'"},
        {"abcd,abef->cc", "stands twice in the result"},
        {"ab1d,abef->d", "'1' is no letter"},
        {"", "has 1 terms"},
        {"abcd,abef->cf->d", "'-' is no letter"},
        {std::string(1 << 20, 'a'), "more letters than"},
        {std::string(1 << 20, ','), "more letters than"},
    };
    for (auto const& [equation, why] : bad)
        EXPECT_NE(errorOf(equation).find(why), std::string::npos)
            << equation.substr(0, 40) << ": " << errorOf(equation);
}

TEST(OnnxParser, ExternalWeights)
{
    Folder folder;
    folder.write("in/w.bin", 36);
    folder.write("out.bin", 36);
    ASSERT_EQ(::symlink("../out.bin", (folder / "in/link").c_str()), 0);
    ASSERT_EQ(::symlink("w.bin", (folder / "in/inner").c_str()), 0);
    ::mkdir((folder / "in/dir").c_str(), 0700);
    std::string const path = folder / "in/model.onnx";

    for (auto const& m : {externalModel("w.bin"), externalModel("./w.bin"), externalModel("inner"),
                          externalModel("w.bin", {{"offset", "0"}, {"length", "36"}})}) {
        Fixture f;
        EXPECT_TRUE(f.parse(m, path.c_str())) << f.error();
    }
    struct BadFile
    {
        ModelProto model;
        char const* what;
    };
    BadFile const bad[]{
        {externalModel("../out.bin"), "outside"},
        {externalModel("x/../../out.bin"), "outside"},
        {externalModel(folder / "in/w.bin"), "outside"},
        {externalModel("link"), "leads out"},
        {externalModel("missing.bin"), "not in the model's folder"},
        {externalModel("dir"), "as a file"},
        {externalModel(""), "without a location"},
        {externalModel(std::string("w.bin\0x", 7)), "without a location"},
        {externalModel("w.bin", {{"offset", "1"}}), "bytes"},
        {externalModel("w.bin", {{"offset", "37"}}), "bytes"},
        {externalModel("w.bin", {{"length", "40"}}), "bytes"},
        {externalModel("w.bin", {{"length", "32"}}), "bytes"},
        {externalModel("w.bin", {{"offset", "9223372036854775807"}, {"length", "36"}}), "bytes"},
        {externalModel("w.bin", {{"offset", "99999999999999999999"}}), "not a count"},
        {externalModel("w.bin", {{"offset", "-4"}}), "not a count"},
        {externalModel("w.bin", {{"length", "36x"}}), "not a count"},
    };
    for (auto const& b : bad) {
        Fixture f;
        EXPECT_FALSE(f.parse(b.model, path.c_str())) << b.what;
        EXPECT_NE(f.error().find(b.what), std::string::npos) << b.what << ": " << f.error();
    }
    Fixture f;
    EXPECT_FALSE(f.parse(externalModel("w.bin")));
    EXPECT_NE(f.error().find("model_path"), std::string::npos) << f.error();
}

TEST(OnnxParser, Int64AndDoubleBecomeInt32AndFloatWithOneWarning)
{
    ModelProto m;
    m.set_ir_version(8);
    m.add_opset_import()->set_version(13);
    GraphProto& g = *m.mutable_graph();
    for (char const* name : {"a", "b"}) {
        addIntegers(g, name, {2}, {INT64_MAX, -5});
        addValue(*g.add_output(), name, TensorProto::INT64, {2});
    }
    addInitializer(g, "d", TensorProto::DOUBLE, {}).add_double_data(1e300);
    addValue(*g.add_output(), "d", TensorProto::DOUBLE, {});
    Fixture f;
    ASSERT_TRUE(f.parse(m)) << f.error();
    EXPECT_EQ(f.logger.count("INT64 weights, which"), 1);
    EXPECT_EQ(f.logger.count("clamped"), 1);
    EXPECT_EQ(f.logger.count("DOUBLE"), 1);
    auto const& a = static_cast<nvinfer1::IConstantLayer&>(*f.network->getLayer(0));
    ASSERT_EQ(a.getWeights().type, nvinfer1::DataType::kINT32);
    EXPECT_EQ(static_cast<int32_t const*>(a.getWeights().values)[0], INT32_MAX);
    EXPECT_EQ(static_cast<int32_t const*>(a.getWeights().values)[1], -5);
    auto const& last = static_cast<nvinfer1::IConstantLayer&>(*f.network->getLayer(f.network->getNbLayers() - 1));
    ASSERT_EQ(last.getWeights().type, nvinfer1::DataType::kFLOAT);
    EXPECT_EQ(*static_cast<float const*>(last.getWeights().values), 3.40282347e38f);
}

// FP32 has all numbers of BFLOAT16; network inputs, casts and weights of that type are FP32.
TEST(OnnxParser, Bfloat16IsFloat)
{
    ModelProto m;
    m.set_ir_version(8);
    m.add_opset_import()->set_version(13);
    GraphProto& g = *m.mutable_graph();
    addValue(*g.add_input(), "x", TensorProto::BFLOAT16, {2});
    addInitializer(g, "raw", TensorProto::BFLOAT16, {2}).set_raw_data(std::string("\x80\x3f\x2d\xc0", 4));
    TensorProto& typed = addInitializer(g, "typed", TensorProto::BFLOAT16, {2});
    typed.add_int32_data(0x7f80);
    typed.add_int32_data(0x0001);
    for (char const* name : {"raw", "typed"})
        addValue(*g.add_output(), name, TensorProto::BFLOAT16, {2});
    NodeProto& cast = *g.add_node();
    cast.set_op_type("Cast");
    cast.add_input("x");
    cast.add_output("y");
    auto& to = *cast.add_attribute();
    to.set_name("to");
    to.set_type(tw_onnx::AttributeProto::INT);
    to.set_i(TensorProto::BFLOAT16);
    addValue(*g.add_output(), "y", TensorProto::BFLOAT16, {2});
    Fixture f;
    ASSERT_TRUE(f.parse(m)) << f.error();
    EXPECT_EQ(f.network->getInput(0)->getType(), nvinfer1::DataType::kFLOAT);
    std::vector<std::vector<float>> found;
    for (int i = 0; i < f.network->getNbLayers(); ++i)
        if (nvinfer1::ILayer const& l = *f.network->getLayer(i); l.getType() == nvinfer1::LayerType::kCONSTANT) {
            auto const w = static_cast<nvinfer1::IConstantLayer const&>(l).getWeights();
            ASSERT_EQ(w.type, nvinfer1::DataType::kFLOAT);
            auto const* values = static_cast<float const*>(w.values);
            found.emplace_back(values, values + w.count);
        }
    std::vector<std::vector<float>> const want = {{1, -2.703125f}, {std::numeric_limits<float>::infinity(), 0x1p-133f}};
    EXPECT_EQ(found, want);
    for (int i = 0; i < f.network->getNbOutputs(); ++i)
        EXPECT_EQ(f.network->getOutput(i)->getType(), nvinfer1::DataType::kFLOAT);
}

TEST(OnnxParser, DynamicDimensionsKeepTheirNames)
{
    ModelProto m = convModel();
    auto& shape = *m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
    shape.mutable_dim(0)->set_dim_param("batch");
    shape.mutable_dim(2)->clear_dim_value();
    Fixture f;
    ASSERT_TRUE(f.parse(m)) << f.error();
    nvinfer1::ITensor const& x = *f.network->getInput(0);
    EXPECT_EQ(x.getDimensions().d[0], -1);
    EXPECT_EQ(x.getDimensions().d[1], 1);
    EXPECT_EQ(x.getDimensions().d[2], -1);
    EXPECT_STREQ(x.getDimensionName(0), "batch");
}

TEST(OnnxParser, OldAndNewOperatorSetsWarn)
{
    for (int opset : {6, 7, 28, 29}) {
        ModelProto m = convModel();
        m.mutable_opset_import(0)->set_version(opset);
        Fixture f;
        EXPECT_TRUE(f.parse(m)) << f.error();
        EXPECT_EQ(f.logger.count(("opset " + std::to_string(opset)).c_str()), opset == 6 || opset == 29);
    }
}

// No crash, whatever happens to the bytes; the seed is fixed and a failing round is named.
TEST(OnnxParser, ChangedBytes)
{
    std::string const good = convModel().SerializeAsString();
    std::mt19937 random(20230714);
    int refused = 0;
    for (int round = 0; round < 2000; ++round) {
        std::string bytes = good;
        for (int i = 0, n = 1 + int(random() % 4); i < n; ++i)
            bytes[random() % bytes.size()] = char(random());
        if (random() % 8 == 0)
            bytes.resize(random() % bytes.size());
        SCOPED_TRACE("round " + std::to_string(round));
        Fixture f;
        refused += !f.parse(bytes);
    }
    EXPECT_GT(refused, 100);
}

// Another ONNX in the process, with the schema under its own name and the full protobuf runtime.
TEST(OnnxParser, RunsBesideTheOnnxLibrary)
{
    for (char const* name : {"libonnx_proto.so.1", "libonnx.so.1"})
        if (!::dlopen(name, RTLD_NOW | RTLD_GLOBAL))
            GTEST_SKIP() << name << " is not installed: " << ::dlerror();
    for (int i = 0; i < 2; ++i) {
        Fixture f;
        EXPECT_TRUE(f.parse(convModel())) << f.error();
    }
}

} // namespace
