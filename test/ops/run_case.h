// SPDX-License-Identifier: Apache-2.0
// One case of an op by every tactic, or by one, in all formats and configs, against the reference, with guard bytes.
#pragma once

#include <set>
#include <string>

#include "cases/cases.h"
#include "ir/op_def.h"

namespace tw::test {

void runCase(ir::OpDef const& op, ops::Case const& c, ops::Tactic const* one = nullptr);

// What runCase() did since the program began.
struct CaseCounts
{
    int cases = 0;
    int kernels = 0;                  // run and compared
    int skips = 0;                    // of tactics, for want of instructions that this CPU lacks
    std::set<std::string> skippedFor; // what it lacks
};
CaseCounts& caseCounts();

} // namespace tw::test
