// SPDX-License-Identifier: Apache-2.0
// A file of the folder of compiled kernels, as it is and with key and hash set right, so that the checks behind them are reached.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "device/cuda/compiler.h"
#include "device/cuda/kernel_cache.h"

namespace {

constexpr size_t kKeyAt = 16, kHashAt = 32, kHeader = 40;

void load(std::string const& bytes)
{
    tw::Hash128 const key{1, 2};
    auto const read = tw::cuda::readKernelFile(bytes, key);
    // What was taken is written as it was read, but for the gap in its header.
    if (read.ok() && tw::cuda::writeKernelFile(*read, key).substr(kKeyAt) != bytes.substr(kKeyAt))
        std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(uint8_t const* data, size_t size)
{
    std::string bytes(reinterpret_cast<char const*>(data), size);
    load(bytes);
    if (size >= kHeader) {
        uint64_t const key[] = {1, 2}, hash = tw::hashBytes(bytes.data() + kHeader, size - kHeader);
        std::memcpy(bytes.data(), "TWKERNEL\1\0\0\0", 12);
        std::memcpy(bytes.data() + kKeyAt, key, sizeof key);
        std::memcpy(bytes.data() + kHashAt, &hash, sizeof hash);
        load(bytes);
    }
    return 0;
}
