// SPDX-License-Identifier: Apache-2.0
// Convolutions y = f(conv(x, w) + bias + residual) with constant filters (some algorithms: with computed ones, which they pack at each
// run), in FP16 and FP32, and of i8 with the end that such sums have. Residual and y are in Format::kHWC8, what is i8 in kHWC16, x too where an algorithm does not say
// otherwise. Channels that round y up to 8 (16) are computed with filters of zeros, so that rows are whole vectors.
#pragma once

#include "base/format.h"
#include "families/convolution/kernel_window.h"
#include "families/elementwise/activate.h"
#include "families/elementwise/cuda_epilogue.h"
#include "kernels/cuda/common/epilogue.h"
#include "kernels/cuda/conv/mma_nd_params.h"
#include "kernels/cuda/conv/shape.h"
#include "kernels/cuda/gemm/wgmma.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::conv_f16 {

enum class Arithmetic : int
{
    kHalf,  // a narrow type, whose products and sums are FP32
    kFloat, // exact
    kTf32,  // FP32, factors rounded to TF32
    kInt8,
};
// Of x and w; of residual and y too, unless they are i8. Of kHalf: what x is, if it is narrow.
inline DataType typeOf(Problem const& p, Arithmetic a)
{
    return a == Arithmetic::kInt8   ? DataType::kInt8
           : a != Arithmetic::kHalf ? DataType::kFloat
                                    : narrowOr(DataType::kHalf, p.inputs[0].type);
}

// What tactics have in common that compute by the same algorithm.
struct Algorithm
{
    std::vector<Formats> (*formats)(Problem const& problem);
    Support (*supports)(Problem const& problem, Arithmetic arithmetic);
    std::vector<Config> (*configs)(Problem const& problem, Arithmetic arithmetic);
    double (*estimate)(Problem const& problem, Config const& config, Arithmetic arithmetic);
    std::unique_ptr<CudaKernels> (*generate)(Problem const& problem, Config const& config, Arithmetic arithmetic);
};

// --- not transposed, over two axes ---

// wgmma fed by TMA; 1x1 convolutions as plain products; over three axes, too. One group, compute
// capability 9.0. FP16, TF32, i8.
extern Algorithm const kWgmma;
// The same for filters that follow 2:4 along their channels (tactic/sparsity.h). FP16, i8.
extern Algorithm const kSparse;
// mma.sync, exact FP32 on the cores: any channels, groups and dilations. Compute capability 8.0. FP16, FP32, TF32.
extern Algorithm const kMma;
// The same for few channels in linear format: a network's first layer.
extern Algorithm const kMmaNchw;
// A first layer that steps over two columns, x linear: pixels stay in shared memory. FP16, TF32.
extern Algorithm const kStem;
// A first layer of i8: up to 4 channels, x linear.
extern Algorithm const kStemInt8;
// Each channel by itself, 8 of them (FP32: 4) for each thread.
extern Algorithm const kDepthwise;
// The same of i8: small windows.
extern Algorithm const kDepthwiseInt8;
// The same in strips, with a row's sums in registers: small windows. Compute capability 8.0.
extern Algorithm const kDepthwiseStrips;
// The same from tiles in shared memory, each pixel read once: large images. Compute capability 8.0.
extern Algorithm const kDepthwiseTile;

// Over two and three axes, few channels or filters, no strides: pixels stay in shared memory. Compute capability 8.0. FP16.
extern Algorithm const kPatch;
// Over two axes, up to four filters and wide windows without strides: elements of a window's row are columns. Compute capability
// 8.0. FP16.
extern Algorithm const kSpread;

// --- transposed or not ---

// Over two and three axes, with any window, stride, dilation, padding and groups: kernels/cuda/conv/mma_nd.h. kDHWC8 of
// three axes. FP16, FP32 (whose factors are three TF32 products), TF32, i8.
extern Algorithm const kNd;

// --- transposed, over two axes ---

// FP16, any window, by wgmma fed by TMA: phases are blocks of one launch. One group, compute capability 9.0.
extern Algorithm const kPhases;

// --- the same with windows that lie side by side (stride = window, no padding) ---

// FP16: each position of the window is a product of its own, by wgmma, which writes every stride-th pixel.
extern Algorithm const kBesideHalf;
// FP32, TF32: the same, all in one launch.
extern Algorithm const kBeside;
// Whether windows of at most so many positions in each direction lie side by side.
bool areBeside(KernelWindowGeometry const& geometry, int64_t mostWindow);

