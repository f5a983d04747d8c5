// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions whose windows lie side by side. FP16: each position of the window is a product by wgmma. FP32,
// exact or with factors rounded to TF32: all of them in one launch.
#include <algorithm>

#include "base/element.h"
#include "base/round.h"
#include "families/convolution/cuda_conv_f16.h"
#include "kernels/cuda/conv/mma_2d.h"
#include "kernels/cuda/gemm/wgmma.h"
#include "ops/convolution/op.h"

namespace tw::ops::conv_f16 {

Support supportsTransposed(Problem const& p, DataType type, size_t inputs)
{
    if (!p.node->attrsAs<convolution::Attrs>().transposed)
        return Support::no("takes transposed convolutions only");
    if (hasInput(*p.node, Epilogue::kResidual))
        return Support::no("takes no residual");
    TW_SUPPORTS(takesOnly(type, p, inputs));
    bool const hasBias = p.inputs.size() > 2 && p.inputs[2].present;
    if (p.inputs[1].dims.rank != 4 || !p.inputs[1].constant || (hasBias && !p.inputs[2].constant))
        return Support::no("takes 2-D windows, constant filters and biases only");
    return Support::yes();
}

namespace beside {
namespace {

namespace gemm = cuda::gemm_f16;
namespace conv = cuda::conv_2d;

constexpr size_t kMostConfigs = 4, kMostSources = 2;
constexpr int64_t kLeastChannels = 16, kMostHalfWindow = 4, kMostWindow = 16;

// w [c, k, r, s] as [r, s, k, c]: `filters` rows of `each` channels for every position, zeros after w's.
std::string packTransposed(TensorSpec const& w, int64_t filters, int64_t each)
{
    int64_t const taps = w.dims[2] * w.dims[3];
    std::string bytes(size_t(taps * filters * each * sizeOf(w.type)), '\0');
    withFloat(w.type, [&](auto element) {
        using T = decltype(element);
        T const* from = w.constant->as<T>();
        for (int64_t c = 0; c < w.dims[0]; ++c)
            for (int64_t k = 0; k < w.dims[1]; ++k)
                for (int64_t t = 0; t < taps; ++t)
                    reinterpret_cast<T*>(bytes.data())[(t * filters + k) * each + c] = *from++;
    });
    return bytes;
}

// --- FP16 ---

gemm::Spec baseOf(Problem const& p)
{
    gemm::Spec s;
    s.bias = true;
    s.copies = true;
    setEpilogue(s, p.node->attrsAs<convolution::Attrs>().epilogue, false);
    return s;
}

char const* specOf(Problem const& p, Config const& c, gemm::Spec& s)
{
    if (!isConfig(c, 7, 0, 256))
        return "a config has other numbers";
    s = baseOf(p);
    readConfig(c, 0, s.tileP, s.tileQ, s.stages, s.groups, s.pingPong, s.split, s.copies);
    return gemm::unsupported(s);
}

// Rows of x are collections: their outputs are not neighbours of the next row's.
gemm::Shape shapeOf(Geometry const& g, int64_t pixelX, int64_t pixelY)
{
    gemm::Shape s;
    s.m = g.in[2];
    s.n = roundUp8(g.k);
    s.k = g.c;
    s.batch = g.batch * g.in[1];
    s.lda = pixelX;
    s.ldb = roundUp8(g.c);
    s.ldy = pixelY * g.stride[2];
    s.batchA = pixelX * g.in[2];
    s.batchY = pixelY * g.out[2] * g.stride[1];
    return s;
}

char const* unsupportedGeometry(gemm::Spec const& spec, Geometry const& g)
{
    for (int i = 1; i < 3; ++i)
        if (g.out[i] != g.in[i] * g.stride[i])
            return "windows lie side by side";
    return isEmpty(g) ? nullptr : gemm::unsupported(spec, shapeOf(g, roundUp8(g.c), roundUp8(g.k)));
}

std::vector<Config> halfConfigs(Problem const& p, Arithmetic)
{
    Geometry const optimum = geometryOf(p, false), maximum = geometryOf(p, true);
    std::vector<Config> list;
    if (isEmpty(optimum))
        return list;
    for (gemm::Spec const& s : gemm::candidates(baseOf(p), shapeOf(optimum, roundUp8(optimum.c), roundUp8(optimum.k)),
                                                p.target.cuda->multiprocessors, SIZE_MAX))
        if (list.size() < kMostConfigs && !s.swap && s.multicast == 1 && !unsupportedGeometry(s, maximum))
            list.push_back({s.tileP, s.tileQ, s.stages, s.groups, s.pingPong, s.split, s.copies});
    return list;
}

Support supportsHalf(Problem const& p, Arithmetic a)
{
    if (!p.target.cuda || p.target.cuda->capability != 90)
        return Support::no("needs a GPU of compute capability 9.0");
    TW_SUPPORTS(supportsTransposed(p, DataType::kHalf, 1));
    TensorSpec const& w = p.inputs[1];
    if (p.node->attrsAs<KernelWindowAttrs>().groups != 1 || w.dims[0] < kLeastChannels || w.dims[1] == 0)
        return Support::no(fmt::format("takes one group of at least {} channels", kLeastChannels));
    Geometry const g = geometryOf(p, true);
    if (!areBeside(g, kMostHalfWindow))
        return Support::no(fmt::format("takes windows of at most {} that lie side by side", kMostHalfWindow));
    return halfConfigs(p, a).empty() ? Support::no("TMA cannot read such an image") : Support::yes();
}

Result<void> run(ir::Node const& node, gemm::Spec const& spec, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    Geometry const g = geometryOf(node, args);
    if (char const* const why = unsupportedGeometry(spec, g))
        return unsupported(why);
    int64_t const pixelY = y.pixelStride();
    gemm::Launch l = gemm::launch(spec, shapeOf(g, x.pixelStride(), pixelY), launch.multiprocessors());
    l.q.dims[1] = uint64_t(g.k); // those that round y up are zeros
    TW_ASSIGN(cuda::TensorMap const mapP, launch.encode(l.p, x.data));
    l.args.bias = static_cast<float const*>(launch.packed(0));
    for (int64_t r = 0; r < g.window[1]; ++r)
        for (int64_t s = 0; s < g.window[2]; ++s) {
            auto const* const filters =
                static_cast<uint16_t const*>(launch.packed(1)) + (r * g.window[2] + s) * g.k * roundUp8(g.c);
            TW_ASSIGN(cuda::TensorMap const mapQ, launch.encode(l.q, filters));
            l.args.y = y.as<uint16_t>() + (r * g.out[2] + s) * pixelY;
            if (!spec.copies) {
                TW_TRY(launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &l.args}));
                continue;
            }
            TW_ASSIGN(cuda::TensorMap const mapY, launch.encode(l.y, l.args.y));
            TW_TRY(launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &mapY, &l.args}));
        }
    return {};
}

