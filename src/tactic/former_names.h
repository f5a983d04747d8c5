// SPDX-License-Identifier: Apache-2.0
// Names that tactics had before they became <op>_<types>_<algorithm>_<arch>. A tactic's id is made of its name, so plans
// that were written then hold the ids of these.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tw::ops {

struct FormerName
{
    std::string_view today, former;
};
std::span<FormerName const> formerNames();

// As Tactic::id() makes it.
uint64_t tacticId(std::string_view name, int version);
// Of the tactic that had this name then; itself for every other name.
std::string_view todaysName(std::string_view former);

} // namespace tw::ops