// `narrow`: the type of kHalf.
template <Algorithm const& algorithm, Arithmetic arithmetic, DataType narrow = DataType::kHalf>
constexpr CudaTactic tactic(char const* name, int version = arithmetic == Arithmetic::kInt8 ? 4 : 3)
{
    return CudaTactic(
        name, version, [](Problem const& p, Config const& c) { return algorithm.generate(p, c, arithmetic); },
        [](Problem const& p) {
            Support const s = algorithm.supports(p, arithmetic);
            return s.ok && arithmetic == Arithmetic::kHalf ? takesOnly(narrow, p) : s;
        },
        [](Problem const& p) { return algorithm.configs(p, arithmetic); },
        [](Problem const& p) { return algorithm.formats(p); },
        [](Problem const& p, Config const& c) { return algorithm.estimate(p, c, arithmetic); },
        Traits{.rounding = arithmetic == Arithmetic::kTf32 ? Rounding::kTf32 : Rounding::kPlain,
               .isSparse = &algorithm == &kSparse,
               .type = narrow});
}

// What the algorithms share.

// x, w, y of a problem or a run as numbers.
using Geometry = KernelWindowGeometry;
Geometry geometryOf(ir::Node const& node, Extents const& x, Extents const& w, Extents const& y);
inline Geometry geometryOf(Problem const& p, bool atMaximum)
{
    auto dims = [&](TensorSpec const& t) { return atMaximum ? t.maxDims : t.dims; };
    return geometryOf(*p.node, dims(p.inputs[0]), p.inputs[1].dims, dims(p.outputs[0]));
}
inline Geometry geometryOf(ir::Node const& node, RunArgs const& args)
{
    return geometryOf(node, args.inputs[0].dims, args.inputs[1].dims, args.outputs[0].dims);
}

inline bool isEmpty(Geometry const& g)
{
    return g.batch * g.out[0] * g.out[1] * g.out[2] == 0;
}
// An axis of a convolution, transposed or not, by phases, and the element of the window that a tap of a phase is; -1: the
// phase has no such tap.
cuda::conv_nd::Axis axisOf(Geometry const& geometry, WindowKind kind, int axis);
int64_t elementOf(Geometry const& geometry, WindowKind kind, int axis, int64_t phase, int64_t tap);
// The map of an image as it lies in memory, pixels so far apart: gaps between them, if any, read as zeros.
void readInPlace(cuda::TensorMapSpec& map, Geometry const& geometry, int64_t pixelX, int64_t elementBytes);
// One combination: y and residual in pixelVectorsOf() their types, x too, or linear.
std::vector<Formats> pixelFormats(Problem const& problem);
std::vector<Formats> linearInputFormats(Problem const& problem);
// As the implicit products of kernels/cuda take them, and the order of k in their filters (for packFilters()).
cuda::ConvShape shapeOf(Geometry const& geometry);
int64_t placeOfFilter(Extents const& w, int64_t c, int64_t r, int64_t s, int64_t nchw);
// The same order in steps of `channels` for each position.
int64_t placeByPixels(Extents const& w, int64_t c, int64_t r, int64_t s, int64_t channels);
// Those of one group round up to 8; groups lie one after the other as they are.
int64_t filtersOf(Geometry const& geometry);
constexpr int64_t kMostNchwChannels = 16; // more, and channels-last copies pay

// Microseconds that a kernel would take at a rate of operations, or of memory: only to order tactics by.
double estimateUs(Problem const& problem, double teraflops);

std::string exactEpilogueOf(Problem const& p); // as exactEpilogue()
cuda::IntegerEnd integerEndOf(Problem const& p);
bool hasResidual(Problem const& problem);
Support needsSm80(Problem const& problem);
// Of this type, 2-D, constant filters and bias (of i8 any bias), sizes that count in 32 bits.
struct Takes
{
    bool computed = false; // filters
    bool volumes = false;  // windows of three axes
};
Support supportsCommon(Problem const& problem, DataType type, Takes takes = {});
// The same of i8 by kernels of their own, for compute capability 8.0 and later.
Support supportsInt8(Problem const& problem);
// Transposed, without a residual, over two axes, the first `inputs` of `type`, known filters and bias.
Support supportsTransposed(Problem const& problem, DataType type, size_t inputs);
// Bias (zeros, where there is none), residual, activation after it.
cuda::Epilogue epilogueOf(Problem const& problem);

inline int64_t roundUp8(int64_t v)
{
    return (v + 7) / 8 * 8;
}
// Channels of a pixel in pixelsOf(type).
constexpr int64_t pixelOf(DataType type, int64_t channels)
{
    return pixelStrideOf(pixelVectorsOf(type), type, channels);
}

