// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/layer_facts.h"

#include <cstdio>
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

std::string numberText(double v)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.9gf", v);
    return text;
}

} // namespace

std::string activationName(FusedActivation const& f)
{
    return f.any() ? kNames[f.kind] : "";
}

std::vector<std::string> operationsOf(std::vector<ExpressionStep> const& steps, size_t inputs,
                                      std::vector<std::string>* literals)
{
    auto operand = [&](int i) {
        return i < int(inputs) ? fmt::format("arg{}", i) : fmt::format("v{}", i - int(inputs));
    };
    std::vector<std::string> operations;
    for (ExpressionStep const& s : steps) {
        std::string line = fmt::format("v{} = ", operations.size());
        if (s.code == StepCode::kConstant) {
            line += numberText(s.alpha);
            if (literals)
                literals->push_back(numberText(s.alpha));
        } else {
            line += (s.code == StepCode::kActivation ? activationName(FusedActivation(s)) : nameOf(s.code)) + "(" +
                    operand(s.a) + (operandsOf(s.code) == 2 ? ", " + operand(s.b) : "") + ")";
        }
        operations.push_back(line);
    }
    return operations;
}

void addExpression(LayerFacts& facts, size_t inputs, std::vector<std::string> const& operations,
                   std::vector<std::string> const& literals)
{
    std::vector<std::string> declared, arguments;
    for (std::string const& operation : operations)
        declared.push_back(kDeclaration + operation);
    for (size_t i = 0; i < inputs; ++i)
        arguments.push_back(fmt::format("arg{}", i));
    facts.kind("PointWiseV2", "PointWise");
    facts.add("ParameterSubType", "PointWiseExpression");
    facts.add("NbInputArgs", int64_t(inputs));
    facts.add("InputArgs", arguments);
    facts.add("NbOutputVars", int64_t(1));
    facts.add("OutputVars", std::vector<std::string>{fmt::format("v{}", operations.size() - 1)});
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
        arguments += fmt::format("{}{}", i ? ", arg" : "arg", i);
    addExpression(facts, inputs, {"v0 = " + name + "(" + arguments + ")"}, {});
}

void addActivation(LayerFacts& facts, Epilogue const& e)
{
    if (e.hasSteps()) {
        facts.add("Activation", "GENERIC");
        facts.add("ParameterSubType", "PointWiseExpression");
        std::vector<std::string> declared;
        for (std::string const& operation : operationsOf(e.expression(), facts.input(Epilogue::kResidual) ? 2 : 1))
            declared.push_back(kDeclaration + operation);
        facts.add("PointWiseExpressionOperations", declared);
        return;
    }
    FusedActivation const& f = e.activation;
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
