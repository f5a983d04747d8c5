// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include <emmintrin.h>

#include "base/element.h"
#include "ops/resize/cpu_taps.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::resize {

namespace {

constexpr int kMixedAxes = 3; // linear: the last three; cubic: the last two

int64_t nearestOf(Attrs const& a, Axis const& axis, int64_t o)
{
    Coordinate const c = coordinateOf(a, axis, o);
    Coordinate const doubled{2 * c.number + c.unit, 2 * c.unit}; // c + 1/2
    int64_t const down = c.floor(), rest = c.number - down * c.unit;
    int64_t index = down;
    switch (a.rounding) {
    case Rounding::kFloor:
        break;
    case Rounding::kCeil:
        index = rest > 0 ? down + 1 : down;
        break;
    case Rounding::kHalfUp:
        index = doubled.floor();
        break;
    case Rounding::kHalfDown:
        index = 2 * rest > c.unit ? down + 1 : down;
        break;
    }
    return std::clamp<int64_t>(index, 0, axis.in - 1);
}

// ---- Nearest: rows of gathered elements, whole runs where the last axis keeps its size.

// One row: element o of it is from[table[o]]; `factor`: each element as often as that, 0: no such pattern.
template <class T>
void nearestRow(T const* from, int64_t const* table, int64_t width, int64_t factor, T* to)
{
    if (factor == 1) {
        std::memcpy(to, from, size_t(width) * sizeof(T));
    } else if (factor == 2) {
        int64_t const n = width / 2;
        int64_t i = 0;
        if constexpr (sizeof(T) == 4)
            for (; i + 4 <= n; i += 4) {
                __m128i const v = _mm_loadu_si128(reinterpret_cast<__m128i const*>(from + i));
                _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * i), _mm_unpacklo_epi32(v, v));
                _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * i + 4), _mm_unpackhi_epi32(v, v));
            }
        for (; i < n; ++i)
            to[2 * i] = to[2 * i + 1] = from[i];
    } else if (factor > 0) {
        for (int64_t o = 0; o < width; o += factor)
            std::fill_n(to + o, factor, from[o / factor]);
    } else {
        for (int64_t o = 0; o < width; ++o)
            to[o] = from[table[o]];
    }
}

// offsets[i]: element offset in x that output index o of axis i adds, for all axes one after another.
template <class T> // an unsigned integer of the element's size
void nearest(Attrs const& a, TensorRef const& x, TensorRef const& y, int64_t* offsets, Workers& workers)
{
    int const rank = x.dims.rank, last = rank - 1;
    Extents const strides = stridesOf(x.dims);
    int64_t* table[kMaxRank];
    for (int i = 0; i < rank; ++i) {
        table[i] = offsets;
        Axis const axis = axisOf(a, x.dims, y.dims, i);
        for (int64_t o = 0; o < y.dims[i]; ++o)
            offsets[o] = nearestOf(a, axis, o) * strides[i];
        offsets += y.dims[i];
    }
    int64_t const width = y.dims[last];
    int64_t factor = x.dims[last] > 0 && width % x.dims[last] == 0 ? width / x.dims[last]
                                                                   : 0; // elements of y for each of x in a row
    for (int64_t o = 0; o < width && factor > 0; ++o)
        if (table[last][o] != o / factor)
            factor = 0;
    int64_t const height = last > 0 ? y.dims[last - 1] : 1, only = 0; // rows that differ in one axis
    int64_t const* const heights = last > 0 ? table[last - 1] : &only;
    inPieces(workers, y.dims.volume(0, last), x.sizeBytes() + y.sizeBytes(), [&](int64_t begin, int64_t end) {
        T const* before = nullptr; // row of x that made the row of y just written
        T* to = y.as<T>() + begin * width;
        for (int64_t row = begin; row < end;) {
            T const* image = x.as<T>();
            int64_t rest = row / height;
            for (int i = last - 2; i >= 0; --i) {
                image += table[i][rest % y.dims[i]];
                rest /= y.dims[i];
            }
            int64_t const first = row % height, rows = std::min(height - first, end - row);
            for (int64_t i = first; i < first + rows; ++i, to += width) {
                T const* from = image + heights[i];
                if (from == before)
                    std::memcpy(to, to - width, size_t(width) * sizeof(T));
                else
                    nearestRow(from, table[last], width, factor, to);
                before = from;
            }
            row += rows;
        }
    });
}

// ---- Linear and cubic: rows of x are mixed into one row, then elements of that row.

void storeMixed(auto& to, float v)
{
    storeElement(to, v);
}
void storeMixed(int8_t& to, double v)
{
    storeElement(to, std::nearbyint(v * 0x1p20) * 0x1p-20); // as the reference: ties must not hang on the last bit
}

// Bytes of the tables of the mixed axes and of one row.
template <class Acc>
int64_t mixWorkspace(Extents const& x, Extents const& y)
{
    int64_t bytes = x[x.rank - 1] * int64_t(sizeof(Acc));
    for (int i = std::max(0, x.rank - kMixedAxes); i < x.rank; ++i)
        bytes += y[i] * kMaxTaps * int64_t(sizeof(Acc) + sizeof(int32_t));
    return bytes + kMixedAxes * kMaxTaps * int64_t(sizeof(Acc) + sizeof(int32_t)); // missing axes have one output
}

