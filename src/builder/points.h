// SPDX-License-Identifier: Apache-2.0
// Sizes within the optimization profiles at which kernels are checked beside the optimum, with the shape tensors that
// belong to them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "runtime/block.h"
#include "tactic/tactic.h"
#include "tune/options.h"

namespace tw::builder {

class ShapePoints
{
public:
    static constexpr size_t kAllProfiles = SIZE_MAX;
    // For kernels that run in one of the profiles, or in all. Sizes that the network refuses are left out: the run that asks
    // for them gets the error.
    ShapePoints(plan::Contents const& contents, runtime::LoadedBlock const& block, size_t profile = kAllProfiles);
    ShapePoints(ShapePoints&&) = default;
    ShapePoints& operator=(ShapePoints&&) = default;

    // Those of one region of the block, for each of its profiles: the minimum; the maximum, or where the region's tensors are
    // too large there, the largest size towards it whose are not; a size between with odd numbers; the optimum of other
    // profiles than the first. None twice, and none where the region does not vary. Valid as long as this object.
    std::vector<tune::Point> of(ops::Problem const& problem) const;

private:
    struct Size
    {
        std::string where; // for messages
        std::unique_ptr<runtime::Instance> at;
    };
    struct Profile
    {
        std::vector<Size> fixed;   // minimum, and the optimum that nobody else looks at
        std::vector<Size> falling; // from the maximum towards the minimum; all but the first have odd numbers
    };
    std::vector<Profile> profiles_;
    int64_t mostBytes_ = 0; // of a profile
};

// Whether tuning at the shapes of the optimization profiles fits into memory.

// Tuning holds a layer's inputs and its outputs twice (the kernel's and the reference's). What cannot fit is refused
// here, where layer and tensor have names.
Result<void> checkTuningMemory(runtime::LoadedBlock const& block, runtime::Instance const& inst, int64_t limit);

std::string mebibytes(int64_t bytes);

} // namespace tw::builder
