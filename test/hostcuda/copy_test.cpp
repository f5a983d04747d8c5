// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <vector>

#include "check.h"

namespace {

TEST(Copy, GoesThroughDeviceAndBack)
{
    std::vector<int> source(1000);
    std::iota(source.begin(), source.end(), 0);
    std::vector<int> result(1000);
    std::size_t const bytes = source.size() * sizeof(int);
    int* a = nullptr;
    int* b = nullptr;
    ASSERT_OK(cudaMalloc(&a, bytes));
    ASSERT_OK(cudaMalloc(&b, bytes));
    ASSERT_OK(cudaMemcpy(a, source.data(), bytes, cudaMemcpyHostToDevice));
    ASSERT_OK(cudaMemcpy(b, a, bytes, cudaMemcpyDeviceToDevice));
    ASSERT_OK(cudaMemcpyPeer(a, 0, b, 0, bytes));
    ASSERT_OK(cudaMemcpy(result.data(), a, bytes, cudaMemcpyDefault));
    EXPECT_EQ(result, source);
    ASSERT_OK(cudaFree(a));
    ASSERT_OK(cudaFree(b));
}

TEST(Copy, RefusesBadArguments)
{
    char host[64];
    char* device = nullptr;
    ASSERT_OK(cudaMalloc(&device, 64));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemcpy(nullptr, device, 8, cudaMemcpyDeviceToHost));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemcpy(host, nullptr, 8, cudaMemcpyDeviceToHost));
    EXPECT_OK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDeviceToHost));
    EXPECT_CUDA(cudaErrorInvalidMemcpyDirection, cudaMemcpy(host, device, 8, static_cast<cudaMemcpyKind>(9)));
    EXPECT_CUDA(cudaErrorInvalidMemcpyDirection, cudaMemcpy(host, device, 8, static_cast<cudaMemcpyKind>(-1)));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemcpy(host, device, 8, cudaMemcpyHostToHost));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemcpy(device, device, 8, cudaMemcpyHostToDevice));
    // Past the end of what is known.
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemcpy(device + 60, host, 5, cudaMemcpyHostToDevice));
    EXPECT_OK(cudaMemcpy(device + 60, host, 4, cudaMemcpyHostToDevice));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemcpy(host, device, ~std::size_t{0}, cudaMemcpyDeviceToHost));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemset(device + 1, 0, 64));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemset(nullptr, 0, 1));
    EXPECT_CUDA(cudaErrorInvalidDevice, cudaMemcpyPeer(device, 1, host, 0, 4));
    ASSERT_OK(cudaFree(device));
    (void)cudaGetLastError();
}

TEST(Copy, KeepsToItsRows)
{
    constexpr std::size_t kWidth = 5;
    constexpr std::size_t kHeight = 4;
    char* device = nullptr;
    std::size_t pitch = 0;
    ASSERT_OK(cudaMallocPitch(&device, &pitch, kWidth, kHeight));
    ASSERT_GE(pitch, kWidth);
    std::vector<char> source(kWidth * kHeight);
    std::iota(source.begin(), source.end(), 1);
    ASSERT_OK(cudaMemset2D(device, pitch, 99, pitch, kHeight));
    ASSERT_OK(cudaMemcpy2D(device, pitch, source.data(), kWidth, kWidth, kHeight, cudaMemcpyHostToDevice));
    EXPECT_EQ(device[kWidth], 99); // the gap is untouched
    std::vector<char> result(kWidth * kHeight);
    TestStream const stream;
    ASSERT_OK(cudaMemcpy2DAsync(result.data(), kWidth, device, pitch, kWidth, kHeight, cudaMemcpyDeviceToHost, stream));
    EXPECT_EQ(result, source);
    EXPECT_CUDA(cudaErrorInvalidPitchValue,
                cudaMemcpy2D(device, 3, source.data(), kWidth, kWidth, kHeight, cudaMemcpyHostToDevice));
    EXPECT_CUDA(cudaErrorInvalidValue,
                cudaMemcpy2D(device, pitch, source.data(), kWidth, kWidth, kHeight + 1, cudaMemcpyHostToDevice));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemset2D(device, ~std::size_t{0} / 2, 0, 4, 8)); // rows * pitch wraps
    ASSERT_OK(cudaFree(device));
    (void)cudaGetLastError();
}

TEST(Copy, MovesBoxes)
{
    cudaPitchedPtr device{};
    ASSERT_OK(cudaMalloc3D(&device, cudaExtent{8, 3, 2}));
    ASSERT_OK(cudaMemset3D(device, 0, cudaExtent{8, 3, 2}));
    char source[2][2][4] = {{{1, 2, 3, 4}, {5, 6, 7, 8}}, {{9, 10, 11, 12}, {13, 14, 15, 16}}};
    cudaMemcpy3DParms parms{};
    parms.srcPtr = cudaPitchedPtr{source, 4, 4, 2};
    parms.dstPtr = device;
    parms.dstPos = cudaPos{2, 1, 0};
    parms.extent = cudaExtent{4, 2, 2};
    parms.kind = cudaMemcpyHostToDevice;
    ASSERT_OK(cudaMemcpy3D(&parms));
    char const* const bytes = static_cast<char*>(device.ptr);
    for (int z = 0; z < 2; ++z)
        for (int y = 0; y < 2; ++y)
            for (int x = 0; x < 4; ++x)
                EXPECT_EQ(bytes[z * device.pitch * 3 + (y + 1) * device.pitch + x + 2], source[z][y][x]);
    EXPECT_EQ(bytes[device.pitch + 1], 0);
    parms.dstPos.z = 1; // the second slice would lie after the end
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemcpy3D(&parms));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemcpy3D(nullptr));
    ASSERT_OK(cudaFree(device.ptr));
    (void)cudaGetLastError();
}

} // namespace
