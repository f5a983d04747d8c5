// SPDX-License-Identifier: Apache-2.0
// Attention by emitted kernels (tactics.h, kJit): its plan, and the kernel whose parts stand in jit_attention.cpp and jit_attention_tile.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/round.h"
#include "kernels/cpu/jit/gemm_kernel.h"
#include "kernels/cpu/jit/matrix_copy.h"
#include "kernels/cpu/jit/softmax_kernel.h"
#include "ops/attention/cpu_few_rows.h"
#include "ops/attention/op.h"
#include "ops/attention/tactics.h"
#include "tactic/cpu_tactic.h"

namespace tw::ops::attention::emitted {

using namespace kernels::jit;

inline constexpr int kPanelVectors = 2; // a panel of packed keys or values is two vectors wide, the last one may be one
inline constexpr int kUnroll = 4;

// Cache lines of so many floats at any address.
inline int64_t linesOf(int64_t floats)
{
    return divideUp(floats * 4, kCacheLine) + 1;
}

// Columns of keys or values in panels.
struct Panels
{
    int64_t columns = 0, width = 0; // width of a panel

    int64_t count() const { return divideUp(columns, width); }
    int64_t columnsOf(int64_t p) const { return std::min(width, columns - p * width); }
    int vectorsOf(int64_t p) const { return columnsOf(p) > width / kPanelVectors ? kPanelVectors : 1; }
    // Floats before panel p, `depth` rows each.
    int64_t begin(int64_t p, int64_t depth) const { return p * width * depth; }
    int64_t padded() const { return roundUp(columns, width); }
};

// Keys or values of a head, from row `first` on: one behind the other, or in the blocks of pages. Vectors of keys do not go beyond a block.
struct HeadRows
{
    std::byte const* x = nullptr; // of the head, in front of all images
    DataType type = DataType::kFloat;
    int64_t image = 0, first = 0, batch = 0, row = 0;
    Table table;

    std::byte const* at(int64_t j) const
    {
        return x + (table.image(image, first + j) * batch + table.row(first + j) * row) * sizeOf(type);
    }
};
// Some of them as floats.
struct FloatRows
{
    float const* x = nullptr;
    int64_t stride = 0;
};
inline constexpr int64_t kRowsAtOnce = kPageRows; // that are made floats

// Floats of scratch of one worker, each part on a cache line of its own.
struct Scratch
{
    int64_t keys = 0, values = 0, queries = 0, scores = 0, reciprocals = 0, fillWhere = 0, widened = 0, total = 0;
    int64_t scoreStride = 0;
};

// Where one row of the scores may end early: columns after it weigh nothing.
inline constexpr double kNothing = -1e30;

// Tiles of queries, of two heights at most, one row apart, so that none is left with a few rows: the first `tall` of them
// have height + 1 rows.
struct Tiles
{
    int64_t count = 0, height = 0, tall = 0;

    Tiles() = default;
    Tiles(int64_t rows, int64_t most)
        : count(divideUp(rows, most)), height(count > 0 ? rows / count : 0), tall(count > 0 ? rows % count : 0)
    {}
    int64_t begin(int64_t t) const { return t * height + std::min(t, tall); }
    int64_t rows(int64_t t) const { return height + (t < tall); }
};

// Queries and keys from row `first` on that look at each other.
struct Sequence
{
    int64_t batch = 0, first = 0, rows = 0, columns = 0;
};

class Plan final : public Prepared
{
public:
    Geometry g;
    Panels values;
    Scratch scratch;
    Tiles tiles;                      // but for those of segments
    std::vector<int64_t> tileColumns; // columns that a tile looks at; empty: all
    int64_t products = 0;             // of all tiles of a head
    // Of tiles of so many rows.
    struct Kernels
    {
        // [vectors - 1]; sums are multiplied by the reciprocals of their rows' weights.
        GemmKernel products[kPanelVectors], sums[kPanelVectors];
        GemmKernel masked; // for the last panel of values
    };
    std::vector<Kernels> kernels; // [rows]
};

// Brings rows that the next part will read into L2, some lines before each product: they were written by the step
// before, and have left for the outer cache or for another core's since.
class Fetch
{
public:
    explicit Fetch(int64_t linesAtOnce) : linesAtOnce_(linesAtOnce) {}
    void add(std::byte const* first, int64_t rows, int64_t strideBytes, int64_t rowBytes)
    {
        if (rows > 0)
            blocks_[count_++] = {first, rows, strideBytes, rowBytes};
    }
    void some()
    {
        for (int64_t n = linesAtOnce_; n > 0 && done_ < count_;) {
            Block& b = blocks_[done_];
            for (int64_t at = 0; at < b.rowBytes; at += kCacheLine, --n)
                __builtin_prefetch(b.row + at, 0, 2);
            b.row += b.strideBytes;
            if (--b.rows == 0)
                ++done_;
        }
    }

private:
    struct Block
    {
        std::byte const* row;
        int64_t rows, strideBytes, rowBytes;
    };
    Block blocks_[3];
    int count_ = 0, done_ = 0;
    int64_t linesAtOnce_;
};

class JitKernel final : public Kernel
{
public:
    JitKernel(Isa isa, Problem const& problem)
        : isa_(isa), attrs_(problem.node->attrsAs<Attrs>()), isNarrow_(isNarrowFloat(problem.inputs[1].type))
    {
        threads_ = std::max(problem.threads, 1);
        for (size_t i = 3; i < size_t(attrs_.masksEnd(problem.inputs.size())); ++i)
            if (problem.inputs[i].type == DataType::kBool && problem.inputs[i].constant && attrs_.fill < kNothing &&
                attrs_.sumStep == 0 && !attrs_.ofDecoders())
                findRowEnds(problem.inputs[i]);
    }

