// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend adds to loaded blocks and instances.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/workers.h"
#include "device/cuda/driver.h"
#include "runtime/block.h"

namespace tw::runtime {

// Copies constants that kernels read into GPU memory and sets deviceConstants, and what holds them. `like`: the block
// with other weights, or null; what both have stays where it is.
Result<void> uploadConstants(LoadedBlock& block, LoadedBlock const* like,
                             std::shared_ptr<cuda::Device const> const& device);
// The same for values that shape arithmetic has computed on the host and kernels read as data. After placeInArena().
Result<void> uploadContents(Instance& instance, std::shared_ptr<cuda::Device const> const& device);
int64_t contentsBytesOnDevice(Instance const& instance); // what it takes for that

// execute() for args with a device.
Result<void> executeCuda(Instance& instance, ExecuteArgs& args);

// What of an engine can be captured in a CUDA graph.

// Empty, or why a run with these shapes needs the host between its kernels. `hasNodes`: the driver has conditional
// nodes, by which the GPU decides the way of loops and branches.
std::string whyNotCaptured(Instance const& instance, bool hasNodes = false);
// Whether nothing but the run tells which way a step with regions goes.
bool isDecidedOnDevice(Instance const& instance, size_t step);
bool hasDecisionsOnDevice(Instance const& instance);
// Work that one run puts on the stream, about: a loop as often as it is made.
int64_t launchesOf(Instance const& instance);
// Whether something in it, or in a region, gives other results when it runs once more.
bool isStateful(ir::Graph const& graph);
// How many trips of a loop whose end the GPU finds are put into a turn (device/cuda/conditional_nodes.h): the last ones of
// the last turn are for nothing, so they are short ones that see small values, and may be made with any; 0: another step.
// `regions` are its own, null for those that are not used.
int tripsOfTurn(Instance const& instance, size_t step, std::span<Instance const* const> regions);
// Whether every run gives the same work, and enough of it, to launch it as one graph.
bool isWorthCapture(Instance const& instance, bool hasNodes = false);

// Runs that come again with the same addresses are replayed as a CUDA graph: a launch for the whole network instead of
// one for each kernel. The second run with a set of addresses is captured, the first one only noted.
class CudaReplay
{
public:
    explicit CudaReplay(std::shared_ptr<cuda::Device const> device) : device_(std::move(device)) {}
    ~CudaReplay();
    CudaReplay(CudaReplay const&) = delete;
    CudaReplay& operator=(CudaReplay const&) = delete;

    // `run(stream)` gives the work of one run to a stream. The client's stream may itself be captured: then it is run
    // as it is.
    Result<void> execute(ExecuteArgs const& args, FunctionRef<Result<void>(void* stream)> run);
    // Graphs that there are, and why the last capture made none.
    size_t graphs() const;
    std::string const& whyNot() const { return whyNot_; }

private:
    struct Entry
    {
        std::vector<void const*> addresses; // arena, inputs, outputs
        void* graph = nullptr;              // executable; null: seen once, or it cannot be captured
        bool failed = false;
    };
    Result<void> capture(Entry& entry, FunctionRef<Result<void>(void* stream)> run);
    std::shared_ptr<cuda::Device const> device_;
    void* stream_ = nullptr;   // of captures
    std::list<Entry> entries_; // most recent first
    std::string whyNot_;
};

// The values of a block that runs on a GPU: in device memory, on the host, or in both. Copies are put on the stream;
// what has to come to the host is waited for.

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
