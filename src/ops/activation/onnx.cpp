// SPDX-License-Identifier: Apache-2.0
// Relu, Sigmoid, Tanh, LeakyRelu, Elu, Selu, Softsign, Softplus, HardSigmoid, ThresholdedRelu, ScaledTanh. Integer Relu
// (opset 14) is an element-wise maximum.
#include <cmath>

#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::ActivationType;

ITensor& floating(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    if (!isFloating(x.getType()))
        ctx.fail("the input is " + std::string(typeName(x.getType())) + "; " + ctx.opType() +
                 " takes FLOAT and HALF tensors");
    return x;
}

void activate(ImportContext& ctx, ActivationType type, float alpha = 0, float beta = 0)
{
    ITensor& x = floating(ctx);
    if (!std::isfinite(alpha) || !std::isfinite(beta))
        ctx.invalid("alpha and beta must be finite");
    ctx.setOutput(0, ctx.activation(x, type, alpha, beta));
}

void importRelu(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    if (isFloating(x.getType()))
        activate(ctx, ActivationType::kRELU);
    else
        ctx.setOutput(0, ctx.elementwise(x, ctx.scalarLike(0, x), nvinfer1::ElementWiseOperation::kMAX));
}
} // namespace

void register_activation(ImporterMap& map)
{
    map.add("Relu", importRelu);
    map.add("Sigmoid", [](auto& ctx) { activate(ctx, ActivationType::kSIGMOID); });
    map.add("Tanh", [](auto& ctx) { activate(ctx, ActivationType::kTANH); });
    map.add("LeakyRelu", [](auto& ctx) { activate(ctx, ActivationType::kLEAKY_RELU, ctx.attrFloat("alpha", 0.01f)); });
    map.add("Elu", [](auto& ctx) { activate(ctx, ActivationType::kELU, ctx.attrFloat("alpha", 1)); });
    // ONNX: gamma (alpha exp x - alpha) for x <= 0, gamma x above.
    map.add("Selu", [](auto& ctx) {
        activate(ctx, ActivationType::kSELU, ctx.attrFloat("alpha", 1.67326319217681884765625f),
                 ctx.attrFloat("gamma", 1.05070102214813232421875f));
    });
    map.add("Softsign", [](auto& ctx) { activate(ctx, ActivationType::kSOFTSIGN); });
    map.add("Softplus", [](auto& ctx) { activate(ctx, ActivationType::kSOFTPLUS, 1, 1); });
    map.add("HardSigmoid", [](auto& ctx) {
        activate(ctx, ActivationType::kHARD_SIGMOID, ctx.attrFloat("alpha", 0.2f), ctx.attrFloat("beta", 0.5f));
    });
    map.add("ThresholdedRelu",
            [](auto& ctx) { activate(ctx, ActivationType::kTHRESHOLDED_RELU, ctx.attrFloat("alpha", 1)); });
    map.add("ScaledTanh", [](auto& ctx) {
        activate(ctx, ActivationType::kSCALED_TANH, ctx.attrFloat("alpha", 1), ctx.attrFloat("beta", 1));
    });
}

} // namespace tw::onnx
