// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/round.h"
#include "base/transpose.h"
#include "ops/shuffle/op.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::shuffle {

namespace {

// The transpose as loops over the output: dimensions and the input's stride of each, without dimensions of size 1 and
// with neighbours merged that are neighbours in the input too.
struct Loops
{
    Extents dims, from;
};
Loops loopsOf(Extents const& x, std::vector<int64_t> const& permutation)
{
    Extents const strides = stridesOf(x);
    Loops l;
    for (int64_t p : permutation) {
        int64_t const size = x[int(p)], stride = strides[int(p)];
        if (size == 1)
            continue;
        int const last = l.dims.rank - 1;
        if (last >= 0 && l.from[last] == stride * size) {
            l.dims[last] *= size;
            l.from[last] = stride;
        } else {
            l.dims.push(size);
            l.from.push(stride);
        }
    }
    return l;
}

// Rows of `length`, fromStep apart, to y where one lies behind the other. Rows of heads and of windows are short, so they
// are moved 16 bytes at a time, the last ones again where they are no whole number of these.
template <class T>
void copyRows(T const* x, int64_t fromStep, T* y, int64_t rows, int64_t length)
{
    constexpr int64_t kPack = 16 / int64_t(sizeof(T)), kLong = 16 * kPack;
    for (int64_t r = 0; r < rows; ++r, x += fromStep, y += length) {
        if (length < kPack || length > kLong) {
            std::copy_n(x, length, y);
            continue;
        }
        for (int64_t i = 0; i + kPack <= length; i += kPack)
            std::memcpy(y + i, x + i, 16);
        std::memcpy(y + length - kPack, x + length - kPack, 16);
    }
}

// plane(x, fromI, y, toJ, rows, columns): as transposePlane().
template <class T, class Plane>
void transpose(Workers& workers, T const* x, T* y, Loops const& l, Plane const& plane)
{
    int const last = l.dims.rank - 1;
    if (last < 0) {
        *y = *x;
        return;
    }
    // The axis along which the input is contiguous is the last one (rows are copied, those along the axis before it at once),
    // or another one (planes).
    int near = last;
    while (near > 0 && l.from[near] != 1)
        --near;
    bool const copies = near == last;
    int const across = copies ? std::max(last - 1, 0) : near;
    Extents const to = stridesOf(l.dims);
    Extents outer = l.dims;
    outer[last] = outer[across] = 1;
    constexpr int64_t kColumns = 64, kRows = 1024;
    int64_t const rows = l.dims[last], columns = across == last ? 1 : l.dims[across];
    int64_t const tall = copies ? 1 : divideUp(rows, kRows), blocks = divideUp(columns, kColumns) * tall;
    int64_t const bytes = 2 * l.dims.volume() * int64_t(sizeof(T));
    eachInPieces(workers, outer.volume() * blocks, bytes, [&](int64_t i) {
        int64_t rest = i / blocks, from = 0, at = 0;
        int64_t const column = i % blocks / tall * kColumns, row = i % tall * kRows;
        for (int d = last; d >= 0; --d) {
            from += rest % outer[d] * l.from[d];
            at += rest % outer[d] * to[d];
            rest /= outer[d];
        }
        T const* px = x + from + column * l.from[across] + row * l.from[last];
        T* py = y + at + column * to[across] + row;
        int64_t const some = std::min(kColumns, columns - column);
        if (copies)
            copyRows(px, l.from[across], py, some, rows);
        else
            plane(px, l.from[last], py, to[across], std::min(kRows, rows - row), some);
    });
}

void transposeBytes(Workers& workers, int64_t elementSize, void const* x, void* y, Extents const& dims,
                    std::vector<int64_t> const& permutation)
{
    auto of = [&](auto unit) {
        using T = decltype(unit);
        transpose(workers, static_cast<T const*>(x), static_cast<T*>(y), loopsOf(dims, permutation), transposePlane<T>);
    };
    elementSize == 4 ? of(uint32_t()) : elementSize == 2 ? of(uint16_t()) : of(uint8_t());
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    if (y.count() == 0)
        return {};
    bool const first = !isIdentity(a.firstTranspose), second = !isIdentity(a.secondTranspose);
    int64_t const size = sizeOf(x.type);
    void const* reshaped = x.data;
    if (first) {
        void* to = second ? args.workspace : y.data;
        transposeBytes(*args.workers, size, x.data, to, x.dims, a.firstTranspose);
        reshaped = to;
    }
    if (second)
        transposeBytes(*args.workers, size, reshaped, y.data, unpermuted(y.dims, a.secondTranspose), a.secondTranspose);
    if (!first && !second && y.data != x.data)
        inPieces(*args.workers, y.sizeBytes(), 2 * y.sizeBytes(), [&](int64_t begin, int64_t end) {
            std::memcpy(y.as<char>() + begin, x.as<char const>() + begin, size_t(end - begin));
        });
    return {};
}

int64_t workspace(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    auto const& a = node.attrsAs<Attrs>();
    bool const both = !isIdentity(a.firstTranspose) && !isIdentity(a.secondTranspose);
    return both ? in[0].sizeBytes() : 0; // what the first transpose gives
}

constexpr PlainTactic kPlain{"shuffle_any_plain_cpu", 2, run, workspace};

// ---- One transpose of f32: blocks of 8 by 8 in registers, distributed to workers.

Support supportsBlocks(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    return isIdentity(a.firstTranspose) != isIdentity(a.secondTranspose) ? Support::yes()
                                                                         : Support::no("takes exactly one transpose");
}

Result<void> runBlocks(ir::Node const& node, kernels::ChannelsLastKernels const& k, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    bool const first = !isIdentity(a.firstTranspose);
    Loops const l =
        loopsOf(first ? x.dims : unpermuted(y.dims, a.secondTranspose), first ? a.firstTranspose : a.secondTranspose);
    transpose(*args.workers, x.as<float>(), y.as<float>(), l, k.transpose);
    return {};
}

constexpr VectorTactic kBlocks{
    "shuffle_f32_transpose_8x8_avx2", 2, kernels::jit::Isa::kAvx2, runBlocks, supportsBlocks, onlyLinear};

// ---- Rows of channels that become channels-last pixels, or the other way round, and pixels under other dimensions: elements keep
// their order. Pixels without gaps are the rows themselves (aliases()), others, those of 256 channels for one, copies of them.

std::vector<Formats> pixelFormats(Problem const& p)
{
    std::vector<Formats> list;
    if (!ir::isStatic(p.node->inputs[0]->shape) || !ir::isStatic(p.node->outputs[0]->shape))
        return list; // what is a view in some sizes may be none in others
    auto refOf = [](TensorSpec const& t, Format format) {
        TensorRef ref{t.type, t.dims, nullptr, format};
        if (format == Format::kChannelsLast && t.dims.rank > 1)
            ref.stride = t.dims[1]; // as if there were no gaps
        return ref;
    };
    for (auto const& [from, to] : {std::pair{Format::kLinear, Format::kChannelsLast},
                                   {Format::kChannelsLast, Format::kLinear},
                                   {Format::kChannelsLast, Format::kChannelsLast}}) {
        Formats f = linearFormats(p);
        f.inputs[0] = from;
        f.outputs[0] = to;
        if (from == to &&
            (p.inputs[0].dims.rank < 3 || p.outputs[0].dims.rank < 3 || p.inputs[0].dims[1] != p.outputs[0].dims[1]))
            continue; // channels that are taken apart or joined
        if (!p.inputs[0].constant &&
            isView(p.node->attrsAs<Attrs>(), refOf(p.inputs[0], f.inputs[0]), refOf(p.outputs[0], f.outputs[0])))
            list.push_back(std::move(f));
    }
    return list;
}

Result<void> runPixels(ir::Node const&, kernels::ChannelsLastKernels const&, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    // Parts of wider tensors have gaps.
    auto pixelsOf = [](TensorRef const& t) { return t.format == Format::kLinear ? 0 : t.pixelStride(); };
    int64_t const channels = (x.format == Format::kLinear ? y : x).dims[1],
                  pixels = x.count() / std::max<int64_t>(channels, 1);
    int64_t const from = pixelsOf(x) ? pixelsOf(x) : channels, to = pixelsOf(y) ? pixelsOf(y) : channels;
    inPieces(*args.workers, pixels, 2 * x.count() * sizeOf(x.type), [&](int64_t begin, int64_t end) {
        if (from == channels && to == channels) {
            std::copy_n(x.as<float>() + begin * channels, (end - begin) * channels, y.as<float>() + begin * channels);
            return;
        }
        for (int64_t i = begin; i < end; ++i)
            std::copy_n(x.as<float>() + i * from, channels, y.as<float>() + i * to);
    });
    return {};
}

constexpr VectorTactic kPixels{"shuffle_f32_pixels_avx2",
                               1,
                               kernels::jit::Isa::kAvx2,
                               runPixels,
                               [](Problem const&) { return Support::yes(); },
                               pixelFormats};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kPixels, kBlocks, kPlain>;

} // namespace tw::ops::shuffle
