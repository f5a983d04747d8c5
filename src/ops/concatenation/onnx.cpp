// SPDX-License-Identifier: Apache-2.0
// Concat.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

// Lists begin so: the first of two parts is a constant without elements that has the other's sizes but for the axis.
bool isNothing(ImportContext& ctx)
{
    if (!ctx.isConstant(0) || ctx.input(0).constant().count != 0)
        return false;
    ITensor& other = ctx.tensor(1);
    Constant const& c = ctx.input(0).constant();
    Dims const a = c.dims, b = other.getDimensions();
    int const axis = a.nbDims > 0 ? ctx.axis(ctx.requireInt("axis"), a.nbDims) : 0;
    bool isIt = a.nbDims > 0 && a.nbDims == b.nbDims && c.type == other.getType() && a.d[axis] == 0;
    for (int d = 0; isIt && d < a.nbDims; ++d)
        isIt = d == axis || a.d[d] == b.d[d];
    return isIt;
}

void importConcat(ImportContext& ctx)
{
    std::vector<ITensor*> parts;
    for (int i = ctx.nbInputs() == 2 && isNothing(ctx) ? 1 : 0; i < ctx.nbInputs(); ++i) {
        parts.push_back(&ctx.tensor(i));
        if (parts.back()->getType() != parts[0]->getType())
            ctx.invalid(fmt::format("input {} is {}, those before it are {}", i, typeName(parts.back()->getType()),
                                    typeName(parts[0]->getType())));
    }
    if (parts.empty())
        ctx.invalid("at least one input is needed");
    int const axis = ctx.axis(ctx.requireInt("axis"), parts[0]->getDimensions().nbDims);
    ITensor& y = ctx.concat(parts, axis);
    ctx.setOutput(0, parts.size() == 1 ? ctx.identity(y) : y);
}

} // namespace

void register_concatenation(ImporterMap& map)
{
    map.add("Concat", importConcat);
}

} // namespace tw::onnx
