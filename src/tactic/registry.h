// SPDX-License-Identifier: Apache-2.0
// All ops, in the order of ops.def.
#pragma once

#include <span>
#include <string_view>

#include "ir/op_def.h"

namespace tw::ops {

std::span<ir::OpDef const* const> all();
// Null when there is no such op.
ir::OpDef const* find(std::string_view name);

} // namespace tw::ops

// Of every op: kDef in its op.cpp, reference() in its reference.cpp.
#define TW_OP(opName)                                                                                                  \
    namespace tw::ops::opName {                                                                                        \
    extern ir::OpDef const kDef;                                                                                       \
    inline ir::OpDef const& def()                                                                                      \
    {                                                                                                                  \
        return kDef;                                                                                                   \
    }                                                                                                                  \
    Result<void> reference(RefContext& ctx);                                                                           \
    }
#include "ops/ops.def"
#undef TW_OP
