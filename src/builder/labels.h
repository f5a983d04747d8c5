// SPDX-License-Identifier: Apache-2.0
// What a node may be: its variants, each in the combinations of formats that its tactics offer.
#pragma once

#include <vector>

#include "builder/carriers.h"
#include "builder/formats.h"
#include "runtime/block.h"

namespace tw::builder {

struct Label
{
    size_t variant = 0;
    ops::Formats formats;
};
struct Labels
{
    ir::Node const* node = nullptr;
    std::vector<ops::Problem> variants; // the node as it is, or posed in each of the types that it may have
    std::vector<Label> list;            // linear first
    std::vector<double> costs;
    int chosen = 0;

    Label const& choice() const { return list[size_t(chosen)]; }
    Carrier input(size_t label, size_t i) const
    {
        Label const& l = list[label];
        return {variants[l.variant].inputs[i].type, l.formats.inputs[i]};
    }
    Carrier output(size_t label, size_t i) const
    {
        Label const& l = list[label];
        return {variants[l.variant].outputs[i].type, l.formats.outputs[i]};
    }
};

// Of step `i` of the block; `posed`: its variants, null: itself. Costs are 0.
Labels collectLabels(runtime::LoadedBlock const& block, size_t i, runtime::Instance const& opt,
                     runtime::Instance const& max, tune::Options const& options,
                     std::vector<ops::Problem> const* posed);
// Costs of one variant.
void timeLabels(Labels& labels, size_t variant, runtime::LoadedBlock const& block, runtime::Instance const& opt,
                TimesOf const& timesOf);
// Among estimates, 0 says "unknown": the tactics that have none are the plain ones.
void guessUnknown(Labels& labels);
// Leaves no labels of other variants.
void keepFirstVariant(Labels& labels);

} // namespace tw::builder
