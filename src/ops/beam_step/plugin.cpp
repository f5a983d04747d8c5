// SPDX-License-Identifier: Apache-2.0
// BeamStep: one step of beam search (docs/plugins.md). A plugin of our own.
#include "api/standard_plugins/standard_plugin.h"
#include "ops/beam_step/op.h"
#include "ops/token_scores/op.h"
#include "tactic/registry.h"

namespace tw::ops::beam_step {

namespace {

using api::PluginFields, api::PluginLowering;
using nvinfer1::PluginFieldType;

constexpr char const* kFieldPlaces = "cache_indirection";

// Those of the op, but for the logits in place of scores, and behind the ids: bad words, places.
constexpr size_t kPluginBadWords = kEndIds + 1, kPluginPlaces = kPluginBadWords + 1;

void beamStep(PluginLowering& p)
{
    auto const given = [&](size_t i) { return i < p.inputs.size() ? p.inputs[i] : nullptr; };
    ir::Value* const sequences = p.in(kSequences, 3);
    Attrs a;
    a.places = p.fields.flag(kFieldPlaces);
    p.check(a.places == (given(kPluginPlaces) != nullptr),
            fmt::format("{} is {}: {} inputs are wanted at most, and there are {}", kFieldPlaces, int(a.places),
                        kPluginPlaces + a.places, p.inputs.size()));
    token_scores::Attrs scored;
    scored.beams = p.known(sequences, 1);
    scored.logSoftmax = true;
    ir::Value* const scores = p.value(token_scores::def(), scored,
                                      {p.in(kScores), sequences, p.in(kLengths), p.in(kPrompts), p.in(kFloats),
                                       p.in(kInts), given(kEndIds), given(kPluginBadWords)},
                                      "scores");
    PluginLowering::Values in(p.inputs.begin(), p.inputs.begin() + kEndIds);
    in[kScores] = scores;
    in.insert(in.end(), {given(kEndIds), given(kPluginPlaces)});
    p.outputs = p.node(beam_step::def(), a, std::move(in))->outputs;
}

} // namespace

} // namespace tw::ops::beam_step

namespace tw::api {

void registerPlugins_beam_step(StandardPlugins& list)
{
    using namespace ops::beam_step;
    list.push_back({.name = "BeamStep",
                    .version = "1",
                    .fields = {{kFieldPlaces, PluginFieldType::kINT32, kMay}},
                    .types = {"Tiiifiiiffii?i?i?>iiiifiiifi"},
                    .lower = beamStep,
                    .outputs = [](PluginFields const& f) { return f.flag(kFieldPlaces) ? 10 : 9; }});
}

} // namespace tw::api
