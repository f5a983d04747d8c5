// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/round.h"
#include "families/convolution/tactics.h"
#include "families/convolution/winograd_kernel.h"
#include "kernels/cpu/jit/gemm_kernel.h"

namespace tw::ops {

namespace winograd {
namespace {

namespace jit = kernels::jit;

constexpr int64_t kMaxChannels = 1 << 15, kMaxTiles = 1 << 12; // of a block: offsets stay below 2^31
constexpr int64_t kPackedLimit = 20 << 20;                     // bytes
constexpr int64_t kShared = 1, kInPlace = 2;                   // bits of config[1]
constexpr int64_t kColumns = 32;                               // columns of blocks come in multiples of this

bool lastTwoAreOne(std::vector<int64_t> const& list)
{
    return list[list.size() - 2] == 1 && list[list.size() - 1] == 1;
}

// What is summed over at a position: channels, those of each plane of the window.
int64_t channelsOf(Extents const& w)
{
    return w[1] * (w.rank == 5 ? w[2] : 1);
}

Support supports(CpuTactic const&, Problem const& p)
{
    if (isTransposed(*p.node))
        return Support::no("takes no transposed convolutions");
    auto const& a = p.node->attrsAs<KernelWindowAttrs>();
    TensorSpec const &x = p.inputs[0], &w = p.inputs[1];
    TW_SUPPORTS(takesOnly(DataType::kFloat, p, p.inputs.size()));
    int const rank = w.dims.rank;
    if ((rank != 4 && rank != 5) || x.dims.rank != rank || w.dims[rank - 2] != 3 || w.dims[rank - 1] != 3)
        return Support::no("takes 3x3 windows on tensors of rank 4, dx3x3 windows on tensors of rank 5 only");
    if (!lastTwoAreOne(a.strides) || !lastTwoAreOne(a.dilations) || a.groups != 1)
        return Support::no("takes strides and dilations of 1 (along the last two axes) and one group only");
    if (!w.constant || (p.inputs.size() > 2 && p.inputs[2].present && !p.inputs[2].constant))
        return Support::no("needs constant weights and bias");
    if (w.dims[0] < 1 || w.dims[1] < 1 || w.dims[0] > kMaxChannels || channelsOf(w.dims) > kMaxChannels)
        return Support::no(
            fmt::format("takes 1 to {} channels, those of all planes of a window together", kMaxChannels));
    return Support::yes();
}

std::vector<Config> configs(CpuTactic const&, Problem const& p)
{
    int64_t const c = channelsOf(p.inputs[1].dims), k = p.inputs[1].dims[0];
    int64_t const tiles = winogradTiles(4, p.outputs[0].dims), l2 = p.target.cpu->l2Bytes;
    auto weightsBytes = [&](int64_t m) { return (m + 2) * (m + 2) * c * k * 4; };
    std::vector<Config> list;
    auto add = [&](int64_t m, int64_t how, int64_t blockTiles, int64_t columns, int64_t piece) {
        list.push_back({m, how, blockTiles, std::min(columns, roundUp(k, kColumns)), piece});
    };
    // In the order of memory, since equally fast ones go to the first. Beyond kPackedLimit weights come from main
    // memory each time, which other threads need too, and engines grow: there they stay small.
    bool const few = tiles < 96 * p.threads, small = weightsBytes(4) <= kPackedLimit;
    if (c * k >= 2048)
        add(4, kInPlace | (few ? kShared : 0), 64, 32, 64);
    if (tiles <= 16 && weightsBytes(2) <= kPackedLimit)
        add(2, kShared, 56, 64, 128);
    if (small)
        add(4, 0, 14, 128, 128);
    if (small && tiles > 14 * p.threads)
        add(4, 0, 28, 64, 128);
    if (small && weightsBytes(4) > l2 && few)
        add(4, kShared, 64, 32, 128);
    return list;
}

double estimate(CpuTactic const& t, Problem const& p, Config const& config)
{
    int64_t const m = config[0], positions = (m + 2) * (m + 2);
    double const c = double(channelsOf(p.inputs[1].dims)), k = double(p.inputs[1].dims[0]);
    double const tiles = double(winogradTiles(int(m), p.outputs[0].dims)),
                 blocks = std::max(1., tiles / double(config[2]));
    double const width = jit::vectorWidth(t.isa()),
                 perCycle = t.isa() == jit::Isa::kAvx512 ? 1.5 : 2; // vectors, at 3 GHz
    bool const inPlace = (config[1] & kInPlace) != 0;
    double cycles = double(positions) * tiles * c * roundUp(int64_t(k), int64_t(width)) / width / perCycle +
                    double(positions) * 5 * tiles * (c + k) / width;
    if (inPlace)
        cycles += double(positions) * 3 * c * k / width * blocks;
    // Weights come from beyond the second-level cache, once for each block of tiles: 20 bytes a nanosecond.
    double const bytes = 4. * (inPlace ? 9. : double(positions)) * c * k * blocks;
    return std::max(cycles / 3000. / p.threads, bytes / 20000.) + 5;
}

bool isWinogradConfig(Config const& config)
{
    return config.size() == 5 && (config[0] == 2 || config[0] == 4) && config[1] >= 0 && config[1] <= 3 &&
           config[2] >= 1 && config[2] <= kMaxTiles && config[3] >= kColumns && config[3] <= kMaxChannels &&
           config[3] % kColumns == 0 && config[4] >= 16 && config[4] <= kMaxChannels;
}

// Of filters in panels, or packed ones.
CpuFunctions::Loaded make(CpuTactic const& t, Problem const& p, Config const& config, BlobPtr const& panels,
                          PackedConstants* packed)
{
    if (!isWinogradConfig(config))
        return t.wrongConfig(
            fmt::format("{{2 or 4, 0 or 1, tiles up to {}, columns in multiples of {}}}", kMaxTiles, kColumns));
    Extents const& w = p.inputs[1].dims;
    auto const& a = p.node->attrsAs<KernelWindowAttrs>();
    KernelWindowGeometry const g = geometryOf(WindowKind::kConvolution, a, p.inputs[0].dims, w, p.outputs[0].dims);
    WinogradSpec s;
    s.isa = t.isa();
    s.m = int(config[0]);
    s.shared = (config[1] & kShared) != 0;
    s.inPlace = (config[1] & kInPlace) != 0;
    s.tiles = config[2];
    s.columns = config[3];
    s.piece = config[4];
    s.threads = std::max(p.threads, 1);
    s.k = w[0];
    s.c = channelsOf(w);
    s.depth = {g.window[0], g.stride[0], g.dilation[0], g.before[0]};
    s.before[0] = g.before[1];
    s.before[1] = g.before[2];
    static_cast<kernels::jit::SumEnd&>(s) = jitEnd(*p.node);
    if (!s.inPlace && s.positions() * s.c * std::min(s.columns, roundUp(s.k, kColumns)) >= int64_t(1) << 29)
        return invalidArgument("{}: packed weights of {} columns are 2 GiB or more", t.name(), s.columns);
    int64_t const rowFloats = std::max(roundUp(s.c, kColumns), s.columns) + kColumns;
    if (s.positions() * (s.tiles + 1) * rowFloats >= int64_t(1) << 29)
        return invalidArgument("{}: blocks of {} tiles and {} channels are 2 GiB or more", t.name(), s.tiles,
                               rowFloats);
    bool const bias = p.inputs.size() > 2 && p.inputs[2].present;
    return makeWinogradKernel(s, *p.inputs[1].constant, bias ? p.inputs[2].constant->as<float>() : nullptr, panels,
                              packed);
}

CpuFunctions::Loaded load(CpuTactic const& t, Problem const& p, Config const& config, PackedConstants& packed)
{
    return make(t, p, config, nullptr, &packed);
}

std::optional<PanelOrder> panelOrder(CpuTactic const& t, Problem const& p, Config const& config)
{
    // What is made of them at load is all that others read.
    if (!isWinogradConfig(config) || (config[1] & kInPlace) == 0 || p.inputs[1].dims.rank != 4)
        return std::nullopt;
    return winogradPanels(t.isa(), p.inputs[1].dims[0], p.inputs[1].dims[1], config[3]);
}

CpuFunctions::Loaded loadPanels(CpuTactic const& t, Problem const& p, Config const& config, BlobPtr const& panels)
{
    return make(t, p, config, panels, nullptr);
}

} // namespace
} // namespace winograd

constexpr CpuFunctions kWinogradConvolution{winograd::supports,  allChannelsLast, winograd::configs,
                                            winograd::estimate,  winograd::load,  winograd::panelOrder,
                                            winograd::loadPanels};

} // namespace tw::ops
