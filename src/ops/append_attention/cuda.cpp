// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "families/attention/cuda_fused.h"
#include "ops/append_attention/cuda_parts.h"
#include "tactic/registry.h"

namespace tw::ops::append_attention {

namespace {

// A tactic of attention by its place in that op's list; null where there is none that computes by kernels of its own as the types say.
CudaTactic const* attentionAt(int64_t place)
{
    TacticList const list = *attention::def().cudaTactics;
    if (place < 0 || place >= int64_t(list.size()))
        return nullptr;
    auto const* tactic = dynamic_cast<CudaTactic const*>(list[size_t(place)]);
    return tactic && tactic->traits().rounding == Rounding::kPlain ? tactic : nullptr;
}

int64_t plainPlace()
{
    return int64_t(attention::def().cudaTactics->size()) - 1;
}

// {place of attention's tactic, its config}, of all but the plain one.
std::vector<Config> apartConfigs(Problem const& problem)
{
    auto const parts = Parts::of(problem);
    Problem const& attending = (*parts)[Part::kAttention];
    std::vector<Config> list;
    for (int64_t place = 0; place < plainPlace(); ++place) {
        CudaTactic const* const tactic = attentionAt(place);
        if (!tactic || !tactic->supports(attending).ok)
            continue;
        for (Config const& c : tactic->configs(attending)) {
            list.push_back({place});
            list.back().insert(list.back().end(), c.begin(), c.end());
        }
    }
    return list;
}

std::unique_ptr<CudaKernels> generateApart(Problem const& problem, Config const& config)
{
    CudaTactic const* const tactic = config.empty() ? nullptr : attentionAt(config[0]);
    if (!tactic || config[0] == plainPlace())
        return attention::noAttention();
    return kernelsApart(problem, *tactic, Config(config.begin() + 1, config.end()));
}

Support supportsApart(Problem const& problem)
{
    return apartConfigs(problem).empty() ? Support::no("attention has no fast kernel for this") : Support::yes();
}

std::unique_ptr<CudaKernels> generatePlain(Problem const& problem, Config const&)
{
    return kernelsApart(problem, *attentionAt(plainPlace()), {});
}

constexpr CudaTactic kApart{"append_attention_any_apart_cuda", 1, generateApart, supportsApart, apartConfigs};
constexpr CudaTactic kPlain{"append_attention_any_plain_cuda", 1, generatePlain};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kF16Few, kApart, kPlain>;

} // namespace tw::ops::append_attention
