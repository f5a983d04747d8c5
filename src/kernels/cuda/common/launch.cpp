// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/launch.h"

namespace tw::cuda {

Result<void> launchKernel(Driver const& driver, CUfunc_st* kernel, LaunchGeometry const& g, void** params,
                          bool isDependent, CUstream_st* stream)
{
    bool const wholeGrid = g.cluster == kWholeGrid;
    if (g.cluster <= 1 && !wholeGrid && !isDependent)
        return driver.check(driver.cuLaunchKernel(kernel, unsigned(g.grid), unsigned(g.gridY), unsigned(g.gridZ),
                                                  unsigned(g.block), 1, 1, unsigned(g.sharedBytes), stream, params,
                                                  nullptr),
                            "cuLaunchKernel");
    if (!driver.cuLaunchKernelEx)
        return unsupported("the CUDA driver has no cuLaunchKernelEx: it is older than CUDA 12");
    constexpr int kLaunchCooperative = 2;                  // of the driver API
    constexpr int kPortableCluster = 8, kNonPortable = 14; // blocks that all such GPUs have; a function's attribute
    if (g.cluster > kPortableCluster)
        TW_CUDA(driver, cuFuncSetAttribute(kernel, kNonPortable, 1));
    LaunchAttribute attributes[2];
    LaunchConfig config;
    config.grid[0] = uint32_t(g.grid);
    config.grid[1] = uint32_t(g.gridY);
    config.grid[2] = uint32_t(g.gridZ);
    config.block[0] = uint32_t(g.block);
    config.sharedBytes = uint32_t(g.sharedBytes);
    config.stream = stream;
    config.attributes = attributes;
    auto add = [&](int32_t id) -> auto&
    {
        LaunchAttribute& a = attributes[config.attributeCount++];
        a.id = id;
        return a.value;
    };
    if (wholeGrid)
        add(kLaunchCooperative).number = 1;
    if (g.cluster > 1) {
        auto& size = add(kLaunchClusterDimension);
        size.numbers[0] = uint32_t(g.cluster);
        size.numbers[1] = size.numbers[2] = 1;
    }
    if (isDependent)
        add(kLaunchProgrammatic).number = 1;
    return driver.check(driver.cuLaunchKernelEx(&config, kernel, params, nullptr), "cuLaunchKernelEx");
}

Result<TensorMap> encodeMap(Driver const& driver, TensorMapSpec const& s, void const* address)
{
    if (!driver.cuTensorMapEncodeTiled || !driver.cuTensorMapEncodeIm2col)
        return unsupported("the CUDA driver has no tensor maps: it is older than CUDA 12");
    constexpr int kSwizzle64 = 2; // beside kSwizzle128: the driver API's
    int const bytes = s.type == TensorMapSpec::kFloat16 ? 2 : s.type == 0 ? 1 : 4;
    bool const isHalfRow = int64_t(s.im2col ? s.channels : s.box[0]) * bytes == 64;
    int const swizzle = isHalfRow ? kSwizzle64 : s.kSwizzle128;
    TensorMap map;
    void* const at = const_cast<void*>(address);
    if (s.im2col)
        TW_CUDA(driver, cuTensorMapEncodeIm2col(&map, s.type, uint32_t(s.rank), at, s.dims, s.strides, s.lower, s.upper,
                                                s.channels, s.pixels, s.elementStrides, s.kInterleaveNone, swizzle,
                                                s.kL2Promotion256, s.kFillZero));
    else
        TW_CUDA(driver,
                cuTensorMapEncodeTiled(&map, s.type, uint32_t(s.rank), at, s.dims, s.strides, s.box, s.elementStrides,
                                       s.kInterleaveNone, swizzle, s.kL2Promotion256, s.kFillZero));
    return map;
}

} // namespace tw::cuda
