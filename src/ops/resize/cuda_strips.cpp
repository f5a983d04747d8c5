// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/cuda_strips.h"

#include "kernels/cuda/common/generate.h"
#include "ops/resize/cuda_scale.h"
#include "ops/resize/resize_strips_params.h"

namespace tw::ops::resize {

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
struct Plan
{
    Scale tall, wide;
    Bands bands;
    int64_t columns = 1, shift = 0, groups = 1, seenWide = 1; // seenWide: columns of x

    Plan(Problem const& p, Config const& config)
    {
        auto const& a = p.node->attrsAs<Attrs>();
        Extents const &x = p.inputs[0].dims, &y = p.outputs[0].dims;
        tall = scaleOf(a, axisOf(a, x, y, y.rank - 2));
        wide = scaleOf(a, axisOf(a, x, y, y.rank - 1));
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
    }
};

} // namespace

Support supportsStrips(Problem const& p)
{
    int const rank = p.inputs[0].dims.rank;
    if (rank < 3 || !p.node->outputs[0]->shape[size_t(rank - 3)].isConst())
        return Support::no("resizes images of a known number of channels");
    return supportsKnown(p);
}

std::vector<Formats> formatsOfStrips(Problem const& p)
{
    if (p.outputs[0].dims.rank < 3 || p.inputs[0].constant)
        return {};
    Formats f = linearFormats(p);
    f.inputs[0] = f.outputs[0] = Format::kHWC8;
    return {f};
}

std::vector<Config> configsOfStrips(Problem const&)
{
    return {{1, 4, 4}, {2, 8, 4}, {1, 8, 4}};
}

KernelBag generateStrips(Problem const& problem, Config const& config)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    DataType const t = problem.outputs[0].type;
    bool const isNearest = a.mode == Mode::kNearest;
    Config shape{1, 8, 2};
    if (isConfig(config, kConfigFields, 1, 64) && config[kColumns] <= 2 && config[kAhead] <= 8)
        shape = config;
    Plan const plan(problem, shape);
    Extents const &x = problem.inputs[0].dims, &y = problem.outputs[0].dims;
    int const axis = y.rank - 3;
    int64_t const size = sizeOf(t), vectors = cuda::ceilDiv(y[axis] * size, 16),
                  pixelX = pixelStrideOf(problem.inputs[0].format, t, x[axis]) * size,
                  pixelY = pixelStrideOf(problem.outputs[0].format, t, y[axis]) * size;
    KernelBag out;
    out.isDependent = true;
    out.alignment = 16;
    out.names = {"resize_strips", "resize_strips_of_parts"};
    using cuda::constant;
    out.source = sizeConstants(plan.tall, plan.wide, plan.bands, isNearest) + constant("COLUMNS", plan.columns) +
                 constant("SHIFT", plan.shift) + constant("GROUPS", plan.groups) + constant("SEEN_W", plan.seenWide) +
                 constant("AHEAD", shape[kAhead]) + constant("VECTORS", vectors) + constant("PIXEL_X", pixelX) +
                 constant("PIXEL_Y", pixelY) + constant("THREADS", kThreads) + cuda::type("T", cuda::storageOf(t)) +
                 cuda::include("ops/resize/resize_strips.cuh");
    out.run = [plan, vectors, axis, size, pixelX, pixelY](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        StripParams p;
        p.x = x.data;
        p.y = y.data;
        p.strips = y.dims.volume(0, axis) * plan.groups * vectors;
        p.pixelX = x.pixelStride() * size;
        p.pixelY = y.pixelStride() * size;
        bool const isDense = p.pixelX == pixelX && p.pixelY == pixelY;
        return launch(isDense ? 0 : 1, plan.bands.count * blocksFor(p.strips, kThreads), kThreads, p);
    };
    return out;
}

} // namespace tw::ops::resize
