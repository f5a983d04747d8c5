// SPDX-License-Identifier: Apache-2.0
// Dimensions of every value at the minimum, optimum and maximum of each optimization profile.
#pragma once

#include <memory>
#include <vector>

#include "base/log.h"
#include "plan/plan.h"
#include "runtime/block.h"

namespace tw::runtime {

enum class Select
{
    kMin,
    kOpt,
    kMax,
};

// Input shapes (and contents of shape tensors) at one end of a profile; `storage` keeps the contents.
Result<std::vector<InputState>> profileInputs(plan::Contents const& contents, size_t profile, Select select,
                                              std::vector<Tensor>& storage);

// What is said of a profile's point that breaks the network's bounds.
std::string violation(Select point, size_t profile, Error const& error);

// Input dimensions of one symbol (of equal names) are equal.
Result<void> checkEqualDims(ir::Graph const& graph, std::vector<InputState> const& inputs);

struct ProfileShapes
{
    std::unique_ptr<Instance> min; // null: not asked for, or it breaks a layer's bounds
    std::unique_ptr<Instance> opt;
    // Bounds of what runs may have. Where the maximum breaks a layer's bounds, nothing can run in these shapes.
    std::unique_ptr<Instance> max;
    bool isMaximumValid = true;

    // The largest shapes that are known to run: what arenas are planned for. Larger runs bring memory of their own.
    Instance& largest() const { return isMaximumValid ? *max : *opt; }
};

struct NetworkShapes
{
    std::vector<ProfileShapes> profiles; // at least one
    std::unique_ptr<Instance> most;      // null: one profile

    // What kernels are chosen and made for: a profile's optimum, and its bounds, or those of all profiles.
    Instance const& opt(size_t profile = 0) const { return *profiles[profile].opt; }
    Instance const& max(size_t profile) const { return *profiles[profile].max; }
    Instance const& max() const { return most ? *most : *profiles[0].max; }
};

struct ResolveOptions
{
    bool withMinimum = false;
    Log* log = nullptr; // warned of minima and maxima that break a layer's bounds
};
// An optimum that breaks a layer's bounds is an error.
Result<NetworkShapes> resolveProfiles(plan::Contents const& contents, LoadedBlock const& block,
                                      ResolveOptions const& options = {});

// What optimization profiles say of the symbols in the shapes of a graph's inputs.

// Of symbols that stand alone as a dimension of an input, or as an element of a shape tensor. Inputs that share one
// have to agree when they run: the range is what all of them allow, or that of all together where this is nothing.
ir::SymbolTable symbolRanges(ir::Graph const& g, plan::Profile const& profile);
// What any of the profiles allows.
ir::SymbolTable symbolRanges(ir::Graph const& g, std::vector<plan::Profile> const& profiles);
// A number where the ranges leave one value only: what has equal minimum and maximum is static.
ir::Dim fixedDim(ir::Dim const& d, ir::SymbolTable const& ranges);

} // namespace tw::runtime
