// SPDX-License-Identifier: Apache-2.0
#include "ops/shuffle/op.h"
#include "tactic/layer_facts.h"

namespace tw::ops {

namespace {

std::vector<int64_t> written(std::vector<int64_t> permutation, size_t rank)
{
    for (size_t i = permutation.size(); i < rank; ++i)
        permutation.push_back(int64_t(i)); // empty: identity
    return permutation;
}

} // namespace

void inspect_shuffle(LayerFacts& facts)
{
    auto const& a = facts.attrs<shuffle::Attrs>();
    std::vector<int64_t> const y = numbersOf(facts.node.outputs[0]->shape);
    std::vector<int64_t> const second = written(a.secondTranspose, y.size());
    facts.kind("Shuffle");
    facts.add("FirstTranspose", written(a.firstTranspose, facts.input(0)->shape.size()));
    if (facts.input(1)) { // run-time dimensions: as far as the output tells
        std::vector<int64_t> reshape(y.size());
        for (size_t i = 0; i < y.size(); ++i)
            reshape[size_t(second[i])] = y[i];
        facts.add("Reshape", reshape);
    } else if (a.hasReshape) {
        facts.add("Reshape", a.reshape);
    } else {
        facts.add("Reshape", "nbDims=-1");
    }
    facts.add("SecondTranspose", second);
    facts.addFlag("ZeroIsPlaceholder", a.zeroIsPlaceholder);
}

} // namespace tw::ops
