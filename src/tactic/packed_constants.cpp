// SPDX-License-Identifier: Apache-2.0
#include "tactic/packed_constants.h"

namespace tw::ops {

PackedConstants::Slot& PackedConstants::slotOf(Blob const& constant, Recipe const& recipe)
{
    std::lock_guard const lock(mutex_);
    return slots_[{constant.data(), constant.sizeBytes(), recipe}];
}

Recipe recipeOf(PanelOrder const& order)
{
    Recipe r{"order of the shape", {order.channels, order.rows, order.taps, order.together, order.outputsLast}};
    r.numbers.insert(r.numbers.end(), order.panels.begin(), order.panels.end());
    return r;
}

Result<std::unique_ptr<Kernel>> loadWith(Tactic const& tactic, Problem const& problem, Config const& config,
                                         std::string const& image, PackedConstants& packed)
{
    if (auto const* sharing = dynamic_cast<PackingTactic const*>(&tactic))
        return sharing->loadShared(problem, config, image, packed);
    return tactic.load(problem, config, image);
}

} // namespace tw::ops
