// SPDX-License-Identifier: Apache-2.0
// All ops, in the order of ops.def.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ir/op_def.h"

namespace tw::ops {

std::span<ir::OpDef const* const> all();
// Null when there is no such op.
ir::OpDef const* find(std::string_view name);

} // namespace tw::ops

// Of every op: kDef in its op.cpp, reference() in its reference.cpp; the lists in its cpu.cpp and cuda.cpp, which those of
// control flow do not have.
#define TW_OP(opName)                                                                                                  \
    namespace tw::ops::opName {                                                                                        \
    extern ir::OpDef const kDef;                                                                                       \
    inline ir::OpDef const& def()                                                                                      \
    {                                                                                                                  \
        return kDef;                                                                                                   \
    }                                                                                                                  \
    Result<void> reference(RefContext& ctx);                                                                           \
    extern TacticList const cpuTactics, cudaTactics;                                                                   \
    }
#include "ops/ops.def"
#undef TW_OP

// In kDef: what the folder has of these names.
#define TW_OP_PARTS(Attributes)                                                                                        \
    .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<Attributes>()); }, .infer = infer,        \
    .reference = reference, .cpuTactics = &cpuTactics, .cudaTactics = &cudaTactics

// Names that tactics had before they became <op>_<types>_<algorithm>_<arch>. A tactic's id is made of its name, so plans
// that were written then hold the ids of these.
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
