// SPDX-License-Identifier: Apache-2.0
// Groups of channels that lie side by side, over the pixels of an image: by pixels, or linear with the channels last.
#include <algorithm>
#include <numeric>

#include "kernels/cuda/common/generate.h"
#include "ops/layer_norm/layout.h"

namespace tw::ops::layer_norm {

namespace pixels {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostPacks = 8; // pixels of a thread
constexpr int64_t kMostChannels = 1 << 20;

struct Shape
{
    Layout layout;
    Layout::Sizes sizes; // at the optimum
    int64_t width = 1;   // channels of a thread

    explicit Shape(Problem const& problem)
        : layout(layoutOf(problem).byChannels()), sizes(layout.sizes(problem.inputs[0].dims))
    {
        width = 16 / sizeOf(problem.inputs[0].type);
        while (!isByPixel(problem.inputs[0].format) && channels() % width != 0)
            width /= 2;
    }
    int64_t channels() const { return sizes.inner * sizes.k; }
    // Channels that hold whole groups and whole packs.
    int64_t unit() const { return std::lcm(std::max<int64_t>(sizes.k, 1), width); }
    int64_t lanesFor(int64_t segment) const { return (segment + width - 1) / width; }
};

bool fitsBlock(Shape const& s, int64_t segment)
{
    return segment > 0 && s.lanesFor(segment) <= kThreads && segment / s.sizes.k <= kThreads;
}

Support supports(Problem const& problem)
{
    if (problem.node->attrsAs<Attrs>().integers)
        return Support::no("makes no integers");
    Shape const s(problem);
    Layout::Sizes const most = s.layout.sizes(problem.inputs[0].maxDims);
    if (!s.layout.exists() || s.layout.isRows())
        return Support::no("takes groups of neighbouring channels over neighbouring dimensions before them");
    if (s.layout.weights() != Layout::Weights::kNone &&
        (s.layout.weights() != Layout::Weights::kColumns || most.tail != 1 || most.count != s.channels()))
        return Support::no("takes gamma and beta with a number for each channel");
    if (s.channels() != most.inner * most.k || s.channels() < 1 || s.channels() > kMostChannels)
        return Support::no(fmt::format("takes a known number of channels, at most {}", kMostChannels));
    if (!fitsBlock(s, s.channels()) && !fitsBlock(s, s.unit()))
        return Support::no(fmt::format("takes groups of at most {} channels", kThreads * s.width));
    if (most.n > INT32_MAX / 2 || most.outer * most.n > INT32_MAX)
        return Support::no("counts pixels in 32 bits");
    return Support::yes();
}

// {channels of a segment, pixels of a thread at a time, blocks that share an image's segment at the most}
std::vector<Config> configs(Problem const& problem)
{
    Shape const s(problem);
    int64_t const processors = problem.target.cuda ? problem.target.cuda->multiprocessors : 1, channels = s.channels(),
                  line = 128 / sizeOf(problem.inputs[0].type);
    std::vector<Config> list;
    auto add = [&](int64_t segment) {
        if (!fitsBlock(s, segment) || (!list.empty() && list.back()[0] == segment))
            return;
        int64_t const rows = kThreads / s.lanesFor(segment), segments = (channels + segment - 1) / segment;
        int64_t packs = kMostPacks;
        while (packs > 1 && s.sizes.outer * segments * ((s.sizes.n + rows * packs - 1) / (rows * packs)) < processors)
            packs /= 2;
        // Every block adds up what all of its image left: a few for each multiprocessor.
        int64_t const shares = std::max<int64_t>(s.sizes.outer * segments, 1);
        for (int64_t each : {2, 6})
            list.push_back({segment, packs, std::max<int64_t>(processors * each / shares, 1)});
        // Of small images that adding up is most of the time: fewer blocks, with more pixels each.
        if (packs < kMostPacks)
            list.push_back({segment, kMostPacks, std::max<int64_t>(processors / shares, 1)});
    };
    add(std::min((std::max(s.unit(), 2 * line) + s.unit() - 1) / s.unit() * s.unit(), channels));
    add(channels);
    if (list.empty())
        add(s.unit());
    return list;
}

// How pixels and channels are distributed.
struct Choice
{
    int64_t segment, packs, most; // of a config
    int64_t lanes, step;          // threads of a pixel; pixels of a block at a time
    int64_t segments;             // of a pixel

