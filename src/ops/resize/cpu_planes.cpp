// SPDX-License-Identifier: Apache-2.0
// Linear mixes of planes, the last two axes alone: rows of x are stretched to the width of y, each once for all rows of y that it takes
// part in, and a row of y is a mix of two of those. What results for people to look at (maps of classes, depths) is asked for in
// planes, and larger than what it is made of: no copy behind it.
#include <algorithm>
#include <cstring>

#include "base/round.h"
#include "ops/resize/cpu_taps.h"

namespace tw::ops::resize {

namespace {

constexpr int64_t kColumns = 1024; // of two stretched rows, which stay in L1
constexpr int64_t kBandRows = 32;  // of y, for a worker at a time

Support supportsPlanes(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    ir::Shape const &x = p.node->inputs[0]->shape, &y = p.node->outputs[0]->shape;
    if (a.mode != Mode::kLinear)
        return Support::no("does linear mixes");
    if (x.size() < 2)
        return Support::no("takes two dimensions and more");
    for (size_t i = 0; i + 2 < x.size(); ++i)
        if (!(x[i] == y[i]) || (!a.scales.empty() && a.scales[i] != 1))
            return Support::no("resizes the last two axes only");
    return Support::yes();
}

// Of the columns of y, the two taps that linear mixes have.
struct Columns
{
    int32_t *from, *to;
    float *first, *second;
};

// Some columns of y in a plane.
class PlaneBlock
{
public:
    PlaneBlock(kernels::ChannelsLastKernels const& k, float const* x, int64_t width, Columns const& c, int64_t first,
               int64_t count)
        : k_(k), x_(x), width_(width), c_{c.from + first, c.to + first, c.first + first, c.second + first},
          count_(count)
    {}

    // The taps of a row of y: indices and weights of two rows of x.
    void row(int32_t const* index, float const* weight, float* y)
    {
        if (weight[1] == 0 || weight[0] == 0) {
            std::memcpy(y, stretched(index[weight[0] == 0]), size_t(count_) * sizeof(float));
            return;
        }
        float const* const a = stretched(index[0]);
        k_.mixRows(a, stretched(index[1]), weight[0], weight[1], count_, y);
    }

private:
    // The buffer that was used longer ago makes room.
    float const* stretched(int64_t row)
    {
        for (int i : {last_, 1 - last_})
            if (rows_[i] == row) {
                last_ = i;
                return buffers_[i];
            }
        last_ = 1 - last_;
        rows_[last_] = row;
        k_.mixColumns(x_ + row * width_, c_.from, c_.to, c_.first, c_.second, count_, buffers_[last_]);
        return buffers_[last_];
    }

    kernels::ChannelsLastKernels const& k_;
    float const* x_;
    int64_t width_;
    Columns c_;
    int64_t count_;
    int64_t rows_[2] = {-1, -1};
    int last_ = 0;
    alignas(64) float buffers_[2][kColumns];
};

Result<void> runPlanes(ir::Node const& node, kernels::ChannelsLastKernels const& k, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int const rank = x.dims.rank;
    int64_t const height = x.dims[rank - 2], width = x.dims[rank - 1], outH = y.dims[rank - 2], outW = y.dims[rank - 1];
    int64_t const planes = y.dims.volume(0, rank - 2), bands = divideUp(outH, kBandRows);
    auto* weights = static_cast<float*>(args.workspace);
    auto* indices = reinterpret_cast<int32_t*>(weights + (outH + outW) * kMaxTaps);
    TapTable<float> const rows{indices, weights}, columns{indices + outH * kMaxTaps, weights + outH * kMaxTaps};
    fillTable(a, axisOf(a, x.dims, y.dims, rank - 2), rows);
    fillTable(a, axisOf(a, x.dims, y.dims, rank - 1), columns);
    auto* const taps = reinterpret_cast<float*>(indices + (outH + outW) * kMaxTaps);
    auto* const where = reinterpret_cast<int32_t*>(taps + 2 * outW);
    Columns const c{where, where + outW, taps, taps + outW};
    for (int64_t o = 0; o < outW; ++o) {
        c.from[o] = columns.index[o * kMaxTaps + 1];
        c.to[o] = columns.index[o * kMaxTaps + 2];
        c.first[o] = columns.weight[o * kMaxTaps + 1];
        c.second[o] = columns.weight[o * kMaxTaps + 2];
    }
    eachInPieces(*args.workers, planes * bands, x.sizeBytes() + y.sizeBytes(), [&](int64_t piece) {
        int64_t const plane = piece / bands, begin = piece % bands * kBandRows, end = std::min(begin + kBandRows, outH);
        float* const to = y.as<float>() + plane * outH * outW;
        for (int64_t first = 0; first < outW; first += kColumns) {
            PlaneBlock block(k, x.as<float>() + plane * height * width, width, c, first,
                             std::min(kColumns, outW - first));
            for (int64_t o = begin; o < end; ++o)
                block.row(rows.index + o * kMaxTaps + 1, rows.weight + o * kMaxTaps + 1, to + o * outW + first);
        }
    });
    return {};
}

int64_t planesWorkspace(ir::Node const&, std::span<TensorRef const>, std::span<TensorRef const> out)
{
    Extents const& y = out[0].dims;
    int64_t const outW = y[y.rank - 1];
    return ((outW + y[y.rank - 2]) * kMaxTaps + 2 * outW) * int64_t(sizeof(float) + sizeof(int32_t));
}

} // namespace

using kernels::jit::Isa;
constexpr VectorTactic kPlanesAvx512{
    "resize_f32_planes_avx512", 1, Isa::kAvx512, runPlanes, supportsPlanes, onlyLinear, planesWorkspace};
constexpr VectorTactic kPlanesAvx2{"resize_f32_planes_avx2", 1,          Isa::kAvx2,     runPlanes,
                                   supportsPlanes,           onlyLinear, planesWorkspace};

} // namespace tw::ops::resize
