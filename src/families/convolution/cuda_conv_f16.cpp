// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/cuda_conv_f16.h"

#include <algorithm>
#include <cstdlib>

#include "families/convolution/pack_filters_params.h"
#include "families/elementwise/cuda_epilogue.h"
#include "families/elementwise/cuda_pointwise.h"
#include "ops/convolution/op.h"

namespace tw::ops::conv_f16 {

namespace {

constexpr size_t kBias = 2, kResidual = 3; // positions of inputs

bool isPresent(Problem const& p, size_t i)
{
    return i < p.inputs.size() && p.inputs[i].present;
}

// But types and bias.
Support supportsSizes(Problem const& p, Takes takes = {})
{
    if (!p.target.cuda)
        return Support::no("runs on GPUs only");
    if (p.node->attrsAs<convolution::Attrs>().transposed)
        return Support::no("takes no transposed convolutions");
    TensorSpec const& w = p.inputs[1];
    if (w.dims.rank != 4 && !takes.volumes)
        return Support::no("takes 2-D windows only");
    if (!w.constant && !takes.computed)
        return Support::no("takes constant filters only");
    if (w.dims.volume() == 0)
        return Support::no("needs channels and filters");
    constexpr int64_t kLimit = int64_t(1) << 30;
    Geometry const g = geometryOf(p, true);
    for (int i = 0; i < 3; ++i)
        if (std::max({g.window[i], g.stride[i], g.dilation[i], std::abs(g.before[i]), g.in[i], g.out[i]}) >= kLimit ||
            (g.window[i] - 1) * g.dilation[i] >= kLimit)
            return Support::no("counts in 32 bits");
    auto const positions = [&](int64_t const(&size)[3]) {
        return ir::mulSat(ir::mulSat(g.batch, size[0]), ir::mulSat(size[1], size[2]));
    };
    if (positions(g.out) >= kLimit || positions(g.in) >= kLimit || g.c >= kLimit || g.k >= kLimit)
        return Support::no("counts in 32 bits");
    return Support::yes();
}

} // namespace

Geometry geometryOf(ir::Node const& node, Extents const& x, Extents const& w, Extents const& y)
{
    return convolution::geometryOf(node.attrsAs<convolution::Attrs>(), x, w, y);
}

int64_t filtersOf(Geometry const& g)
{
    return g.groups == 1 ? roundUp8(g.k) : g.k;
}

cuda::ConvShape shapeOf(Geometry const& g)
{
    cuda::ConvShape s;
    s.n = g.batch;
    s.d = g.in[0];
    s.t = g.window[0];
    s.outD = g.out[0];
    s.strideD = int(g.stride[0]);
    s.padD = int(g.before[0]);
    s.dilationD = int(g.dilation[0]);
    s.h = g.in[1];
    s.w = g.in[2];
    s.c = g.c;
    s.k = filtersOf(g);
    s.r = g.window[1];
    s.s = g.window[2];
    s.outH = g.out[1];
    s.outW = g.out[2];
    s.groups = g.groups;
    s.strideH = int(g.stride[1]);
    s.strideW = int(g.stride[2]);
    s.padH = int(g.before[1]);
    s.padW = int(g.before[2]);
    s.dilationH = int(g.dilation[1]);
    s.dilationW = int(g.dilation[2]);
    return s;
}

int64_t placeOfFilter(Extents const& w, int64_t c, int64_t r, int64_t s, int64_t nchw)
{
    return nchw ? (c * w[2] + r) * w[3] + s : (r * w[3] + s) * w[1] + c;
}

int64_t placeByPixels(Extents const& w, int64_t c, int64_t r, int64_t s, int64_t channels)
{
    return (r * w[3] + s) * channels + c;
}

double estimateUs(Problem const& p, double teraflops)
{
    constexpr double kBytesPerUs = 3e6, kLeastUs = 2;
    Geometry const g = geometryOf(p, false);
    double const positions = double(g.batch * g.out[1] * g.out[2]);
    double const operations = 2 * positions * double(g.k) * double(g.c / g.groups * g.window[1] * g.window[2]);
    double const bytes = double(sizeOf(p.inputs[0].type)) * (double(g.batch * g.in[1] * g.in[2] * g.c) +
                                                             positions * double(g.k) * (hasResidual(p) ? 2 : 1));
    return kLeastUs + std::max(bytes / kBytesPerUs, operations / teraflops * 1e-6);
}

std::string exactEpilogueOf(Problem const& p)
{
    return exactEpilogue(p.node->attrsAs<convolution::Attrs>().epilogue, hasResidual(p));
}

cuda::IntegerEnd integerEndOf(Problem const& p)
{
    return ops::integerEndOf(p, p.node->attrsAs<convolution::Attrs>().epilogue);
}

bool hasResidual(Problem const& p)
{
    return isPresent(p, kResidual);
}

Support needsSm80(Problem const& p)
{
    return p.target.cuda && p.target.cuda->capability >= 80
               ? Support::yes()
               : Support::no("needs a GPU of compute capability 8.0 or later");
}

Support supportsCommon(Problem const& p, DataType type, Takes takes)
{
    TensorSpec const &x = p.inputs[0], &w = p.inputs[1], &y = p.outputs[0];
    bool const integers = isQuantized(type); // y is what their end makes
    if (x.type != type || w.type != type || (!integers && y.type != type))
        return Support::no(std::string("takes ") + nameOf(type) + " only");
    if (!integers && isPresent(p, kBias) && !p.inputs[kBias].constant)
        return Support::no("takes constant filters and biases only");
    return supportsSizes(p, takes);
}

Support supportsInt8(Problem const& p)
{
    TW_SUPPORTS(takesOnly(DataType::kInt8, p, 2));
    TW_SUPPORTS(needsSm80(p));
    return isWide(p) ? Support::no("counts in 32 bits") : supportsSizes(p);
}

cuda::Epilogue epilogueOf(Problem const& p)
{
    cuda::Epilogue e;
    e.bias = true; // without one zeros are added: fewer kernels to compile
    setEpilogue(e, p.node->attrsAs<convolution::Attrs>().epilogue, hasResidual(p));
    return e;
}

std::vector<Formats> pixelFormats(Problem const& p)
{
    // Before the shapes are looked at: a tactic without formats takes part in nothing.
    if (p.inputs[0].dims.rank < leastRankOf(Format::kHWC8) || p.outputs[0].dims.rank < leastRankOf(Format::kHWC8))
        return {};
    Formats f = linearFormats(p);
    f.inputs[0] = pixelVectorsOf(p.inputs[0].type);
    f.outputs[0] = pixelVectorsOf(p.outputs[0].type);
    if (hasResidual(p))
        f.inputs[kResidual] = pixelVectorsOf(p.inputs[kResidual].type);
    return {f};
}

std::vector<Formats> linearInputFormats(Problem const& p)
{
    std::vector<Formats> list = pixelFormats(p);
    for (Formats& f : list)
        f.inputs[0] = Format::kLinear;
    return list;
}

std::string packFilters(TensorSpec const& w, int64_t filters, int64_t each, PlaceOf placeOf, int64_t layout)
{
    std::string bytes(size_t(filters * each * sizeOf(w.type)), '\0');
    auto fill = [&](auto* to, auto const* from) {
        for (int64_t k = 0; k < w.dims[0]; ++k)
            for (int64_t c = 0; c < w.dims[1]; ++c)
                for (int64_t r = 0; r < w.dims[2]; ++r)
                    for (int64_t s = 0; s < w.dims[3]; ++s)
                        to[k * each + placeOf(w.dims, c, r, s, layout)] = *from++;
    };
    if (isFullFloat(w.type))
        fill(reinterpret_cast<float*>(bytes.data()), w.constant->as<float>());
    else if (isQuantized(w.type))
        fill(reinterpret_cast<int8_t*>(bytes.data()), w.constant->as<int8_t>());
    else
        fill(reinterpret_cast<uint16_t*>(bytes.data()), w.constant->as<uint16_t>());
    return bytes;
}

CudaSource withRunPacking(CudaSource source, DataType type)
{
    source.text +=
        cuda::constant("FILTER_BYTES", sizeOf(type)) + cuda::include("families/convolution/pack_filters.cuh");
    source.names.push_back("pack_filters");
    return source;
}

Result<void const*> packFilters(CudaLaunch const& launch, RunArgs const& args, RunPacking const& packing)
{
    TensorRef const& w = args.inputs[1];
    FilterParams p{.from = w.data, .to = args.workspace};
    p.filters = int32_t(w.dims[0]);
    p.ofFilter = int32_t(w.dims[1]);
    p.positions = int32_t(w.dims[2] * w.dims[3]);
    p.each = int32_t(packing.each);
    p.channels = int32_t(packing.channels);
    p.count = packing.filters * packing.each;
    p.toTf32 = packing.toTf32;
    TW_TRY(launch.each(1, p.count, p));
    return static_cast<void const*>(args.workspace);
}

std::string packBias(Problem const& p, int64_t count)
{
    return isPresent(p, kBias) ? packFloats(p.inputs[kBias], count) : std::string(size_t(count) * sizeof(float), '\0');
}

void setOutput(cuda::Output& out, RunArgs const& args, void const* bias)
{
    TensorRef const& y = args.outputs[0];
    out.y = y.data;
    out.bias = static_cast<float const*>(bias);
    out.ldy = out.ldResidual = y.pixelStride();
    if (args.inputs.size() > kResidual && args.inputs[kResidual].data) {
        out.residual = args.inputs[kResidual].data;
        out.ldResidual = args.inputs[kResidual].pixelStride();
    }
}

std::string fewSource(bool isHalf)
{
    return cuda::include(isHalf ? "families/convolution/few_f16.cuh" : "families/convolution/few_f32.cuh");
}

std::string epilogueSource(Problem const& p, bool isHalf)
{
    return isHalf ? cuda::epilogueFunction(epilogueOf(p)) : exactEpilogueOf(p);
}

Support supportsAlone(Problem const& p, DataType type)
{
    TW_SUPPORTS(supportsCommon(p, type));
    TW_SUPPORTS(needsSm80(p));
    Geometry const g = geometryOf(p, true);
    if (g.groups != g.c || g.k != g.c)
        return Support::no("takes one filter for each channel");
    return Support::yes();
}

std::unique_ptr<CudaKernels> depthwiseKernels(std::string text, int64_t sharedBytes, CudaRun run)
{
    auto const pack = [](Problem const& p) {
        TensorSpec const& w = p.inputs[1];
        // [r, s, c] of all
        TensorSpec turned = w;
        turned.dims[0] = 1;
        turned.dims[1] = w.dims[0];
        int64_t const channels = roundUp8(w.dims[0]);
        return std::vector<std::string>{
            packBias(p, channels), packFilters(turned, 1, w.dims[2] * w.dims[3] * channels, placeByPixels, channels)};
    };
    return kernelsOf(wholeSource("depthwise", std::move(text), sharedBytes), std::move(run), {}, pack, {1, 2});
}

} // namespace tw::ops::conv_f16
