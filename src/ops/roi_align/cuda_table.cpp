// SPDX-License-Identifier: Apache-2.0
// Kernels that find the pixels of a roi's bins once for some channels, of maps in planes or by pixels.
#include <algorithm>

#include "base/round.h"
#include "ops/roi_align/cuda_roi_align.h"
#include "ops/roi_align/op.h"

namespace tw::ops::roi_align {

namespace {

constexpr int kBlockThreads = 256;
constexpr int64_t kMostShared = 48 * 1024, kMostStage = 24 * 1024; // bytes of a block
constexpr int64_t kBytesOfBin = 12, kBytesOfTap = 12;

struct Table
{
    int64_t down = 0, across = 0; // taps
    int64_t bytes(Attrs const& a) const
    {
        return roundUp((a.height + a.width) * kBytesOfBin + (down + across) * kBytesOfTap, kMostUnit);
    }
};

// For maps of these sizes.
template <class Maps, class Dims>
Table tableOf(Attrs const& a, Maps const& maps, Dims const& dimsOf)
{
    int64_t h = 0, w = 0;
    for (auto const& map : maps) {
        h = std::max(h, dimsOf(map)[2]);
        w = std::max(w, dimsOf(map)[3]);
    }
    return {tapsOf(a, a.height, h), tapsOf(a, a.width, w)};
}
Table tableOf(Problem const& p)
{
    return tableOf(p.node->attrsAs<Attrs>(), std::span(p.inputs).subspan(kMaps),
                   [](TensorSpec const& t) -> Extents const& { return t.maxDims; });
}

int64_t stageBytes(Problem const& p, int64_t chunk)
{
    auto const& a = p.node->attrsAs<Attrs>();
    bool const isTurned = isByPixel(p.inputs[kMaps].format) && !isByPixel(p.outputs[0].format);
    return isTurned ? chunk * a.height * a.width * sizeOf(p.outputs[0].type) : 0;
}

Support supportsTable(Problem const& p)
{
    int64_t const bytes = tableOf(p).bytes(p.node->attrsAs<Attrs>());
    if (bytes > kMostShared - kMostStage)
        return Support::no(fmt::format("the pixels of a region need {} bytes of shared memory (at most {})", bytes,
                                       kMostShared - kMostStage));
    if (stageBytes(p, 32) > kMostStage)
        return Support::no("32 channels of a region do not fit into shared memory");
    return Support::yes();
}

std::vector<Config> configs(Problem const& p)
{
    std::vector<Config> list;
    int64_t const channels = p.inputs[kMaps].dims[1];
    for (int64_t chunk : {64, 32, 128, 256})
        if (stageBytes(p, chunk) <= kMostStage && (list.empty() || chunk < 2 * channels))
            list.push_back({chunk});
    return list;
}

std::vector<Formats> byPixel(Problem const& p)
{
    Formats pixels = linearFormats(p);
    Format const format = pixelVectorsOf(p.outputs[0].type);
    pixels.inputs.resize(p.inputs.size(), Format::kLinear);
    std::fill(pixels.inputs.begin() + kMaps, pixels.inputs.end(), format);
    Formats turned = pixels;
    pixels.outputs = {format};
    return {pixels, turned};
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    bool const isPixels = isByPixel(problem.inputs[kMaps].format), isOutByPixel = isByPixel(problem.outputs[0].format);
    int64_t const given = isConfig(config, 1, 32, 256) ? config[0] : 64;
    int64_t const chunk = given % 32 == 0 && stageBytes(problem, given) <= kMostStage ? given : 32;
    int64_t const vector = isPixels ? kMostUnit / sizeOf(problem.outputs[0].type) : 0;
    CudaSource source{.text = constantsOf(problem) + cuda::constant("kVector", vector) +
                              cuda::constant("kChunk", chunk) + cuda::flag("kIsByPixel", isOutByPixel) +
                              cuda::include("ops/roi_align/roi_align_table.cuh"),
                      .names = {"roi_align_table"},
                      .wide = isWide(problem),
                      .alignment = isPixels ? kMostUnit : 1,
                      .sharedBytes = tableOf(problem).bytes(a) + stageBytes(problem, chunk)};
    int64_t const stage = stageBytes(problem, chunk);
    return kernelsOf(std::move(source), [&a, chunk, stage](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &map = args.inputs[kMaps], &y = args.outputs[0];
        if (y.count() == 0)
            return {};
        Table const table = tableOf(a, args.inputs.subspan(kMaps), [](TensorRef const& t) { return t.dims; });
        Params p = paramsOf(args);
        p.down = int32_t(table.down);
        p.stage = uint32_t(table.bytes(a));
        p.pixel = int32_t(isByPixel(map.format) ? map.pixelStride() : 0);
        p.yPixel = int32_t(isByPixel(y.format) ? y.pixelStride() : 0);
        return launch.grid(0, args.inputs[kRois].dims.volume() / 4, divideUp(p.channels, chunk), 1, kBlockThreads, p,
                           table.bytes(a) + stage);
    });
}

} // namespace

constinit CudaTactic const kPlanes{"roi_align_any_planes_cuda", 1, generate, supportsTable, configs};
constinit CudaTactic const kNhwc{"roi_align_any_nhwc_cuda", 1, generate, supportsTable, configs, byPixel};

} // namespace tw::ops::roi_align
