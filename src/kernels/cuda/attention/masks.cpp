// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/masks.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "kernels/cuda/common/generate.h"

namespace tw::cuda {

namespace {

constexpr float kLog2E = 1.44269504f;

} // namespace

int AttentionMasks::registers(int keys) const
{
    return keys / 8 * ((mask && !maskRows) * (single ? 2 : 1) + (keep && !keepRows));
}

std::string AttentionMasks::name() const
{
    std::string s;
    if (mask)
        s += maskRows ? "_mask" : "_mask_of_keys";
    if (keep)
        s += std::string(keepRows ? "_keep" : "_keep_of_keys") + (inverted ? "_inverted" : "");
    s += std::string(scoreSteps ? "_score_steps" : "") + (sumSteps ? "_sum_steps" : "");
    s += weightSteps ? "_weight_steps" : "";
    return s + ((mask || keep) && pairs ? "_pairs" : "") + (causal ? "_causal" : "") + (segments ? "_segments" : "") +
           (lengths ? "_lengths" : "") + (window ? "_window" : "") + (softcap ? "_softcap" : "") +
           (sinks ? "_sinks" : "") + (slopes ? "_slopes" : "") + (places ? "_places" : "");
}

AttentionArgs forKernel(AttentionArgs args, AttentionSteps const& steps)
{
    if (steps.scores > 0) {
        args.scoreSteps = float(double(args.scale) / steps.scores);
        args.scoreStep = float(steps.scores * double(kLog2E));
    }
    if (steps.sums > 0) {
        args.sumSteps = float(1 / (steps.sums * double(kLog2E)));
        args.sumStep = float(steps.sums * double(kLog2E));
    }
    if (steps.weights > 0) {
        args.weightSteps = float(1 / steps.weights);
        args.weightStep = float(steps.weights);
    }
    if (args.softcap > 0) {
        args.capIn = args.scale / args.softcap;
        args.capOut = args.softcap * kLog2E;
    }
    args.scale *= kLog2E;
    // An infinity stays one, a finite number must not become one: a row of nothing else has equal weights.
    if (std::abs(args.fill) <= FLT_MAX)
        args.fill = float(std::clamp(double(args.fill) * double(kLog2E), -double(FLT_MAX), double(FLT_MAX)));
    return args;
}

int attentionUnit(int bytesOfElement, std::initializer_list<int64_t> places)
{
    int64_t unit = 16 / bytesOfElement;
    for (int64_t p : places)
        while (p % unit != 0)
            unit /= 2;
    return int(unit);
}

std::string attentionSource(AttentionMasks const& m)
{
    return flag("MASK", m.mask) + flag("MASK_ROWS", m.maskRows) + flag("KEEP", m.keep) + flag("KEEP_ROWS", m.keepRows) +
           flag("INVERTED", m.inverted) + flag("PAIRS", m.pairs) + flag("CAUSAL", m.causal) + flag("MASKED", m.any()) +
           flag("SCORE_STEPS", m.scoreSteps) + flag("SUM_STEPS", m.sumSteps) + flag("WEIGHT_STEPS", m.weightSteps) +
           flag("SEGMENTS", m.segments) + flag("LENGTHS", m.lengths) + flag("WINDOW", m.window) +
           flag("SOFTCAP", m.softcap) + flag("SINKS", m.sinks) + flag("SLOPES", m.slopes) + flag("PLACES", m.places) +
           include(m.single ? "kernels/cuda/attention/masks_f32.cuh" : "kernels/cuda/attention/masks_f16.cuh") +
           include("kernels/cuda/attention/masks.cuh");
}

} // namespace tw::cuda
