// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/activate_jit.h"

namespace tw::ops {

std::optional<kernels::jit::Activation> jitActivation(FusedActivation const& f)
{
    using kernels::jit::ActivationKind;
    static_assert(int(ActivationKind::kThresholdedRelu) == int(activation::Kind::kThresholdedRelu));
    static_assert(int(ActivationKind::kSelu) == int(activation::Kind::kSelu));
    static_assert(int(ActivationKind::kGeluTanh) == int(FusedKind::kGeluTanh) &&
                  kernels::jit::kActivationKinds == kFusedKindCount);
    if (!f.any())
        return std::nullopt;
    return kernels::jit::Activation{ActivationKind(f.kind), f.alpha, f.beta};
}

} // namespace tw::ops