template <class T, class Acc>
void mix(Attrs const& a, TensorRef const& x, TensorRef const& y, void* workspace)
{
    int const rank = x.dims.rank;
    Axis axes[kMixedAxes]; // the last three; missing ones have size 1
    for (int i = 0; i < kMixedAxes; ++i)
        if (int const at = rank - kMixedAxes + i; at >= 0)
            axes[i] = axisOf(a, x.dims, y.dims, at);
    auto* weights = static_cast<Acc*>(workspace);
    Acc* row = weights; // [in of the last axis]
    weights += axes[2].in;
    int64_t const outputs = axes[0].out + axes[1].out + axes[2].out;
    auto* indices = reinterpret_cast<int32_t*>(weights + outputs * kMaxTaps);
    TapTable<Acc> tables[kMixedAxes];
    for (int i = 0; i < kMixedAxes; ++i) {
        tables[i] = TapTable<Acc>{indices, weights};
        fillTable(a, axes[i], tables[i]);
        indices += axes[i].out * kMaxTaps;
        weights += axes[i].out * kMaxTaps;
    }
    int64_t const batch = x.dims.volume(0, std::max(0, rank - kMixedAxes)), width = axes[2].in;
    T const* from = x.as<T>();
    T* to = y.as<T>();
    for (int64_t n = 0; n < batch; ++n, from += axes[0].in * axes[1].in * width)
        for (int64_t o0 = 0; o0 < axes[0].out; ++o0)
            for (int64_t o1 = 0; o1 < axes[1].out; ++o1) {
                std::fill(row, row + width, Acc(0));
                for (int k0 = 0; k0 < kMaxTaps; ++k0)
                    for (int k1 = 0; k1 < kMaxTaps; ++k1) {
                        Acc const w0 = tables[0].weight[o0 * kMaxTaps + k0], w1 = tables[1].weight[o1 * kMaxTaps + k1];
                        if (w0 == 0 || w1 == 0)
                            continue;
                        Acc const w = w0 * w1;
                        int64_t const i0 = tables[0].index[o0 * kMaxTaps + k0],
                                      i1 = tables[1].index[o1 * kMaxTaps + k1];
                        T const* in = from + (i0 * axes[1].in + i1) * width;
                        for (int64_t i = 0; i < width; ++i)
                            row[i] += w * Acc(loadElement(in[i]));
                    }
                for (int64_t o2 = 0; o2 < axes[2].out; ++o2) {
                    Acc const* w = tables[2].weight + o2 * kMaxTaps;
                    int32_t const* index = tables[2].index + o2 * kMaxTaps;
                    Acc sum = 0;
                    for (int k = 0; k < kMaxTaps; ++k)
                        if (w[k] != 0)
                            sum += w[k] * row[index[k]];
                    storeMixed(*to++, sum);
                }
            }
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    if (y.count() == 0)
        return {};
    if (a.mode == Mode::kNearest) {
        auto* offsets = static_cast<int64_t*>(args.workspace);
        if (sizeOf(x.type) == sizeof(uint32_t))
            nearest<uint32_t>(a, x, y, offsets, *args.workers);
        else if (sizeOf(x.type) == sizeof(uint16_t))
            nearest<uint16_t>(a, x, y, offsets, *args.workers);
        else
            nearest<uint8_t>(a, x, y, offsets, *args.workers);
    } else if (isQuantized(x.type)) {
        mix<int8_t, double>(a, x, y, args.workspace);
    } else {
        withFloat(x.type, [&](auto element) { mix<decltype(element), float>(a, x, y, args.workspace); });
    }
    return {};
}

int64_t workspace(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    Extents const &x = in[0].dims, &y = out[0].dims;
    if (node.attrsAs<Attrs>().mode != Mode::kNearest)
        return isQuantized(in[0].type) ? mixWorkspace<double>(x, y) : mixWorkspace<float>(x, y);
    int64_t outputs = 0;
    for (int64_t size : y)
        outputs += size;
    return outputs * int64_t(sizeof(int64_t));
}

constexpr PlainTactic kPlain{"resize_any_plain_cpu", 1, run, workspace};

// ---- Channels-last images: a pixel is a copy of one, or a linear mix of up to four.

Support supportsNhwc(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    ir::Shape const &x = p.node->inputs[0]->shape, &y = p.node->outputs[0]->shape;
    if (x.size() != 4)
        return Support::no("takes four dimensions");
    if (a.mode == Mode::kCubic)
        return Support::no("does not do cubic mixes");
    for (size_t i = 0; i < 2; ++i)
        if (!(x[i] == y[i]) || (!a.scales.empty() && a.scales[i] != 1))
            return Support::no("resizes the last two axes only");
    return Support::yes();
}

