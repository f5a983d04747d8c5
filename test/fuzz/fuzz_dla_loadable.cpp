// SPDX-License-Identifier: Apache-2.0
// Loadables from untrusted bytes: what is read is the same when it is written again; what libcudla loads runs on memory of
// the sizes that it tells. The mutator changes header and tables and sets the hash right; the plan inside is fuzz_plan's.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <cudla.h>

#include "dla/loadable.h"

extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t maxSize);

using namespace tw;

namespace {

constexpr uint64_t kMostBytes = 16 << 20; // of all tensors of a loadable that is run

cudlaDevHandle device()
{
    static cudlaDevHandle const handle = [] {
        setenv("TENSORWRIGHT_DLA_MODEL", "orin", 1);
        setenv("TENSORWRIGHT_DEVICE", "cpu", 1);
        cudlaDevHandle made = nullptr;
        if (cudlaCreateDevice(0, &made, CUDLA_CUDA_DLA) != cudlaSuccess)
            std::abort();
        return made;
    }();
    return handle;
}

void need(cudlaStatus status)
{
    if (status != cudlaSuccess)
        std::abort();
}

std::vector<cudlaModuleTensorDescriptor> tensorsOf(cudlaModule module, bool isInput)
{
    cudlaModuleAttribute a{};
    need(cudlaModuleGetAttributes(module, isInput ? CUDLA_NUM_INPUT_TENSORS : CUDLA_NUM_OUTPUT_TENSORS, &a));
    std::vector<cudlaModuleTensorDescriptor> list(a.numInputTensors);
    a.inputTensorDesc = list.data();
    if (!list.empty())
        need(cudlaModuleGetAttributes(module,
                                      isInput ? CUDLA_INPUT_TENSOR_DESCRIPTORS : CUDLA_OUTPUT_TENSOR_DESCRIPTORS, &a));
    return list;
}

void run(cudlaModule module)
{
    std::vector<std::vector<uint64_t>> memory;
    std::vector<uint64_t*> addresses[2];
    uint64_t sum = 0;
    for (bool const isInput : {true, false})
        for (cudlaModuleTensorDescriptor const& t : tensorsOf(module, isInput)) {
            sum += t.size;
            if (sum > kMostBytes)
                return;
            memory.emplace_back((t.size + 7) / 8, 0x3C003C003C003C00); // ones in FP16
            uint64_t* at = nullptr;
            need(cudlaMemRegister(device(), memory.back().data(), t.size, &at, 0));
            addresses[isInput ? 0 : 1].push_back(at);
        }
    cudlaTask task{};
    task.moduleHandle = module;
    task.inputTensor = addresses[0].data();
    task.numInputTensors = uint32_t(addresses[0].size());
    task.outputTensor = addresses[1].data();
    task.numOutputTensors = uint32_t(addresses[1].size());
    (void)cudlaSubmitTask(device(), &task, 1, nullptr, 0);
    for (auto const& list : addresses)
        for (uint64_t* at : list)
            need(cudlaMemUnregister(device(), at));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(uint8_t const* data, size_t size)
{
    auto const loadable = dla::unpack(data, size);
    if (!loadable.ok() && loadable.error().message.empty())
        std::abort();
    cudlaModule module = nullptr;
    cudlaStatus const status = size == 0
                                   ? cudlaErrorInvalidParam
                                   : cudlaModuleLoadFromMemory(device(), data, size, &module, CUDLA_MODULE_DEFAULT);
    if (!loadable.ok()) {
        if (status == cudlaSuccess)
            std::abort();
        return 0;
    }
    auto const bytes = dla::pack(*loadable);
    if (!bytes.ok())
        std::abort();
    auto const again = dla::unpack(bytes->data(), bytes->size());
    if (!again.ok() || again->tensors != loadable->tensors || again->plan != loadable->plan)
        std::abort();
    if (status == cudlaSuccess) {
        run(module);
        need(cudlaModuleUnload(module, 0));
    }
    return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t maxSize, unsigned seed)
{
    std::mt19937 random(seed);
    constexpr size_t kHeader = 56, kTables = 1024;
    if (size < kHeader || random() % 32 == 0)
        return LLVMFuzzerMutate ? LLVMFuzzerMutate(data, size, maxSize) : size;
    for (unsigned k = 1 + random() % 4; k > 0; --k)
        data[random() % std::min(size, kTables)] = uint8_t(random() % 4 == 0 ? random() : random() % 12);
    uint64_t const fileBytes = size;
    std::memcpy(data + 40, &fileBytes, sizeof fileBytes);
    uint64_t const hash = dla::loadableHash(data, size);
    std::memcpy(data + dla::kLoadableHashOffset, &hash, sizeof hash);
    return size;
}
