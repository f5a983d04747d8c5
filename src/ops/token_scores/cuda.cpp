// SPDX-License-Identifier: Apache-2.0
#include "families/decoding/team.h"
#include "families/decoding/tensors.h"
#include "ops/token_scores/op.h"
#include "ops/token_scores/token_scores_params.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::token_scores {

namespace {

Result<void> runRows(Attrs const& a, int team, CudaLaunch const& launch, RunArgs& args)
{
    std::span<TensorRef const> const in = args.inputs;
    Params const p{.logits = in[kLogits].data,
                   .sequences = in[kSequences].as<int32_t>(),
                   .lengths = in[kLengths].as<int32_t>(),
                   .prompts = in[kPrompts].as<int32_t>(),
                   .floats = in[kFloats].as<float>(),
                   .ints = in[kInts].as<int32_t>(),
                   .ends = decoding::endsAt(in, kEnds),
                   .bad = decoding::wordsAt(in, kBadWords),
                   .y = args.outputs[0].as<float>(),
                   .counts = static_cast<uint32_t*>(args.workspace),
                   .tokens = int32_t(in[kLogits].dims[1]),
                   .capacity = int32_t(in[kSequences].dims[in[kSequences].dims.rank - 1]),
                   .beams = int32_t(a.beams),
                   .floatColumns = int32_t(in[kFloats].dims[1]),
                   .intColumns = int32_t(in[kInts].dims[1]),
                   .isLogSoftmax = a.logSoftmax};
    return decoding::launchTeams(launch, in[kLogits].dims[0], team, p);
}

template <int team>
std::unique_ptr<CudaKernels> kernelsOfTeam(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    return kernelsOf(
        {.text = cuda::type("T", cuda::storageOf(problem.inputs[kLogits].type)) + decoding::teamSource(team) +
                 cuda::include("ops/token_scores/token_scores.cuh"),
         .names = {"token_scores"},
         .wide = isWide(problem)},
        [&a](CudaLaunch const& launch, RunArgs& args) { return runRows(a, team, launch, args); },
        [](std::span<TensorRef const> in, std::span<TensorRef const>) {
            return in[kLogits].count() * int64_t(sizeof(uint32_t));
        });
}

constexpr CudaTactic kCluster{"token_scores_any_cluster_sm90", 1, kernelsOfTeam<decoding::kTeam>,
                              decoding::supportsTeam};
constexpr CudaTactic kPlain{"token_scores_any_plain_cuda", 1, kernelsOfTeam<1>};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kCluster, kPlain>;

} // namespace tw::ops::token_scores
