// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_pointwise.h"
#include "ops/quantize/op.h"
#include "ops/quantize/quantize_pixels_params.h"

namespace tw::ops::quantize {

namespace {

void views(ir::Node const& node, RunArgs const& args, Extents& y, Extents* operands)
{
    scaleViews(node.attrsAs<Attrs>().axis, args, y, operands);
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const&)
{
    // The store rounds half to even, saturates, and makes NaN 0.
    return pointwiseKernels(p, {"quantize",
                                {0, 1},
                                cuda::include("kernels/cuda/common/steps.cuh") +
                                    "TW_INLINE float apply(float x, float scale) { return Steps(scale)(x); }\n",
                                views});
}

std::vector<Formats> formats(Problem const& p)
{
    return pointwiseFormats(p, {0, 1}, views);
}

// From planes to pixels, without an i8 tensor in between.
std::unique_ptr<CudaKernels> pixelKernels(Problem const& p, Config const&)
{
    CudaSource source = {
        .text = cuda::type("T", cuda::storageOf(p.inputs[0].type)) + cuda::include("ops/quantize/quantize_pixels.cuh"),
        .names = {"quantize_pixels"},
        .wide = isWide(p) || storageCount(p.outputs[0].format, DataType::kInt8, p.outputs[0].maxDims) >= INT32_MAX,
        .isDependent = true,
        .alignment = 16};
    return kernelsOf(std::move(source), [](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        constexpr int kThreads = 256, kChannels = 16;
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        int const axis = x.dims.rank - 3;
        int64_t const pixels = x.dims[axis + 1] * x.dims[axis + 2], groups = blocksFor(x.dims[axis], kChannels);
        PixelsParams p{.x = x.data,
                       .scale = args.inputs[1].as<float>(),
                       .y = y.data,
                       .count = uint64_t(x.dims.volume(0, axis) * groups * pixels),
                       .pixels = cuda::divBy(pixels),
                       .groups = cuda::divBy(groups),
                       .channels = x.dims[axis]};
        p.planes = p.channels * pixels;
        p.pixelY = y.pixelStride();
        p.scaleStep = args.inputs[1].count() == 1 ? 0 : 1;
        return launch(0, blocksFor(int64_t(p.count), kThreads), kThreads, p);
    });
}

Support supportsPixels(Problem const& p)
{
    int const axis = p.node->attrsAs<Attrs>().axis;
    return axis == Attrs::kPerTensor || axis == p.inputs[0].dims.rank - 3
               ? Support::yes()
               : Support::no("takes one scale, or one for each channel");
}

std::vector<Formats> formatsOfPixels(Problem const& p)
{
    if (p.inputs[0].dims.rank < 3 || p.inputs[0].constant)
        return {};
    Formats f = linearFormats(p);
    f.outputs[0] = Format::kHWC16;
    return {f};
}

constexpr CudaTactic kPixels{
    "quantize_any_planes_to_pixels_cuda", 3, pixelKernels, supportsPixels, nullptr, formatsOfPixels};
constexpr CudaTactic kPlain{"quantize_any_plain_cuda", 4, generate, nullptr, nullptr, formats};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPixels, kPlain>;

} // namespace tw::ops::quantize
