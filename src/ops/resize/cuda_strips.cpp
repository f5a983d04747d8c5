// SPDX-License-Identifier: Apache-2.0
// Resizing of FP16 and FP32 images in Format::kHWC8, of sizes that are known when the kernel is written: nearest, and
// linear mixes of up to 2 x 2 pixels; a thread walks down a strip with 16 bytes of channels.
#include "kernels/cuda/common/generate.h"
#include "ops/resize/cuda_scale.h"
#include "ops/resize/resize_params.h"

namespace tw::ops::resize {

namespace strips {
namespace {

constexpr int kThreads = 128;

// A config's numbers.
enum ConfigField
{
    kColumns, // of y, of a strip
    kRows,    // of y, at most, of a strip
    kAhead,   // rows of x that are on their way
    kConfigFields,
};

// What is settled when the text is written.
struct Plan : ImagePlan
{
    int64_t columns = 1, shift = 0, groups = 1, seenWide = 1; // seenWide: columns of x
    int64_t ahead = 1, vectors = 1;                           // vectors: of a pixel
    int64_t pixelX = 0, pixelY = 0;                           // bytes from pixel to pixel

    Plan(Problem const& p, Config const& config) : ImagePlan(p)
    {
        auto const& a = p.node->attrsAs<Attrs>();
        Extents const &x = p.inputs[0].dims, &y = p.outputs[0].dims;
        bool const isNearest = a.mode == Mode::kNearest;
        bands = bandsOf(tall, config[kRows], isNearest);
        // Strips of two columns where those repeat, beginning where they need fewer columns of x.
        int64_t const byWide = int64_t(wide.by.d);
        seenWide = isNearest ? 1 : 2;
        if (config[kColumns] == 2 && wide.times > 0 && 2 * wide.times % byWide == 0) {
            columns = 2;
            auto seenFrom = [&](int64_t from) {
                return (wide.plus + (from + 1) * wide.times) / byWide - (wide.plus + from * wide.times) / byWide;
            };
            shift = wide.plus >= wide.times && seenFrom(-1) < seenFrom(0) ? 1 : 0;
            seenWide += seenFrom(-shift);
        }
        groups = cuda::ceilDiv(wide.out + shift, columns);
        ahead = config[kAhead];
        int const axis = y.rank - 3;
        DataType const t = p.outputs[0].type;
        vectors = cuda::ceilDiv(y[axis] * sizeOf(t), 16);
        pixelX = pixelStrideOf(p.inputs[0].format, t, x[axis]) * sizeOf(t);
        pixelY = pixelStrideOf(p.outputs[0].format, t, y[axis]) * sizeOf(t);
    }
};

Support supports(Problem const& p)
{
    int const rank = p.inputs[0].dims.rank;
    if (rank < 3 || !p.node->outputs[0]->shape[size_t(rank - 3)].isConst())
        return Support::no("resizes images of a known number of channels");
    return supportsKnown(p);
}

std::vector<Formats> formats(Problem const& p)
{
    if (p.outputs[0].dims.rank < 3 || p.inputs[0].constant)
        return {};
    Formats f = linearFormats(p);
    f.inputs[0] = f.outputs[0] = Format::kHWC8;
    return {f};
}

std::vector<Config> configs(Problem const&)
{
    return {{1, 4, 4}, {2, 8, 4}, {1, 8, 4}};
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config)
{
    bool const isKnown = isConfig(config, kConfigFields, 1, 64) && config[kColumns] <= 2 && config[kAhead] <= 8;
    Plan const plan(problem, isKnown ? config : Config{1, 8, 2});
    bool const isNearest = problem.node->attrsAs<Attrs>().mode == Mode::kNearest;
    using cuda::constant;
    CudaSource source{
        .text = sizeConstants(plan.tall, plan.wide, plan.bands, isNearest) + constant("COLUMNS", plan.columns) +
                constant("SHIFT", plan.shift) + constant("GROUPS", plan.groups) + constant("SEEN_W", plan.seenWide) +
                constant("AHEAD", plan.ahead) + constant("VECTORS", plan.vectors) + constant("PIXEL_X", plan.pixelX) +
                constant("PIXEL_Y", plan.pixelY) + constant("THREADS", kThreads) +
                cuda::type("T", cuda::storageOf(problem.outputs[0].type)) +
                cuda::include("ops/resize/resize_strips.cuh"),
        .names = {"resize_strips", "resize_strips_of_parts"},
        .isDependent = true,
        .alignment = 16};
    return kernelsOf(std::move(source), [plan](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        StripParams const p{.x = x.data,
                            .y = y.data,
                            .strips = y.dims.volume(0, y.dims.rank - 3) * plan.groups * plan.vectors,
                            .pixelX = x.pixelStride() * sizeOf(y.type),
                            .pixelY = y.pixelStride() * sizeOf(y.type)};
        bool const isDense = p.pixelX == plan.pixelX && p.pixelY == plan.pixelY;
        return launch(isDense ? 0 : 1, plan.bands.count * blocksFor(p.strips, kThreads), kThreads, p);
    });
}

} // namespace
} // namespace strips

constinit CudaTactic const kStrips{"resize_any_strips_cuda", 1, strips::generate, strips::supports, strips::configs,
                                   strips::formats};

} // namespace tw::ops::resize