    Result<void> emitShared(Problem const& problem)
    {
        TW_ASSIGN(copyRows_, CopyRowsKernel::emit(isa_));
        TW_ASSIGN(transpose_, TransposeKernel::emit(isa_));
        SoftmaxSpec spec;
        spec.deferred = true;
        spec.scoreStep = float(attrs_.scoreStep);
        spec.sumStep = float(attrs_.sumStep);
        for (size_t i = 3; i < size_t(attrs_.masksEnd(problem.inputs.size())) && !attrs_.ofDecoders(); ++i)
            (problem.inputs[i].type == DataType::kBool ? spec.fill : spec.mask) = true;
        spec.ends = endsSayAll_;
        spec.fill = spec.fill && !spec.ends;
        TW_ASSIGN(softmax_, SoftmaxKernel::emit(isa_, spec));
        return {};
    }

    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const>) const override
    {
        Geometry const g = geometryOf(attrs_, in);
        int64_t const most = g.beginsInput >= 0 ? in[size_t(g.beginsInput)].dims[0] + 1 : 0; // sequences
        int64_t const whole = segmentsAt(g) + most * int64_t(sizeof(Sequence));
        return takesFewRows(isa_, attrs_, g, in[1].type) ? std::max(whole, fewRowsWorkspace(attrs_, g, threads_))
                                                         : whole;
    }

    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const>) const override;
    Result<void> run(RunArgs& args) const override;

private:
    void findRowEnds(TensorSpec const& keep);
    int width() const { return vectorWidth(isa_); }
    // Bytes of workspace in front of the list of segments.
    int64_t segmentsAt(Geometry const& g) const { return threads_ * scratchOf(g).total * int64_t(sizeof(float)); }
    Panels panelsOf(int64_t columns) const { return Panels{columns, int64_t(kPanelVectors) * width()}; }
    Scratch scratchOf(Geometry const& g) const;
    Result<void> emit(Plan& plan, int rows) const;
    // `room`: for rows that are made floats.
    FloatRows floatsOf(HeadRows const& rows, int64_t j, int64_t count, int64_t size, float* room) const;
    void packKeys(HeadRows const& k, int64_t columns, float* to, float* room) const;
    void packValues(Plan const& plan, HeadRows const& v, int64_t columns, float* to, float* room) const;
    void tile(Plan const& plan, RunArgs& args, Sequence const& of, int64_t h, Tiles const& tiles, int64_t t,
              float* scratch, Fetch& fetch) const;
    void adjust(Plan const& plan, RunArgs& args, Sequence const& of, int64_t h, int64_t first, int64_t rows,
                Keys const& seen, float* scores) const;
    Keys keysOfRow(Geometry const& g, Sequence const& of, int64_t i) const;
    uint32_t const* expandKeep(Plan const& plan, uint8_t const* keep, int64_t rows, int64_t n, float* scratch) const;

    Isa isa_;
    Attrs attrs_;
    bool isNarrow_; // keys and values have 16 bits
    int64_t threads_ = 1;
    std::vector<int64_t> rowEnds_; // of a constant condition: columns from here on weigh nothing
    bool endsSayAll_ = false;      // and all columns before count
    CopyRowsKernel copyRows_;
    TransposeKernel transpose_;
    SoftmaxKernel softmax_;
};

} // namespace tw::ops::attention::emitted
