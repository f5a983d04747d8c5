// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/round.h"
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

// x[i * fromI + j] -> y[i + j * toJ] for [rows i, columns j] in square tiles, so that both sides stay in cache.
template <class T>
void transposePlane(T const* x, T* y, int64_t rows, int64_t columns, int64_t fromI, int64_t toJ)
{
    constexpr int64_t kTile = 32;
    for (int64_t i0 = 0; i0 < rows; i0 += kTile)
        for (int64_t j0 = 0; j0 < columns; j0 += kTile)
            for (int64_t j = j0; j < std::min(j0 + kTile, columns); ++j)
                for (int64_t i = i0; i < std::min(i0 + kTile, rows); ++i)
                    y[i + j * toJ] = x[i * fromI + j];
}

template <class T>
void transpose(T const* x, T* y, Loops const& l)
{
    int const last = l.dims.rank - 1;
    if (last < 0) {
        *y = *x;
        return;
    }
    // The axis along which the input is contiguous is the last one (rows are copied), or another one (planes).
    int plane = last;
    while (plane > 0 && l.from[plane] != 1)
        --plane;
    Extents to = stridesOf(l.dims);
    Extents outer = l.dims, outerFrom = l.from, outerTo = to;
    outer[last] = outer[plane] = 1;
    Counter at(outer);
    do {
        T const* px = x + at.offset(outerFrom);
        T* py = y + at.offset(outerTo);
        if (plane == last)
            std::copy_n(px, l.dims[last], py);
        else
            transposePlane(px, py, l.dims[last], l.dims[plane], l.from[last], to[plane]);
    } while (at.next());
}

void transposeBytes(int64_t elementSize, void const* x, void* y, Extents const& dims,
                    std::vector<int64_t> const& permutation)
{
    Loops const l = loopsOf(dims, permutation);
    if (elementSize == 4)
        transpose(static_cast<uint32_t const*>(x), static_cast<uint32_t*>(y), l);
    else if (elementSize == 2)
        transpose(static_cast<uint16_t const*>(x), static_cast<uint16_t*>(y), l);
    else
        transpose(static_cast<uint8_t const*>(x), static_cast<uint8_t*>(y), l);
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
        transposeBytes(size, x.data, to, x.dims, a.firstTranspose);
        reshaped = to;
    }
    if (second)
        transposeBytes(size, reshaped, y.data, unpermuted(y.dims, a.secondTranspose), a.secondTranspose);
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

constexpr PlainTactic kPlain{"shuffle_any_plain_cpu", 1, run, workspace};

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
    int const last = l.dims.rank - 1;
    if (last < 0) {
        *y.as<float>() = *x.as<float>();
        return {};
    }
    int plane = last; // the axis along which the input is contiguous
    while (plane > 0 && l.from[plane] != 1)
        --plane;
    Extents const to = stridesOf(l.dims);
    Extents outer = l.dims;
    outer[last] = outer[plane] = 1;
    constexpr int64_t kColumns = 64;
    int64_t const rows = l.dims[last], columns = plane == last ? 1 : l.dims[plane];
    int64_t const blocks = divideUp(columns, kColumns);
    inPieces(*args.workers, outer.volume() * blocks, 2 * y.sizeBytes(), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            int64_t rest = i / blocks, from = 0, at = 0;
            int64_t const column = i % blocks * kColumns;
            for (int d = last; d >= 0; --d) {
                from += rest % outer[d] * l.from[d];
                at += rest % outer[d] * to[d];
                rest /= outer[d];
            }
            float const* px = x.as<float>() + from + column;
            float* py = y.as<float>() + at;
            if (plane == last)
                std::copy_n(px, rows, py);
            else
                k.transpose(px, l.from[last], py + column * to[plane], to[plane], rows,
                            std::min(kColumns, columns - column));
        }
    });
    return {};
}

constexpr VectorTactic kBlocks{
    "shuffle_f32_transpose_8x8_avx2", 1, kernels::jit::Isa::kAvx2, runBlocks, supportsBlocks, onlyLinear};

} // namespace

constinit TacticList const cpuTactics = kTactics<kBlocks, kPlain>;

} // namespace tw::ops::shuffle
