// SPDX-License-Identifier: Apache-2.0
// Resizing of FP16, FP32 and i8 images by pixels (pixelVectorsOf()): nearest, and linear mixes of floats of up to 2 x 2
// pixels; 16 bytes of channels for each thread.
#include <algorithm>

#include "base/format.h"
#include "ops/resize/cuda_scale.h"
#include "ops/resize/op.h"
#include "ops/resize/resize_params.h"

namespace tw::ops::resize {

namespace nhwc {
namespace {

constexpr int kThreads = 256;

template <DataType type>
Support supports(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    TensorSpec const &x = p.inputs[0], &y = p.outputs[0];
    if (x.type != type)
        return Support::no(std::string("takes ") + nameOf(type) + " only");
    if (isQuantized(type) && a.mode != Mode::kNearest)
        return Support::no("takes the nearest of i8 only");
    if (a.mode == Mode::kCubic)
        return Support::no("does not mix by cubic weights");
    int const rank = x.dims.rank;
    if (rank < 3)
        return Support::no("resizes images");
    for (int d = 0; d < rank - 2; ++d)
        if (!(p.node->inputs[0]->shape[size_t(d)] == p.node->outputs[0]->shape[size_t(d)]))
            return Support::no("resizes the two axes behind the channels only");
    for (int d = 0; d < rank - 2; ++d) {
        Fraction const scale = axisOf(a, x.maxDims, y.maxDims, d).scale;
        if (scale.over != scale.under)
            return Support::no("resizes the two axes behind the channels only");
    }
    if (isWide(p) || storageCount(pixelVectorsOf(type), y.type, y.maxDims) >= INT32_MAX)
        return Support::no("counts in 32 bits");
    return Support::yes();
}

CudaSource sourceOf(Problem const& problem)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    return {.text = coordinateConstants(a) + cuda::type("T", cuda::storageOf(problem.inputs[0].type)) +
                    cuda::flag("kIsNearest", a.mode == Mode::kNearest) +
                    cuda::flag("kExcludesOutside", a.excludeOutside) + cuda::include("ops/resize/resize_pixels.cuh"),
            .names = {"resize", "resize_long"},
            .isDependent = true,
            .alignment = 16};
}

std::vector<Formats> formats(Problem const& p)
{
    if (p.outputs[0].dims.rank < 3 || p.inputs[0].constant)
        return {};
    Formats f = linearFormats(p);
    f.inputs[0] = f.outputs[0] = pixelVectorsOf(p.outputs[0].type);
    return {f};
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const&)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    return kernelsOf(sourceOf(problem), [&attrs](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        int const axis = y.dims.rank - 3;
        PixelParams p;
        p.x = x.data;
        p.y = y.data;
        int64_t const channels = 16 / sizeOf(x.type), vectors = (y.dims[axis] + channels - 1) / channels,
                      tall = y.dims[axis + 1], wide = y.dims[axis + 2];
        p.vectors = cuda::divBy(vectors);
        p.wide = cuda::divBy(wide);
        p.tall = cuda::divBy(tall);
        p.count = uint64_t(y.dims.volume(0, axis) * tall * wide * vectors);
        p.pixelX = x.pixelStride();
        p.pixelY = y.pixelStride();
        bool isLong = false; // coordinates take 64 bits
        for (int i = 0; i < 2; ++i) {
            Axis const of = axisOf(attrs, x.dims, y.dims, axis + 1 + i);
            isLong = isLong || (std::max(of.in, of.out) + 1) * std::max(of.scale.over, of.scale.under) > INT32_MAX / 8;
            p.in[i] = of.in;
            p.over[i] = of.scale.over;
            p.under[i] = of.scale.under;
        }
        return launch(isLong ? 1 : 0, blocksFor(int64_t(p.count), kThreads), kThreads, p);
    });
}

} // namespace
} // namespace nhwc

constinit CudaTactic const kNhwc{"resize_f16_nhwc_cuda",          1,       nhwc::generate,
                                 nhwc::supports<DataType::kHalf>, nullptr, nhwc::formats};
constinit CudaTactic const kNhwcF32{"resize_f32_nhwc_cuda",           1,       nhwc::generate,
                                    nhwc::supports<DataType::kFloat>, nullptr, nhwc::formats};
constinit CudaTactic const kNhwcI8{"resize_i8_nhwc_cuda",           1,       nhwc::generate,
                                   nhwc::supports<DataType::kInt8>, nullptr, nhwc::formats};

} // namespace tw::ops::resize
