// SPDX-License-Identifier: Apache-2.0
// usage: fuzz_seeds <folder> [every-nth]
// Writes seeds of our own making below <folder>/<target>: plans and texts of the ops' cases, timing caches, and small
// ONNX models. With every-nth only one case in n is taken, others each day (the corpus in the repository: 48).
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "calibrate/calibrate.h"
#include "device/cuda/compiler.h"
#include "device/cuda/kernel_cache.h"
#include "ir/text.h"
#include "plan/network.h"
#include "support/plugin_samples.h"
#include "support/share_of_the_day.h"
#include "tw_onnx.pb.h"

namespace {

using namespace tw;
namespace fs = std::filesystem;

fs::path root;

void save(std::string const& target, std::string const& name, std::string const& bytes)
{
    fs::create_directories(root / target);
    std::ofstream(root / target / name, std::ios::binary) << bytes;
}

void saveModel(std::string const& name, tw_onnx::ModelProto const& model)
{
    for (char const* target : {"fuzz_onnx", "fuzz_parse_and_build"})
        save(target, name + ".onnx", model.SerializeAsString());
}

tw_onnx::ValueInfoProto& value(tw_onnx::ValueInfoProto& v, std::string const& name, std::vector<int64_t> const& dims)
{
    v.set_name(name);
    auto& t = *v.mutable_type()->mutable_tensor_type();
    t.set_elem_type(tw_onnx::TensorProto::FLOAT);
    for (int64_t d : dims) {
        auto& dim = *t.mutable_shape()->add_dim();
        d < 0 ? dim.set_dim_param("N") : dim.set_dim_value(d);
    }
    return v;
}

tw_onnx::NodeProto& node(tw_onnx::GraphProto& g, std::string const& op, std::vector<std::string> const& in,
                         std::string const& out)
{
    auto& n = *g.add_node();
    n.set_op_type(op);
    for (auto const& i : in)
        n.add_input(i);
    n.add_output(out);
    return n;
}

template <class T>
void tensor(tw_onnx::GraphProto& g, std::string const& name, std::vector<int64_t> const& dims,
            std::vector<T> const& elements)
{
    auto& t = *g.add_initializer();
    t.set_name(name);
    for (int64_t d : dims)
        t.add_dims(d);
    if constexpr (std::is_same_v<T, float>) {
        t.set_data_type(tw_onnx::TensorProto::FLOAT);
        for (float e : elements)
            t.add_float_data(e);
    } else if constexpr (std::is_same_v<T, int8_t>) {
        t.set_data_type(tw_onnx::TensorProto::INT8);
        for (int8_t e : elements)
            t.add_int32_data(e);
    } else {
        t.set_data_type(tw_onnx::TensorProto::INT64);
        for (int64_t e : elements)
            t.add_int64_data(e);
    }
}

tw_onnx::ModelProto model(std::vector<int64_t> const& x, int opset)
{
    tw_onnx::ModelProto m;
    m.set_ir_version(8);
    m.add_opset_import()->set_version(opset);
    m.mutable_graph()->set_name("seed");
    value(*m.mutable_graph()->add_input(), "x", x);
    m.mutable_graph()->add_output()->set_name("y");
    return m;
}

// A model of one node for each standard plugin.
void writePluginModels()
{
    using nvinfer1::PluginFieldType;
    for (test::PluginSample const& sample : test::pluginSamples()) {
        tw_onnx::ModelProto m;
        m.set_ir_version(8);
        m.add_opset_import()->set_version(13);
        auto& g = *m.mutable_graph();
        g.set_name("seed");
        std::vector<std::string> names;
        for (test::SampleInput const& in : test::inputsOf(sample, 1)) {
            names.push_back("x" + std::to_string(names.size()));
            auto& v = value(*g.add_input(), names.back(), {in.shape.begin(), in.shape.end()});
            if (in.letter == 'i')
                v.mutable_type()->mutable_tensor_type()->set_elem_type(tw_onnx::TensorProto::INT32);
        }
        auto& n = node(g, sample.name, names, "y");
        auto const attribute = [&](std::string const& name, tw_onnx::AttributeProto::AttributeType type) {
            auto& a = *n.add_attribute();
            a.set_name(name);
            a.set_type(type);
            return &a;
        };
        attribute("plugin_version", tw_onnx::AttributeProto::STRING)->set_s(sample.version);
        for (test::SampleField const& f : test::fieldsOf(sample))
            if (f.type == PluginFieldType::kINT32 && f.integers.size() == 1)
                attribute(f.name, tw_onnx::AttributeProto::INT)->set_i(f.integers[0]);
            else if (f.type == PluginFieldType::kINT32)
                attribute(f.name, tw_onnx::AttributeProto::INTS)
                    ->mutable_ints()
                    ->Add(f.integers.begin(), f.integers.end());
            else if (f.floats.size() == 1)
                attribute(f.name, tw_onnx::AttributeProto::FLOAT)->set_f(f.floats[0]);
            else
                attribute(f.name, tw_onnx::AttributeProto::FLOATS)
                    ->mutable_floats()
                    ->Add(f.floats.begin(), f.floats.end());
        g.add_output()->set_name("y");
        saveModel(std::string("plugin_") + sample.name + '_' + sample.version, m);
    }
}

// Products by integers of 4 bits: MatMulNBits, and DequantizeLinear of blocks with a Transpose behind it.
void writeFewBits()
{
    auto const bytes = [](tw_onnx::GraphProto& g, char const* name, int type, std::vector<int64_t> const& dims,
                          size_t count) {
        auto& t = *g.add_initializer();
        t.set_name(name);
        t.set_data_type(type);
        for (int64_t d : dims)
            t.add_dims(d);
        std::string raw(count, '\0');
        for (size_t i = 0; i < count; ++i)
            raw[i] = char(37 * i);
        t.set_raw_data(raw);
    };
    tw_onnx::ModelProto m = model({2, 40}, 21);
    auto& g = *m.mutable_graph();
    bytes(g, "b", tw_onnx::TensorProto::UINT8, {18, 2, 16}, 18 * 2 * 16);
    bytes(g, "z", tw_onnx::TensorProto::UINT8, {18, 1}, 18);
    tensor<float>(g, "s", {18, 2}, std::vector<float>(36, 0.5F));
    auto& product = node(g, "MatMulNBits", {"x", "b", "s", "z"}, "y");
    product.set_domain("com.microsoft");
    for (auto const& [name, number] : {std::pair{"K", 40}, {"N", 18}, {"bits", 4}, {"block_size", 32}}) {
        auto& a = *product.add_attribute();
        a.set_name(name);
        a.set_type(tw_onnx::AttributeProto::INT);
        a.set_i(number);
    }
    auto& set = *m.add_opset_import();
    set.set_domain("com.microsoft");
    set.set_version(1);
    saveModel("few_bits", m);
    m = model({2, 40}, 21);
    auto& other = *m.mutable_graph();
    constexpr int kInt4 = 22; // of a later schema
    bytes(other, "q", kInt4, {18, 40}, 18 * 20);
    tensor<float>(other, "s", {18, 2}, std::vector<float>(36, 0.5F));
    auto& numbers = node(other, "DequantizeLinear", {"q", "s"}, "w");
    auto& block = *numbers.add_attribute();
    block.set_name("block_size");
    block.set_type(tw_onnx::AttributeProto::INT);
    block.set_i(32);
    node(other, "Transpose", {"w"}, "turned");
    node(other, "MatMul", {"x", "turned"}, "y");
    saveModel("integers_in_blocks", m);
}

void writeModels()
{
    writeFewBits();
    auto conv = model({1, 2, 5, 5}, 13);
    tensor<float>(*conv.mutable_graph(), "w", {3, 2, 3, 3}, std::vector<float>(54, 0.25f));
    node(*conv.mutable_graph(), "Conv", {"x", "w"}, "c");
    node(*conv.mutable_graph(), "Relu", {"c"}, "r");
    node(*conv.mutable_graph(), "GlobalAveragePool", {"r"}, "y");
    saveModel("conv", conv);

    auto shapes = model({-1, 6}, 17); // y = reshape(x, [N, 2, 3]) by shape arithmetic
    auto& g = *shapes.mutable_graph();
    node(g, "Shape", {"x"}, "s");
    tensor<int64_t>(g, "zero", {1}, {0});
    node(g, "Gather", {"s", "zero"}, "n");
    tensor<int64_t>(g, "rest", {2}, {2, 3});
    auto& axis = *node(g, "Concat", {"n", "rest"}, "to").add_attribute();
    axis.set_name("axis");
    axis.set_type(tw_onnx::AttributeProto::INT);
    axis.set_i(0);
    node(g, "Reshape", {"x", "to"}, "y");
    saveModel("shapes", shapes);

    auto slices = model({-1, 4, 4}, 13);
    tensor<int64_t>(*slices.mutable_graph(), "one", {1}, {1});
    tensor<int64_t>(*slices.mutable_graph(), "end", {1}, {3});
    node(*slices.mutable_graph(), "Slice", {"x", "one", "end", "one"}, "s");
    node(*slices.mutable_graph(), "Softmax", {"s"}, "p");
    tensor<int64_t>(*slices.mutable_graph(), "tiles", {3}, {1, 2, 1});
    node(*slices.mutable_graph(), "Tile", {"p", "tiles"}, "y");
    saveModel("slices", slices);

    auto gemm = model({2, 3}, 7);
    tensor<float>(*gemm.mutable_graph(), "b", {3, 4}, std::vector<float>(12, 0.5f));
    tensor<float>(*gemm.mutable_graph(), "c", {4}, {1, 2, 3, 4});
    node(*gemm.mutable_graph(), "Gemm", {"x", "b", "c"}, "y");
    saveModel("gemm", gemm);

    auto quantized = model({1, 2, 5, 5}, 13); // y = relu(conv(x, w)), all three behind Q and DQ
    auto& q = *quantized.mutable_graph();
    tensor<float>(q, "s", {}, {0.05f});
    tensor<int8_t>(q, "z", {}, {0});
    tensor<float>(q, "ws", {3}, {0.01f, 0.02f, 0.03f});
    tensor<int8_t>(q, "w", {3, 2, 3, 3}, std::vector<int8_t>(54, 25));
    node(q, "QuantizeLinear", {"x", "s", "z"}, "xq");
    node(q, "DequantizeLinear", {"xq", "s", "z"}, "xf");
    auto& channels = *node(q, "DequantizeLinear", {"w", "ws"}, "wf").add_attribute();
    channels.set_name("axis");
    channels.set_type(tw_onnx::AttributeProto::INT);
    channels.set_i(0);
    node(q, "Conv", {"xf", "wf"}, "c");
    node(q, "Relu", {"c"}, "r");
    node(q, "QuantizeLinear", {"r", "s", "z"}, "rq");
    node(q, "DequantizeLinear", {"rq", "s", "z"}, "y");
    saveModel("quantized", quantized);

    auto resize = model({1, 1, 4, 4}, 13);
    tensor<float>(*resize.mutable_graph(), "roi", {0}, {});
    tensor<float>(*resize.mutable_graph(), "scales", {4}, {1, 1, 2, 2});
    node(*resize.mutable_graph(), "Resize", {"x", "roi", "scales"}, "y");
    saveModel("resize", resize);
}

// Attention over caches, and the norm of a sum, as ONNX Runtime's builders write them.
void writeMicrosoftModel()
{
    constexpr int64_t kHeads = 4, kGroups = 2, kSize = 8, kWidth = kHeads * kSize;
    auto m = model({2, 1, kWidth}, 17);
    auto& g = *m.mutable_graph();
    for (char const* past : {"pk", "pv"})
        value(*g.add_input(), past, {2, kGroups, 6, kSize});
    tensor<float>(g, "w", {kWidth, kGroups * kSize}, std::vector<float>(kWidth * kGroups * kSize, 0.1f));
    tensor<float>(g, "table", {8, kSize / 2}, std::vector<float>(8 * kSize / 2, 0.5f));
    tensor<float>(g, "gamma", {kWidth}, std::vector<float>(kWidth, 1));
    tensor<int64_t>(g, "lengths", {2}, {3, 5});
    tensor<int64_t>(g, "total", {}, {6});
    node(g, "MatMul", {"x", "w"}, "k");
    auto& a = node(g, "GroupQueryAttention", {"x", "k", "k", "pk", "pv", "lengths", "total", "table", "table"}, "a");
    a.set_domain("com.microsoft");
    for (auto const& [name, number] : {std::pair("num_heads", kHeads), {"kv_num_heads", kGroups}, {"do_rotary", 1}}) {
        auto& attribute = *a.add_attribute();
        attribute.set_name(name);
        attribute.set_type(tw_onnx::AttributeProto::INT);
        attribute.set_i(number);
    }
    node(g, "SkipSimplifiedLayerNormalization", {"x", "a", "gamma"}, "y").set_domain("com.microsoft");
    saveModel("microsoft", m);
}

void writeCalibrationCaches()
{
    using namespace tw::calibrate;
    Tensor t(DataType::kFloat, {300});
    for (int i = 0; i < 300; ++i)
        t.ref().set(i, i % 4 == 0 ? 0 : (i - 150) * 0.013);
    NamedHistograms list{{"x", {}}, {"(Unnamed Layer* 1) [Convolution]_output", {}}, {"zero: no scale", {}}};
    Tally tally(serialWorkers());
    tally.add(t.ref(), list[0].second);
    t.ref().set(7, 100);
    tally.add(t.ref(), list[1].second);
    save("fuzz_calibration_cache", "histograms.txt", writeHistograms(list, 8503));
    for (int a = 0; a < kAlgorithms; ++a) {
        Settings const settings{.algorithm = static_cast<Algorithm>(a), .version = 8503};
        save("fuzz_calibration_cache", std::string(nameOf(settings.algorithm)) + ".cache",
             writeTable(tableOf(list, {}, settings, serialWorkers())));
    }
}

// A standard plugin of each kind, `each` times; the first byte is its place in the list of samples.
void writePlugins(int each)
{
    int const kinds = int(test::pluginSamples().size());
    for (int i = 0; i < kinds * each; ++i) {
        std::mt19937 random{unsigned(i)};
        std::string bytes(1, static_cast<char>(i % kinds));
        for (unsigned k = 0; k < 48; ++k)
            bytes += static_cast<char>(random() & 0xff);
        save("fuzz_plugins", "sample_" + std::to_string(i), bytes);
    }
}

// Networks that random numbers decide, of several lengths.
void writeDecisions()
{
    for (unsigned seed = 0; seed < 64; ++seed) {
        std::mt19937 random(seed);
        std::string bytes;
        for (unsigned i = 0; i < 40 + seed * 8; ++i)
            bytes += static_cast<char>(random() & 0xff);
        save("fuzz_networks", "random_" + std::to_string(seed), bytes);
    }
}

// Decisions of which fuzz_caffe makes networks.
void writeCaffe(int count)
{
    std::mt19937 random(11);
    for (int i = 0; i < count; ++i) {
        std::string bytes(1, char(4 + random() % 4));
        for (size_t n = 20 + random() % 300; n > 0; --n)
            bytes += char(random());
        save("fuzz_caffe", "network_" + std::to_string(i), bytes);
    }
}

} // namespace