std::unique_ptr<CudaKernels> generateHalf(Problem const& p, Config const& config, Arithmetic)
{
    gemm::Spec spec;
    if (char const* const why = specOf(p, config, spec))
        return noKernels(unsupported(why));
    auto const pack = [](Problem const& p) {
        TensorSpec const& w = p.inputs[1];
        return std::vector<std::string>{packBias(p, roundUp8(w.dims[1])),
                                        packTransposed(w, w.dims[1], roundUp8(w.dims[0]))};
    };
    return kernelsOf(
        wholeSource(gemm::kKernel, spec),
        [&node = *p.node, spec](CudaLaunch const& launch, RunArgs& args) { return run(node, spec, launch, args); }, {},
        pack, {1, 2});
}

// --- FP32 ---

// Positions of the window are groups that read the same x.
cuda::ConvShape shapeOf(Geometry const& g)
{
    cuda::ConvShape s;
    s.n = g.batch;
    s.h = s.outH = g.in[1];
    s.w = s.outW = g.in[2];
    s.groups = g.window[1] * g.window[2];
    s.c = g.c * s.groups;
    s.k = roundUp8(g.k) * s.groups;
    return s;
}

char const* unsupportedGeometry(conv::Spec const& spec, Geometry const& g)
{
    if (!areBeside(g, kMostWindow))
        return "windows of at most 16 x 16 positions lie side by side";
    return isEmpty(g) ? nullptr : conv::unsupported(spec, shapeOf(g));
}

conv::Spec baseOf(Problem const& p, Arithmetic a)
{
    conv::Spec s;
    s.kind = a == Arithmetic::kTf32 ? conv::Kind::kTf32 : conv::Kind::kFloat;
    s.end = exactEpilogueOf(p);
    return s;
}

char const* specOf(Problem const& p, Arithmetic a, Config const& c, conv::Spec& s)
{
    s = baseOf(p, a);
    return setTile(c, s) ? conv::unsupported(s) : "a config has other numbers";
}

