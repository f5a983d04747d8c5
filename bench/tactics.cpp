// SPDX-License-Identifier: Apache-2.0
// Times every CPU tactic, in every configuration and on linear tensors, on shapes that networks really have, beside the
// plain tactic: interleaved rounds, each on several sets of inputs. Printed: microseconds, and the median over the
// rounds of (the plain tactic's time / this one's). usage: bench_tactics [part of a name]
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "device/cpu.h"
#include "device/thread_pool.h"
#include "interp/interp.h"
#include "ops/convolution/op.h"
#include "ops/dequantize/op.h"
#include "ops/gather/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/parametric_relu/op.h"
#include "ops/pointwise/op.h"
#include "ops/quantize/op.h"
#include "ops/select/op.h"
#include "ops/topk/op.h"
#include "tactic/registry.h"
#include "timing.h"
#include "tune/check.h"

namespace {

using namespace tw;
using bench::median;
using bench::seconds;

constexpr int kRounds = 25, kWarmUps = 2;
constexpr double kSecondsEach = 1;

// One thread is timed by its own CPU time, which leaves out what other programs take from it; several by the clock.
struct Input
{
    Extents dims;
    DataType type = DataType::kFloat;
    bool fixed = false; // the same in all sets: a table
};

struct Item
{
    std::string name;
    ir::OpDef const& op;
    std::function<std::unique_ptr<ir::AttrsBase>()> attrs;
    std::vector<Input> inputs;
    int sets = 1;
};

struct Candidate
{
    std::string name;
    std::unique_ptr<ops::Kernel> kernel;
    std::shared_ptr<ops::Prepared const> prepared;
    Tensor workspace;
    std::vector<double> seconds;
};

int measure(Item const& item, int threads)
{
    ir::Graph graph;
    std::vector<ir::Value*> values;
    for (Input const& in : item.inputs)
        values.push_back(graph.addInput("in" + std::to_string(values.size()), in.type, ir::shapeOf(in.dims)));
    auto added = graph.addNode(item.op, item.attrs(), values, item.op.name);
    if (!added.ok()) {
        std::printf("%s: %s\n", item.name.c_str(), added.error().message.c_str());
        return 1;
    }
    ops::Problem problem;
    problem.node = *added;
    problem.threads = threads;
    std::vector<Tensor> storage;
    std::vector<std::vector<TensorRef>> sets(size_t(item.sets));
    for (size_t i = 0; i < item.inputs.size(); ++i) {
        Input const& in = item.inputs[i];
        problem.inputs.push_back(
            ops::TensorSpec{.type = in.type, .dims = in.dims, .maxDims = in.dims, .present = true});
        for (size_t s = 0; s < sets.size(); ++s) {
            if (s == 0 || !in.fixed) {
                storage.emplace_back(in.type, in.dims);
                tune::fillRandom(storage.back().ref(), tune::domainOf(*problem.node, int(i)), 100 * s + i);
            }
            sets[s].push_back(storage.back().ref());
        }
    }
    std::vector<TensorRef> outputs;
    auto const shapes = interp::inferConcrete(*problem.node, sets[0]);
    for (auto const& o : *shapes) {
        storage.emplace_back(o.type, o.dims);
        outputs.push_back(storage.back().ref());
        problem.outputs.push_back(ops::TensorSpec{.type = o.type, .dims = o.dims, .maxDims = o.dims, .present = true});
    }
    Workers& workers = device::processThreadPool().workers(threads);

    std::vector<Candidate> list;
    for (ops::Tactic const* tactic : *item.op.cpuTactics) {
        if (!ops::supportsFormats(*tactic, problem).ok)
            continue;
        for (ops::Config const& config : tactic->configs(problem)) {
            Candidate c;
            c.name = tactic->name();
            for (int64_t number : config)
                c.name += " " + std::to_string(number);
            auto image = tactic->build(problem, config);
            auto kernel = image.ok() ? tactic->load(problem, config, *image) : image.error();
            if (!kernel.ok()) {
                std::printf("%s: %s\n", c.name.c_str(), kernel.error().message.c_str());
                return 1;
            }
            c.kernel = std::move(*kernel);
            auto prepared = c.kernel->prepare(sets[0], outputs);
            if (!prepared.ok())
                return 1;
            c.prepared = std::move(*prepared);
            c.workspace = Tensor(DataType::kInt8, {c.kernel->workspaceBytes(sets[0], outputs)});
            list.push_back(std::move(c));
        }
    }
    double const begin = seconds(2);
    int rounds = 0;
    for (; rounds < kRounds + kWarmUps && (rounds < kWarmUps + 5 || seconds(2) - begin < kSecondsEach); ++rounds)
        for (size_t i = 0; i < list.size(); ++i) {
            Candidate& c = list[(i + size_t(rounds)) % list.size()]; // none always runs after the same one
            uint64_t randomState = 1;
            double const from = seconds(threads);
            for (auto const& inputs : sets) {
                ops::RunArgs args{inputs, outputs, c.workspace.data(), &randomState, &workers, c.prepared.get()};
                if (!c.kernel->run(args).ok())
                    return 1;
            }
            if (rounds >= kWarmUps)
                c.seconds.push_back((seconds(threads) - from) / item.sets);
        }
    std::printf("%s, %d thread%s\n", item.name.c_str(), threads, threads > 1 ? "s" : "");
    for (Candidate const& c : list) {
        std::vector<double> ratios;
        for (size_t r = 0; r < c.seconds.size(); ++r)
            ratios.push_back(list.back().seconds[r] / c.seconds[r]);
        std::printf("  %-42s %10.2f us  %6.2f\n", c.name.c_str(), median(c.seconds) * 1e6, median(ratios));
    }
    std::fflush(stdout);
    return 0;
}

Item convolution(std::string name, int64_t c, int64_t k, int64_t side, int64_t window, int64_t stride)
{
    return {"convolution/" + name,
            ops::convolution::def(),
            [=] {
                auto a = std::make_unique<ops::convolution::Attrs>(ops::convolution::Attrs::plain(2));
                a->strides = {stride, stride};
                a->prePadding = a->postPadding = {window / 2, window / 2};
                return a;
            },
            {{{1, c, side, side}}, {{k, c, window, window}}}};
}

Item product(std::string name, Extents const& a, Extents const& b, bool transposed = false)
{
    return {"matrix_multiply/" + name,
            ops::matrix_multiply::def(),
            [=] {
                auto attrs = std::make_unique<ops::matrix_multiply::Attrs>();
                if (transposed)
                    attrs->b = ops::matrix_multiply::MatrixOperation::kTranspose;
                return attrs;
            },
            {{a}, {b}}};
}

Item gather(std::string name, ops::gather::Mode mode, int64_t axis, Extents const& x, Extents const& j)
{
    return {"gather/" + name,
            ops::gather::def(),
            [=] {
                auto a = std::make_unique<ops::gather::Attrs>();
                a->mode = mode;
                a->axis = axis;
                return a;
            },
            {{x, DataType::kFloat, true}, {j, DataType::kInt32}},
            32};
}

Item topk(std::string name, int64_t k, int64_t axis, Extents const& x)
{
    return {"topk/" + name,
            ops::topk::def(),
            [=] {
                auto a = std::make_unique<ops::topk::Attrs>();
                a->k = k;
                a->axis = axis;
                return a;
            },
            {{x}},
            x.volume() > 100000 ? 2 : 16};
}

} // namespace

