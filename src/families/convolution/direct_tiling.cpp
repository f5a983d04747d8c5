// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/direct_tiling.h"

#include <cmath>

namespace tw::ops {

using convolution::Geometry;

TileKind tileKind(Phase const& axis, int64_t at, int64_t rows)
{
    TileKind kind{int(rows)};
    for (int64_t offset : axis.offsets) {
        int64_t const shift = at * axis.stride + offset; // column that row 0 reads
        int64_t const begin = shift >= 0 ? 0 : divideUp(-shift, axis.stride);
        int64_t const end = shift >= axis.in ? 0 : (axis.in - 1 - shift) / axis.stride + 1;
        kind.push_back(int(std::min(begin, rows)));
        kind.push_back(int(std::clamp<int64_t>(end, 0, rows)));
    }
    return kind;
}

kernels::jit::StepLoop tapSteps(Phase const& axis, TileKind const& kind, int64_t count, int64_t xPixelBytes,
                                int64_t apart, int64_t rowBytes)
{
    kernels::jit::StepLoop l;
    auto const taps = int64_t(axis.offsets.size());
    for (int64_t j = 0; j < taps; ++j)
        for (int64_t u = 0; u < count; ++u)
            l.steps.push_back({int32_t(axis.offsets[size_t(j)] * xPixelBytes + u * apart),
                               int32_t((j * count + u) * rowBytes), kind[size_t(1 + 2 * j)], kind[size_t(2 + 2 * j)]});
    l.aAdvance = int32_t(4 * count);
    l.bAdvance = int32_t(taps * count * rowBytes);
    return l;
}

bool joinPixels(Geometry& g)
{
    for (int i = 0; i < 3; ++i)
        if (g.window[i] != 1 || g.stride[i] != 1 || g.before[i] != 0 || g.in[i] != g.out[i])
            return false;
    g.in[2] = g.out[2] = g.batch * g.out[0] * g.out[1] * g.out[2];
    g.batch = g.in[0] = g.out[0] = g.in[1] = g.out[1] = 1;
    return true;
}

Result<void> checkRow(ir::Node const& node, Geometry const& g, int64_t xPixel, char const* limit)
{
    if (((g.window[2] - 1) * g.dilation[2] + 1 + std::abs(g.before[2])) * xPixel >= int64_t(1) << 28)
        return unsupported(std::string(node.name) + ": a row of the window is wider than " + limit);
    return {};
}

Support supportsDirectWindow(Geometry const& g, bool transposed)
{
    if (transposed && std::max({g.stride[0], g.stride[1], g.stride[2]}) > kMaxPhases)
        return Support::no(fmt::format("takes strides of up to {}", kMaxPhases));
    if (g.window[2] > kMaxTaps || g.window[1] > kMaxRows || g.window[0] * g.window[1] > kMaxRows)
        return Support::no(fmt::format("takes windows of up to {} rows of up to {} elements", kMaxRows, kMaxTaps));
    if (g.window[2] * g.dilation[2] > kMaxBorder || g.before[2] > kMaxBorder)
        return Support::no(fmt::format("takes windows and padding of up to {} columns", kMaxBorder));
    return Support::yes();
}

double estimateDirect(Problem const& p, kernels::jit::Isa isa, Config const& config, int mostRows, int64_t steps,
                      double perCycle, double end)
{
    bool const transposed = isTransposed(*p.node);
    Geometry const g = convolutionGeometry(*p.node, p.inputs[0].dims, p.inputs[1].dims, p.outputs[0].dims);
    double const width = kernels::jit::vectorWidth(isa), vectors = double(config[0]), most = mostRows;
    bool const pixelsAlone = g.window[0] * g.window[1] * g.window[2] * g.stride[0] * g.stride[1] * g.stride[2] == 1;
    double const phases[3] = {transposed ? double(g.stride[0]) : 1, transposed ? double(g.stride[1]) : 1,
                              transposed ? double(g.stride[2]) : 1};
    double const lines = pixelsAlone ? 1 : double(g.batch * g.out[0] * g.out[1]);
    double const columns =
        (pixelsAlone ? double(g.batch * g.out[0] * g.out[1] * g.out[2]) : double(g.out[2])) / phases[2];
    double const tiles = lines * std::ceil(columns / most) * phases[2] * double(g.groups);
    double const rows = columns / std::max(std::ceil(columns / most), 1.);
    double const groupVectors = std::ceil(double(g.k / g.groups) / width), blocks = std::ceil(groupVectors / vectors);
    // At 3 GHz; four cycles until a sum can be used again; 20 ns a call.
    double const perStep = std::max(rows * groupVectors / blocks / perCycle, 4.);
    double const depth = double(steps * g.window[0] * g.window[1] * g.window[2]) / phases[0] / phases[1] / phases[2];
    return tiles * blocks * (perStep * (depth + end) / 3000 + 0.02) / p.threads;
}

} // namespace tw::ops
