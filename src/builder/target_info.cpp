// SPDX-License-Identifier: Apache-2.0
#include "builder/types.h"
#include "device/cpu.h"
#include "device/cuda/target.h"
#include "kernels/cpu/jit/emitter.h"

namespace tw::builder {

passes::TargetInfo describe(ops::Target const& target)
{
    if (cuda::Target const* const gpu = target.cuda) {
        passes::TargetInfo::Gpu out{.capability = gpu->capability, .multiprocessors = gpu->multiprocessors};
        if (gpu->device) {
            out.l2Bytes = gpu->device->info().l2Bytes;
            out.memoryBytes = gpu->device->info().memoryBytes;
        }
        return {out};
    }
    using Isa = passes::TargetInfo::Isa;
    auto const emitted = kernels::jit::isaOf(*target.cpu);
    Isa const isa = !emitted ? Isa::kBaseline : *emitted == kernels::jit::Isa::kAvx2 ? Isa::kAvx2 : Isa::kAvx512;
    return {passes::TargetInfo::Cpu{.isa = isa, .l2Bytes = target.cpu->l2Bytes}};
}

} // namespace tw::builder
