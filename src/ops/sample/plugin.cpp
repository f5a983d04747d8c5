// SPDX-License-Identifier: Apache-2.0
// GenerateSample: one token more for each sequence (docs/plugins.md). A plugin of our own.
#include "api/standard_plugins/standard_plugin.h"
#include "ops/sample/op.h"
#include "ops/token_scores/op.h"
#include "tactic/registry.h"

namespace tw::ops::sample {

namespace {

using api::PluginFields, api::PluginLowering;

enum PluginInput : size_t
{
    kPluginLogits,
    kPluginSequences,
    kPluginLengths,
    kPluginPrompts,
    kPluginFloats,
    kPluginInts,
    kPluginEnds,
    kPluginBadWords,
    kPluginStopWords,
};

void generateSample(PluginLowering& p)
{
    auto const given = [&](size_t i) { return i < p.inputs.size() ? p.inputs[i] : nullptr; };
    PluginLowering::Values const state = {p.in(kPluginSequences), p.in(kPluginLengths), p.in(kPluginPrompts),
                                          p.in(kPluginFloats), p.in(kPluginInts)};
    PluginLowering::Values scoresOf = {p.in(kPluginLogits)};
    scoresOf.insert(scoresOf.end(), state.begin(), state.end());
    scoresOf.insert(scoresOf.end(), {given(kPluginEnds), given(kPluginBadWords)});
    ir::Value* const scores = p.value(token_scores::def(), token_scores::Attrs(), std::move(scoresOf), "scores");
    PluginLowering::Values in = {scores, p.in(kPluginLogits)};
    in.insert(in.end(), state.begin(), state.end());
    in.insert(in.end(), {given(kPluginEnds), given(kPluginStopWords)});
    p.outputs = p.node(sample::def(), ir::NoAttrs(), std::move(in))->outputs;
}

} // namespace

} // namespace tw::ops::sample

namespace tw::api {

void registerPlugins_sample(StandardPlugins& list)
{
    list.push_back({.name = "GenerateSample",
                    .version = "1",
                    .types = {"Tiiifii?i?i?>iifii"},
                    .lower = ops::sample::generateSample});
}

} // namespace tw::api
