// SPDX-License-Identifier: Apache-2.0
// Blocks that run. A LoadedBlock is a graph with its kernels, shared by all contexts. An Instance is what one context
// knows about it for one set of input shapes: every dimension, the contents of shape tensors, and where each value lies
// in the arena. Sizes that only the data decides are planned at their bound and settled while running.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "ir/graph.h"
#include "plan/plan.h"
#include "tactic/tactic.h"

namespace tw::cuda {
class Device;
class Buffer;
} // namespace tw::cuda

namespace tw::runtime {

struct LoadedBlock;
class CudaReplay;
class LoopGuards;

// `offset` bytes into `memory`.
inline std::byte* at(void* memory, int64_t offset)
{
    return static_cast<std::byte*>(memory) + offset;
}

struct StepInput
{
    int value = -1;      // dense index; -1: not there
    bool onHost = false; // CUDA: its elements are read by the host
};

struct LoadedStep
{
    ir::Node const* node = nullptr;
    std::vector<StepInput> inputs;
    std::vector<int> outputs;            // dense indices
    ops::Tactic const* tactic = nullptr; // null for nodes with regions
    std::shared_ptr<ops::Kernel> kernel; // engines with other weights share those that read none of them
    bool host = false;                   // computes shape tensors: done by the reference when shapes are set
    std::vector<std::unique_ptr<LoadedBlock>> regions;
};

struct LoadedBlock
{
    ir::Graph const* graph = nullptr;
    std::vector<LoadedStep> steps;
    std::vector<ir::Value const*> values;                 // dense index -> value
    std::unordered_map<ir::Value const*, int> valueIndex; // value -> dense index
    std::vector<void*> deviceConstants;                   // CUDA: by dense index; null for what no kernel reads
    std::vector<std::shared_ptr<cuda::Buffer const>> constantMemory; // by dense index: what holds them
    int indexOf(ir::Value const* v) const { return valueIndex.at(v); }
};

// A block without kernels yet: enough to resolve shapes.
std::unique_ptr<LoadedBlock> outlineBlock(ir::Graph const& graph);

struct ValueState
{
    Extents dims;
    bool known = false;     // dims hold: exactly, or as an upper bound
    bool exact = false;     // dims are exact
    bool external = false;  // the caller's memory (block input, or block output that is written in place)
    int root = -1;          // value whose storage this is a part of (itself when not aliased)
    int64_t rootOffset = 0; // bytes into the root's storage
    int64_t stride = 0;     // TensorRef::stride
    int64_t offset = -1;    // of a root in the arena
    Tensor contents;        // host values: elements, once computed
    bool hasContents = false;
};

struct Instance
{
    std::shared_ptr<void const> owner; // of the block, where runs need it; goes last
    LoadedBlock const* block = nullptr;
    std::vector<ValueState> values;
    std::vector<int64_t> workspaceOffset; // for each step
    std::vector<std::shared_ptr<ops::Prepared const>> prepared;
    std::vector<std::unique_ptr<ops::Kept>> kept; // for each step, what its kernel keeps from run to run
    std::vector<bool> skipped;                    // for each step: aliased away, or host work that is done
    std::vector<std::vector<std::unique_ptr<Instance>>> regions;
    int64_t arenaBytes = 0;
    int64_t arenaLowerBound = 0;
    int64_t scratchBytes = 0; // the largest workspace of a kernel, those of regions too; part of the arena
    // Scratch of execute(), kept so that running does not allocate.
    std::vector<TensorRef> refs;
    std::vector<TensorRef> stepInputs, stepOutputs;
    std::vector<Tensor> heap; // values without a bound
    // CUDA: `refs` are on the device then, `heap` holds host copies.
    std::vector<void*> deviceContents; // by dense index: contents that kernels read
    std::shared_ptr<cuda::Buffer const> deviceContentsMemory;
    std::vector<TensorRef> hostRefs; // null data: not on the host
    std::vector<bool> stale;         // by dense index: only the host has it
    std::vector<std::shared_ptr<cuda::Buffer const>> deviceHeap;
    std::shared_ptr<LoopGuards> guards; // of loops that the GPU decides; null: not asked for yet, or there are none
    std::shared_ptr<CudaReplay> replay; // null: not tried yet, or it does not fit
    bool replayTried = false;

    // The value at a dense index as kernels see it, without its address.
    TensorRef shapeOf(int value) const;
};

struct InputState
{
    Extents dims;
    bool exact = true;
    TensorRef contents; // of shape tensors, null data when not known
};

// Dimensions of every value, and the contents of shape tensors. With `known`, the block in other shapes, a layer that
// refuses its inputs is no error: its outputs are as large as the ranges of their symbols allow, else as in `known`.
Result<std::unique_ptr<Instance>> resolve(LoadedBlock const& block, std::vector<InputState> const& inputs,
                                          Instance const* known = nullptr);
// The same graph with other kernels. Before anything is placed.
void moveTo(LoadedBlock const& block, Instance& instance);
// Offsets of every value and workspace, and what kernels prepare for these shapes. Kernels must be loaded.
struct Placing
{
    Instance const* like = nullptr;      // of the same block, placed: what its kernels prepared is shared where all
                                         // shapes are the same
    Workers* workers = &serialWorkers(); // that prepare
    size_t carried = 0;                  // of the body of a loop: so many inputs in front are values that it carries
};
Result<void> placeInArena(Instance& instance, Placing const& placing = {});

struct StepObserver
{
    virtual ~StepObserver() = default;
    virtual void before(LoadedStep const& step) = 0;
    virtual void after(LoadedStep const& step) = 0;
};

struct ExecuteArgs
{
    void* arena = nullptr; // arenaBytes, kArenaAlignment-aligned
    std::span<TensorRef const> inputs;
    std::span<TensorRef> outputs; // null data: left in the arena (data is set); dims are set to the real ones
    uint64_t* randomState = nullptr;
    StepObserver* observer = nullptr; // top level only
    Workers* workers = &serialWorkers();
    // CUDA: arena, inputs and outputs are device memory, but for shape tensors; work goes to the stream (a CUstream).
    std::shared_ptr<cuda::Device const> const* device = nullptr;
    void* stream = nullptr;       // on the CPU the stand-in's, for kernels of the user
    int64_t* hostWaits = nullptr; // counts how often the host has waited for the stream; null: nobody asks
    // Is told of loops that end where a tensor does, before whoever waits for the run goes on (loop_guards.h); null: the next
    // run is that error.
    std::shared_ptr<std::function<void(Error const&)> const> late;
    LoopGuards* guards = nullptr; // of the instance, where its run is captured
};
Result<void> execute(Instance& instance, ExecuteArgs& args);

} // namespace tw::runtime
