// SPDX-License-Identifier: Apache-2.0
#include "ops/jit_support.h"

namespace tw::ops {

device::CpuInfo const& thisCpu()
{
    static device::CpuInfo const cpu = device::probeCpu();
    return cpu;
}

Support supportsIsa(kernels::jit::Isa isa)
{
    if (kernels::jit::isaOf(thisCpu(), isa) == isa)
        return Support::yes();
    return Support::no(isa == kernels::jit::Isa::kAvx512 ? "needs a CPU with AVX-512 F, BW, VL and DQ"
                                                         : "needs a CPU with AVX2 and FMA");
}

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