    Choice(Shape const& s, Config const& config)
        : segment(config[0]), packs(config[1]), most(config[2]), lanes(s.lanesFor(segment)),
          step(kThreads / lanes * packs), segments((s.channels() + segment - 1) / segment)
    {}
    // Pixels of a slab: whole steps.
    int64_t each(Layout::Sizes const& of) const
    {
        int64_t const steps = (of.n + step - 1) / step;
        return std::max<int64_t>((steps + most - 1) / most, 1) * step;
    }
    int64_t slabs(Layout::Sizes const& of) const { return (of.n + each(of) - 1) / each(of); }
    int64_t mostSlabs(Layout::Sizes const& of) const { return std::min(most, (of.n + step - 1) / step); }
};

CudaSource sourceOf(Problem const& problem, Shape const& shape, Choice const& choice, bool slabsAreNeighbours)
{
    return {.text = constantsOf(problem) + cuda::constant("kThreads", kThreads) +
                    cuda::constant("kLanes", choice.lanes) + cuda::constant("kWidth", shape.width) +
                    cuda::constant("kPacks", choice.packs) + cuda::constant("kSegment", choice.segment) +
                    cuda::constant("kGroup", shape.sizes.k) + cuda::flag("kSlabsAreNeighbours", slabsAreNeighbours),
            .wide = isWide(problem),
            .isDependent = true,
            .alignment = shape.width * sizeOf(problem.inputs[0].type)};
}

PixelParams paramsOf(Attrs const& attrs, Layout::Sizes const& of, Choice const& choice, RunArgs& args)
{
    bool const pixels = isByPixel(args.inputs[0].format);
    PixelParams p;
    setTensors(attrs, args, p);
    p.n = uint64_t(of.n);
    p.channels = int32_t(of.inner * of.k);
    p.xPitch = uint64_t(pixels ? args.inputs[0].pixelStride() : p.channels);
    p.yPitch = uint64_t(pixels ? args.outputs[0].pixelStride() : p.channels);
    p.groups = int32_t(of.inner);
    p.slabs = int32_t(choice.slabs(of));
    p.each = int32_t(choice.each(of));
    p.segments = int32_t(choice.segments);
    return p;
}

std::unique_ptr<CudaKernels> pixelKernels(Problem const& problem, Shape const& shape, Choice const& choice)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    CudaSource source = sourceOf(problem, shape, choice, false);
    source.text += cuda::include("ops/layer_norm/layer_norm_pixels.cuh");
    source.names = {"measure", "normalize"};
    return kernelsOf(
        std::move(source),
        [&attrs, layout = shape.layout, choice](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            Layout::Sizes const of = layout.sizes(args.inputs[0].dims);
            if (of.all() == 0)
                return {};
            PixelParams p = paramsOf(attrs, of, choice, args);
            p.parts = args.workspace;
            int64_t const blocks = of.outer * p.slabs * choice.segments;
            TW_TRY(launch(0, blocks, kThreads, p));
            return launch(1, blocks, kThreads, p);
        },
        [layout = shape.layout, choice](std::span<TensorRef const> in, std::span<TensorRef const>) {
            Layout::Sizes const of = layout.sizes(in[0].dims);
            return of.outer * choice.mostSlabs(of) * of.inner * int64_t(2 * sizeof(float));
        });
}

// A config of `count` numbers that begins with whole groups and packs of channels, and at most so many pixels of a thread.
bool isKnown(Shape const& s, Config const& config, size_t count, int64_t mostPacks)
{
    return isConfig(config, count, 1, kMostChannels) && fitsBlock(s, config[0]) &&
           (config[0] == s.channels() || config[0] % s.unit() == 0) && config[1] <= mostPacks;
}
std::unique_ptr<CudaKernels> unknownConfig()
{
    return noKernels(invalidArgument("the plan's configuration of a layer norm names no kernel"));
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config)
{
    Shape const s(problem);
    if (!isKnown(s, config, 3, kMostPacks))
        return unknownConfig();
    return pixelKernels(problem, s, Choice(s, config));
}

// ---- Pixels that stay in registers.

constexpr int64_t kMostHeldPacks = 16, kMostHeldSlabs = 8;
constexpr size_t kMostHeldConfigs = 2;

// {channels of a segment, pixels of a thread}
Choice heldChoice(Shape const& s, Config const& config)
{
    return {s, {config[0], config[1], kMostHeldSlabs}};
}

// All pixels of an image fit into a cluster.
bool holds(Choice const& choice, int64_t pixels)
{
    return pixels <= choice.step * kMostHeldSlabs;
}

// Segments from one vector up to a line of memory, with as few pixels of a thread as a cluster allows, but not many more
// blocks than multiprocessors; those first that take the fewest turns with the fewest pixels.
std::vector<Config> heldConfigs(Problem const& problem)
{
    Shape const s(problem);
    int64_t const processors = problem.target.cuda ? problem.target.cuda->multiprocessors : 1,
                  most = s.layout.sizes(problem.inputs[0].maxDims).n;
    std::vector<cuda::Guess<Config>> found;
    for (int64_t vectors : {1, 2, 4, 8}) {
        int64_t const segment = std::min((vectors * s.width + s.unit() - 1) / s.unit() * s.unit(), s.channels());
        if (!fitsBlock(s, segment) || (!found.empty() && found.back().spec[0] == segment))
            continue;
        auto blocks = [&](int64_t packs) {
            Choice const c = heldChoice(s, {segment, packs});
            return s.sizes.outer * c.segments * ((s.sizes.n + c.step - 1) / c.step);
        };
        int64_t packs = 1;
        while (packs < kMostHeldPacks &&
               (!holds(heldChoice(s, {segment, packs}), most) || blocks(packs) > 2 * processors))
            packs *= 2;
        if (!holds(heldChoice(s, {segment, packs}), most))
            continue;
        // A turn: to begin and to add up, and each pixel; half a sector of memory is read for nothing by single vectors.
        double const turns = double((blocks(packs) + 2 * processors - 1) / (2 * processors));
        found.push_back({turns * (8 + double(packs)) * (vectors == 1 ? 1.2 : 1), {segment, packs}});
    }
    return cuda::bestOf(std::move(found), kMostHeldConfigs);
}

Support supportsHeld(Problem const& problem)
{
    if (!problem.target.cuda || problem.target.cuda->capability < 90)
        return Support::no("needs a GPU of compute capability 9.0");
    TW_SUPPORTS(supports(problem));
    return heldConfigs(problem).empty() ? Support::no("the registers of a cluster do not hold an image")
                                        : Support::yes();
}

std::unique_ptr<CudaKernels> generateHeld(Problem const& problem, Config const& config)
{
    Shape const s(problem);
    if (!isKnown(s, config, 2, kMostHeldPacks))
        return unknownConfig();
    Choice const choice = heldChoice(s, config);
    CudaSource source = sourceOf(problem, s, choice, true);
    source.text += cuda::constant("kMostSlabs", kMostHeldSlabs) + cuda::include("ops/layer_norm/layer_norm_held.cuh");
    source.names = {"layer_norm"};
    return kernelsOf(std::move(source),
                     [&attrs = problem.node->attrsAs<Attrs>(), layout = s.layout,
                      choice](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
                         Layout::Sizes const of = layout.sizes(args.inputs[0].dims);
                         if (of.all() == 0)
                             return {};
                         if (!holds(choice, of.n))
                             return unsupported("more pixels than the registers of a cluster hold");
                         PixelParams const p = paramsOf(attrs, of, choice, args);
                         cuda::LaunchGeometry g;
                         g.grid = of.outer * choice.segments * p.slabs;
                         g.block = kThreads;
                         g.cluster = p.slabs;
                         return launch.withGeometry(0, g, {&p});
                     });
}

} // namespace
} // namespace pixels

constinit CudaTactic const kPixels{
    "layer_norm_any_nhwc_cuda", 2, pixels::generate, pixels::supports, pixels::configs, withPixels};
constinit CudaTactic const kHeldPixels{
    "layer_norm_any_held_sm90", 1, pixels::generateHeld, pixels::supportsHeld, pixels::heldConfigs, withPixels};

} // namespace tw::ops::layer_norm
