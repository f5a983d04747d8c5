// SPDX-License-Identifier: Apache-2.0
// PRelu: the slope is broadcast to the input from the right; before opset 7 a 1-D slope belongs to the channels.
// Integers (opset 9): max(x, 0) + slope * min(x, 0).
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;

void importPRelu(ImportContext& ctx)
{
    ITensor *x = &ctx.tensor(0), *slope = &ctx.tensor(1);
    if (x->getType() != slope->getType())
        ctx.invalid("input and slope are " + std::string(typeName(x->getType())) + " and " +
                    typeName(slope->getType()) + ", they must have one type");
    int const rank = x->getDimensions().nbDims;
    if (ctx.opset() < 7 && slope->getDimensions().nbDims == 1 && rank > 2) {
        std::vector<int> behind; // [C] becomes [C, 1, ..]
        for (int i = 1; i <= rank - 2; ++i)
            behind.push_back(i);
        slope = &ctx.unsqueeze(*slope, behind);
    }
    ctx.broadcast(x, slope);
    if (isFloating(x->getType())) {
        ctx.setOutput(0, ctx.out(ctx.added(ctx.network().addParametricReLU(*x, *slope))));
        return;
    }
    ITensor& zero = ctx.scalarLike(0, *x);
    ITensor& below = ctx.elementwise(*slope, ctx.elementwise(*x, zero, Op::kMIN), Op::kPROD);
    ctx.setOutput(0, ctx.elementwise(ctx.elementwise(*x, zero, Op::kMAX), below, Op::kSUM));
}

} // namespace

void register_parametric_relu(ImporterMap& map)
{
    map.add("PRelu", importPRelu);
}

} // namespace tw::onnx
