// SPDX-License-Identifier: Apache-2.0
// Broadcast for kernels: the loop nest over an output and the operands that are broadcast to it. Axes of size 1 are
// dropped and adjacent axes along which every operand steps evenly are merged, so that [N,C,H,W] op [1,C,1,1] becomes
// rows of H*W elements and equal shapes become one row.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "base/extents.h"
#include "ir/infer.h"

namespace tw::ops {

struct BroadcastLoop
{
    static constexpr int kMaxOperands = 8;

    int operands = 0;
    int rank = 1; // at least 1; the last axis is the row
    int64_t extent[kMaxRank]{};
    int64_t stride[kMaxOperands][kMaxRank]{}; // in elements; 0 along broadcast axes, 0 or 1 along the row

    int64_t rowLength() const { return extent[rank - 1]; }
    int64_t rowStride(int operand) const { return stride[operand][rank - 1]; }

    int64_t rows() const
    {
        int64_t rows = 1;
        for (int i = 0; i + 1 < rank; ++i)
            rows *= extent[i];
        return rows;
    }
    // Calls row(y, offsets) for each row of the output: y is the row's first element in the dense output, offsets[i]
    // its first element in operand i.
    template <class Row>
    void forEachRow(Row const& row) const
    {
        forRows(0, rows(), row);
    }
    // For the rows [begin, end).
    template <class Row>
    void forRows(int64_t begin, int64_t end, Row const& row) const
    {
        if (rowLength() == 0)
            return;
        int64_t at[kMaxRank]{}, offsets[kMaxOperands]{};
        int64_t rest = begin;
        for (int axis = rank - 2; axis >= 0 && rest > 0; --axis) {
            at[axis] = rest % extent[axis];
            rest /= extent[axis];
            for (int k = 0; k < operands; ++k)
                offsets[k] += at[axis] * stride[k][axis];
        }
        for (int64_t r = begin; r < end; ++r) {
            row(r * rowLength(), offsets);
            for (int axis = rank - 2; axis >= 0; --axis) {
                for (int k = 0; k < operands; ++k)
                    offsets[k] += stride[k][axis];
                if (++at[axis] < extent[axis])
                    break;
                for (int k = 0; k < operands; ++k)
                    offsets[k] -= stride[k][axis] * extent[axis];
                at[axis] = 0;
            }
        }
    }
};

// Every operand has the output's rank, each dimension the output's or 1.
BroadcastLoop broadcastLoop(Extents const& out, std::span<Extents const* const> operands);
inline BroadcastLoop broadcastLoop(Extents const& out, std::initializer_list<Extents const*> operands)
{
    return broadcastLoop(out, std::span(operands.begin(), operands.size()));
}

// For inference: the shape of the broadcast of inputs 0 .. count - 1, or an error that names the two inputs.
Result<ir::Shape> broadcastInputs(ir::InferContext const& ctx, int count);

// For shape arithmetic: where each output element reads in each of `count` operands. Empty unless all shapes are static
// and the output has at most ir::kMaxContent elements; `known` says which.
struct ContentMap
{
    bool known = false;
    std::vector<std::vector<int64_t>> from; // [operand][output element]
};
ContentMap contentMap(ir::InferContext const& ctx, ir::Shape const& out, int count);

} // namespace tw::ops
