// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/layer_facts.h"

#include <iterator>

namespace tw::ops {

namespace {

constexpr char const* kDeclaration = "const auto "; // readers cut it off
constexpr char const* kNames[] = {"Relu",     "Sigmoid",   "Tanh",    "LeakyRelu",   "Elu",        "Selu",
                                  "Softsign", "Softplus",  "Clip",    "HardSigmoid", "ScaledTanh", "ThresholdedRelu",
                                  "Swish",    "HardSwish", "GeluErf", "GeluTanh"};
static_assert(std::size(kNames) == size_t(kFusedKindCount));

// Between 0 and a limit.
bool isClippedRelu(FusedActivation const& f)
{
    return f.kind == int32_t(activation::Kind::kClip) && f.alpha == 0;
}

} // namespace

std::string activationName(FusedActivation const& f)
{
    return f.any() ? kNames[f.kind] : "";
}

void addExpression(LayerFacts& facts, size_t inputs, std::vector<std::string> const& operations,
                   std::vector<std::string> const& literals)
{
    std::vector<std::string> declared, arguments;
    for (std::string const& operation : operations)
        declared.push_back(kDeclaration + operation);
    for (size_t i = 0; i < inputs; ++i)
        arguments.push_back("arg" + std::to_string(i));
    facts.kind("PointWiseV2", "PointWise");
    facts.add("ParameterSubType", "PointWiseExpression");
    facts.add("NbInputArgs", int64_t(inputs));
    facts.add("InputArgs", arguments);
    facts.add("NbOutputVars", int64_t(1));
    facts.add("OutputVars", std::vector<std::string>{"v" + std::to_string(operations.size() - 1)});
    facts.add("NbParams", int64_t(0));
    facts.add("Params", std::vector<std::string>());
    facts.add("NbLiterals", int64_t(literals.size()));
    facts.add("Literals", literals);
    facts.add("NbOperations", int64_t(declared.size()));
    facts.add("Operations", declared);
}

void addFunction(LayerFacts& facts, std::string const& name)
{
    size_t const inputs = facts.node.inputs.size();
    std::string arguments;
    for (size_t i = 0; i < inputs; ++i)
        arguments += (i ? ", arg" : "arg") + std::to_string(i);
    addExpression(facts, inputs, {"v0 = " + name + "(" + arguments + ")"}, {});
}

void addActivation(LayerFacts& facts, FusedActivation const& f)
{
    bool const isRelu = f.kind == int32_t(activation::Kind::kRelu);
    bool const isGeneric = f.any() && !isRelu && !isClippedRelu(f);
    facts.add("Activation", !f.any() ? "NONE" : isRelu ? "RELU" : isGeneric ? "GENERIC" : "CLIPPED_RELU");
    if (isGeneric) {
        facts.add("ParameterSubType", "PointWiseExpression");
        facts.add("PointWiseExpressionOperations",
                  std::vector<std::string>{kDeclaration + ("v0 = " + activationName(f) + "(arg0)")});
    }
}

} // namespace tw::ops
