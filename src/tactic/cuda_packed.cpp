// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"
#include "base/round.h"
#include "device/cuda/device.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops {

namespace {

// 128 bits tell parts of one engine apart.
Recipe recipeOf(std::string const& bytes)
{
    Hash128 const h = hashBytes128(bytes.data(), bytes.size());
    return {"bytes on the device", {int64_t(h.low), int64_t(h.high)}};
}

} // namespace

Result<DeviceBytes> uploadPacked(std::string const& bytes, std::shared_ptr<cuda::Device const> const& device,
                                 PackedConstants& packed)
{
    constexpr int64_t kStep = 256;
    Blob const anyConstant(nullptr, 0);
    return packed.get<cuda::Buffer>(anyConstant, recipeOf(bytes), [&]() -> Result<cuda::Buffer> {
        // Kernels may read whole vectors at the end.
        TW_ASSIGN(cuda::Buffer memory, cuda::Buffer::allocate(device, roundUp(int64_t(bytes.size()), kStep)));
        TW_TRY(cuda::upload(device->driver(), memory.data(), bytes.data(), bytes.size()));
        return memory;
    });
}

} // namespace tw::ops