int main(int argc, char** argv)
{
    if (argc < 2) {
        std::fprintf(stderr, "usage: fuzz_seeds <folder> [every-nth]\n");
        return 1;
    }
    root = argv[1];
    constexpr size_t kCorpus = 48; // what the repository keeps is small
    size_t const every = argc > 2 ? std::max(1, std::atoi(argv[2])) : 1;
    tune::TimingCache cache("device");
    size_t index = 0, caches = 0;
    for (test::NamedCase const& c : test::opCases()) {
        if (!test::isInShare(index++, every))
            continue;
        plan::Contents imported = test::contentsOf(c.graph->graph), built = test::contentsOf(c.graph->graph);
        save("fuzz_text", c.name + ".graph", ir::print(c.graph->graph));
        if (auto bytes = plan::write(imported); bytes.ok() && every < kCorpus)
            save("fuzz_plan", c.name + ".imported.plan", *bytes);
        if (test::buildContents(built).ok())
            if (auto bytes = plan::write(built); bytes.ok())
                save("fuzz_plan", c.name + ".plan", *bytes);
        cache.insert(c.name, tune::CacheEntry{index, {1, 2, 3}, double(index)});
        if (++caches < 4)
            save("fuzz_timing_cache", c.name + ".cache", cache.serialize());
        if (caches < 8)
            save("fuzz_kernel_cache", c.name + ".kernel",
                 cuda::writeKernelFile({c.name, {{c.name, 32, 0, 1024}, {"second", 255, int(index), 0}}, 0}, {1, 2}));
    }
    for (Format f : {Format::kLinear, Format::kCHW32, Format::kHWC}) {
        plan::Contents network = test::smallNetwork();
        if (test::buildContents(network, nullptr, {{"x", {{f}}}}).ok())
            if (auto bytes = plan::write(network); bytes.ok())
                save("fuzz_plan", "small_network." + std::string(nameOf(f)) + ".plan", *bytes);
    }
    plan::Contents refittable = test::refittableNetwork();
    if (test::buildContents(refittable).ok())
        if (auto bytes = plan::write(refittable); bytes.ok())
            save("fuzz_plan", "refittable.plan", *bytes);
    writeCalibrationCaches();
    writeModels();
    writeMicrosoftModel();
    writePluginModels();
    if (every < kCorpus)
        writeDecisions();
    writePlugins(every > 1 ? 6 : 40);
    writeCaffe(every > 1 ? 60 : 1000);
    return 0;
}
