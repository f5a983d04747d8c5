// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstring>
#include <vector>

#include "check.h"

namespace {

cudaPointerAttributes attributesOf(void const* ptr)
{
    cudaPointerAttributes attributes;
    std::memset(&attributes, 0xff, sizeof(attributes));
    EXPECT_OK(cudaPointerGetAttributes(&attributes, ptr));
    return attributes;
}

TEST(Memory, IsAlignedAndWritable)
{
    for (std::size_t const size : {std::size_t{1}, std::size_t{63}, std::size_t{4096}, (std::size_t{2} << 20) - 1,
                                   std::size_t{2} << 20, (std::size_t{5} << 20) + 3}) {
        char* ptr = nullptr;
        ASSERT_OK(cudaMalloc(&ptr, size));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(ptr) % 256, 0u) << size;
        ptr[0] = 1;
        ptr[size - 1] = 2;
        EXPECT_OK(cudaMemset(ptr, 7, size));
        EXPECT_EQ(ptr[size - 1], 7);
        EXPECT_OK(cudaFree(ptr));
    }
}

TEST(Memory, ZeroBytesGiveNull)
{
    void* ptr = &ptr;
    EXPECT_OK(cudaMalloc(&ptr, 0));
    EXPECT_EQ(ptr, nullptr);
    EXPECT_OK(cudaFree(nullptr));
    EXPECT_OK(cudaFreeHost(nullptr));
    EXPECT_OK(cudaFreeAsync(nullptr, nullptr));
}

TEST(Memory, RefusesMoreThanThereIs)
{
    std::size_t freeBytes = 0;
    std::size_t totalBytes = 0;
    ASSERT_OK(cudaMemGetInfo(&freeBytes, &totalBytes));
    EXPECT_GT(freeBytes, 0u);
    EXPECT_LE(freeBytes, totalBytes);
    void* ptr = nullptr;
    EXPECT_CUDA(cudaErrorMemoryAllocation, cudaMalloc(&ptr, totalBytes * 2));
    EXPECT_EQ(ptr, nullptr);
    EXPECT_CUDA(cudaErrorMemoryAllocation, cudaMalloc(&ptr, ~std::size_t{0}));
    EXPECT_CUDA(cudaErrorMemoryAllocation, cudaMallocHost(&ptr, ~std::size_t{0} / 2));
    std::size_t pitch = 0;
    EXPECT_CUDA(cudaErrorMemoryAllocation, cudaMallocPitch(&ptr, &pitch, ~std::size_t{0}, 2));
    EXPECT_CUDA(cudaErrorMemoryAllocation, cudaMallocPitch(&ptr, &pitch, 1024, ~std::size_t{0} / 512));
    EXPECT_CUDA(cudaErrorMemoryAllocation, cudaGetLastError());
    EXPECT_OK(cudaGetLastError());
}

TEST(Memory, FreesEachAllocationOnceAndByItsKind)
{
    void* device = nullptr;
    void* host = nullptr;
    ASSERT_OK(cudaMalloc(&device, 100));
    ASSERT_OK(cudaMallocHost(&host, 100));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaFree(host));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaFreeHost(device));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaFree(static_cast<char*>(device) + 1));
    EXPECT_OK(cudaFree(device));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaFree(device));
    EXPECT_OK(cudaFreeHost(host));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaFreeHost(host));
    int local = 0;
    EXPECT_CUDA(cudaErrorInvalidValue, cudaFree(&local));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaFree(reinterpret_cast<void*>(8)));
}

