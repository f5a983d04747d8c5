// SPDX-License-Identifier: Apache-2.0
// usage: bench_convolution [--threads N] [--rounds N] [--all] [--cold] [--int8] [text ...]
// Times the CPU tactics of convolution on layers of ResNet-18 and -50, U-Net, MobileNetV2 and EfficientNet-B0, and the
// 3x3 ones of YOLOv8n and DenseNet-121 (batch 1, f32 or i8, bias, the network's activation), in each of their configurations,
// against an FMA loop in the same rounds. The share is that of the loop's rate, without products that padding would
// multiply by zero: median over the rounds. Prints the best configuration of each tactic (--all: all of them), and what
// a network's layers take with the best tactic each. Layers are those whose name holds one of the texts. --cold: each
// run finds the caches filled with something else, weights too. --int8: i8 to i8 with residuals of i8, against a loop of
// vpdpbusd.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "device/cpu.h"
#include "device/thread_pool.h"
#include "kernels/cpu/jit/vector_code.h"
#include "ops/convolution/op.h"
#include "tactic/registry.h"
#include "tactic/tactic.h"
#include "timing.h"
#include "tune/check.h"

namespace tw {

namespace {

using ops::FusedActivation;
using ops::activation::Kind;

struct Layer
{
    char const* network;
    int64_t c, k, side, window, stride, groups; // side: of the input
    int count;                                  // of such layers in the network
    int32_t activation;
    bool residual = false;
};

constexpr int32_t kNone = FusedActivation::kNone, kRelu = int32_t(Kind::kRelu), kClip = int32_t(Kind::kClip),
                  kSwish = 12; // of the fused kinds

constexpr Layer kLayers[] = {
    {"resnet18", 3, 64, 224, 7, 2, 1, 1, kRelu},
    {"resnet18", 64, 64, 56, 3, 1, 1, 2, kRelu},
    {"resnet18", 64, 64, 56, 3, 1, 1, 2, kRelu, true},
    {"resnet18", 64, 128, 56, 3, 2, 1, 1, kRelu},
    {"resnet18", 64, 128, 56, 1, 2, 1, 1, kNone},
    {"resnet18", 128, 128, 28, 3, 1, 1, 1, kRelu},
    {"resnet18", 128, 128, 28, 3, 1, 1, 2, kRelu, true},
    {"resnet18", 128, 256, 28, 3, 2, 1, 1, kRelu},
    {"resnet18", 128, 256, 28, 1, 2, 1, 1, kNone},
    {"resnet18", 256, 256, 14, 3, 1, 1, 1, kRelu},
    {"resnet18", 256, 256, 14, 3, 1, 1, 2, kRelu, true},
    {"resnet18", 256, 512, 14, 3, 2, 1, 1, kRelu},
    {"resnet18", 256, 512, 14, 1, 2, 1, 1, kNone},
    {"resnet18", 512, 512, 7, 3, 1, 1, 1, kRelu},
    {"resnet18", 512, 512, 7, 3, 1, 1, 2, kRelu, true},

    {"unet", 3, 64, 256, 3, 1, 1, 1, kRelu},
    {"unet", 64, 64, 256, 3, 1, 1, 2, kRelu},
    {"unet", 128, 64, 256, 3, 1, 1, 1, kRelu},
    {"unet", 64, 128, 128, 3, 1, 1, 1, kRelu},
    {"unet", 128, 128, 128, 3, 1, 1, 2, kRelu},
    {"unet", 256, 128, 128, 3, 1, 1, 1, kRelu},
    {"unet", 128, 256, 64, 3, 1, 1, 1, kRelu},
    {"unet", 256, 256, 64, 3, 1, 1, 2, kRelu},
    {"unet", 512, 256, 64, 3, 1, 1, 1, kRelu},
    {"unet", 256, 512, 32, 3, 1, 1, 1, kRelu},
    {"unet", 512, 512, 32, 3, 1, 1, 2, kRelu},
    {"unet", 1024, 512, 32, 3, 1, 1, 1, kRelu},
    {"unet", 512, 1024, 16, 3, 1, 1, 1, kRelu},
    {"unet", 1024, 1024, 16, 3, 1, 1, 1, kRelu},

    {"yolov8n", 16, 16, 160, 3, 1, 1, 2, kSwish},
    {"yolov8n", 32, 32, 80, 3, 1, 1, 6, kSwish},
    {"yolov8n", 64, 64, 40, 3, 1, 1, 6, kSwish},
    {"yolov8n", 128, 128, 20, 3, 1, 1, 4, kSwish},
    {"yolov8n", 64, 64, 80, 3, 1, 1, 2, kSwish},
    {"yolov8n", 64, 64, 20, 3, 1, 1, 2, kSwish},
    {"yolov8n", 128, 64, 40, 3, 1, 1, 1, kSwish},

    {"densenet121", 128, 32, 56, 3, 1, 1, 6, kNone},
    {"densenet121", 128, 32, 28, 3, 1, 1, 12, kNone},
    {"densenet121", 128, 32, 14, 3, 1, 1, 24, kNone},
    {"densenet121", 128, 32, 7, 3, 1, 1, 16, kNone},

    {"resnet50", 3, 64, 224, 7, 2, 1, 1, kRelu},
    {"resnet50", 64, 64, 56, 1, 1, 1, 1, kRelu},
    {"resnet50", 64, 64, 56, 3, 1, 1, 3, kRelu},
    {"resnet50", 64, 256, 56, 1, 1, 1, 1, kNone},
    {"resnet50", 64, 256, 56, 1, 1, 1, 3, kRelu, true},
    {"resnet50", 256, 64, 56, 1, 1, 1, 2, kRelu},
    {"resnet50", 256, 128, 56, 1, 1, 1, 1, kRelu},
    {"resnet50", 128, 128, 56, 3, 2, 1, 1, kRelu},
    {"resnet50", 256, 512, 56, 1, 2, 1, 1, kNone},
    {"resnet50", 128, 512, 28, 1, 1, 1, 4, kRelu, true},
    {"resnet50", 512, 128, 28, 1, 1, 1, 3, kRelu},
    {"resnet50", 128, 128, 28, 3, 1, 1, 3, kRelu},
    {"resnet50", 512, 256, 28, 1, 1, 1, 1, kRelu},
    {"resnet50", 256, 256, 28, 3, 2, 1, 1, kRelu},
    {"resnet50", 512, 1024, 28, 1, 2, 1, 1, kNone},
    {"resnet50", 256, 1024, 14, 1, 1, 1, 6, kRelu, true},
    {"resnet50", 1024, 256, 14, 1, 1, 1, 5, kRelu},
    {"resnet50", 256, 256, 14, 3, 1, 1, 5, kRelu},
    {"resnet50", 1024, 512, 14, 1, 1, 1, 1, kRelu},
    {"resnet50", 512, 512, 14, 3, 2, 1, 1, kRelu},
    {"resnet50", 1024, 2048, 14, 1, 2, 1, 1, kNone},
    {"resnet50", 512, 2048, 7, 1, 1, 1, 3, kRelu, true},
    {"resnet50", 2048, 512, 7, 1, 1, 1, 2, kRelu},
    {"resnet50", 512, 512, 7, 3, 1, 1, 2, kRelu},

    {"mobilenetv2", 3, 32, 224, 3, 2, 1, 1, kClip},
    {"mobilenetv2", 32, 32, 112, 3, 1, 32, 1, kClip},
    {"mobilenetv2", 32, 16, 112, 1, 1, 1, 1, kNone},
    {"mobilenetv2", 16, 96, 112, 1, 1, 1, 1, kClip},
    {"mobilenetv2", 96, 96, 112, 3, 2, 96, 1, kClip},
    {"mobilenetv2", 96, 24, 56, 1, 1, 1, 1, kNone},
    {"mobilenetv2", 24, 144, 56, 1, 1, 1, 2, kClip},
    {"mobilenetv2", 144, 144, 56, 3, 1, 144, 1, kClip},
    {"mobilenetv2", 144, 24, 56, 1, 1, 1, 1, kNone, true},
    {"mobilenetv2", 144, 144, 56, 3, 2, 144, 1, kClip},
    {"mobilenetv2", 144, 32, 28, 1, 1, 1, 1, kNone},
    {"mobilenetv2", 32, 192, 28, 1, 1, 1, 3, kClip},
    {"mobilenetv2", 192, 192, 28, 3, 1, 192, 2, kClip},
    {"mobilenetv2", 192, 32, 28, 1, 1, 1, 2, kNone, true},
    {"mobilenetv2", 192, 192, 28, 3, 2, 192, 1, kClip},
    {"mobilenetv2", 192, 64, 14, 1, 1, 1, 1, kNone},
    {"mobilenetv2", 64, 384, 14, 1, 1, 1, 4, kClip},
    {"mobilenetv2", 384, 384, 14, 3, 1, 384, 4, kClip},
    {"mobilenetv2", 384, 64, 14, 1, 1, 1, 3, kNone, true},
    {"mobilenetv2", 384, 96, 14, 1, 1, 1, 1, kNone},
    {"mobilenetv2", 96, 576, 14, 1, 1, 1, 3, kClip},
    {"mobilenetv2", 576, 576, 14, 3, 1, 576, 2, kClip},
    {"mobilenetv2", 576, 96, 14, 1, 1, 1, 2, kNone, true},
    {"mobilenetv2", 576, 576, 14, 3, 2, 576, 1, kClip},
    {"mobilenetv2", 576, 160, 7, 1, 1, 1, 1, kNone},
    {"mobilenetv2", 160, 960, 7, 1, 1, 1, 3, kClip},
    {"mobilenetv2", 960, 960, 7, 3, 1, 960, 3, kClip},
    {"mobilenetv2", 960, 160, 7, 1, 1, 1, 2, kNone, true},
    {"mobilenetv2", 960, 320, 7, 1, 1, 1, 1, kNone},
    {"mobilenetv2", 320, 1280, 7, 1, 1, 1, 1, kClip},

    {"efficientnetb0", 3, 32, 224, 3, 2, 1, 1, kSwish},
    {"efficientnetb0", 32, 32, 112, 3, 1, 32, 1, kSwish},
    {"efficientnetb0", 32, 16, 112, 1, 1, 1, 1, kNone},
    {"efficientnetb0", 16, 96, 112, 1, 1, 1, 1, kSwish},
    {"efficientnetb0", 96, 96, 112, 3, 2, 96, 1, kSwish},
    {"efficientnetb0", 96, 24, 56, 1, 1, 1, 1, kNone},
    {"efficientnetb0", 24, 144, 56, 1, 1, 1, 2, kSwish},
    {"efficientnetb0", 144, 144, 56, 3, 1, 144, 1, kSwish},
    {"efficientnetb0", 144, 24, 56, 1, 1, 1, 1, kNone, true},
    {"efficientnetb0", 144, 144, 56, 5, 2, 144, 1, kSwish},
    {"efficientnetb0", 144, 40, 28, 1, 1, 1, 1, kNone},
    {"efficientnetb0", 40, 240, 28, 1, 1, 1, 2, kSwish},
    {"efficientnetb0", 240, 240, 28, 5, 1, 240, 1, kSwish},
    {"efficientnetb0", 240, 40, 28, 1, 1, 1, 1, kNone, true},
    {"efficientnetb0", 240, 240, 28, 3, 2, 240, 1, kSwish},
    {"efficientnetb0", 240, 80, 14, 1, 1, 1, 1, kNone},
    {"efficientnetb0", 80, 480, 14, 1, 1, 1, 3, kSwish},
    {"efficientnetb0", 480, 480, 14, 3, 1, 480, 2, kSwish},
    {"efficientnetb0", 480, 80, 14, 1, 1, 1, 2, kNone, true},
    {"efficientnetb0", 480, 480, 14, 5, 1, 480, 1, kSwish},
    {"efficientnetb0", 480, 112, 14, 1, 1, 1, 1, kNone},
    {"efficientnetb0", 112, 672, 14, 1, 1, 1, 3, kSwish},
    {"efficientnetb0", 672, 672, 14, 5, 1, 672, 2, kSwish},
    {"efficientnetb0", 672, 112, 14, 1, 1, 1, 2, kNone, true},
    {"efficientnetb0", 672, 672, 14, 5, 2, 672, 1, kSwish},
    {"efficientnetb0", 672, 192, 7, 1, 1, 1, 1, kNone},
    {"efficientnetb0", 192, 1152, 7, 1, 1, 1, 4, kSwish},
    {"efficientnetb0", 1152, 1152, 7, 5, 1, 1152, 3, kSwish},
    {"efficientnetb0", 1152, 192, 7, 1, 1, 1, 3, kNone, true},
    {"efficientnetb0", 1152, 1152, 7, 3, 1, 1152, 1, kSwish},
    {"efficientnetb0", 1152, 320, 7, 1, 1, 1, 1, kNone},
    {"efficientnetb0", 320, 1280, 7, 1, 1, 1, 1, kSwish},

    // Some layers of other networks.
    {"densenet121", 256, 128, 28, 1, 1, 1, 12, kRelu},
    {"densenet121", 768, 128, 7, 1, 1, 1, 16, kRelu},
    {"yolov8n", 3, 16, 640, 3, 2, 1, 1, kSwish},
    {"yolov8n", 16, 32, 320, 3, 2, 1, 1, kSwish},
    {"yolov8n", 48, 32, 160, 1, 1, 1, 1, kSwish},
    {"yolov8n", 32, 64, 160, 3, 2, 1, 1, kSwish},
    {"yolov8n", 64, 80, 80, 3, 1, 1, 1, kSwish},
    {"yolov8n", 80, 80, 80, 3, 1, 1, 1, kSwish},
    {"squeeze", 1152, 48, 1, 1, 1, 1, 1, kSwish},
    {"squeeze", 48, 1152, 1, 1, 1, 1, 1, kRelu},
};

std::string nameOf(Layer const& l)
{
    std::string s = std::string(l.network) + "/" + std::to_string(l.window) + "x" + std::to_string(l.window);
    s += "_" + std::to_string(l.c) + (l.groups > 1 ? "dw" : "x" + std::to_string(l.k));
    s += "_" + std::to_string(l.side) + (l.stride > 1 ? "s" + std::to_string(l.stride) : "");
    return s + (l.residual ? "+r" : "");
}

// FLOP/s of independent FMAs, or of dot products of four bytes, in registers, on all workers at once.
class Peak
{
public:
    explicit Peak(bool int8)
    {
        device::CpuInfo const cpu = device::probeCpu();
        auto isa = kernels::jit::isaOf(cpu);
        if (!isa || (int8 && !cpu.avx512vnni && !cpu.avxVnni))
            return;
        auto const encoding = cpu.avx512vnni ? Xbyak::EvexEncoding : Xbyak::VexEncoding;
        int const sums = *isa == kernels::jit::Isa::kAvx512 ? 24 : 12;
        flopsPerTurn_ = (int8 ? 8.0 : 2.0) * kernels::jit::vectorWidth(*isa) * sums;
        auto code = kernels::jit::emit(*isa, [&](kernels::jit::VectorCode& c) {
            Xbyak::Label turn;
            for (int i = 0; i <= sums; ++i)
                c.zero(i);
            c.align(64);
            c.L(turn);
            for (int i = 0; i < sums; ++i)
                int8 ? c.vpdpbusd(c.vec(i), c.vec(sums), c.vec(sums), encoding)
                     : c.vfmadd231ps(c.vec(i), c.vec(sums), c.vec(sums));
            c.dec(c.rdi);
            c.jnz(turn, c.T_NEAR);
            c.vzeroupper();
            c.ret();
        });
        if (code.ok())
            code_ = std::move(*code);
    }
    double measure(Workers& workers, int threads) const
    {
        constexpr int64_t kTurns = 8000;
        if (code_.sizeBytes() == 0)
            return 0;
        double const begin = bench::seconds(threads);
        workers.run(threads, [&](int64_t, int) { code_.entry<void (*)(int64_t)>()(kTurns); });
        return flopsPerTurn_ * kTurns * threads / (bench::seconds(threads) - begin);
    }

private:
    kernels::jit::Code code_;
    double flopsPerTurn_ = 0;
};

// One layer as a node, with tensors.
struct Work
{
    ir::Graph graph;
    ops::Problem problem;
    std::vector<Tensor> storage;
    std::vector<TensorRef> inputs;
    std::vector<Extents> outputDims;
    double flops = 0;
};

std::unique_ptr<Work> workOf(Layer const& l, int threads, bool int8)
{
    auto w = std::make_unique<Work>();
    ops::convolution::Attrs attrs = ops::convolution::Attrs::plain(2);
    int64_t const pad = l.window / 2, out = (l.side + 2 * pad - l.window) / l.stride + 1;
    attrs.strides = {l.stride, l.stride};
    attrs.prePadding = attrs.postPadding = {pad, pad};
    attrs.groups = l.groups;
    attrs.epilogue.activation.kind = l.activation;
    attrs.epilogue.activation.beta = 6; // of a clip
    DataType const type = int8 ? DataType::kInt8 : DataType::kFloat;
    std::vector<Extents> dims{{1, l.c, l.side, l.side}, {l.k, l.c / l.groups, l.window, l.window}, {l.k}};
    if (l.residual)
        dims.push_back({1, l.k, out, out});
    if (int8) {
        attrs.epilogue.outputType = int32_t(type);
        dims.resize(l.residual ? ops::Epilogue::kOutputScale : ops::Epilogue::kResidualScale);
        dims[ops::Epilogue::kScale] = {l.k};
        if (l.residual)
            dims[ops::Epilogue::kResidualScale] = {1};
    }
    std::vector<ir::Value*> values;
    for (size_t i = 0; i < dims.size(); ++i) {
        if (dims[i].rank == 0) {
            values.push_back(nullptr);
            w->inputs.emplace_back();
            w->problem.inputs.emplace_back();
            continue;
        }
        bool const isTensor = i == 0 || i == ops::Epilogue::kResidual;
        w->storage.emplace_back(isTensor || i == 1 ? type : DataType::kFloat, dims[i]);
        TensorRef const& t = w->storage.back().ref();
        ops::Domain domain;
        if (int8)
            domain = t.type == type               ? ops::Domain{-128, 127, true}
                     : i == ops::Epilogue::kScale ? ops::Domain{0.001, 0.003}
                                                  : ops::Domain{-1, 1};
        tune::fillRandom(t, domain, i + 1);
        if (!isTensor) {
            auto constant = std::make_shared<ir::Constant>();
            constant->data = std::make_shared<Blob const>(t.data, size_t(t.sizeBytes()));
            values.push_back(w->graph.addConstant("w" + std::to_string(i), t.type, t.dims, constant));
        } else {
            values.push_back(w->graph.addInput("x" + std::to_string(i), t.type, ir::shapeOf(t.dims)));
        }
        w->inputs.push_back(t);
        ops::TensorSpec spec;
        spec.type = t.type;
        spec.dims = spec.maxDims = dims[i];
        spec.present = true;
        spec.constant = values.back()->constant ? values.back()->constant->data.get() : nullptr;
        w->problem.inputs.push_back(spec);
    }
    Extents const y{1, l.k, out, out};
    w->outputDims = {y};
    ops::TensorSpec spec;
    spec.type = type;
    spec.dims = spec.maxDims = y;
    spec.present = true;
    w->problem.outputs.push_back(spec);
    w->problem.threads = threads;
    auto node =
        w->graph.addNode(ops::convolution::def(), std::make_unique<ops::convolution::Attrs>(attrs), values, "conv");
    if (!node.ok())
        return nullptr;
    w->problem.node = *node;
    int64_t taps = 0; // of one axis, over all outputs
    for (int64_t o = 0; o < out; ++o)
        for (int64_t f = 0; f < l.window; ++f)
            taps += o * l.stride - pad + f >= 0 && o * l.stride - pad + f < l.side;
    w->flops = 2.0 * double(taps * taps) * double(l.k * l.c / l.groups);
    return w;
}

struct Candidate
{
    std::string tactic, config;
    std::unique_ptr<ops::Kernel> kernel;
    std::shared_ptr<ops::Prepared const> prepared;
    std::vector<Tensor> storage;
    std::vector<TensorRef> inputs, outputs;
    Tensor workspace;
    std::vector<double> seconds, shares;