std::vector<Config> configs(Problem const& p, Arithmetic a)
{
    Geometry const optimum = geometryOf(p, false), maximum = geometryOf(p, true);
    conv::Spec base = baseOf(p, a);
    base.vector = vectorOf(shapeOf(maximum), false, conv::mostVector(base.kind));
    std::vector<Config> list;
    if (isEmpty(optimum))
        return {tileConfigOf(base)};
    for (conv::Spec const& s : conv::candidates(base, shapeOf(optimum), p.target.cuda->multiprocessors,
                                                p.target.cuda->capability >= 90, kMostConfigs, kMostSources))
        if (!unsupportedGeometry(s, maximum))
            list.push_back(tileConfigOf(s));
    return list;
}

Support supports(Problem const& p, Arithmetic a)
{
    TW_SUPPORTS(needsSm80(p));
    TW_SUPPORTS(supportsTransposed(p, DataType::kFloat, 2));
    if (p.node->attrsAs<KernelWindowAttrs>().groups != 1 || p.inputs[1].dims.volume() == 0)
        return Support::no("takes one group, with channels and filters");
    constexpr int64_t kLimit = int64_t(1) << 30;
    Geometry const g = geometryOf(p, true);
    if (g.c >= kLimit || g.k >= kLimit || g.batch * g.in[1] * g.in[2] >= kLimit)
        return Support::no("counts in 32 bits");
    conv::Spec least = baseOf(p, a);
    least.vector = 1;
    if (char const* const why = unsupportedGeometry(least, g))
        return Support::no(why);
    return configs(p, a).empty() ? Support::no("no tile fits") : Support::yes();
}

double estimate(Problem const& p, Config const& config, Arithmetic a)
{
    conv::Spec spec;
    Geometry const g = geometryOf(p, false);
    if (specOf(p, a, config, spec) || isEmpty(g) || unsupportedGeometry(spec, g))
        return 0;
    return conv::estimateUs(spec, shapeOf(g), p.target.cuda->multiprocessors);
}

Result<void> run(ir::Node const& node, conv::Spec const& spec, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    Geometry const g = geometryOf(node, args);
    if (char const* const why = unsupportedGeometry(spec, g))
        return unsupported(why);
    auto l = conv::launch<conv::FloatArgs>(spec, shapeOf(g));
    conv::FloatArgs& a = l.args;
    if (!conv::setPixels(a, x.pixelStride(), g.in[1], g.in[2]))
        return unsupported("a row of x has more elements than 32 bits count");
    a.groupX = 0;
    int64_t const pixelY = y.pixelStride();
    a.ldy = pixelY * g.stride[2];
    a.gapY = pixelY * g.out[2] * (g.stride[1] - 1); // out[2] = in[2] stride[2]
    a.groupsAcross = int32_t(g.window[2]);
    a.groupRowY = pixelY * g.out[2];
    a.groupY = pixelY;
    a.groupBias = 0;
    a.x = x.as<float>();
    a.y = y.data;
    a.bias = static_cast<float const*>(launch.packed(0));
    a.filters = static_cast<float const*>(launch.packed(1));
    return launch.withGeometry(0, l.geometry, {&a});
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config, Arithmetic a)
{
    conv::Spec spec;
    if (char const* const why = specOf(p, a, config, spec))
        return noKernels(unsupported(why));
    auto const pack = [a](Problem const& p) {
        TensorSpec const& w = p.inputs[1];
        int64_t const filters = roundUp8(w.dims[1]);
        std::string bytes = packTransposed(w, filters, roundUp(w.dims[0], cuda::kConvStepK));
        if (a == Arithmetic::kTf32)
            conv::roundAllToTf32(bytes);
        return std::vector<std::string>{packBias(p, filters), std::move(bytes)};
    };
    return kernelsOf(
        wholeSource(conv::kKernel, spec),
        [&node = *p.node, spec](CudaLaunch const& launch, RunArgs& args) { return run(node, spec, launch, args); }, {},
        pack, {1, 2});
}

std::vector<Formats> formats(Problem const& p)
{
    return p.inputs[0].constant ? std::vector<Formats>() : pixelFormats(p);
}

} // namespace
} // namespace beside

bool areBeside(Geometry const& g, int64_t mostWindow)
{
    for (int i = 1; i < 3; ++i)
        if (g.window[i] != g.stride[i] || g.window[i] > mostWindow || g.before[i] != 0 ||
            g.out[i] != g.in[i] * g.stride[i])
            return false;
    return true;
}

constinit Algorithm const kBesideHalf{beside::formats, beside::supportsHalf, beside::halfConfigs,
                                      [](Problem const&, Config const&, Arithmetic) { return 0.0; },
                                      beside::generateHalf};
constinit Algorithm const kBeside{beside::formats, beside::supports, beside::configs, beside::estimate,
                                  beside::generate};

} // namespace tw::ops::conv_f16
