// SPDX-License-Identifier: Apache-2.0
// The tests of this folder on a GPU: test_runtime and test_runtime_cuda are made of the same objects, and differ in their main.
#pragma once

#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "device/cuda/target.h"
#include "runtime/block.h"
#include "runtime/execute_cuda.h"
#include "support/cuda_libraries.h"

namespace tw::test {

extern bool const kOnGpu; // main.cpp, cuda_main.cpp

// Null: the CPU.
inline Result<std::shared_ptr<cuda::Target const>> testGpu()
{
    if (!kOnGpu)
        return std::shared_ptr<cuda::Target const>();
    static Result<std::shared_ptr<cuda::Target const>> const target =
        []() -> Result<std::shared_ptr<cuda::Target const>> {
        TW_ASSIGN(auto driver, cuda::Driver::open());
        TW_ASSIGN(auto device, cuda::Device::open(driver, 0));
        return std::shared_ptr<cuda::Target const>(std::make_shared<cuda::Target>(
            cuda::Target::of(device, std::make_shared<cuda::LazyCompiler>(testSearchPath()), testLibraries())));
    }();
    return target;
}

// execute() on copies in GPU memory; the results come back to `storage`, and `outputs` refer to it.
inline Result<void> executeOnGpu(cuda::Target const& gpu, runtime::Instance& instance, runtime::ExecuteArgs args,
                                 std::vector<TensorRef>& outputs, std::vector<Tensor>& storage)
{
    cuda::Driver const& driver = gpu.device->driver();
    ir::Graph const& g = *instance.block->graph;
    std::vector<cuda::Buffer> memory;
    auto allocate = [&](int64_t bytes) -> Result<void*> {
        TW_ASSIGN(cuda::Buffer b, cuda::Buffer::allocate(gpu.device, bytes));
        cuda::Current const current(*gpu.device);
        TW_CUDA(driver, cuMemsetD8Async(cuda::addressOf(b.data()), 0xcd, size_t(std::max<int64_t>(bytes, 1)), nullptr));
        memory.push_back(std::move(b));
        return memory.back().data();
    };
    TW_ASSIGN(args.arena, allocate(instance.arenaBytes));
    std::vector<TensorRef> in(args.inputs.begin(), args.inputs.end()), out = outputs;
    for (size_t i = 0; i < in.size(); ++i) {
        if (g.inputs[i]->host)
            continue;
        TW_ASSIGN(void* to, allocate(in[i].sizeBytes()));
        cuda::Current const current(*gpu.device);
        if (in[i].sizeBytes() > 0)
            TW_CUDA(driver, cuMemcpyHtoD(cuda::addressOf(to), in[i].data, size_t(in[i].sizeBytes())));
        in[i].data = to;
    }
    for (size_t i = 0; i < out.size(); ++i)
        if (out[i].data && !g.outputs[i]->host) {
            TW_ASSIGN(out[i].data, allocate(out[i].sizeBytes()));
        }
    args.inputs = in;
    args.outputs = out;
    args.device = &gpu.device;
    int64_t waits = 0;
    if (!args.hostWaits)
        args.hostWaits = &waits;
    TW_TRY(runtime::execute(instance, args));
    cuda::Current const current(*gpu.device);
    TW_CUDA(driver, cuStreamSynchronize(nullptr));
    // The second run at these addresses becomes a CUDA graph, the third one is its launch alone.
    bool const canCapture = driver.cuStreamBeginCapture != nullptr;
    for (int again = 0; instance.replay && canCapture && again < 2; ++again) {
        *args.hostWaits = 0;
        for (size_t i = 0; i < out.size(); ++i)
            if (!g.outputs[i]->host && out[i].sizeBytes() > 0)
                TW_CUDA(driver,
                        cuMemsetD8Async(cuda::addressOf(out[i].data), 0xcd, size_t(out[i].sizeBytes()), nullptr));
        TW_CUDA(driver, cuStreamSynchronize(nullptr));
        TW_TRY(runtime::execute(instance, args));
        TW_CUDA(driver, cuStreamSynchronize(nullptr));
        if (*args.hostWaits > 0)
            return internalError("the host waited " + std::to_string(*args.hostWaits) + " times in a CUDA graph");
        if (instance.replay->graphs() == 0)
            return internalError("a run that is worth it was not captured: " + instance.replay->whyNot());
    }
    storage.clear();
    storage.reserve(out.size());
    for (size_t i = 0; i < out.size(); ++i) {
        storage.emplace_back(out[i].type, out[i].dims, out[i].format);
        TensorRef const& to = storage.back().ref();
        if (to.sizeBytes() > 0 && g.outputs[i]->host)
            std::memcpy(to.data, out[i].data, size_t(to.sizeBytes()));
        else if (to.sizeBytes() > 0)
            TW_CUDA(driver, cuMemcpyDtoHAsync(to.data, cuda::addressOf(out[i].data), size_t(to.sizeBytes()), nullptr));
        outputs[i] = to;
    }
    TW_CUDA(driver, cuStreamSynchronize(nullptr));
    return {};
}

} // namespace tw::test
