// SPDX-License-Identifier: Apache-2.0
// Many rows (sequences of a batch) that hold the same few: the reference computes each of these once, and all elements of
// all rows are compared. For recurrent layers, whose reference is expensive and cannot leave out steps; what is wrong in
// one step of one row is found, which a few sampled elements would not show.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "ir/graph.h"

namespace tw::tune {

// For each of `count` rows or images the one of `few` that it repeats: the first are themselves, the others at random, never as
// the one before.
std::vector<int64_t> repeatedOriginals(int64_t count, int64_t few, uint64_t seed);

class AlikeRows
{
public:
    // Such a layer: its reference computes all elements, whoever asks for them, so all are compared.
    static bool isOf(ir::Node const& node);
    // None where the op is another, rows are as few anyway, computing them all takes little time, or an input that may not
    // be overwritten (`fixed`) has other rows.
    static std::optional<AlikeRows> of(ir::Node const& node, std::span<TensorRef const> inputs,
                                       std::span<TensorRef const> outputs, std::vector<bool> const& fixed,
                                       uint64_t seed);
    // Overwrites rows of inputs.
    void repeat(std::span<TensorRef const> inputs) const;
    // What the reference makes of such inputs.
    Result<void> refer(std::span<TensorRef const> inputs, std::span<TensorRef const> outputs,
                       uint64_t* randomState) const;

private:
    AlikeRows(ir::Node const& node, int64_t rows, uint64_t seed);

    ir::Node const* node_;
    std::vector<int64_t> originals_; // of each row, the one that it repeats
    std::vector<bool> fixed_;
};

} // namespace tw::tune
