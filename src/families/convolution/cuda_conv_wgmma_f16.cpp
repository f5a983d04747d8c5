// SPDX-License-Identifier: Apache-2.0
// Of FP16, of FP32 rounded to TF32, and of i8.
#include <algorithm>

#include "families/convolution/cuda_conv_f16.h"
#include "families/elementwise/cuda_epilogue.h"
#include "ops/convolution/op.h"

namespace tw::ops::conv_f16 {

namespace conv_wgmma {
namespace {

namespace gemm = cuda::gemm_f16;

constexpr size_t kMostConfigs = 5;
constexpr int64_t kLeastChannels = 16;

// A config's numbers.
enum ConfigField
{
    kImage,
    kTileP,
    kTileQ,
    kStages,
    kGroups,
    kPingPong,
    kSplit,
    kSwap,
    kCopies,
    kMulticast, // this and the next of i8 only
    kStepBytes,
    kAhead,
    kConfigFields,
};

Config configOf(gemm::Spec const& s)
{
    Config c{s.image, s.tileP, s.tileQ, s.stages, s.groups, s.pingPong, s.split, s.swap, s.copies};
    if (s.integers)
        for (int const more : {s.multicast, s.stepBytes, int(s.ahead)})
            c.push_back(more);
    return c;
}

// All but the tile.
gemm::Spec baseOf(Problem const& p)
{
    gemm::Spec s;
    if (isQuantized(p.inputs[0].type)) {
        s.integers = integerEndOf(p, p.node->attrsAs<convolution::Attrs>().epilogue);
        s.bias = false;
        s.copies = true;
        return s;
    }
    static_cast<cuda::Epilogue&>(s) = epilogueOf(p);
    s.single = isFullFloat(p.inputs[0].type);
    s.copies = !s.single;
    return s;
}

// Null: there is no such kernel.
char const* specOf(Problem const& p, Config const& c, gemm::Spec& s)
{
    s = baseOf(p);
    if (!isConfig(c, s.integers ? kConfigFields : kMulticast, 0, 256))
        return "a config has other numbers";
    s.image = c[kImage] != 0;
    s.tileP = int(c[kTileP]);
    s.tileQ = int(c[kTileQ]);
    s.stages = int(c[kStages]);
    s.groups = int(c[kGroups]);
    s.pingPong = c[kPingPong] != 0;
    s.split = int(c[kSplit]);
    s.swap = c[kSwap] != 0;
    s.copies = c[kCopies] != 0;
    if (s.integers) {
        s.multicast = int(c[kMulticast]);
        s.stepBytes = int(c[kStepBytes]);
        s.ahead = c[kAhead] != 0;
    }
    return gemm::unsupported(s);
}

// What x and w are, and y.
struct Types
{
    DataType x, y;
};
Types typesOf(gemm::Spec const& s)
{
    if (s.integers)
        return {DataType::kInt8, s.integers->store};
    DataType const t = s.single ? DataType::kFloat : DataType::kHalf;
    return {t, t};
}

// Tensors of a run, or dense ones (0): pixelX and pixelY are the elements between pixels.
gemm::Shape shapeOf(gemm::Spec const& spec, Geometry const& g, int64_t pixelX = 0, int64_t pixelY = 0)
{
    Types const t = typesOf(spec);
    return wgmmaShape(spec.image, t.x, t.y, g, pixelX, pixelY);
}

char const* unsupportedGeometry(gemm::Spec const& spec, Geometry const& g)
{
    if (isEmpty(g))
        return nullptr; // nothing is launched
    if (char const* const why = unsupportedWindow(spec.image, g))
        return why;
    return gemm::unsupported(spec, shapeOf(spec, g));
}

// Filters in the order of k in memory already: read where they are.
bool areInPlace(Problem const& p)
{
    Extents const& w = p.inputs[1].dims;
    return w[1] == pixelOf(p.inputs[1].type, w[1]) && w[2] * w[3] == 1;
}

std::vector<Config> configs(Problem const& p)
{
    Geometry const optimum = geometryOf(p, false), maximum = geometryOf(p, true);
    gemm::Spec base = baseOf(p);
    std::vector<Config> list;
    auto add = [&](bool image, size_t most) {
        base.image = image;
        if (isEmpty(optimum) || (!image && !isProduct(maximum)))
            return;
        gemm::Shape const shape = shapeOf(base, optimum);
        for (gemm::Spec const& s : gemm::candidates(base, shape, p.cuda->multiprocessors, most))
            if (!unsupportedGeometry(s, maximum) && !unsupportedGeometry(s, optimum))
                list.push_back(configOf(s));
    };
    add(false, kMostConfigs);
    add(true, list.empty() ? kMostConfigs : 1);
    return list;
}

Support supports(Problem const& p, Arithmetic a)
{
    TW_SUPPORTS(supportsWgmma(p, typeOf(p, a)));
    if (p.inputs[1].dims[1] < kLeastChannels)
        return Support::no("needs " + std::to_string(kLeastChannels) + " channels or more, of " +
                           std::to_string(baseOf(p).stepK()) + " that a step has");
    return configs(p).empty() ? Support::no("TMA cannot read such an image") : Support::yes();
}

double estimate(Problem const& p, Config const& config)
{
    gemm::Spec spec;
    Geometry const g = geometryOf(p, false);
    if (specOf(p, config, spec) || isEmpty(g))
        return 0;
    return gemm::estimateUs(spec, shapeOf(spec, g), p.cuda->multiprocessors);
}

class WgmmaKernels final : public SpecKernels<gemm::Spec>
{
public:
    WgmmaKernels(Problem const& p, gemm::Spec const& spec)
        : SpecKernels(p, gemm::kKernel, spec), isInPlace_(areInPlace(p))
    {}
    Result<std::vector<std::string>> pack(Problem const& problem) const override;
    bool readsOnDevice(size_t i) const override
    {
        return i == 1 ? isInPlace_ : spec_.integers || SpecKernels::readsOnDevice(i);
    }
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override;

private:
    bool const isInPlace_; // filters are read where the engine put them
};

Result<std::vector<std::string>> WgmmaKernels::pack(Problem const& p) const
{
    TensorSpec const& w = p.inputs[1];
    int64_t const channels = pixelOf(w.type, w.dims[1]);
    std::vector<std::string> parts;
    if (!spec_.integers)
        parts.push_back(packBias(p, roundUp8(w.dims[0])));
    if (!isInPlace_)
        parts.push_back(packFilters(w, w.dims[0], w.dims[2] * w.dims[3] * channels, placeByPixels, channels));
    return parts;
}

Result<void> WgmmaKernels::run(CudaLaunch const& launch, RunArgs& args) const
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    Geometry const g = geometryOf(node_, args);
    if (char const* const why = unsupportedGeometry(spec_, g))
        return unsupported(why);
    int64_t const pixelX = x.pixelStride();
    gemm::Launch l = gemm::launch(spec_, shapeOf(spec_, g, pixelX, y.pixelStride()), launch.multiprocessors());
    if (spec_.image)
        readInPlace(l.p, g, pixelX, spec_.operandBytes());
    (spec_.swap ? l.p : l.q).dims[spec_.image ? 2 : 1] = uint64_t(g.k); // those that round y up are zeros
    void const* const filters = isInPlace_ ? args.inputs[1].data : launch.packed(spec_.integers ? 0 : 1);
    TW_ASSIGN(cuda::TensorMap const mapP, launch.encode(l.p, spec_.swap ? filters : x.data));
    TW_ASSIGN(cuda::TensorMap const mapQ, launch.encode(l.q, spec_.swap ? x.data : filters));
    setOutput(l.args, args, spec_.integers ? nullptr : launch.packed(0));
    if (spec_.integers) {
        l.args.end = integerEndArgs(args);
        l.args.channels = int32_t(g.k);
    }
    if (!spec_.copies)
        return launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &l.args});
    TW_ASSIGN(cuda::TensorMap const mapY, launch.encode(l.y, y.data));
    if (!spec_.bringsResidual())
        return launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &mapY, &l.args});
    setPixelStride(l.y, l.args.ldResidual * spec_.storeBytes());
    TW_ASSIGN(cuda::TensorMap const mapResidual, launch.encode(l.y, l.args.residual));
    return launch.withGeometry(0, l.geometry, {&mapP, &mapQ, &mapY, &mapResidual, &l.args});
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config)
{
    gemm::Spec spec;
    if (char const* const why = specOf(p, config, spec))
        return noKernels(unsupported(why));
    return std::make_unique<WgmmaKernels>(p, spec);
}

constexpr Algorithm kAlgorithm{Format::kHWC8, supports, [](Problem const& p, Arithmetic) { return configs(p); },
                               [](Problem const& p, Config const& c, Arithmetic) { return estimate(p, c); },
                               [](Problem const& p, Config const& c, Arithmetic) { return generate(p, c); }};

} // namespace
} // namespace conv_wgmma

constinit Algorithm const kWgmma = conv_wgmma::kAlgorithm;

} // namespace tw::ops::conv_f16