Result<void> runNhwc(ir::Node const& node, kernels::ChannelsLastKernels const& k, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int64_t const channels = x.dims[1], xStep = x.pixelStride(), yStep = y.pixelStride(), width = x.dims[3];
    int64_t const outH = y.dims[2], outW = y.dims[3];
    Axis const axes[2] = {axisOf(a, x.dims, y.dims, 2), axisOf(a, x.dims, y.dims, 3)};
    bool const linear = a.mode == Mode::kLinear;
    // Nearest: the index of each output of both axes. Linear: weights and indices of their taps.
    auto* nearestIndex = static_cast<int64_t*>(args.workspace);
    auto* weights = static_cast<float*>(args.workspace);
    auto* indices = reinterpret_cast<int32_t*>(weights + (outH + outW) * kMaxTaps);
    TapTable<float> tables[2] = {{indices, weights}, {indices + outH * kMaxTaps, weights + outH * kMaxTaps}};
    for (int i = 0; i < 2; ++i)
        if (linear)
            fillTable(a, axes[i], tables[i]);
        else
            for (int64_t o = 0; o < axes[i].out; ++o)
                nearestIndex[i * outH + o] = nearestOf(a, axes[i], o);
    auto const nearestRow = [&](float const* from, int64_t o, float* to) {
        for (int64_t p = 0; p < outW; ++p, to += yStep)
            k.copy(from + (nearestIndex[o] * width + nearestIndex[outH + p]) * xStep, xStep, to, yStep, channels, 1);
    };
    auto const linearRow = [&](float const* from, int64_t o, float* to) {
        kernels::MixPixels m;
        m.channels = channels;
        for (int64_t p = 0; p < outW; ++p, to += yStep) {
            m.taps = 0;
            m.y = to;
            for (int i = 1; i < 3; ++i) // linear uses the taps in the middle
                for (int j = 1; j < 3; ++j) {
                    int64_t const row = o * kMaxTaps + i, column = p * kMaxTaps + j;
                    float const w = tables[0].weight[row] * tables[1].weight[column];
                    if (tables[0].weight[row] == 0 || tables[1].weight[column] == 0)
                        continue;
                    m.x[m.taps] = from + (tables[0].index[row] * width + tables[1].index[column]) * xStep;
                    m.weight[m.taps++] = w;
                }
            k.mix(m);
        }
    };
    eachInPieces(*args.workers, y.dims[0] * outH, x.sizeBytes() + y.sizeBytes(), [&](int64_t row) {
        float const* from = imageOf(x, row / outH);
        float* to = imageOf(y, row / outH) + row % outH * outW * yStep;
        if (linear)
            linearRow(from, row % outH, to);
        else
            nearestRow(from, row % outH, to);
    });
    return {};
}

// Nearest alone.
Support supportsInt8(Problem const& p)
{
    return p.node->attrsAs<Attrs>().mode == Mode::kNearest ? supportsNhwc(p) : Support::no("copies the nearest only");
}

Result<void> runInt8(ir::Node const& node, kernels::ChannelsLastKernels const&, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int64_t const xStep = x.pixelStride(), yStep = y.pixelStride(), width = x.dims[3];
    int64_t const outH = y.dims[2], outW = y.dims[3];
    Axis const axes[2] = {axisOf(a, x.dims, y.dims, 2), axisOf(a, x.dims, y.dims, 3)};
    auto* index = static_cast<int64_t*>(args.workspace); // of each output of both axes
    for (int i = 0; i < 2; ++i)
        for (int64_t o = 0; o < axes[i].out; ++o)
            index[i * outH + o] = nearestOf(a, axes[i], o);
    eachInPieces(*args.workers, y.dims[0] * outH, x.sizeBytes() + y.sizeBytes(), [&](int64_t row) {
        int8_t const* from = int8ImageOf(x, row / outH) + index[row % outH] * width * xStep;
        int8_t* to = int8ImageOf(y, row / outH) + row % outH * outW * yStep;
        for (int64_t p = 0; p < outW; ++p, to += yStep)
            std::memcpy(to, from + index[outH + p] * xStep, size_t(x.dims[1]));
    });
    return {};
}

int64_t pixelsWorkspace(ir::Node const&, std::span<TensorRef const>, std::span<TensorRef const> out)
{
    Extents const& y = out[0].dims;
    int64_t const entries = y[y.rank - 1] + y[y.rank - 2];
    return entries * kMaxTaps * int64_t(sizeof(float) + sizeof(int32_t)); // more than an int64 each
}

using kernels::jit::Isa;
constexpr VectorTactic kAvx512{"resize_f32_nhwc_avx512", 1, Isa::kAvx512, runNhwc, supportsNhwc, onlyChannelsLast,
                               pixelsWorkspace};
constexpr VectorTactic kAvx2{"resize_f32_nhwc_avx2", 1, Isa::kAvx2, runNhwc, supportsNhwc, onlyChannelsLast,
                             pixelsWorkspace};
constexpr VectorTactic kInt8{
    "resize_i8_nhwc_avx2", 1, Isa::kAvx2, runInt8, supportsInt8, onlyChannelsLast, pixelsWorkspace, DataType::kInt8};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512, kAvx2, kPlanesAvx512, kPlanesAvx2, kInt8, kPlain>;

} // namespace tw::ops::resize
