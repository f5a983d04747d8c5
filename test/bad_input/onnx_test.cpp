// SPDX-License-Identifier: Apache-2.0
// ONNX files that are damaged, untrusted or point outside their folder.
#include <fstream>
#include <iterator>
#include <random>

#include <sys/stat.h>
#include <unistd.h>

#include "bad_input/fixture.h"
#include "tw_onnx.pb.h"

using namespace nvinfer1;
using namespace tw::test;
using tw_onnx::ModelProto;
using tw_onnx::TensorProto;

namespace {

struct BadOnnx : BadInput
{
    // Parses into a network of its own; a refusal has an error with a line in the log.
    bool parse(std::string const& bytes, char const* path = nullptr)
    {
        auto n = newNetwork();
        std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*n, logger));
        forget();
        bool const ok = parser->parse(bytes.data(), bytes.size(), path);
        error = parser->getNbErrors() ? parser->getError(0)->desc() : "";
        EXPECT_EQ(ok, parser->getNbErrors() == 0);
        if (!ok) {
            EXPECT_FALSE(error.empty());
            EXPECT_GT(logger.errors(), 0);
        }
        return ok;
    }
    void expectBad(ModelProto const& m, char const* part, char const* path = nullptr)
    {
        EXPECT_FALSE(parse(m.SerializeAsString(), path)) << part;
        EXPECT_TRUE(contains(error, part)) << error << "\n  expected: " << part;
    }
    // Parses and builds; true when there is a plan.
    bool parseAndBuild(ModelProto const& m)
    {
        auto n = newNetwork();
        std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*n, logger));
        std::string const bytes = m.SerializeAsString();
        if (!parser->parse(bytes.data(), bytes.size()))
            return false;
        return std::unique_ptr<IHostMemory>(build(*n)) != nullptr;
    }
    std::string error;
};

ModelProto model(std::string const& op, std::vector<std::string> const& inputs)
{
    ModelProto m;
    m.set_ir_version(8);
    m.add_opset_import()->set_version(13);
    auto& g = *m.mutable_graph();
    auto& x = *g.add_input();
    x.set_name("x");
    auto& t = *x.mutable_type()->mutable_tensor_type();
    t.set_elem_type(TensorProto::FLOAT);
    for (int64_t d : {1, 2, 4, 4})
        t.mutable_shape()->add_dim()->set_dim_value(d);
    auto& n = *g.add_node();
    n.set_op_type(op);
    n.set_name("node");
    for (auto const& i : inputs)
        n.add_input(i);
    n.add_output("y");
    g.add_output()->set_name("y");
    return m;
}

void addInts(ModelProto& m, std::string const& name, std::vector<int64_t> const& values)
{
    auto& t = *m.mutable_graph()->add_initializer();
    t.set_name(name);
    t.set_data_type(TensorProto::INT64);
    t.add_dims(int64_t(values.size()));
    for (int64_t v : values)
        t.add_int64_data(v);
}

ModelProto external(std::vector<std::pair<std::string, std::string>> const& entries)
{
    ModelProto m = model("Add", {"x", "w"});
    auto& t = *m.mutable_graph()->add_initializer();
    t.set_name("w");
    t.set_data_type(TensorProto::FLOAT);
    t.add_dims(4);
    t.set_data_location(TensorProto::EXTERNAL);
    for (auto const& [key, value] : entries) {
        auto& e = *t.add_external_data();
        e.set_key(key);
        e.set_value(value);
    }
    return m;
}

TEST_F(BadOnnx, NullAndMissing)
{
    auto n = newNetwork();
    std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*n, logger));
    EXPECT_FALSE(parser->parse(nullptr, 5));
    EXPECT_FALSE(parser->parse("", 0));
    EXPECT_FALSE(parser->parseFromFile(nullptr, 0));
    EXPECT_FALSE(parser->parseFromFile("/no/such/file.onnx", 0));
    EXPECT_FALSE(parser->parseFromFile("/", 0));
    EXPECT_EQ(parser->getNbErrors(), 5);
    EXPECT_EQ(parser->getError(5), nullptr);
    EXPECT_EQ(parser->getError(-1), nullptr);
    EXPECT_FALSE(parser->supportsOperator(nullptr));
    EXPECT_GE(logger.errors(), 5);
    EXPECT_EQ(createNvOnnxParser_INTERNAL(nullptr, &logger, NV_ONNX_PARSER_VERSION), nullptr);
    EXPECT_EQ(createNvOnnxParser_INTERNAL(n.get(), nullptr, NV_ONNX_PARSER_VERSION), nullptr);
}

