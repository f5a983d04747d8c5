// SPDX-License-Identifier: Apache-2.0
#include "ops/layer_norm/layout.h"

#include <algorithm>

namespace tw::ops::layer_norm {

namespace {

// Where dimension i lies among those of memory.
int placeOf(int i, int rank, bool pixels)
{
    return !pixels || i == 0 ? i : i == 1 ? rank - 1 : i - 1;
}

} // namespace

Layout::Layout(Attrs const& a, Extents const& maxDims, bool pixels) : a_(a), pixels_(pixels)
{
    Extents const dims = cut(maxDims);
    rank_ = dims.rank;
    int const before = maxDims.rank, cutAt = a.groups > 1 ? placeOf(int(a.channel), before, pixels) : before;
    bool normalized[kMaxRank + 1] = {}, weighted[kMaxRank + 1] = {};
    for (int i = 0; i < before; ++i) {
        int const at = placeOf(i, before, pixels), to = at + (at > cutAt);
        bool const isWeighted = a.channel >= 0 ? i == a.channel : a.isNormalized(i);
        normalized[to] = a.isNormalized(i) && at != cutAt; // the first of the two parts is kept
        weighted[to] = isWeighted;
        if (at == cutAt)
            normalized[to + 1] = weighted[to + 1] = true;
    }
    // Each part takes what is of its kind.
    int const channels = pixels ? rank_ - 1 - (a.groups > 1) : rank_;
    int at = 0;
    for (int part = 0; part < (pixels ? 2 : 4); ++part) {
        begin_[part] = at;
        while (at < channels && (normalized[at] == (part % 2 == 1) || dims[at] == 1))
            ++at;
    }
    exists_ = at == channels;
    if (pixels) {
        begin_[2] = channels;
        begin_[3] = normalized[rank_ - 1] ? rank_ - 1 : rank_;
    }
    bool any = false;
    for (int i = 0; i < rank_; ++i) {
        if (!weighted[i] || (!a.hasGamma && !a.hasBeta))
            continue;
        // Neighbours, and not in another order than the numbers.
        exists_ =
            exists_ && (!any || weighted_[1] == i || dims.volume(weighted_[1], i) == 1) && (!pixels || i >= channels);
        weighted_[0] = any ? weighted_[0] : i;
        weighted_[1] = i + 1;
        any = true;
    }
    auto within = [&](int begin, int end) {
        return dims.volume(weighted_[0], std::max(weighted_[0], std::min(begin, weighted_[1]))) == 1 &&
               dims.volume(std::min(weighted_[1], std::max(end, weighted_[0])), weighted_[1]) == 1;
    };
    if (any)
        weights_ = within(begin_[2], rank_)       ? Weights::kColumns
                   : within(begin_[1], begin_[2]) ? Weights::kN
                   : within(0, begin_[1])         ? Weights::kOuter
                                                  : Weights::kOther;
}

Layout Layout::byChannels() const
{
    Layout l = *this;
    bool const isLast = weights_ == Weights::kN || weights_ == Weights::kColumns;
    if (!pixels_ && isRows() && isLast && weighted_[1] == rank_ && weighted_[0] > begin_[1] && begin_[2] == rank_) {
        l.begin_[2] = l.begin_[3] = weighted_[0];
        l.weights_ = Weights::kColumns;
    }
    return l;
}

Extents Layout::cut(Extents const& dims) const
{
    Extents ordered = dims, out;
    for (int i = 0; i < dims.rank; ++i)
        ordered[placeOf(i, dims.rank, pixels_)] = dims[i];
    int const cutAt = a_.groups > 1 ? placeOf(int(a_.channel), dims.rank, pixels_) : dims.rank;
    for (int i = 0; i < dims.rank; ++i) {
        if (i == cutAt)
            out.push(a_.groups);
        out.push(i == cutAt ? ordered[i] / a_.groups : ordered[i]);
    }
    return out;
}

Layout::Sizes Layout::sizes(Extents const& dims) const
{
    Extents const d = cut(dims);
    return {.outer = d.volume(0, begin_[1]),
            .n = d.volume(begin_[1], begin_[2]),
            .inner = d.volume(begin_[2], begin_[3]),
            .k = d.volume(begin_[3], d.rank),
            .tail = d.volume(weighted_[1], d.rank),
            .count = d.volume(weighted_[0], weighted_[1])};
}

Walk walkOf(Attrs const& a, Extents const& dims)
{
    Extents const strides = stridesOf(dims);
    Extents weights = strides;
    int64_t weight = 1;
    for (int i = dims.rank - 1; i >= 0; --i) {
        bool const isWeighted = a.channel >= 0 ? i == a.channel : a.isNormalized(i);
        weights[i] = isWeighted ? weight : 0;
        weight *= isWeighted ? dims[i] : 1;
    }
    Walk w;
    auto add = [&](bool within, int64_t size, int64_t stride, int64_t weightStride) {
        (within ? w.within : w.sets).push(size);
        (within ? w.withinStrides : w.setStrides).push(stride);
        (within ? w.withinWeights : w.setWeights).push(weightStride);
    };
    for (int i = 0; i < dims.rank; ++i) {
        int64_t const each = i == a.channel ? dims[i] / a.groups : dims[i];
        if (i == a.channel && a.groups > 1)
            add(false, a.groups, strides[i] * each, weights[i] * each);
        add(a.isNormalized(i), each, strides[i], weights[i]);
    }
    return w;
}

Layout layoutOf(Problem const& problem)
{
    return {problem.node->attrsAs<Attrs>(), problem.inputs[0].maxDims, isByPixel(problem.inputs[0].format)};
}

} // namespace tw::ops::layer_norm
