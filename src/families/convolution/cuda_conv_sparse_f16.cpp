// SPDX-License-Identifier: Apache-2.0
// Convolutions of FP16 and i8 with filters that follow 2:4 along their channels.
#include "base/round.h"
#include "families/convolution/cuda_conv_f16.h"
#include "families/elementwise/cuda_epilogue.h"
#include "kernels/cuda/gemm/wgmma_sparse.h"
#include "ops/convolution/op.h"
#include "tactic/sparsity.h"

namespace tw::ops::conv_f16 {

namespace conv_sparse {
namespace {

namespace sparse = cuda::gemm_sparse;

constexpr size_t kMostConfigs = 6;

// A config's numbers.
enum ConfigField
{
    kImage,
    kTileP,
    kTileQ,
    kStages,
    kMulticast,
    kConfigFields,
};

Config configOf(sparse::Spec const& s)
{
    return {s.image, s.tileP, s.tileQ, s.stages, s.multicast};
}

// All but the tile.
sparse::Spec baseOf(Problem const& p)
{
    sparse::Spec s;
    if (isQuantized(p.inputs[0].type)) {
        s.integers = integerEndOf(p, p.node->attrsAs<convolution::Attrs>().epilogue);
        s.bias = false;
    } else {
        static_cast<cuda::Epilogue&>(s) = epilogueOf(p);
    }
    return s;
}

// Null: there is no such kernel.
char const* specOf(Problem const& p, Config const& c, sparse::Spec& s)
{
    s = baseOf(p);
    if (!isConfig(c, kConfigFields, 0, 256))
        return "a config has other numbers";
    s.image = c[kImage] != 0;
    s.tileP = int(c[kTileP]);
    s.tileQ = int(c[kTileQ]);
    s.stages = int(c[kStages]);
    s.multicast = int(c[kMulticast]);
    return sparse::unsupported(s);
}

// Of x, the filters, the residual and y.
DataType operandType(sparse::Spec const& s)
{
    return s.integers ? DataType::kInt8 : DataType::kHalf;
}

sparse::Shape shapeOf(sparse::Spec const& s, Geometry const& g, int64_t pixelX = 0, int64_t pixelY = 0)
{
    DataType const t = operandType(s);
    return wgmmaShape(s.image, t, t, g, pixelX, pixelY);
}

char const* unsupportedGeometry(sparse::Spec const& s, Geometry const& g)
{
    if (isEmpty(g))
        return nullptr; // nothing is launched
    if (char const* const why = unsupportedWindow(s.image, g))
        return why;
    return sparse::unsupported(s, shapeOf(s, g));
}

std::vector<Config> configs(Problem const& p)
{
    Geometry const optimum = geometryOf(p, false), maximum = geometryOf(p, true);
    sparse::Spec base = baseOf(p);
    base.image = !isProduct(maximum);
    std::vector<Config> list;
    if (isEmpty(optimum))
        return list;
    for (sparse::Spec const& s :
         sparse::candidates(base, shapeOf(base, optimum), p.cuda->multiprocessors, kMostConfigs))
        if (!unsupportedGeometry(s, maximum) && !unsupportedGeometry(s, optimum))
            list.push_back(configOf(s));
    return list;
}

Support supports(Problem const& p, Arithmetic a)
{
    TW_SUPPORTS(supportsWgmma(p, typeOf(p, a)));
    TensorSpec const& w = p.inputs[1];
    int64_t const step = baseOf(p).stepK();
    if (w.dims[1] < step / 2)
        return Support::no("needs " + std::to_string(step / 2) + " channels or more, of " + std::to_string(step) +
                           " that a step has");
    if (configs(p).empty())
        return Support::no(a == Arithmetic::kInt8 ? "TMA cannot read such an image, or its sums make no i8"
                                                  : "TMA cannot read such an image");
    if (!isTwoOfFour({w.type, w.dims, const_cast<void*>(w.constant->data())}, 1))
        return Support::no("its filters do not follow 2:4 along their channels");
    return Support::yes();
}

double estimate(Problem const& p, Config const& config)
{
    sparse::Spec spec;
    Geometry const g = geometryOf(p, false);
    if (specOf(p, config, spec) || isEmpty(g))
        return 0;
    return sparse::estimateUs(spec, shapeOf(spec, g), p.cuda->multiprocessors);
}

class SparseKernels final : public SpecKernels<sparse::Spec>
{
public:
    SparseKernels(Problem const& p, sparse::Spec const& spec) : SpecKernels(p, sparse::kKernel, spec) {}
    Result<std::vector<std::string>> pack(Problem const& problem) const override;
    bool readsOnDevice(size_t i) const override { return i != 1 && (spec_.integers || SpecKernels::readsOnDevice(i)); }
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override;
};

Result<std::vector<std::string>> SparseKernels::pack(Problem const& p) const
{
    TensorSpec const& w = p.inputs[1];
    int64_t const channels = roundUp(w.dims[1], spec_.stepK()), k = w.dims[2] * w.dims[3] * channels;
    std::string const dense = packFilters(w, w.dims[0], k, placeByPixels, channels);
    std::optional<std::string> packed =
        spec_.integers ? sparse::packSparse(reinterpret_cast<int8_t const*>(dense.data()), w.dims[0], k)
                       : sparse::packSparse(reinterpret_cast<uint16_t const*>(dense.data()), w.dims[0], k);
    if (!packed)
        return notTwoOfFour(node_.name, "its filters, along their channels");
    std::vector<std::string> parts{std::move(*packed)};
    if (!spec_.integers)
        parts.push_back(packBias(p, roundUp8(w.dims[0])));
    return parts;
}

Result<void> SparseKernels::run(CudaLaunch const& launch, RunArgs& args) const
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    Geometry const g = geometryOf(node_, args);
    if (isEmpty(g))
        return {};
    if (char const* const why = unsupportedGeometry(spec_, g))
        return unsupported(why);
    int64_t const pixelX = x.pixelStride();
    sparse::Launch l = sparse::launch(spec_, shapeOf(spec_, g, pixelX, y.pixelStride()), launch.multiprocessors());
    if (spec_.image)
        readInPlace(l.q, g, pixelX, spec_.operandBytes());
    setOutput(l.args, args, spec_.integers ? nullptr : launch.packed(1));
    if (spec_.integers) {
        l.args.end = integerEndArgs(args);
        l.args.channels = int32_t(g.k);
    }
    l.args.weights = launch.packed(0);
    TW_ASSIGN(cuda::TensorMap const mapQ, launch.encode(l.q, x.data));
    TW_ASSIGN(cuda::TensorMap const mapY, launch.encode(l.y, y.data));
    if (!spec_.hasResidual())
        return launch.withGeometry(0, l.geometry, {&mapQ, &mapY, &l.args});
    setPixelStride(l.y, l.args.ldResidual * spec_.operandBytes());
    TW_ASSIGN(cuda::TensorMap const mapResidual, launch.encode(l.y, l.args.residual));
    return launch.withGeometry(0, l.geometry, {&mapQ, &mapY, &mapResidual, &l.args});
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config)
{
    sparse::Spec spec;
    if (char const* const why = specOf(p, config, spec))
        return noKernels(unsupported(why));
    return std::make_unique<SparseKernels>(p, spec);
}

constexpr Algorithm kAlgorithm{Format::kHWC8, supports, [](Problem const& p, Arithmetic) { return configs(p); },
                               [](Problem const& p, Config const& c, Arithmetic) { return estimate(p, c); },
                               [](Problem const& p, Config const& c, Arithmetic) { return generate(p, c); }};

} // namespace
} // namespace conv_sparse

constinit Algorithm const kSparse = conv_sparse::kAlgorithm;

} // namespace tw::ops::conv_f16
