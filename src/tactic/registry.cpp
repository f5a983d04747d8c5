// SPDX-License-Identifier: Apache-2.0
#include "tactic/registry.h"

#include <array>

#include "tactic/reference.h"

namespace tw::ops {

std::span<ir::OpDef const* const> all()
{
#define TW_OP(opName) &opName::def(),
    static std::array const list = {
#include "ops/ops.def"
    };
#undef TW_OP
    return list;
}

ir::OpDef const* find(std::string_view name)
{
    for (ir::OpDef const* op : all())
        if (name == op->name)
            return op;
    return nullptr;
}

Error RefContext::error(std::string const& what) const
{
    return failedExecution(std::string(node_.op->name) + " '" + node_.name + "': " + what);
}

} // namespace tw::ops