TEST_F(BadOnnx, TruncatedAndFlipped)
{
    std::ifstream file(TW_DIGITS, std::ios::binary);
    std::string const good((std::istreambuf_iterator<char>(file)), {});
    ASSERT_TRUE(parse(good)) << error;
    std::mt19937 random(3);
    for (int i = 0; i < 150; ++i)
        (void)parse(good.substr(0, i < 50 ? size_t(i) : random() % good.size()));
    for (int i = 0; i < 400; ++i) {
        std::string bad = good;
        for (int k = 0; k < 1 + i % 3; ++k) {
            // Most of the file is weights; structure stands at its ends.
            size_t const at = random() % 2 ? random() % bad.size() : random() % std::min<size_t>(bad.size(), 600);
            bad[at] = char(bad[at] ^ (1 << random() % 8));
        }
        (void)parse(bad);
    }
}

TEST_F(BadOnnx, DeepNesting)
{
    // A graph attribute inside a node inside a graph ..., 100000 deep: the wire format's own limit ends it.
    std::string inner;
    auto wrap = [](int field, std::string const& s) {
        std::string out(1, char(field << 3 | 2));
        for (size_t n = s.size();; n >>= 7) {
            out += char((n & 127) | (n > 127 ? 128 : 0));
            if (n <= 127)
                return out + s;
        }
    };
    for (int i = 0; i < 2000; ++i)
        inner = wrap(1, wrap(5, wrap(6, inner))); // graph.node { attribute { g { ... } } }
    EXPECT_FALSE(parse(wrap(7, inner)));
    EXPECT_TRUE(contains(error, "not an ONNX model")) << error;
}

TEST_F(BadOnnx, Graphs)
{
    ModelProto m = model("Relu", {"x"});
    ASSERT_TRUE(parse(m.SerializeAsString())) << error;
    expectBad(model("Relu", {"z"}), "'z'");
    expectBad(model("Relu", {"y"}), "cycle");
    expectBad(model("Relu", {}), "missing");
    expectBad(model("NoSuchOp", {"x"}), "NoSuchOp");
    m.mutable_graph()->add_node()->CopyFrom(m.graph().node(0));
    expectBad(m, "defined twice");
    m = model("Relu", {"x"});
    m.mutable_graph()->add_input()->CopyFrom(m.graph().input(0));
    expectBad(m, "listed twice");
    m = model("Relu", {"x"});
    addInts(m, "w", {1});
    addInts(m, "w", {1});
    expectBad(m, "listed twice");
    m = model("Relu", {"x"});
    m.mutable_graph()->mutable_output(0)->set_name("nothing");
    expectBad(m, "defined by no node");
    m = model("Add", {"x", "r"}); // a <-> b
    auto& r = *m.mutable_graph()->add_node();
    r.set_op_type("Relu");
    r.add_input("y");
    r.add_output("r");
    expectBad(m, "cycle");
    m = model("Relu", {"x"});
    auto* shape = m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
    shape->mutable_dim(0)->set_dim_value(-7);
    expectBad(m, "-7");
    shape->mutable_dim(0)->set_dim_value(int64_t(1) << 40);
    expectBad(m, "1099511627776");
    m = model("Transpose", {"x"});
    auto& a = *m.mutable_graph()->mutable_node(0)->add_attribute();
    a.set_name("perm");
    a.set_type(tw_onnx::AttributeProto::INTS);
    for (int64_t p : {0, 1, 2, 99})
        a.add_ints(p);
    expectBad(m, "99");
}

