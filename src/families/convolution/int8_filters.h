// SPDX-License-Identifier: Apache-2.0
// Filters of a direct convolution of i8 in the order in which its kernels (int8_direct.cpp) read them.
#pragma once

#include "device/large_pages.h"
#include "families/convolution/direct_filters.h"

namespace tw::ops {

class Int8Filters
{
public:
    Int8Filters(Problem const& problem, kernels::jit::Isa isa, int64_t mostVectors);

    // w [K, C, r, s] (transposed: [C, K, r, s]) to [group][block][class of rows][of columns][r][quads by the loop's
    // number][s][quad of the loop][lanes of the block][4 channels], zero after the last channel of the group.
    Result<void> pack(Extents const& dims, Blob const& w, PackedConstants& packed);

    // Of a block and a class, from its filter row `row` on.
    int8_t const* data(int64_t group, int64_t block, size_t rowClass, size_t columnClass, int64_t row) const;
    // Where the sums over the rows of `range` begin, [groups][lanes of a group].
    std::vector<int32_t> starts(size_t rowClass, size_t columnClass, TapRange const& range) const;
    // Quads per run of the kernel's loop.
    int64_t quadsAtOnce(int64_t taps) const;
    int64_t lanes() const { return blocks.vectors * width; } // of a group

    kernels::jit::Factors const factors;
    int64_t const width, groups, groupK, groupC, quads; // lanes of a vector; filters and channels of a group
    ChannelBlocks const blocks;
    Classes rowClasses, columnClasses;
    int64_t window = 0; // elements of it

private:
    Result<device::PackedFloats> packed(Extents const& dims, int8_t const* w) const;

    ir::Node const& node_;
    bool transposed_;
    std::vector<int64_t> classBegin_; // [class of rows][of columns]: elements of the window before it
    std::shared_ptr<device::PackedFloats const> weights_;
};

} // namespace tw::ops
