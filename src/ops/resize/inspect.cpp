// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/op.h"
#include "tactic/layer_facts.h"

namespace tw::ops {

namespace {

// As the layer was given them, else by the dimensions; -1 where these are not known.
std::vector<double> scalesOf(LayerFacts const& facts, resize::Attrs const& a)
{
    if (!a.scales.empty())
        return a.scales;
    std::vector<int64_t> const x = numbersOf(facts.input(0)->shape), y = numbersOf(facts.node.outputs[0]->shape);
    std::vector<double> scales;
    for (size_t i = 0; i < x.size(); ++i)
        scales.push_back(x[i] > 0 && y[i] >= 0 ? double(y[i]) / double(x[i]) : -1);
    return scales;
}

} // namespace

void inspect_resize(LayerFacts& facts)
{
    auto const& a = facts.attrs<resize::Attrs>();
    constexpr char const* kModes[] = {"kNEAREST", "kLINEAR", "kCUBIC"};
    constexpr char const* kRoundings[] = {"kHALF_UP", "kHALF_DOWN", "kFLOOR", "kCEIL"};
    constexpr char const* kCoordinates[] = {"kALIGN_CORNERS", "kASYMMETRIC", "kHALF_PIXEL"};
    facts.kind("Resize");
    facts.add("ResizeMode", kModes[int(a.mode)]);
    facts.add("ResizeScales", scalesOf(facts, a));
    facts.add("NNRounding", kRoundings[int(a.rounding)]);
    facts.add("Start", std::vector<int64_t>(facts.input(0)->shape.size(), 0));
    facts.add("CoordTransform", kCoordinates[int(a.coordinates)]);
    facts.add("ResizeSelector", a.selector == resize::Selector::kFormula ? "kFORMULA" : "kUPPER");
}

} // namespace tw::ops