TEST_F(BadOnnx, ExternalData)
{
    char name[] = "/tmp/tw_bad_input_XXXXXX";
    std::string const folder = ::mkdtemp(name), inside = folder + "/model", path = inside + "/m.onnx";
    ::mkdir(inside.c_str(), 0700);
    std::ofstream(folder + "/secret.bin") << std::string(16, 's');
    std::ofstream(inside + "/w.bin") << std::string(16, '\0');
    EXPECT_EQ(::symlink((folder + "/secret.bin").c_str(), (inside + "/link").c_str()), 0);
    EXPECT_EQ(::symlink(folder.c_str(), (inside + "/up").c_str()), 0);
    EXPECT_EQ(::mkfifo((inside + "/pipe").c_str(), 0600), 0);
    char const* p = path.c_str();
    EXPECT_TRUE(parse(external({{"location", "w.bin"}}).SerializeAsString(), p)) << error;
    expectBad(external({{"location", "../secret.bin"}}), "outside the model's folder", p);
    expectBad(external({{"location", "sub/../../secret.bin"}}), "outside the model's folder", p);
    expectBad(external({{"location", folder + "/secret.bin"}}), "outside the model's folder", p);
    expectBad(external({{"location", "/etc/passwd"}}), "outside the model's folder", p);
    expectBad(external({{"location", "link"}}), "out of the model's folder", p);
    expectBad(external({{"location", "up/secret.bin"}}), "out of the model's folder", p);
    expectBad(external({{"location", "pipe"}}), "cannot be read as a file", p);
    expectBad(external({{"location", "."}}), "w", p);
    expectBad(external({{"location", "none.bin"}}), "not in the model's folder", p);
    expectBad(external({{"location", ""}}), "without a location", p);
    expectBad(external({}), "without a location", p);
    expectBad(external({{"location", "w.bin"}}), "model_path", nullptr);
    expectBad(external({{"location", "w.bin"}, {"offset", "8"}}), "8 bytes for 16", p);
    expectBad(external({{"location", "w.bin"}, {"offset", "999999999999"}}), "has 16 bytes", p);
    expectBad(external({{"location", "w.bin"}, {"length", "17"}}), "has 16 bytes", p);
    expectBad(external({{"location", "w.bin"}, {"length", "9223372036854775807"}, {"offset", "16"}}), "has 16 bytes",
              p);
    expectBad(external({{"location", "w.bin"}, {"length", "4"}}), "4 bytes for 16", p);
    expectBad(external({{"location", "w.bin"}, {"offset", "-1"}}), "not a count of bytes", p);
    expectBad(external({{"location", "w.bin"}, {"offset", "99999999999999999999"}}), "not a count of bytes", p);
    for (char const* f : {"/model/w.bin", "/model/link", "/model/up", "/model/pipe", "/secret.bin"})
        ::unlink((folder + f).c_str());
    ::rmdir(inside.c_str());
    ::rmdir(folder.c_str());
}

// A few bytes that ask for gigabytes: refused, or left to a run that asks for the memory; never taken on the way.
TEST_F(BadOnnx, AllocationBombs)
{
    ModelProto tensor = model("Add", {"x", "w"});
    auto& t = *tensor.mutable_graph()->add_initializer();
    t.set_name("w");
    t.set_data_type(TensorProto::FLOAT);
    t.add_dims(INT32_MAX);
    expectBad(tensor, "needs 2147483647 elements");
    t.add_dims(INT32_MAX);
    expectBad(tensor, "2^31 - 1 elements");

    setenv("TENSORWRIGHT_MAX_MEMORY_MB", "512", 1);
    builder.reset(createInferBuilder(logger));
    unsetenv("TENSORWRIGHT_MAX_MEMORY_MB");
    auto refused = [&](ModelProto const& m) {
        forget();
        EXPECT_FALSE(parseAndBuild(m));
        EXPECT_GT(logger.errors(), 0);
    };
    for (int64_t size : {int64_t(INT32_MAX), int64_t(1) << 40, int64_t(1) << 29}) {
        SCOPED_TRACE(size);
        ModelProto fill = model("ConstantOfShape", {"s"});
        addInts(fill, "s", {size});
        refused(fill);
        ModelProto expand = model("Expand", {"x", "s"});
        addInts(expand, "s", {size, 1, 1, 1});
        refused(expand);
        ModelProto tile = model("Tile", {"x", "s"});
        addInts(tile, "s", {size, 1, 1, 1});
        refused(tile);
        ModelProto pad = model("Pad", {"x", "s"});
        addInts(pad, "s", {0, 0, 0, 0, size, 0, 0, 0});
        refused(pad);
        ModelProto range = model("Range", {"a", "s", "b"});
        for (auto const& [name, v] : {std::pair<char const*, int64_t>{"a", 0}, {"s", size}, {"b", 1}}) {
            addInts(range, name, {v});
            range.mutable_graph()->mutable_initializer()->rbegin()->clear_dims();
        }
        refused(range);
    }
    // One after the other, each below the limit of one constant.
    ModelProto many = model("ConstantOfShape", {"s"});
    addInts(many, "s", {int64_t(1) << 24});
    for (int i = 0; i < 64; ++i) {
        auto& n = *many.mutable_graph()->add_node();
        n.set_op_type("ConstantOfShape");
        n.add_input("s");
        n.add_output("c" + std::to_string(i));
        many.mutable_graph()->add_output()->set_name("c" + std::to_string(i));
    }
    refused(many);
}

} // namespace
