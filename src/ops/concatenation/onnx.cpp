// SPDX-License-Identifier: Apache-2.0
// Concat.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

void importConcat(ImportContext& ctx)
{
    std::vector<ITensor*> parts;
    for (int i = 0; i < ctx.nbInputs(); ++i) {
        parts.push_back(&ctx.tensor(i));
        if (parts[size_t(i)]->getType() != parts[0]->getType())
            ctx.invalid(fmt::format("input {} is {}, those before it are {}", i, typeName(parts[size_t(i)]->getType()),
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