    double time(Workers& workers, int runs)
    {
        double const begin = bench::seconds(workers.count());
        for (int i = 0; i < runs; ++i) {
            std::vector<TensorRef>& out = outputs;
            ops::RunArgs args{inputs, out, workspace.data()};
            args.workers = &workers;
            args.prepared = prepared.get();
            if (!kernel->run(args).ok())
                std::printf("%s failed\n", tactic.c_str());
        }
        return (bench::seconds(workers.count()) - begin) / runs;
    }
};

std::vector<Candidate> candidatesOf(Work& w)
{
    std::vector<Candidate> list;
    for (ops::Tactic const* tactic : *w.problem.node->op->cpuTactics) {
        if (std::strstr(tactic->name(), "_plain"))
            continue;
        for (ops::Formats const& f : tactic->formats(w.problem)) {
            ops::setFormats(w.problem, f);
            if (!ops::supportsFormats(*tactic, w.problem).ok)
                continue;
            for (ops::Config const& config : tactic->configs(w.problem)) {
                Candidate c;
                c.tactic = tactic->name();
                if (f.inputs[0] == Format::kLinear)
                    c.config = "linear";
                for (int64_t v : config)
                    c.config += (c.config.empty() ? "" : ",") + std::to_string(v);
                auto inputs = tune::inFormats(w.inputs, w.problem.inputs, c.storage);
                auto image = tactic->build(w.problem, config);
                if (!image.ok())
                    continue;
                auto kernel = tactic->load(w.problem, config, *image);
                if (!inputs.ok() || !kernel.ok())
                    continue;
                c.inputs = *inputs;
                c.kernel = std::move(*kernel);
                c.storage.emplace_back(w.problem.outputs[0].type, w.outputDims[0], w.problem.outputs[0].format);
                c.outputs = {c.storage.back().ref()};
                auto prepared = c.kernel->prepare(c.inputs, c.outputs);
                if (!prepared.ok())
                    continue;
                c.prepared = *prepared;
                c.workspace = Tensor(DataType::kInt8, {c.kernel->workspaceBytes(c.inputs, c.outputs)});
                list.push_back(std::move(c));
            }
        }
    }
    return list;
}

struct Options
{
    int threads = 1, rounds = 15;
    bool all = false, cold = false, int8 = false;
    std::vector<char const*> texts;
};

bool wanted(Options const& o, std::string const& name)
{
    return o.texts.empty() ||
           std::any_of(o.texts.begin(), o.texts.end(), [&](char const* t) { return name.find(t) != name.npos; });
}

void measure(Options const& o)
{
    device::ThreadPool pool(o.threads);
    Workers& workers = pool.workers();
    Peak const peak(o.int8);
    std::map<std::string, double> total, ideal; // seconds for a network
    std::vector<float> elsewhere(o.cold ? size_t(64) << 20 : 0);
    for (Layer const& l : kLayers) {
        std::string const name = nameOf(l);
        if (!wanted(o, name))
            continue;
        auto work = workOf(l, o.threads, o.int8);
        if (!work)
            continue;
        auto candidates = candidatesOf(*work);
        std::vector<double> peaks;
        for (int round = -1; round < o.rounds; ++round) {
            double const flops = peak.measure(workers, o.threads);
            if (round >= 0)
                peaks.push_back(flops);
            for (Candidate& c : candidates) {
                if (o.cold)
                    std::fill(elsewhere.begin(), elsewhere.end(), float(round));
                double s = c.time(workers, 1);
                if (!o.cold)
                    s = c.time(workers, std::clamp(int(3e-4 / std::max(s, 1e-7)), 1, 100));
                if (round < 0)
                    continue;
                c.seconds.push_back(s);
                c.shares.push_back(work->flops / s / flops);
            }
        }
        std::sort(candidates.begin(), candidates.end(), [](Candidate const& a, Candidate const& b) {
            return bench::median(a.shares) > bench::median(b.shares);
        });
        std::map<std::string, int> shown;
        for (Candidate const& c : candidates)
            if (shown[c.tactic]++ == 0 || o.all)
                std::printf("%-34s %-40s {%s} %9.1f us %6.1f GFLOP/s %5.1f %%\n", name.c_str(), c.tactic.c_str(),
                            c.config.c_str(), bench::median(c.seconds) * 1e6,
                            work->flops / bench::median(c.seconds) * 1e-9, bench::median(c.shares) * 100);
        if (!candidates.empty()) {
            total[l.network] += l.count * bench::median(candidates[0].seconds);
            ideal[l.network] += l.count * work->flops / bench::median(peaks);
        }
    }
    for (auto const& [network, seconds] : total)
        std::printf("%s: %.2f ms, %.1f %% of the %s peak\n", network.c_str(), seconds * 1e3,
                    ideal[network] / seconds * 100, o.int8 ? "vpdpbusd" : "FMA");
}

} // namespace

} // namespace tw

int main(int argc, char** argv)
{
    tw::Options o;
    for (int i = 1; i < argc; ++i) {
        bool const number = i + 1 < argc;
        if (!std::strcmp(argv[i], "--threads") && number)
            o.threads = std::max(std::atoi(argv[++i]), 1);
        else if (!std::strcmp(argv[i], "--rounds") && number)
            o.rounds = std::max(std::atoi(argv[++i]), 1);
        else if (!std::strcmp(argv[i], "--all"))
            o.all = true;
        else if (!std::strcmp(argv[i], "--cold"))
            o.cold = true;
        else if (!std::strcmp(argv[i], "--int8"))
            o.int8 = true;
        else
            o.texts.push_back(argv[i]);
    }
    std::printf("%s, %d thread(s), batch 1, %s\n", tw::device::probeCpu().fingerprint().c_str(), o.threads,
                o.int8 ? "i8" : "f32");
    tw::measure(o);
    return 0;
}
