// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions with small windows, FP16 and FP32: each thread goes down a strip of outputs, with its filters
// and the sums that a row of x is part of in registers. Rows of x come some time ahead, into a part of shared memory
// that is the thread's own, so that no thread waits for another.
#include <algorithm>

#include "families/convolution/cuda_conv_depthwise_tile_params.h"
#include "families/convolution/cuda_conv_f16.h"
#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"

namespace tw::ops::conv_f16 {

namespace depthwise_strips {
namespace {

using cuda::ceilDiv;

constexpr int kThreads = 128;
constexpr int64_t kMostRegisters = 232;    // of a thread, for what registersOf() counts
constexpr int64_t kMostShared = 96 * 1024; // of a block
constexpr int64_t kMostStep = 4;
constexpr int64_t kMostTaps = 9;   // of windows: larger ones are faster in tiles
constexpr int64_t kMostSlice = 32; // threads

// A config's numbers.
enum ConfigField
{
    kColumns, // outputs side by side
    kVector,  // channels of a thread
    kRows,    // outputs, one below the other
    kSlice,   // neighbouring threads with channels of the same pixels
    kAhead,   // rows of x, loaded before they are used
    kBlocks,  // of a multiprocessor, at least
    kConfigFields,
};

int64_t columnsOf(Geometry const& g, int64_t columns)
{
    return (columns - 1) * g.stride[2] + (g.window[2] - 1) * g.dilation[2] + 1;
}

// Registers that a thread needs, about.
int64_t registersOf(Geometry const& g, Config const& c)
{
    int64_t const in = columnsOf(g, c[kColumns]), ring = ceilDiv(g.window[1], g.stride[1]);
    return 24 + c[kVector] * (g.window[1] * g.window[2] + 1 + ring * c[kColumns] + in);
}

int64_t sharedBytes(Geometry const& g, Config const& c, bool isHalf)
{
    return c[kAhead] * columnsOf(g, c[kColumns]) * kThreads * c[kVector] * (isHalf ? 2 : 4);
}

bool isVector(int64_t v, bool isHalf)
{
    return v == 2 || v == 4 || (v == 8 && isHalf);
}

// Why a config does not fit; null when it does.
char const* misfit(Geometry const& g, Config const& c, bool isHalf)
{
    if (!isConfig(c, kConfigFields, 1, 64) || c[kColumns] > 8 || !isVector(c[kVector], isHalf) || c[kAhead] > 8 ||
        c[kBlocks] > 8)
        return "a config has other numbers";
    if (sharedBytes(g, c, isHalf) > kMostShared)
        return "a block has too little shared memory";
    return registersOf(g, c) > kMostRegisters ? "a thread has too few registers" : nullptr;
}

std::vector<Config> configs(Problem const& p, Arithmetic arithmetic)
{
    bool const isHalf = arithmetic == Arithmetic::kHalf;
    Geometry const g = geometryOf(p, false), largest = geometryOf(p, true);
    std::vector<Config> list;
    auto add = [&](int64_t columns, int64_t vector, int64_t wanted, int64_t ahead, int64_t blocks) {
        int64_t const vectors = std::max<int64_t>(roundUp8(g.c) / vector, 1), tall = std::max<int64_t>(g.out[1], 1),
                      rows = ceilDiv(tall, ceilDiv(tall, wanted)); // as many each
        // What leaves the fewest threads idle, whole 64 bytes before others, wide first.
        int64_t slice = 1, best = INT64_MAX;
        for (int64_t s = std::min(vectors, kMostSlice); s >= std::min(vectors, kMostSlice / 4); --s)
            if (int64_t const idle = ceilDiv(vectors, s) * s * 2 + (s % 8 != 0); idle < best) {
                best = idle;
                slice = s;
            }
        Config c{columns, vector, rows, slice, ahead, blocks};
        c[kBlocks] = std::clamp<int64_t>(512 / ceilDiv(registersOf(largest, c), 8) / 8, 1, blocks);
        if (columns <= g.out[2] && !misfit(largest, c, isHalf) && std::find(list.begin(), list.end(), c) == list.end())
            list.push_back(c);
    };
    add(4, 4, 14, 3, 3);
    add(7, 4, 14, 4, 2);
    add(2, 4, 8, 4, 4);
    add(4, 4, 28, 3, 3);
    if (list.empty())
        add(1, 4, 8, 4, 4);
    return list;
}

Support supports(Problem const& p, Arithmetic arithmetic)
{
    TW_SUPPORTS(supportsAlone(p, typeOf(p, arithmetic)));
    Geometry const g = geometryOf(p, true);
    if (g.window[1] * g.window[2] > kMostTaps || g.stride[1] > g.window[1] ||
        std::max({g.stride[1], g.stride[2], g.dilation[2]}) > kMostStep || (g.dilation[1] > 1 && g.window[1] > 1))
        return Support::no(fmt::format(
            "takes windows of at most {} positions, whose rows follow each other and overlap or touch, and steps of {}",
            kMostTaps, kMostStep));
    if (isWide(p))
        return Support::no("counts in 32 bits");
    return configs(p, arithmetic).empty() ? Support::no("a thread has too few registers") : Support::yes();
}

std::string textOf(Problem const& p, Config const& config, bool isHalf)
{
    Geometry const largest = geometryOf(p, true);
    return cuda::include("kernels/cuda/common/matrix.cuh") + epilogueSource(p, isHalf) +
           cuda::constant("R", largest.window[1]) + cuda::constant("S", largest.window[2]) +
           cuda::constant("STEP_H", largest.stride[1]) + cuda::constant("STEP_W", largest.stride[2]) +
           cuda::constant("DILATION", largest.dilation[2]) + cuda::constant("COLUMNS", config[kColumns]) +
           cuda::constant("V", config[kVector]) + cuda::constant("ROWS", config[kRows]) +
           cuda::constant("SLICE", config[kSlice]) + cuda::constant("AHEAD", config[kAhead]) +
           cuda::constant("BLOCKS", config[kBlocks]) + cuda::constant("kChannels", roundUp8(largest.c)) +
           cuda::flag("RESIDUAL", hasResidual(p)) + cuda::constant("THREADS", kThreads) + fewSource(isHalf) +
           cuda::include("families/convolution/cuda_conv_depthwise_strips.cuh");
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const& config, Arithmetic arithmetic)
{
    bool const isHalf = arithmetic == Arithmetic::kHalf;
    Geometry const largest = geometryOf(p, true);
    if (char const* const why = misfit(largest, config, isHalf))
        return noKernels(unsupported(why));
    int64_t const shared = sharedBytes(largest, config, isHalf);
    auto const run = [&node = *p.node, config, shared](CudaLaunch const& launch, RunArgs& args) {
        Geometry const g = geometryOf(node, args);
        StripParams a;
        setImages(a, launch, args, g);
        a.vectors = int32_t(roundUp8(g.c) / config[kVector]);
        int64_t const wide = ceilDiv(g.out[2], config[kColumns]), tall = ceilDiv(g.out[1], config[kRows]),
                      slices = ceilDiv(a.vectors, config[kSlice]);
        a.wide = cuda::divBy(wide);
        a.slices = cuda::divBy(slices);
        a.tall = cuda::divBy(tall);
        a.count = uint64_t(g.batch * tall * slices * wide * config[kSlice]);
        a.outH = int32_t(g.out[1]);
        return launch(0, blocksFor(int64_t(a.count), kThreads), kThreads, a, shared);
    };
    return depthwiseKernels(textOf(p, config, isHalf), shared, run);
}

} // namespace
} // namespace depthwise_strips

constinit Algorithm const kDepthwiseStrips{
    pixelFormats, depthwise_strips::supports, depthwise_strips::configs,
    [](Problem const& p, Config const&, Arithmetic) { return estimateUs(p, 20); }, depthwise_strips::generate};

} // namespace tw::ops::conv_f16
