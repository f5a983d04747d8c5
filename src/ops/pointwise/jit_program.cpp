// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/jit_program.h"

namespace tw::ops::pointwise {

static_assert(kMaxInputs == kernels::jit::kMaxPointwiseInputs);

PointwiseSpec specOf(Attrs const& a)
{
    PointwiseSpec spec;
    for (size_t i = 0; i < a.inputs.size() / kNumbersOfInput; ++i) {
        auto const kind = InputKind(a.inputs[i * kNumbersOfInput]);
        using K = PointwiseInput::Kind;
        spec.inputs.push_back({int(i),
                               kind == InputKind::kScalar    ? K::kScalar
                               : kind == InputKind::kChannel ? K::kChannel
                                                             : K::kBroadcast,
                               int(a.inputs[i * kNumbersOfInput + 1])});
    }
    spec.program.inputs = int(spec.inputs.size());
    spec.program.steps = stepsOf(a.steps, a.parameters);
    return spec;
}

} // namespace tw::ops::pointwise