// Where element (c, r, s) of filter k, with all sizes of w, lies in the packed filter.
using PlaceOf = int64_t (*)(Extents const& w, int64_t c, int64_t r, int64_t s, int64_t layout);
// [filters, each] of w's type, filters and gaps beyond those of w zero; `layout` goes to `placeOf`.
std::string packFilters(TensorSpec const& w, int64_t filters, int64_t each, PlaceOf placeOf, int64_t layout);
// The same of filters that are computed, into the workspace: the second kernel of `source`.
struct RunPacking
{
    int64_t filters, each, channels; // what `layout` of placeByPixels() is
    bool toTf32 = false;             // rounded
    int64_t bytes(DataType type) const { return filters * each * sizeOf(type); }
};
inline bool areComputed(Problem const& problem)
{
    return !problem.inputs[1].constant;
}
CudaSource withRunPacking(CudaSource source, DataType type);
Result<void const*> packFilters(CudaLaunch const& launch, RunArgs const& args, RunPacking const& packing);
// Floats, zeros after them or where there is no bias.
std::string packBias(Problem const& problem, int64_t count);

// Puts addresses, and steps from pixel to pixel, into the epilogue's part of a launch.
void setOutput(cuda::Output& out, RunArgs const& args, void const* bias);

// What the algorithms of depthwise convolutions share: each channel by itself, FP16 or FP32.

// Source of T, Few (V of them as they lie in memory), unpack() to floats and packed() from them. V is 4 or 8 for FP16,
// at most 4 for FP32.
std::string fewSource(bool isHalf);
// Source of epilogue().
std::string epilogueSource(Problem const& problem, bool isHalf);

// One filter for each channel, on compute capability 8.0 or later.
Support supportsAlone(Problem const& problem, DataType type);

// The kernel `depthwise` of a whole text.
std::unique_ptr<CudaKernels> depthwiseKernels(std::string text, int64_t sharedBytes, CudaRun run);
// The launch of a kernel whose threads have `channels` of a pixel's `stored` of `columns` outputs of a row each.
constexpr int kRowThreads = 128;
template <class Params>
Result<void> launchRows(Params& a, CudaLaunch const& launch, Geometry const& g, int64_t stored, int64_t columns,
                        int64_t channels)
{
    int64_t const vectors = stored / channels, wide = (g.out[2] + columns - 1) / columns;
    a.vectors = cuda::divBy(vectors);
    a.wide = cuda::divBy(wide);
    a.tall = cuda::divBy(g.out[1]);
    a.count = uint64_t(g.batch * g.out[1] * wide * vectors);
    a.strideH = int32_t(g.stride[1]);
    a.dilationH = int32_t(g.dilation[1]);
    return launch(0, blocksFor(int64_t(a.count), kRowThreads), kRowThreads, a);
}
// Addresses, steps from pixel to pixel and sizes of a run, of kernels of i8 too.
template <class Params>
void setImages(Params& a, CudaLaunch const& launch, RunArgs const& args, Geometry const& g)
{
    TensorRef const& x = args.inputs[0];
    a.x = static_cast<decltype(a.x)>(x.data);
    cuda::Output output;
    if constexpr (requires { a.end; }) {
        setOutput(output, args, nullptr);
        a.end = integerEndArgs(args);
        a.filters = static_cast<uint32_t const*>(launch.packed(0));
    } else {
        setOutput(output, args, launch.packed(0));
        a.filters = launch.packed(1);
        a.bias = output.bias;
        a.residual = output.residual;
    }
    a.y = args.outputs[0].data;
    a.pixelX = x.pixelStride();
    a.pixelY = output.ldy;
    a.pixelResidual = output.ldResidual;
    a.h = int32_t(g.in[1]);
    a.w = int32_t(g.in[2]);
    a.outW = int32_t(g.out[2]);
    a.padH = int32_t(g.before[1]);
    a.padW = int32_t(g.before[2]);
}

} // namespace tw::ops::conv_f16

// Configs of convolution kernels with tiles, {tileM, tileN, stages, vector, split}, and their Specs (cuda::conv_2d,
// cuda::conv_nd), which have members of these names.
namespace tw::ops {

template <class Spec>
Config tileConfigOf(Spec const& s)
{
    return {s.tileM, s.tileN, s.stages, s.vector, s.split};
}

// Puts a config's numbers into the spec; false: the config has others.
template <class Spec>
bool setTile(Config const& c, Spec& s)
{
    if (!isConfig(c, tileConfigOf(s).size(), 0, 256))
        return false;
    readConfig(c, 0, s.tileM, s.tileN, s.stages, s.vector, s.split);
    return true;
}

} // namespace tw::ops
