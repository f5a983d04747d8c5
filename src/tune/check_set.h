// SPDX-License-Identifier: Apache-2.0
// Inputs of a region at one size and what its reference makes of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "tactic/domain.h"
#include "tactic/rounded_factors.h"
#include "tactic/tactic.h"
#include "tune/alike_images.h"
#include "tune/options.h"

namespace tw::tune {

constexpr uint64_t kSeed = 20221107; // any constant: builds are reproducible
// Of the ops' tolerances: the tuner looks for what is wrong, not for the last digit of a long sum that an activation
// magnifies.
constexpr double kSlack = 4;

Error noMemory();

class CheckSet
{
public:
    enum class Values
    {
        kFirst,
        kOther,  // chance must not hide what is wrong
        kLarger, // a hundred times
    };

    // At the optimum.
    Result<void> fill(ops::Problem const& problem, Values values);
    // Elsewhere: with fewer samples of large outputs.
    Result<void> fill(ops::Problem const& problem, Point const& point);

    // Whether there is such a set: not all values suit all ops and sizes.
    bool isThere() const { return isThere_; }
    // Why the reference gives nothing (random inputs may be none that the node accepts); empty: it does.
    std::string const& incomparable() const { return incomparable_; }

    int64_t bytes() const; // that it holds

    // Linear. Those that have images (of images()) are the originals alone.
    std::vector<TensorRef> const& inputs() const { return inputs_; }
    std::vector<TensorRef> const& outputs() const { return outputs_; } // whole sizes, no elements
    // Null: all inputs are whole.
    AlikeImages const* images() const { return images_ ? &*images_ : nullptr; }
    // Positions in output 0 that are compared; empty: all.
    std::vector<int64_t> const& samples() const { return samples_; }

    // Compares a kernel's output `i`, in its format, with what the region computes: exactly, and where that does not
    // fit as its nodes would one by one, each rounded to its type. Each element may be within the tolerance of either.
    // Empty, or where and by how much it is wrong. `isList`: `got` holds the samples alone, in order.
    std::string compare(size_t i, TensorRef const& got, ops::Rounding rounding, bool isList = false);
    // Whether rounding may be why a kernel's output `i` is not the reference's: floating, of the same size, and not all
    // of it elements of the inputs and zeros, of which none was rounded.
    bool mayRound(size_t i, TensorRef const& got) const;

private:
    using References = std::vector<std::vector<Tensor>>;

    Result<void> fill(ops::Problem const& problem, std::span<InputAt const> given, Values values, int64_t randomSamples,
                      uint64_t seed);
    Result<void> fillInput(size_t i, Extents const& dims, Values values, uint64_t seed);
    Result<void> refer(uint64_t seed, int64_t randomSamples);
    Result<bool> referImages(int64_t randomSamples);
    Result<std::vector<Tensor>> run(std::vector<TensorRef> const& inputs, std::vector<bool> const& wanted) const;
    References const& stepwise();
    bool onlyMoves(TensorRef const& want, std::vector<bool> const& wanted) const;
    std::string compareWith(std::vector<TensorRef> const& wants, TensorRef const& got, size_t i, ops::Rounding rounding,
                            bool isList);
    TensorRef make(DataType type, Extents const& dims);

    ir::Node const* node_ = nullptr;
    bool isThere_ = false;
    double slack_ = kSlack; // of the tolerance
    std::string incomparable_;
    std::vector<Tensor> storage_;
    std::vector<TensorRef> inputs_, outputs_, want_;
    std::vector<bool> fixed_; // inputs that are not ours to fill
    std::optional<AlikeImages> images_;
    std::vector<bool> wanted_;           // of want_[0]; empty: all
    std::vector<int64_t> samples_;       // in the whole output 0,
    std::vector<int64_t> wantedAt_;      // and the elements of want_[0] that they are compared with
    std::optional<References> stepwise_; // made when first needed
};

} // namespace tw::tune
