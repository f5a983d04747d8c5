// SPDX-License-Identifier: Apache-2.0
// Convolutions as the products of kernels/cuda/gemm/wgmma.h, of FP16, of FP32 rounded to TF32 and of i8, and of
// wgmma_sparse.h, of FP16 and i8 with filters that follow 2:4 along their channels: of images that TMA reads through an
// im2col map (of three axes, too, but for sparse filters), or, of 1x1 convolutions, of plain rows.
#include <algorithm>
#include <array>
#include <span>

#include "base/round.h"
#include "families/convolution/cuda_conv_f16.h"
#include "kernels/cuda/gemm/wgmma_sparse.h"
#include "ops/convolution/op.h"
#include "tactic/sparsity.h"

namespace tw::ops::conv_f16 {

void readInPlace(cuda::TensorMapSpec& map, Geometry const& g, int64_t pixelX, int64_t elementBytes)
{
    map.dims[0] = uint64_t(g.c);
    uint64_t stride = uint64_t(pixelX * elementBytes);
    for (int i = 0; i < map.rank - 1; ++i) {
        map.strides[i] = stride;
        stride *= map.dims[i + 1];
    }
}

namespace conv_wgmma {
namespace {

namespace gemm = cuda::gemm_f16;
namespace sparse = cuda::gemm_sparse;

constexpr size_t kMostConfigs = 5, kMostSparseConfigs = 6;
constexpr size_t kMostInt8Configs = 3; // their ends take twice as long to compile, and their estimates order them well
constexpr int64_t kLeastChannels = 16;

// A window of one position that touches every pixel once.
bool isProduct(Geometry const& g)
{
    bool product = true;
    for (int i = 0; i < 3; ++i)
        product = product && g.window[i] == 1 && g.stride[i] == 1 && g.before[i] == 0 && g.in[i] == g.out[i];
    return product;
}

bool isVolume(Problem const& p)
{
    return p.inputs[1].dims.rank == 5;
}

std::vector<Formats> formats(Problem const& p)
{
    std::vector<Formats> list = pixelFormats(p);
    for (Formats& f : list)
        if (isVolume(p)) {
            f.inputs[0] = f.outputs[0] = Format::kDHWC8;
            if (hasResidual(p))
                f.inputs[Epilogue::kResidual] = Format::kDHWC8;
        }
    return list;
}

// Windows of two axes, of three those of two and the first one's: filters' taps in their order.
Extents inPlanes(Extents const& w)
{
    return w.rank == 5 ? Extents{w[0], w[1], w[2] * w[3], w[4]} : w;
}

// --- configs ---

// Of i8 only: the last three.
Config configOf(gemm::Spec const& s)
{
    Config c{s.image, s.tileP, s.tileQ, s.stages, s.groups, s.pingPong, s.split, s.swap, s.copies};
    if (s.integers)
        for (int const more : {s.multicast, s.stepBytes, int(s.ahead)})
            c.push_back(more);
    return c;
}

Config configOf(sparse::Spec const& s)
{
    return {s.image, s.tileP, s.tileQ, s.stages, s.multicast};
}

void setConfig(Config const& c, gemm::Spec& s)
{
    readConfig(c, 4, s.groups, s.pingPong, s.split, s.swap, s.copies);
    if (s.integers)
        readConfig(c, 9, s.multicast, s.stepBytes, s.ahead);
}

void setConfig(Config const& c, sparse::Spec& s)
{
    s.multicast = int(c[4]);
}

// Sparse ones are of two axes.
void setImage(gemm::Spec& s, Problem const& p, bool image)
{
    s.image = image;
    s.volume = image && isVolume(p);
}

void setImage(sparse::Spec& s, Problem const&, bool image)
{
    s.image = image;
}

bool isVolume(gemm::Spec const& s)
{
    return s.volume;
}

bool isVolume(sparse::Spec const&)
{
    return false;
}

// All but the tile.
template <class Spec>
Spec baseOf(Problem const& p)
{
    Spec s;
    if (isQuantized(p.inputs[0].type)) {
        s.integers = integerEndOf(p);
        s.bias = false;
    } else {
        static_cast<cuda::Epilogue&>(s) = epilogueOf(p);
    }
    if constexpr (std::is_same_v<Spec, gemm::Spec>) {
        s.constantB = !areComputed(p);
        s.single = isFullFloat(p.inputs[0].type);
        s.copies = !s.single;
    }
    return s;
}

// Null: there is no such kernel.
template <class Spec>
char const* specOf(Problem const& p, Config const& c, Spec& s)
{
    s = baseOf<Spec>(p);
    if (!isConfig(c, configOf(s).size(), 0, 256))
        return "a config has other numbers";
    readConfig(c, 0, s.image, s.tileP, s.tileQ, s.stages);
    setConfig(c, s);
    setImage(s, p, s.image);
    return unsupported(s);
}

// --- sizes ---

// Of x and w, and of y.
std::pair<DataType, DataType> typesOf(gemm::Spec const& s)
{
    if (s.integers)
        return {DataType::kInt8, s.integers->store};
    DataType const t = s.single ? DataType::kFloat : DataType::kHalf;
    return {t, t};
}

std::pair<DataType, DataType> typesOf(sparse::Spec const& s)
{
    DataType const t = s.integers ? DataType::kInt8 : DataType::kHalf;
    return {t, t};
}

// Tensors of a run, or dense ones (0): pixelX and pixelY are the elements between pixels.
template <class Spec>
gemm::Shape shapeOf(Spec const& spec, Geometry const& g, int64_t pixelX = 0, int64_t pixelY = 0)
{
    auto const [x, y] = typesOf(spec);
    gemm::Shape s;
    int64_t const channels = pixelOf(x, g.c), filters = pixelOf(y, g.k);
    if (spec.image) {
        gemm::Image i = conv_f16::shapeOf(g);
        i.c = channels;
        s = gemm::imageShape(i, filters);
    } else {
        s.m = g.batch * g.out[0] * g.out[1] * g.out[2];
        s.n = filters;
        s.k = g.c;
        s.lda = pixelX ? pixelX : channels;
        s.ldb = channels;
    }
    s.ldy = pixelY ? pixelY : filters;
    return s;
}

template <class Spec>
char const* unsupportedGeometry(Spec const& spec, Geometry const& g)
{
    if (isEmpty(g))
        return nullptr; // nothing is launched
    if (!spec.image && !isProduct(g))
        return "a window of one position makes a product";
    // The corners of the box of filter origins are numbers of 8 bits, of three axes of 5.
    bool const volume = isVolume(spec);
    int64_t const most = volume ? 15 : 127;
    for (int i = volume ? 0 : 1; spec.image && i < 3; ++i) {
        int64_t const upper = (g.out[i] - 1) * g.stride[i] - g.before[i] - (g.in[i] - 1);
        if (g.before[i] < -most || upper < -most - 1 || upper > most)
            return volume ? "TMA's padding of three axes ends at 15" : "TMA's padding ends at 127";
    }
    return unsupported(spec, shapeOf(spec, g));
}

// The residual's map from y's: rows of pixels `pixelBytes` apart.
void setPixelStride(cuda::TensorMapSpec& map, int64_t pixelBytes)
{
    map.strides[0] = uint64_t(pixelBytes);
    map.strides[1] = map.strides[0] * map.dims[1];
}

// --- tactics ---

template <class Spec>
void addConfigs(Problem const& p, bool image, size_t most, std::vector<Config>& list)
{
    Geometry const optimum = geometryOf(p, false), maximum = geometryOf(p, true);
    Spec base = baseOf<Spec>(p);
    setImage(base, p, image);
    if (isEmpty(optimum) || (!image && !isProduct(maximum)))
        return;
    for (Spec const& s : candidates(base, shapeOf(base, optimum), p.target.cuda->multiprocessors, most))
        if (!unsupportedGeometry(s, maximum) && !unsupportedGeometry(s, optimum))
            list.push_back(configOf(s));
}

std::vector<Config> configs(Problem const& p, Arithmetic a)
{
    size_t const most = a == Arithmetic::kInt8 ? kMostInt8Configs : kMostConfigs;
    std::vector<Config> list;
    addConfigs<gemm::Spec>(p, false, most, list);
    if (list.empty()) // of what is a product, too, those of images were ahead in 2 % of 341 pairs on an H200, by 5 % at most
        addConfigs<gemm::Spec>(p, true, most, list);
    return list;
}

std::vector<Config> sparseConfigs(Problem const& p, Arithmetic)
{
    std::vector<Config> list;
    addConfigs<sparse::Spec>(p, !isProduct(geometryOf(p, true)), kMostSparseConfigs, list);
    return list;
}

Support supportsChannels(Problem const& p, int64_t least, int64_t step)
{
    if (p.inputs[1].dims[1] < least)
        return Support::no(fmt::format("needs {} channels or more, of {} that a step has", least, step));
    return Support::yes();
}

// One group on a GPU that has wgmma.
Support supportsWgmma(Problem const& p, Arithmetic a, Takes takes = {})
{
    TW_SUPPORTS(supportsCommon(p, typeOf(p, a), takes));
    if (p.target.cuda->capability != 90)
        return Support::no("needs a GPU of compute capability 9.0");
    return p.node->attrsAs<KernelWindowAttrs>().groups == 1 ? Support::yes() : Support::no("takes one group");
}

Support supports(Problem const& p, Arithmetic a)
{
    TW_SUPPORTS(supportsWgmma(p, a, {.computed = a != Arithmetic::kInt8 && !isVolume(p), .volumes = true}));
    // Elements of kDHWC8 lie as those of images do where both have no gaps.
    Extents const& w = p.inputs[1].dims;
    int64_t const vector = a == Arithmetic::kInt8 ? 16 : 8;
    if (isVolume(p) && a != Arithmetic::kHalf && (w[1] % vector || w[0] % vector))
        return Support::no(fmt::format("takes channels and filters in steps of {} over three axes", vector));
    TW_SUPPORTS(supportsChannels(p, kLeastChannels, baseOf<gemm::Spec>(p).stepK()));
    return configs(p, a).empty() ? Support::no("TMA cannot read such an image") : Support::yes();
}

Support supportsSparse(Problem const& p, Arithmetic a)
{
    TW_SUPPORTS(supportsWgmma(p, a));
    TensorSpec const& w = p.inputs[1];
    int64_t const step = baseOf<sparse::Spec>(p).stepK();
    TW_SUPPORTS(supportsChannels(p, step / 2, step));
    if (sparseConfigs(p, a).empty())
        return Support::no(a == Arithmetic::kInt8 ? "TMA cannot read such an image, or its sums make no i8"
                                                  : "TMA cannot read such an image");
    if (!isTwoOfFour({w.type, w.dims, const_cast<void*>(w.constant->data())}, 1))
        return Support::no("its filters do not follow 2:4 along their channels");
    return Support::yes();
}

template <class Spec>
double estimate(Problem const& p, Config const& config, Arithmetic)
{
    Spec spec;
    Geometry const g = geometryOf(p, false);
    if (specOf(p, config, spec) || isEmpty(g))
        return 0;
    return estimateUs(spec, shapeOf(spec, g), p.target.cuda->multiprocessors);
}

// Filters in the order of k in memory already: read where they are.
bool areInPlace(gemm::Spec const&, Problem const& p)
{
    Extents const& w = p.inputs[1].dims;
    return w[1] == pixelOf(p.inputs[1].type, w[1]) && w.volume(2, w.rank) == 1;
}

bool areInPlace(sparse::Spec const&, Problem const&)
{
    return false;
}

PackedParts pack(Problem const& p, gemm::Spec const& spec)
{
    TensorSpec w = p.inputs[1];
    w.dims = inPlanes(w.dims);
    int64_t const channels = pixelOf(w.type, w.dims[1]);
    std::vector<std::string> parts;
    if (!spec.integers)
        parts.push_back(packBias(p, roundUp8(w.dims[0])));
    if (!areInPlace(spec, p) && !areComputed(p))
        parts.push_back(packFilters(w, w.dims[0], w.dims[2] * w.dims[3] * channels, placeByPixels, channels));
    return parts;
}

PackedParts pack(Problem const& p, sparse::Spec const& spec)
{
    TensorSpec const& w = p.inputs[1];
    int64_t const channels = roundUp(w.dims[1], spec.stepK()), k = w.dims[2] * w.dims[3] * channels;
    std::string const dense = packFilters(w, w.dims[0], k, placeByPixels, channels);
    std::optional<std::string> packed =
        spec.integers ? sparse::packSparse(reinterpret_cast<int8_t const*>(dense.data()), w.dims[0], k)
                      : sparse::packSparse(reinterpret_cast<uint16_t const*>(dense.data()), w.dims[0], k);
    if (!packed)
        return notTwoOfFour(p.node->name, "its filters, along their channels");
    std::vector<std::string> parts{std::move(*packed)};
    if (!spec.integers)
        parts.push_back(packBias(p, roundUp8(w.dims[0])));
    return parts;
}

// `bias`: of floats.
template <class Args>
void setEnd(Args& a, RunArgs const& args, Geometry const& g, bool integers, void const* bias)
{
    setOutput(a, args, bias);
    if (integers) {
        a.end = integerEndArgs(args);
        a.channels = int32_t(g.k);
    }
}

// `given`: filters that pack() has not made; null: it has.
Result<void> run(gemm::Spec const& spec, Geometry const& g, void const* given, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int64_t const pixelX = x.pixelStride();
    gemm::Launch l = gemm::launch(spec, shapeOf(spec, g, pixelX, y.pixelStride()), launch.multiprocessors());
    if (spec.image)
        readInPlace(l.p, g, pixelX, spec.operandBytes());
    (spec.swap ? l.p : l.q).dims[spec.image ? 2 : 1] = uint64_t(g.k); // those that round y up are zeros
    void const* const filters = given ? given : launch.packed(spec.integers ? 0 : 1);
    TW_ASSIGN(cuda::TensorMap const mapP, launch.encode(l.p, spec.swap ? filters : x.data));
    TW_ASSIGN(cuda::TensorMap const mapQ, launch.encode(l.q, spec.swap ? x.data : filters));
    setEnd(l.args, args, g, bool(spec.integers), spec.integers ? nullptr : launch.packed(0));
    cuda::TensorMap mapY, mapResidual;
    std::array<void const*, 6> parameters{&mapP, &mapQ};
    size_t count = 2;
    if (spec.copies) {
        TW_SET(mapY, launch.encode(l.y, y.data));
        parameters[count++] = &mapY;
    }
    if (spec.copies && spec.bringsResidual()) {
        setPixelStride(l.y, l.args.ldResidual * spec.storeBytes());
        TW_SET(mapResidual, launch.encode(l.y, l.args.residual));
        parameters[count++] = &mapResidual;
    }
    if (spec.volume)
        parameters[count++] = &l.volume;
    parameters[count++] = &l.args;
    return launch.withGeometry(0, l.geometry, std::span<void const* const>(parameters).first(count));
}

Result<void> run(sparse::Spec const& spec, Geometry const& g, void const*, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int64_t const pixelX = x.pixelStride();
    sparse::Launch l = sparse::launch(spec, shapeOf(spec, g, pixelX, y.pixelStride()), launch.multiprocessors());
    if (spec.image)
        readInPlace(l.q, g, pixelX, spec.operandBytes());
    setEnd(l.args, args, g, bool(spec.integers), spec.integers ? nullptr : launch.packed(1));
    l.args.weights = launch.packed(0);
    TW_ASSIGN(cuda::TensorMap const mapQ, launch.encode(l.q, x.data));
    TW_ASSIGN(cuda::TensorMap const mapY, launch.encode(l.y, y.data));
    if (!spec.hasResidual())
        return launch.withGeometry(0, l.geometry, {&mapQ, &mapY, &l.args});
    setPixelStride(l.y, l.args.ldResidual * spec.operandBytes());
    TW_ASSIGN(cuda::TensorMap const mapResidual, launch.encode(l.y, l.args.residual));
    return launch.withGeometry(0, l.geometry, {&mapQ, &mapY, &mapResidual, &l.args});
}

template <class Spec>
std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config, Arithmetic)
{
    Spec spec;
    if (char const* const why = specOf(p, config, spec))
        return noKernels(tw::unsupported(why));
    std::vector<size_t> replaced;
    TensorSpec const& w = p.inputs[1];
    bool const inPlace = areInPlace(spec, p), isPackedAtRun = areComputed(p) && !inPlace;
    int64_t const channels = pixelOf(w.type, w.dims[1]);
    RunPacking const packing{w.dims[0], w.dims[2] * w.dims[3] * channels, channels};
    if (!inPlace && !isPackedAtRun)
        replaced.push_back(1);
    if (!spec.integers)
        replaced.push_back(2);
    auto const run = [&node = *p.node, spec, inPlace, isPackedAtRun, packing](CudaLaunch const& launch,
                                                                              RunArgs& args) -> Result<void> {
        Geometry const g = geometryOf(node, args);
        if (isEmpty(g))
            return {};
        if (char const* const why = unsupportedGeometry(spec, g))
            return tw::unsupported(why);
        void const* filters = inPlace ? args.inputs[1].data : nullptr;
        if (isPackedAtRun)
            TW_SET(filters, packFilters(launch, args, packing));
        return conv_wgmma::run(spec, g, filters, launch, args);
    };
    char const* const name = std::is_same_v<Spec, sparse::Spec> ? sparse::kKernel : gemm::kKernel;
    CudaSource source = wholeSource(name, spec);
    CudaWorkspace workspace;
    if (isPackedAtRun) {
        source = withRunPacking(std::move(source), w.type);
        workspace = [bytes = packing.bytes(w.type)](auto, auto) { return bytes; };
    }
    return kernelsOf(
        std::move(source), run, std::move(workspace), [spec](Problem const& p) { return pack(p, spec); }, replaced);
}

} // namespace
} // namespace conv_wgmma

constinit Algorithm const kWgmma{conv_wgmma::formats, conv_wgmma::supports, conv_wgmma::configs,
                                 conv_wgmma::estimate<cuda::gemm_f16::Spec>,
                                 conv_wgmma::generate<cuda::gemm_f16::Spec>};
constinit Algorithm const kSparse{pixelFormats, conv_wgmma::supportsSparse, conv_wgmma::sparseConfigs,
                                  conv_wgmma::estimate<cuda::gemm_sparse::Spec>,
                                  conv_wgmma::generate<cuda::gemm_sparse::Spec>};

} // namespace tw::ops::conv_f16
