// SPDX-License-Identifier: Apache-2.0
// The values of a block that runs on a GPU: in device memory, on the host, or in both. Copies are put on the stream;
// what has to come to the host is waited for.
#pragma once

#include <span>
#include <vector>

#include "device/cuda/driver.h"
#include "runtime/block.h"

namespace tw::runtime {

// A value in both places; null data: not there.
struct HostDevice
{
    TensorRef device, host;
};

class CudaValues
{
public:
    // `args`: the run's, with a device; its stream and arena are used.
    CudaValues(Instance& instance, ExecuteArgs const& args);

    // Addresses that do not depend on what runs. `inputs` in the graph's order; `outputs`: memory to write to, null
    // data: they stay in the arena.
    void bind(std::vector<HostDevice> const& inputs, std::span<TensorRef> outputs);
    // By dense index; the instance's hostRefs and refs tell where it lies then. Waits for the stream when the value has
    // to come from the device.
    Result<void> bringToHost(size_t value);
    Result<void> bringToDevice(size_t value);
    // On the host, without a place there. Waits as bringToHost() does.
    Result<Tensor> elementsOf(HostDevice const& place);
    // Copies the result of another block to a value of this one.
    Result<void> assign(size_t value, HostDevice const& from);
    // The graph's outputs, where they lie now.
    std::vector<HostDevice> results() const;
    // Copies what does not lie there yet into the caller's outputs.
    Result<void> deliver(std::span<TensorRef> outputs);

    // Memory of this run for a value without a place in the arena.
    Result<void> allocate(TensorRef& tensor);
    Result<void> copyOnDevice(void* to, void const* from, int64_t bytes);

private:
    Result<void> wait();
    size_t rootOf(size_t value, int64_t& offset) const;
    Result<void> zeroGaps(TensorRef const& tensor, ir::Value const& value);

    Instance& inst_;
    LoadedBlock const& block_;
    void* arena_;
    int64_t* hostWaits_;
    std::shared_ptr<cuda::Device const> const& device_;
    cuda::Driver const& driver_;
    CUstream_st* stream_;
};

} // namespace tw::runtime
