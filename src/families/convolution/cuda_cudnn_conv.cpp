// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/cuda_cudnn_conv.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/element.h"
#include "base/round.h"
#include "device/cuda/cudnn_graph.h"
#include "device/cuda/device.h"
#include "families/convolution/cuda_conv_f16.h"
#include "families/elementwise/cuda_pointwise.h"
#include "ops/convolution/op.h"
#include "tactic/cuda_library.h"
#include "tactic/cuda_tactic.h"
#include "tactic/cudnn_layer.h"

namespace tw::ops {

namespace {

using cuda::CudnnConvolution;

constexpr size_t kFilter = 1, kBias = 2, kResidual = 3; // positions of inputs
constexpr int kMostEngines = 2;
constexpr int64_t kAlignment = 16, kStep = 256; // bytes: of tensors, of parts of the workspace
constexpr int64_t kVector = 8;                  // channels

bool isPresent(Problem const& p, size_t i)
{
    return i < p.inputs.size() && p.inputs[i].present;
}

FusedActivation activationOf(ir::Node const& node)
{
    return node.attrsAs<convolution::Attrs>().epilogue.activation;
}

// False: the library has no such end of a convolution.
bool setActivation(FusedActivation const& f, CudnnConvolution& c)
{
    using activation::Kind;
    constexpr std::pair<int, int> kModes[] = {{int(FusedKind::kSwish), cuda::kDnnSwish},
                                              {int(FusedKind::kGeluErf), cuda::kDnnGelu},
                                              {int(FusedKind::kGeluTanh), cuda::kDnnGeluTanh},
                                              {int(Kind::kRelu), cuda::kDnnRelu},
                                              {int(Kind::kSigmoid), cuda::kDnnSigmoid},
                                              {int(Kind::kTanh), cuda::kDnnTanh},
                                              {int(Kind::kClip), cuda::kDnnRelu}};
    c.activates = f.any();
    if (!f.any())
        return true;
    auto const* const found =
        std::find_if(std::begin(kModes), std::end(kModes), [&](auto const& m) { return m.first == f.kind; });
    if (found == std::end(kModes))
        return false;
    c.activation.mode = found->second;
    if (f.kind != int(Kind::kClip))
        return true;
    c.activation.lower = double(f.alpha);
    c.activation.upper = double(f.beta);
    return f.alpha == 0 && f.beta > 0;
}

KernelWindowGeometry geometryOf(Problem const& p)
{
    return ops::geometryOf(WindowKind::kConvolution, p.node->attrsAs<KernelWindowAttrs>(), p.inputs[0].dims,
                           p.inputs[kFilter].dims, p.outputs[0].dims);
}

// All but what `setActivation` adds. The sizes are those of the only shape.
CudnnConvolution convolutionOf(Problem const& p)
{
    KernelWindowGeometry const g = geometryOf(p);
    CudnnConvolution c;
    c.type = p.inputs[0].type == DataType::kHalf ? cuda::kDnnHalf : cuda::kDnnFloat;
    c.n = g.batch;
    c.c = g.c;
    c.k = g.k;
    cuda::CudnnWindow& w = c.window;
    for (size_t i = 0; i < 2; ++i) {
        c.in[i] = g.in[i + 1];
        c.out[i] = g.out[i + 1];
        c.windowSize[i] = g.window[i + 1];
        w.stride[i] = g.stride[i + 1];
        w.dilation[i] = g.dilation[i + 1];
        w.before[i] = g.before[i + 1];
        // What the last window needs.
        int64_t const end = (c.out[i] - 1) * w.stride[i] + (c.windowSize[i] - 1) * w.dilation[i] + 1;
        w.after[i] = std::max<int64_t>(end - c.in[i] - w.before[i], 0);
    }
    c.residual = isPresent(p, kResidual);
    (void)setActivation(activationOf(*p.node), c);
    return c;
}

class CudnnConvKernel final : public Kernel
{
public:
    explicit CudnnConvKernel(CudnnRunner runner) : runner_(std::move(runner)), device_(runner_.device()) {}
    // The device's context is current.
    Result<void> pack(Problem const& p, PackedConstants& packed)
    {
        TensorSpec const& w = p.inputs[kFilter];
        int64_t const channels = w.dims[1];
        std::string const filters = conv_f16::packFilters(w, w.dims[0], w.dims[2] * w.dims[3] * channels,
                                                          conv_f16::placeByPixels, channels), // [k, window, c]
            bias = conv_f16::packBias(p, w.dims[0]);
        for (auto [bytes, buffer] : {std::pair(&filters, &filter_), std::pair(&bias, &bias_)}) {
            TW_ASSIGN(*buffer, uploadPacked(*bytes, device_, packed));
        }
        void* const at = cuda::nowhere();
        runner_.warmUp(addresses(at, isPresent(p, kResidual) ? at : nullptr, at, at));
        return {};
    }

    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
    {
        int64_t bytes = roundUp(runner_.workspaceBytes(), kStep) + partBytes(in[0]) + partBytes(out[0]);
        bytes += in.size() > kResidual ? partBytes(in[kResidual]) : 0;
        return bytes > 0 ? bytes + kStep : 0;
    }
    bool readsConstant(size_t) const override { return false; }
    bool readsOnDevice(size_t i) const override { return i != kFilter && i != kBias; }
    int64_t alignment() const override { return kAlignment; }
    Result<void> run(RunArgs& args) const override
    {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        TensorRef const residual = args.inputs.size() > kResidual ? args.inputs[kResidual] : TensorRef();
        auto* next = reinterpret_cast<std::byte*>(uintptr_t(roundUp(int64_t(cuda::addressOf(args.workspace)), kStep)));
        auto take = [&](int64_t bytes) { return std::exchange(next, next + roundUp(bytes, kStep)); };
        void* const workspace = take(runner_.workspaceBytes());
        auto placeOf = [&](TensorRef const& t) -> void* { return isPart(t) ? take(partBytes(t)) : t.data; };
        void *const xAt = placeOf(x), *const residualAt = placeOf(residual), *const yAt = placeOf(y);
        auto* const stream = static_cast<CUstream_st*>(args.stream);
        for (auto [part, whole] : {std::pair(&x, xAt), std::pair(&residual, residualAt)})
            if (isPart(*part))
                TW_TRY(copyPixels(device_->driver(), *part, denseAt(*part, whole), stream));
        TW_TRY(runner_.run(addresses(xAt, residualAt, yAt, workspace), stream, args.kept));
        return isPart(y) ? copyPixels(device_->driver(), denseAt(y, yAt), y, stream) : Result<void>();
    }

private:
    // Null: no residual.
    cuda::CudnnAddresses addresses(void const* x, void const* residual, void* y, void* workspace) const
    {
        cuda::CudnnAddresses at;
        at.add(CudnnConvolution::kX, x);
        at.add(CudnnConvolution::kW, filter_->data());
        at.add(CudnnConvolution::kBias, bias_->data());
        at.add(CudnnConvolution::kY, y);
        if (residual)
            at.add(CudnnConvolution::kResidual, residual);
        at.workspace = workspace;
        return at;
    }
    static int64_t channelsOf(TensorRef const& t) { return t.dims[t.dims.rank - 3]; }
    // The library's plan is for tensors without gaps: parts of wider ones are copied.
    static bool isPart(TensorRef const& t) { return t.dims.rank >= 3 && t.pixelStride() != channelsOf(t); }
    static int64_t partBytes(TensorRef const& t) { return isPart(t) ? roundUp(t.count() * sizeOf(t.type), kStep) : 0; }
    // `t` without gaps.
    static TensorRef denseAt(TensorRef t, void* data)
    {
        t.data = data;
        t.stride = channelsOf(t);
        return t;
    }
    CudnnRunner runner_;
    std::shared_ptr<cuda::Device const> device_;
    DeviceBytes filter_, bias_;
};

CudnnLayer layerOf(Problem const& p)
{
    CudnnConvolution const what = convolutionOf(p);
    return {what.text(), [what](cuda::Cudnn const& c, cuda::CudnnHandle* handle) { return what.graph(c, handle); }};
}

// But for the library and the GPU.
Support supportsProblem(Problem const& p, DataType type)
{
    TensorSpec const &x = p.inputs[0], &w = p.inputs[kFilter], &y = p.outputs[0];
    if (p.node->attrsAs<convolution::Attrs>().transposed)
        return Support::no("takes no transposed convolutions");
    if (x.type != type || y.type != type)
        return Support::no(std::string("takes ") + tw::nameOf(type) + " only");
    if (w.dims.rank != 4)
        return Support::no("takes 2-D windows only");
    if (!isStatic(p))
        return Support::no("the library's plans are for one shape, this layer's varies");
    if (!w.constant || (isPresent(p, kBias) && !p.inputs[kBias].constant))
        return Support::no("takes constant filters and biases only");
    if (x.dims.volume() == 0 || w.dims.volume() == 0 || y.dims.volume() == 0)
        return Support::no("there is nothing to compute");
    KernelWindowGeometry const g = geometryOf(p);
    if (g.groups != 1)
        return Support::no("takes one group");
    if (g.c % kVector != 0 || g.k % kVector != 0)
        return Support::no(fmt::format("takes channels in multiples of 8, not {} and {}", g.c, g.k));
    CudnnConvolution c = convolutionOf(p);
    if (p.node->attrsAs<convolution::Attrs>().epilogue.hasSteps() || !setActivation(activationOf(*p.node), c))
        return Support::no("the library does not end convolutions with this activation");
    for (size_t i = 0; i < 2; ++i) {
        cuda::CudnnWindow const& v = c.window;
        int64_t const reach = (c.windowSize[i] - 1) * v.dilation[i] + 1, padded = c.in[i] + v.before[i] + v.after[i];
        if (v.before[i] < 0 || padded < reach || (padded - reach) / v.stride[i] + 1 != c.out[i])
            return Support::no("its padding crops");
        if (std::max({c.in[i], c.out[i], reach, v.stride[i], padded}) > INT32_MAX)
            return Support::no("counts in 32 bits");
    }
    return Support::yes();
}

} // namespace

Support CudnnConvTactic::supports(Problem const& p) const
{
    Support const s = supportsProblem(p, type_);
    return s.ok ? supportsLibrary(Source::kCudnn, p) : s;
}

std::vector<Formats> CudnnConvTactic::formats(Problem const& p) const
{
    return conv_f16::pixelFormats(p);
}

std::vector<Config> CudnnConvTactic::configs(Problem const& p) const
{
    // Those of FP32 take a second or two to compile.
    return cudnnConfigs(p, layerOf(p), isNarrowFloat(type_) ? kMostEngines : 1);
}

// The library keeps what it knows of times to itself: a rate of a GPU with 132 multiprocessors.
double CudnnConvTactic::estimate(Problem const& p, Config const& config) const
{
    constexpr double kHalfRate = 550e6, kTf32Rate = 270e6, kBytesPerUs = 3e6, kLeastUs = 3, kEachRank = 1.03,
                     kMultiprocessors = 132;
    KernelWindowGeometry const g = geometryOf(p);
    double const positions = double(g.batch * g.out[1] * g.out[2]);
    double const operations = 2 * positions * double(g.k) * double(g.c * g.window[1] * g.window[2]);
    double const bytes = double(sizeOf(type_)) * (double(g.batch * g.in[1] * g.in[2] * g.c) +
                                                  positions * double(g.k) * (isPresent(p, kResidual) ? 2 : 1));
    double const rate = (isNarrowFloat(type_) ? kHalfRate : kTf32Rate) *
                        (p.target.cuda ? p.target.cuda->multiprocessors : kMultiprocessors) / kMultiprocessors;
    return (kLeastUs + std::max(operations / rate, bytes / kBytesPerUs)) *
           std::pow(kEachRank, config.empty() ? 0.0 : double(config[0]));
}

Result<std::string> CudnnConvTactic::build(Problem const& p, Config const& config) const
{
    if (!isConfig(config, 1, 0, kMostEngines - 1))
        return invalidArgument("no such engine of cuDNN");
    return buildCudnn(p, layerOf(p), int(config[0]));
}

Result<std::unique_ptr<Kernel>> CudnnConvTactic::load(Problem const& p, Config const& config,
                                                      std::string const& image) const
{
    PackedConstants alone;
    return loadShared(p, config, image, alone);
}

Result<std::unique_ptr<Kernel>> CudnnConvTactic::loadShared(Problem const& p, Config const& config,
                                                            std::string const& image, PackedConstants& packed) const
{
    if (!isConfig(config, 1, 0, kMostEngines - 1))
        return invalidArgument("the plan's configuration of a convolution by cuDNN names no engine");
    TW_ASSIGN(CudnnRunner runner, CudnnRunner::load(p, layerOf(p), int(config[0]), image));
    cuda::Current const current(*p.target.cuda->device);
    auto kernel = std::make_unique<CudnnConvKernel>(std::move(runner));
    TW_TRY(kernel->pack(p, packed));
    return std::unique_ptr<Kernel>(std::move(kernel));
}

} // namespace tw::ops
