// SPDX-License-Identifier: Apache-2.0
// How the sets of a norm lie in memory, for kernels. The dimensions of x, one cut into [groups, channels of a group], are
// in this order, any of the four maybe of size 1:
//   [outer, n, inner, k]   n and k together are a set; each of outer and inner has sets of its own
//   rows: inner = k = 1, a set is contiguous; columns: k = 1; pixels: k channels of each of n pixels
// The place in gamma and beta of the element at offset i: (i / tail) % count.
#pragma once

#include "ops/layer_norm/layer_norm_params.h"
#include "ops/layer_norm/op.h"
#include "tactic/cpu_tactic.h"
#include "tactic/cuda_tactic.h"
#include "tactic/tactic.h"

namespace tw::ops::layer_norm {

// Where the parts end, as positions in the dimensions with the channels cut. Settled with the largest dimensions, of
// which those of size 1 are any part's, and used for all.
class Layout
{
public:
    struct Sizes
    {
        int64_t outer = 1, n = 1, inner = 1, k = 1;
        int64_t tail = 1, count = 1; // of gamma and beta

        int64_t sets() const { return outer * inner; }
        int64_t setSize() const { return n * k; }
        int64_t all() const { return outer * n * inner * k; }
    };

    // `pixels`: of a tensor of a format by pixels, whose channels (dimension 1) come last; they are k, or inner and k.
    Layout(Attrs const& a, Extents const& maxDims, bool pixels = false);
    bool exists() const { return exists_; } // else the parts alternate more often
    // Sets are contiguous (by pixels: the channels of one are).
    bool isRows() const { return exists_ && (begin_[2] == rank_ || begin_[1] == begin_[3]); }
    bool isColumns() const { return exists_ && !pixels_ && begin_[3] == rank_; }
    // What gamma and beta have numbers for: nothing; sets as wholes; places along n; inner and k.
    enum class Weights
    {
        kNone,
        kOuter,
        kN,
        kColumns,
        kOther,
    };
    Weights weights() const { return weights_; }
    Sizes sizes(Extents const& dims) const;
    // Rows whose last dimension has gamma and beta for itself, as [outer, n, 1, k]; else the same.
    Layout byChannels() const;

private:
    // [.., groups, channels of a group, ..] in memory's order.
    Extents cut(Extents const& dims) const;

    Attrs a_;
    bool pixels_;
    bool exists_ = true;
    int rank_ = 0;
    int begin_[4] = {0, 0, 0, 0}; // of outer, n, inner, k
    int weighted_[2] = {0, 0};    // the dimensions that gamma and beta have numbers for
    Weights weights_ = Weights::kNone;
};

// Any sets at all: the positions of sets and those within a set, each with strides in x and in gamma and beta.
struct Walk
{
    Extents sets, within;
    Extents setStrides, withinStrides;
    Extents setWeights, withinWeights;
};
Walk walkOf(Attrs const& a, Extents const& dims);

// Of x as it will be.
Layout layoutOf(Problem const& problem);

// Sets of any kind that Layout knows, by statistics of columns.

extern CpuFunctions const kColumnsCpu;

// What the CUDA tactics of this folder share.

extern CudaTactic const kColumns, kPixels, kHeldPixels;

// Elements of 16 bytes.
inline int64_t packWidth(Problem const& problem)
{
    return 16 / sizeOf(problem.inputs[0].type);
}
// The constants before layer_norm.cuh.
std::string constantsOf(Problem const& problem);
// Those that row_weights.cuh wants as well.
std::string rowConstantsOf(Problem const& problem, Layout const& layout, int64_t width);
void setTensors(Attrs const& a, RunArgs const& args, Tensors& p);
// Whether addresses allow packs of 16 bytes.
bool isAligned(Tensors const& p);
void setRows(Layout::Sizes const& s, RunArgs const& args, RowParams& p);
// Formats of x and y by pixels whose channels are dimension 1; linear ones first.
std::vector<Formats> withPixels(Problem const& problem);

} // namespace tw::ops::layer_norm
