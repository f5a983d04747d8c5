// SPDX-License-Identifier: Apache-2.0
#include "families/decoding/team.h"
#include "families/decoding/tensors.h"
#include "ops/sample/op.h"
#include "ops/sample/sample_params.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::sample {

namespace {

Result<void> runRows(int team, CudaLaunch const& launch, RunArgs& args)
{
    std::span<TensorRef const> const in = args.inputs;
    std::span<TensorRef> const out = args.outputs;
    Params const p{.scores = in[kScores].as<float>(),
                   .logits = in[kLogits].data,
                   .sequences = in[kSequences].as<int32_t>(),
                   .lengths = in[kLengths].as<int32_t>(),
                   .prompts = in[kPrompts].as<int32_t>(),
                   .floats = in[kFloats].as<float>(),
                   .ints = in[kInts].as<int32_t>(),
                   .ends = decoding::endsAt(in, kEnds),
                   .stop = decoding::wordsAt(in, kStopWords),
                   .token = out[kToken].as<int32_t>(),
                   .finished = out[kFinished].as<int32_t>(),
                   .log = out[kLog].as<float>(),
                   .nextSequences = out[kNextSequences].as<int32_t>(),
                   .nextLengths = out[kNextLengths].as<int32_t>(),
                   .tokens = int32_t(in[kLogits].dims[1]),
                   .capacity = int32_t(in[kSequences].dims[1]),
                   .floatColumns = int32_t(in[kFloats].dims[1]),
                   .intColumns = int32_t(in[kInts].dims[1])};
    return decoding::launchTeams(launch, in[kLogits].dims[0], team, p);
}

template <int team>
std::unique_ptr<CudaKernels> kernelsOfTeam(Problem const& problem, Config const&)
{
    return kernelsOf({.text = cuda::type("T", cuda::storageOf(problem.inputs[kLogits].type)) +
                              decoding::teamSource(team) + cuda::include("ops/sample/sample.cuh"),
                      .names = {"sample"},
                      .wide = isWide(problem)},
                     [](CudaLaunch const& launch, RunArgs& args) { return runRows(team, launch, args); });
}

constexpr CudaTactic kCluster{"sample_any_cluster_sm90", 1, kernelsOfTeam<decoding::kTeam>, decoding::supportsTeam};
constexpr CudaTactic kPlain{"sample_any_plain_cuda", 1, kernelsOfTeam<1>};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kCluster, kPlain>;

} // namespace tw::ops::sample
