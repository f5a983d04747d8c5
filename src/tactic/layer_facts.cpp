// SPDX-License-Identifier: Apache-2.0
#include "tactic/layer_facts.h"

#include <cctype>

#include "ir/op_def.h"

namespace tw::ops {

namespace {

// matrix_multiply: MatrixMultiply
std::string pascalCase(std::string_view name)
{
    std::string out;
    bool isFirst = true;
    for (char c : name) {
        if (c != '_')
            out += isFirst ? char(std::toupper(static_cast<unsigned char>(c))) : c;
        isFirst = c == '_';
    }
    return out;
}

} // namespace

void LayerFacts::addWeights(char const* key, ir::Value const* v)
{
    if (v && v->isConstant())
        add(key, WeightsFact{numberType(v->type).published, ir::extentsOf(v->shape).volume()});
}

std::vector<int64_t> numbersOf(ir::Shape const& shape)
{
    std::vector<int64_t> out;
    for (ir::Dim const& d : shape)
        out.push_back(d.value());
    return out;
}

LayerFacts factsOf(ir::Node const& node, std::string_view tactic)
{
    LayerFacts facts{node, tactic, {}, {}, {}};
    if (node.op->inspect)
        node.op->inspect(facts);
    else
        facts.kind(pascalCase(node.op->name));
    return facts;
}

} // namespace tw::ops
