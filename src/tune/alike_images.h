// SPDX-License-Identifier: Apache-2.0
// Large tensors whose images (what lies behind axis 0) are the same few, repeated in a random order: the host makes and
// computes these few alone, and what a kernel writes is compared wherever a sample lies. Only for nodes whose image of the
// output depends on that image of the inputs alone, which the reference itself shows (CheckSet::referImages).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "base/workers.h"
#include "ir/graph.h"

namespace tw::tune {

class AlikeImages
{
public:
    static constexpr int64_t kOriginals = 3; // images 0 to 2

    // `inputs`: whole sizes; those that are `fixed` are not ours to fill. None where it would save little, or where by
    // shapes, types or the op an image may depend on others.
    static std::optional<AlikeImages> of(ir::Node const& node, std::span<TensorRef const> inputs,
                                         std::span<TensorRef const> outputs, std::vector<bool> const& fixed,
                                         uint64_t seed);

    // Whether input i has images; the others are the same for all.
    bool hasImages(size_t i) const { return hasImages_[i]; }
    // Input i is made whole.
    void drop(size_t i) { hasImages_[i] = false; }
    // Of the originals alone.
    static Extents few(Extents dims)
    {
        dims[0] = kOriginals;
        return dims;
    }
    // The original that image n repeats; itself for the first ones.
    int64_t original(int64_t n) const { return originals_[size_t(n)]; }
    int64_t count() const { return int64_t(originals_.size()); }

    // The whole tensor of its originals, which are in the same format.
    void repeat(TensorRef const& originals, TensorRef const& whole, Workers& workers) const;

private:
    std::vector<bool> hasImages_;
    std::vector<int64_t> originals_;
};

} // namespace tw::tune
