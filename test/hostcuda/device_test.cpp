// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "check.h"

namespace {

TEST(Device, IsOneCpu)
{
    int count = 0;
    ASSERT_OK(cudaGetDeviceCount(&count));
    EXPECT_EQ(count, 1);
    cudaDeviceProp prop;
    ASSERT_OK(cudaGetDeviceProperties(&prop, 0));
    EXPECT_NE(std::strlen(prop.name), 0u);
    EXPECT_EQ(prop.major, 9);
    EXPECT_EQ(prop.minor, 0);
    EXPECT_GE(prop.multiProcessorCount, 1);
    EXPECT_GE(prop.clockRate, 0);
    EXPECT_GE(prop.memoryClockRate, 0);
    std::size_t freeBytes = 0;
    std::size_t totalBytes = 0;
    ASSERT_OK(cudaMemGetInfo(&freeBytes, &totalBytes));
    EXPECT_EQ(prop.totalGlobalMem, totalBytes);
    EXPECT_CUDA(cudaErrorInvalidDevice, cudaGetDeviceProperties(&prop, 1));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaGetDeviceProperties(nullptr, 0));
    EXPECT_CUDA(cudaErrorInvalidDevice, cudaSetDevice(-1));
}

TEST(Device, AttributesAgreeWithProperties)
{
    cudaDeviceProp prop;
    ASSERT_OK(cudaGetDeviceProperties(&prop, 0));
    auto const value = [](cudaDeviceAttr attr) {
        int answer = -99;
        EXPECT_OK(cudaDeviceGetAttribute(&answer, attr, 0));
        return answer;
    };
    EXPECT_EQ(value(cudaDevAttrComputeCapabilityMajor), prop.major);
    EXPECT_EQ(value(cudaDevAttrComputeCapabilityMinor), prop.minor);
    EXPECT_EQ(value(cudaDevAttrMultiProcessorCount), prop.multiProcessorCount);
    EXPECT_EQ(value(cudaDevAttrClockRate), prop.clockRate);
    EXPECT_EQ(value(cudaDevAttrMemoryClockRate), prop.memoryClockRate);
    EXPECT_EQ(value(cudaDevAttrGlobalMemoryBusWidth), prop.memoryBusWidth);
    EXPECT_EQ(value(cudaDevAttrL2CacheSize), prop.l2CacheSize);
    EXPECT_EQ(value(cudaDevAttrMaxSharedMemoryPerBlock), static_cast<int>(prop.sharedMemPerBlock));
    EXPECT_EQ(value(cudaDevAttrMaxSharedMemoryPerBlockOptin), static_cast<int>(prop.sharedMemPerBlockOptin));
    EXPECT_EQ(value(cudaDevAttrWarpSize), prop.warpSize);
    EXPECT_EQ(value(cudaDevAttrIntegrated), prop.integrated);
    EXPECT_EQ(value(cudaDevAttrManagedMemory), prop.managedMemory);
    EXPECT_EQ(value(cudaDevAttrMaxGridDimX), prop.maxGridSize[0]);
    int unused = 0;
    EXPECT_CUDA(cudaErrorInvalidValue, cudaDeviceGetAttribute(&unused, static_cast<cudaDeviceAttr>(100000), 0));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaDeviceGetAttribute(&unused, static_cast<cudaDeviceAttr>(-1), 0));
    EXPECT_CUDA(cudaErrorInvalidDevice, cudaDeviceGetAttribute(&unused, cudaDevAttrWarpSize, 1));
}

TEST(Device, KeepsLimitsAndFlags)
{
    std::size_t value = 0;
    EXPECT_OK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
    EXPECT_OK(cudaDeviceGetLimit(&value, cudaLimitStackSize));
    EXPECT_EQ(value, 4096u);
    EXPECT_CUDA(cudaErrorUnsupportedLimit, cudaDeviceSetLimit(static_cast<cudaLimit>(99), 1));
    EXPECT_OK(cudaSetDeviceFlags(cudaDeviceScheduleSpin));
    unsigned int flags = 0;
    EXPECT_OK(cudaGetDeviceFlags(&flags));
    EXPECT_TRUE((flags & cudaDeviceScheduleSpin) != 0);
    EXPECT_OK(cudaSetDeviceFlags(cudaDeviceScheduleAuto));
    char busId[16];
    int device = -1;
    EXPECT_OK(cudaDeviceGetPCIBusId(busId, sizeof(busId), 0));
    EXPECT_OK(cudaDeviceGetByPCIBusId(&device, busId));
    EXPECT_EQ(device, 0);
    EXPECT_CUDA(cudaErrorInvalidValue, cudaDeviceGetPCIBusId(busId, 4, 0));
}

TEST(Device, SaysItsVersion)
{
    int runtime = 0;
    int driver = 0;
    ASSERT_OK(cudaRuntimeGetVersion(&runtime));
    ASSERT_OK(cudaDriverGetVersion(&driver));
    EXPECT_EQ(runtime, CUDART_VERSION);
    EXPECT_GE(driver, runtime);
}

TEST(Device, RunsNoKernels)
{
    auto const kernel = reinterpret_cast<void const*>(&cudaGetLastError);
    EXPECT_CUDA(cudaErrorNotSupported, cudaLaunchKernel(kernel, dim3(1), dim3(1), nullptr, 0, nullptr));
    cudaFuncAttributes attributes;
    EXPECT_CUDA(cudaErrorNotSupported, cudaFuncGetAttributes(&attributes, kernel));
    EXPECT_CUDA(cudaErrorNotSupported, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
    void* fn = &fn;
    EXPECT_CUDA(cudaErrorNotSupported, cudaGetDriverEntryPoint("cuInit", &fn, cudaEnableDefault));
    EXPECT_EQ(fn, nullptr);
    EXPECT_CUDA(cudaErrorNotSupported, cudaGetLastError());
}

TEST(Device, ResetForgetsEverything)
{
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    void* ptr = nullptr;
    ASSERT_OK(cudaStreamCreate(&stream));
    ASSERT_OK(cudaEventCreate(&event));
    ASSERT_OK(cudaMalloc(&ptr, 100));
    ASSERT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    ASSERT_OK(cudaDeviceReset());
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(stream));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaEventQuery(event));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaFree(ptr));
    EXPECT_OK(cudaDeviceSynchronize()); // no capture is left
    (void)cudaGetLastError();
}

} // namespace
