// SPDX-License-Identifier: Apache-2.0
// Filters and bias of a direct convolution in the order in which its kernels (direct.cpp) read them. An element of 32 bits
// is the number of a channel, or of i8 those of four: what comes after the last channel of a group is zero.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "base/round.h"
#include "device/large_pages.h"
#include "families/convolution/tactics.h"
#include "families/convolution/window_phases.h"

namespace tw::ops {

// What direct tactics take.
constexpr int64_t kMaxTaps = 64;      // of a filter row
constexpr int64_t kMaxRows = 64;      // of a filter, those of all its planes
constexpr int64_t kMaxBorder = 512;   // columns of padding, and of a window: each may need a kernel of its own
constexpr int64_t kMaxPhases = 8;     // of an axis
constexpr int64_t kMaxNextLines = 64; // that a run of the kernel's loop fetches

// Channels per run of the kernel's loop: about 32 steps of code.
inline int64_t channelsAtOnce(int64_t taps)
{
    return taps <= 1 ? 8 : std::clamp<int64_t>(32 / taps, 1, 4);
}

// n things in `parts` parts as even as can be: where part i begins.
inline int64_t evenBegin(int64_t n, int64_t parts, int64_t i)
{
    return n / parts * i + std::min(i, n % parts);
}

// Output channels of a group in blocks of vectors, as even as can be.
struct ChannelBlocks
{
    int64_t vectors = 0, count = 0;
    ChannelBlocks(int64_t vectorsOfGroup, int64_t most)
        : vectors(vectorsOfGroup), count(std::max<int64_t>(divideUp(vectorsOfGroup, most), 1))
    {}
    int64_t begin(int64_t i) const { return evenBegin(vectors, count, i); } // in vectors
    int64_t size(int64_t i) const { return begin(i + 1) - begin(i); }
};

class DirectFilters
{
public:
    DirectFilters(Problem const& problem, kernels::jit::Isa isa, kernels::jit::Factors factors, DirectInput input,
                  int64_t mostVectors);

    // w [K, C, d, r, s] (transposed: [C, K, d, r, s]; d 1 over two axes) to [group][block][class of planes, of rows, of
    // columns][d][r][elements by the loop's number][s][element of the loop][lanes of the block], zero after the last
    // channel of the group.
    Result<void> pack(Extents const& dims, Blob const& w, float const* bias, PackedConstants& packed);
    // The order of pack() where nothing is added to the filters.
    static std::optional<PanelOrder> panelOrder(Problem const& problem, kernels::jit::Isa isa, DirectInput input,
                                                Config const& config);
    // The filters lie in that order; the bias is copied.
    Result<void> takePanels(BlobPtr const& panels, float const* bias);
    // Of filters that the network computes: each run has them packed at `to`, packedCount() floats.
    Result<void> packAtRun(float const* bias);
    int64_t packedCount() const { return groups * lanes() * depth * window; }
    void packInto(float* to, void const* w, Workers& workers) const;

    // Of a block and its classes; `packed`: of packInto(), else null.
    float const* data(int64_t group, int64_t block, size_t planes, size_t rows, size_t columns,
                      float const* packed = nullptr) const;
    // Of i8: where the sums over the filter rows of `range` begin, [groups][lanes of a group].
    std::vector<int32_t> starts(size_t rows, size_t columns, TapRange const& range) const;
    // Elements per run of the kernel's loop, for filter rows of so many taps.
    int64_t stepsAtOnce(int64_t taps) const;
    int64_t lanes() const { return blocks.vectors * width; } // of a group
    float const* bias() const { return bias_.data(); }

    kernels::jit::Factors const factors;
    int64_t const width, groups, groupK, groupC; // lanes of a vector; filters and channels of a group
    int64_t const depth;                         // elements of a group's channels
    ChannelBlocks const blocks;
    Classes planeClasses, rowClasses, columnClasses;
    int64_t window = 0; // elements of it

private:
    // Which element of a filter each row of lanes is of.
    struct Places
    {
        std::vector<int64_t> from, to, channels; // numbers of a filter, rows of lanes, channels of an element
        bool inOrder = false;
    };
    Places placesOf(Extents const& dims) const;
    void packBlock(Places const& places, float* to, void const* w, int64_t group, int64_t block) const;
    Result<void> setBias(float const* bias);
    // Elements of the window before those of these classes.
    int64_t classBegin(size_t planes, size_t rows, size_t columns) const
    {
        return classBegin_[(planes * rowClasses.size() + rows) * columnClasses.size() + columns];
    }
    int64_t place(int64_t c, int64_t i, int64_t j, int64_t s) const;

    ir::Node const& node_;
    DirectInput input_;
    bool transposed_;
    std::vector<int64_t> classBegin_; // [class of planes][of rows][of columns]
    Places atRun_;                    // of packAtRun()
    std::shared_ptr<device::PackedFloats const> weights_;
    device::PackedFloats bias_;
    BlobPtr panels_;                 // filters that another keeps
    float const* filters_ = nullptr; // in weights_ or panels_
};

} // namespace tw::ops
