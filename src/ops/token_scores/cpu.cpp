// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/element.h"
#include "families/decoding/tensors.h"
#include "families/decoding/weights.h"
#include "ops/token_scores/op.h"
#include "tactic/cpu_tactic.h"

namespace tw::ops::token_scores {

namespace {

using namespace decoding;

struct Row
{
    Request request;
    int32_t const* sequence;
    int32_t length, prompt;
    Ends ends;
    Words bad;
};

// counts[t]: 1 where t is in the sequence, and 2 for each time behind the prompt. Its numbers on entry do not matter.
void penalize(Row const& row, float* y, int64_t tokens, uint32_t* counts)
{
    auto const isToken = [&](int32_t t) { return t >= 0 && t < tokens; };
    Request const& r = row.request;
    if (r.repetition == 1 && r.presence == 0 && r.frequency == 0)
        return;
    for (int32_t i = 0; i < row.length; ++i)
        if (int32_t const t = row.sequence[i]; isToken(t))
            counts[t] = 1;
    for (int32_t i = row.prompt; i < row.length; ++i)
        if (int32_t const t = row.sequence[i]; isToken(t))
            counts[t] += 2;
    for (int32_t i = 0; i < row.length; ++i) {
        int32_t const t = row.sequence[i];
        if (!isToken(t) || counts[t] == 0)
            continue;
        y[t] = penalized(r, y[t], counts[t]);
        counts[t] = 0;
    }
}

void forbid(Row const& row, float* y, int64_t tokens)
{
    auto const strike = [&](int32_t t) {
        if (t >= 0 && t < tokens)
            y[t] = never();
    };
    for (int32_t i = 0, n = row.request.ngram; n > 0 && i <= row.length - n; ++i)
        if (areEqual(row.sequence + i, row.sequence + row.length - n + 1, n - 1))
            strike(row.sequence[i + n - 1]);
    forEachWord(row.bad, [&](int32_t const* ids, int32_t n) {
        if (n - 1 <= row.length && areEqual(ids, row.sequence + row.length - n + 1, n - 1))
            strike(ids[n - 1]);
    });
    if (row.length < row.request.minLength) {
        strike(row.request.eos);
        for (int32_t i = 0; i < row.ends.count; ++i)
            strike(row.ends.ids[i]);
    }
}

int64_t workspace(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    return slotsOf(in[kLogits].dims[0]) * in[kLogits].dims[1] * int64_t(sizeof(uint32_t));
}

Result<void> runBy(TokenKernels const& k, ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    std::span<TensorRef const> const in = args.inputs;
    int64_t const rows = in[kLogits].dims[0], tokens = in[kLogits].dims[1], slots = slotsOf(rows);
    auto const capacity = int32_t(in[kSequences].dims[in[kSequences].dims.rank - 1]);
    args.workers->run(slots, [&](int64_t slot, int) {
        for (int64_t r = slot; r < rows; r += slots) {
            int64_t const n = r / a.beams;
            float* const y = args.outputs[0].as<float>() + r * tokens;
            int32_t const length = clamped(in[kLengths].as<int32_t>()[n], 0, capacity);
            if (length == 0) {
                std::fill_n(y, tokens, never());
                continue;
            }
            withFloat(in[kLogits].type,
                      [&](auto element) { scoresOf(k, in[kLogits].as<decltype(element)>() + r * tokens, tokens, y); });
            if (a.logSoftmax) {
                LogSum const sum = logSumOf(k, [&](auto const& f) { f(y, tokens); });
                for (int64_t i = 0; i < tokens; ++i)
                    y[i] = isNever(y[i]) ? y[i] : float(sum.of(y[i]));
            }
            Row const row{requestAt(in[kFloats], in[kInts], n),
                          in[kSequences].as<int32_t>() + r * capacity,
                          length,
                          clamped(in[kPrompts].as<int32_t>()[n], 0, length),
                          endsAt(in, kEnds),
                          wordsAt(in, kBadWords).of(n)};
            penalize(row, y, tokens, static_cast<uint32_t*>(args.workspace) + slot * tokens);
            forbid(row, y, tokens);
        }
    });
    return {};
}

constexpr PlainTactic kPlain{"token_scores_any_plain_cpu", 1,
                             [](ir::Node const& node, RunArgs& args) { return runBy(kPlainTokens, node, args); },
                             workspace};

constexpr CpuFunctions kVectors{.load = [](CpuTactic const& t, Problem const& p, Config const&, PackedConstants&) {
    auto const run = [node = p.node, &k = tokensOf(t.isa())](RunArgs& args) { return runBy(k, *node, args); };
    return CpuFunctions::Loaded(kernelOf(*p.node, run, workspace));
}};
constexpr CpuTactic kAvx512{"token_scores_any_vectors_avx512", 1, kernels::jit::Isa::kAvx512, kVectors};
constexpr CpuTactic kAvx2{"token_scores_any_vectors_avx2", 1, kernels::jit::Isa::kAvx2, kVectors};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512, kAvx2, kPlain>;

} // namespace tw::ops::token_scores