TEST(Memory, KnowsWhatAnAddressIs)
{
    char* device = nullptr;
    char* host = nullptr;
    char* managed = nullptr;
    std::vector<char> plain(64);
    std::vector<char> registered(64);
    ASSERT_OK(cudaMalloc(&device, 64));
    ASSERT_OK(cudaMallocHost(&host, 64));
    ASSERT_OK(cudaMallocManaged(&managed, 64));
    ASSERT_OK(cudaHostRegister(registered.data(), registered.size(), cudaHostRegisterDefault));

    cudaPointerAttributes a = attributesOf(device + 63);
    EXPECT_EQ(a.type, cudaMemoryTypeDevice);
    EXPECT_EQ(a.device, 0);
    EXPECT_EQ(a.devicePointer, device + 63);
    EXPECT_EQ(a.hostPointer, nullptr);
    a = attributesOf(host + 5);
    EXPECT_EQ(a.type, cudaMemoryTypeHost);
    EXPECT_EQ(a.devicePointer, host + 5);
    EXPECT_EQ(a.hostPointer, host + 5);
    a = attributesOf(managed);
    EXPECT_EQ(a.type, cudaMemoryTypeManaged);
    EXPECT_EQ(a.hostPointer, managed);
    EXPECT_EQ(attributesOf(registered.data()).type, cudaMemoryTypeHost);
    a = attributesOf(plain.data());
    EXPECT_EQ(a.type, cudaMemoryTypeUnregistered);
    EXPECT_EQ(a.device, cudaInvalidDeviceId);
    EXPECT_EQ(a.devicePointer, nullptr);
    EXPECT_CUDA(cudaErrorInvalidValue, cudaPointerGetAttributes(nullptr, device));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaPointerGetAttributes(&a, nullptr));

    void* mapped = nullptr;
    EXPECT_OK(cudaHostGetDevicePointer(&mapped, host, 0));
    EXPECT_EQ(mapped, host);
    EXPECT_CUDA(cudaErrorInvalidValue, cudaHostGetDevicePointer(&mapped, plain.data(), 0));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaHostGetDevicePointer(&mapped, device, 0));
    unsigned int flags = 0;
    EXPECT_OK(cudaHostGetFlags(&flags, host));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaHostGetFlags(&flags, plain.data()));

    EXPECT_CUDA(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(registered.data() + 10, 4, 0));
    EXPECT_OK(cudaHostUnregister(registered.data()));
    EXPECT_CUDA(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(registered.data()));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaHostRegister(nullptr, 4, 0));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaHostRegister(plain.data(), ~std::size_t{0}, 0));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaHostAlloc(&mapped, 4, 0x80));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMallocManaged(&mapped, 4, 9));
    EXPECT_OK(cudaFree(device));
    EXPECT_OK(cudaFree(managed));
    EXPECT_OK(cudaFreeHost(host));
    EXPECT_EQ(attributesOf(device).type, cudaMemoryTypeUnregistered);
}

TEST(Memory, PoolsCountWhatIsUsed)
{
    cudaMemPool_t pool = nullptr;
    ASSERT_OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    TestStream const stream;
    unsigned long long before = 0;
    unsigned long long during = 0;
    unsigned long long after = 0;
    void* ptr = nullptr;
    ASSERT_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &before));
    ASSERT_OK(cudaMallocAsync(&ptr, 1000, stream));
    ASSERT_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &during));
    EXPECT_EQ(attributesOf(ptr).type, cudaMemoryTypeDevice);
    ASSERT_OK(cudaFreeAsync(ptr, stream));
    ASSERT_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &after));
    EXPECT_EQ(during, before + 1000);
    EXPECT_EQ(after, before);
    EXPECT_CUDA(cudaErrorInvalidValue, cudaFreeAsync(ptr, stream));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemPoolDestroy(pool)); // the default one stays

    cudaMemPoolProps props{};
    props.allocType = cudaMemAllocationTypePinned;
    cudaMemPool_t own = nullptr;
    ASSERT_OK(cudaMemPoolCreate(&own, &props));
    ASSERT_OK(cudaMallocFromPoolAsync(&ptr, 10, own, stream));
    ASSERT_OK(cudaMemPoolDestroy(own));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemPoolDestroy(own));
    EXPECT_OK(cudaFree(ptr)); // memory outlives its pool
}

} // namespace
