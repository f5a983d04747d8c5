// SPDX-License-Identifier: Apache-2.0
// Where.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

void importWhere(ImportContext& ctx)
{
    ITensor &condition = ctx.tensor(0), &a = ctx.tensor(1), &b = ctx.tensor(2);
    if (condition.getType() != DataType::kBOOL)
        ctx.invalid("the condition is " + std::string(typeName(condition.getType())) + ", it must be BOOL");
    if (a.getType() != b.getType())
        ctx.invalid("the branches are " + std::string(typeName(a.getType())) + " and " + typeName(b.getType()) +
                    ", they must have one type");
    ctx.setOutput(0, ctx.select(condition, a, b));
}

} // namespace

void register_select(ImporterMap& map)
{
    map.add("Where", importWhere);
}

} // namespace tw::onnx
