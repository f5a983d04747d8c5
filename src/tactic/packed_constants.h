// SPDX-License-Identifier: Apache-2.0
// Packed copies of constants, one for all kernels of an engine that read the same of the same constant.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "base/blob.h"
#include "base/result.h"
#include "tactic/panel_order.h"
#include "tactic/tactic.h"

namespace tw::ops {

// What is made of a constant: who makes it, and every number that decides a byte of it. Equal recipes give equal bytes,
// whichever tactic asks.
struct Recipe
{
    std::string name;
    std::vector<int64_t> numbers;
    auto operator<=>(Recipe const&) const = default; // NOLINT(modernize-use-nullptr): not what is written here
};

// Of what fromPanels() makes of a constant that lies in that order; equal for equal orders alone.
Recipe recipeOf(PanelOrder const& order);

// By constant (the address and size of its bytes, which stay while this is used) and recipe. A copy lives as long as a
// kernel holds it. Workers may ask at the same time: who asks for what another one is making waits for it.
class PackedConstants
{
public:
    // make(): a Result<T>; a recipe's name always goes with the same T.
    template <class T, class Make>
    Result<std::shared_ptr<T const>> get(Blob const& constant, Recipe const& recipe, Make const& make)
    {
        Slot& slot = slotOf(constant, recipe);
        std::lock_guard const lock(slot.mutex);
        if (auto known = slot.made.lock())
            return std::static_pointer_cast<T const>(std::move(known));
        TW_ASSIGN(T made, make());
        auto shared = std::make_shared<T const>(std::move(made));
        slot.made = shared;
        return shared;
    }

private:
    struct Slot
    {
        std::mutex mutex;
        std::weak_ptr<void const> made;
    };
    Slot& slotOf(Blob const& constant, Recipe const& recipe);

    std::mutex mutex_;
    std::map<std::tuple<void const*, size_t, Recipe>, Slot> slots_;
};

// A tactic whose kernels hold packed constants.
class PackingTactic
{
public:
    // As Tactic::load(); packed copies come from `packed`.
    virtual Result<std::unique_ptr<Kernel>> loadShared(Problem const& problem, Config const& config,
                                                       std::string const& image, PackedConstants& packed) const = 0;

protected:
    constexpr PackingTactic() = default;
    ~PackingTactic() = default;
};

// loadShared() where the tactic has it, else load().
Result<std::unique_ptr<Kernel>> loadWith(Tactic const& tactic, Problem const& problem, Config const& config,
                                         std::string const& image, PackedConstants& packed);

} // namespace tw::ops