int main(int argc, char** argv)
{
    using ops::gather::Mode;
    char const* const wanted = argc > 1 ? argv[1] : "";
    auto none = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<ir::NoAttrs>()); };
    Item const items[] = {
        convolution("conv1_7x7s2_3x64_224", 3, 64, 224, 7, 2),
        convolution("3x3_64x64_56", 64, 64, 56, 3, 1),
        convolution("1x1_256x64_56", 256, 64, 56, 1, 1),
        convolution("3x3_512x512_7", 512, 512, 7, 3, 1),
        product("1x768x3072", {1, 768}, {768, 3072}),
        product("12_heads_1x512x64", {12, 1, 512}, {12, 512, 64}),
        product("12_heads_1x64x512t", {12, 1, 64}, {12, 512, 64}, true),
        product("1x768x3072t", {1, 768}, {3072, 768}, true),
        product("128x768x768", {128, 768}, {768, 768}),
        gather("128_of_30522x768", Mode::kDefault, 0, {30522, 768}, {128}),
        gather("512_of_1000x64", Mode::kDefault, 0, {1000, 64}, {512}),
        gather("axis_1_of_32x100x16", Mode::kDefault, 1, {32, 100, 16}, {50}),
        gather("elements_4096_of_100000", Mode::kDefault, 0, {100000}, {4096}),
        gather("element_mode_64x1000", Mode::kElement, 1, {64, 1000}, {64, 1000}),
        gather("element_mode_axis_0_64x1000", Mode::kElement, 0, {64, 1000}, {64, 1000}),
        gather("nd_2_of_64x64x128", Mode::kNd, 0, {64, 64, 128}, {500, 2}),
        topk("5_of_1000", 5, 1, {1, 1000}),
        topk("5_of_1000_x32", 5, 1, {32, 1000}),
        topk("1_of_1000", 1, 1, {1, 1000}),
        topk("100_of_20000", 100, 1, {1, 20000}),
        topk("300_of_8400x80", 300, 1, {1, 672000}),
        topk("1000_of_20000", 1000, 1, {1, 20000}),
        topk("1_of_21_columns_256x256", 1, 1, {1, 21, 256, 256}),
        topk("5_of_80_columns_1600", 5, 1, {1, 80, 1600}),
        {"select/equal_1x12x128x128",
         ops::select::def(),
         none,
         {{{1, 12, 128, 128}, DataType::kBool}, {{1, 12, 128, 128}}, {{1, 12, 128, 128}}},
         4},
        {"select/mask_1x1x128x128",
         ops::select::def(),
         none,
         {{{1, 1, 128, 128}, DataType::kBool}, {{1, 12, 128, 128}}, {{1, 1, 1, 1}}},
         4},
        {"parametric_relu/channel_1x64x56x56",
         ops::parametric_relu::def(),
         none,
         {{{1, 64, 56, 56}}, {{1, 64, 1, 1}, DataType::kFloat, true}},
         4},
        {"quantize/1x64x56x56",
         ops::quantize::def(),
         [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<ops::quantize::Attrs>()); },
         {{{1, 64, 56, 56}}, {{1}}},
         4},
        {"dequantize/1x64x56x56",
         ops::dequantize::def(),
         [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<ops::dequantize::Attrs>()); },
         {{{1, 64, 56, 56}, DataType::kInt8}, {{1}}},
         4},
        {"pointwise/sum_i8_1x64x56x56", // (x s + y t) max 0
         ops::pointwise::def(),
         [] {
             auto a = std::make_unique<ops::pointwise::Attrs>();
             a->inputs = {0, 0, 0, 0, 1, 0, 1, 0};
             a->steps = {3, 0, 2, 0, 3, 1, 3, 0, 1, 4, 5, 0, 30, 6, 0, 0};
             a->parameters.resize(8);
             a->outputType = DataType::kInt8;
             return a;
         },
         {{{1, 64, 56, 56}, DataType::kInt8}, {{1, 64, 56, 56}, DataType::kInt8}, {{1}}, {{1}}},
         4},
    };
    std::printf("%s\n", device::probeCpu().fingerprint().c_str());
    int failed = 0;
    for (Item const& item : items)
        for (int threads : {1, 2})
            if (threads <= device::availableCpus() && item.name.find(wanted) != std::string::npos)
                failed |= measure(item, threads);
    return failed;
}
