// SPDX-License-Identifier: Apache-2.0
// What regions need besides their kernels, on every device: their inputs' shapes, their memory, instances for shapes
// that were not known when the block around them was resolved. How they run: control_flow.h.
#pragma once

#include <span>
#include <vector>

#include "runtime/block.h"

namespace tw::runtime {

// What a region's inputs are, by the node's inputs (anything where there is none). Contents are those of captures.
std::vector<InputState> regionInputs(ir::Node const& node, std::vector<InputState> const& nodeInputs);

// Whether an instance is for exactly these shapes.
bool isFor(Instance const& region, std::span<Extents const> inputs);
// One for these shapes, with places for its values.
Result<std::unique_ptr<Instance>> resolveLate(LoadedBlock const& region, std::span<Extents const> inputs);

// Where things lie in the workspace of a node with regions.
struct RegionMemory
{
    int64_t goesOn = 0;         // what the condition gives, and kTripOffset behind it what a GPU counts
    std::vector<int64_t> spare; // each carried value has two places: this one, and the loop's output
    std::vector<int64_t> slice; // of an iterated tensor, where it is no view
    std::vector<int64_t> part;  // what the body gives for a stack, where it is not written in place
    int64_t sizeBytes = 0;      // the arena, which the regions use in turns, stands first
};
inline constexpr int64_t kTripOffset = 16;
// `regions`: null for those that are not used.
RegionMemory regionMemory(ir::Node const& node, std::span<Instance const* const> regions);

// The regions of one step while it runs: an instance each, and the workspace.
class OpenRegions
{
public:
    // `arena`: of the block around.
    OpenRegions(Instance const& around, size_t step, void* arena);

    ir::Node const& node() const { return *step_.node; }
    bool has(size_t i) const { return i < step_.inputs.size() && step_.inputs[i].value >= 0; }
    Instance const& instance(size_t r) const { return *instances_[r]; }
    std::byte* reserved(int64_t offset) const { return at(workspace_, offset); }

protected:
    // Whether the instance was made for these shapes now: none was there.
    Result<bool> openFor(size_t r, std::vector<Extents> const& dims);
    // `memory(bytes)` gives more, where the planned workspace is smaller.
    template <class Memory>
    Result<void> reserveBytes(int64_t bytes, Memory&& memory)
    {
        if (bytes > workspaceBytes_) {
            TW_ASSIGN(void* const own, memory(bytes));
            workspace_ = static_cast<std::byte*>(own);
        }
        return {};
    }

    LoadedStep const& step_;
    std::vector<std::unique_ptr<Instance>> const& planned_;
    std::byte* workspace_ = nullptr;
    int64_t workspaceBytes_ = 0;
    std::unique_ptr<Instance> late_[2];
    Instance* instances_[2] = {};
};

// Parts of tensors that begin at multiples of this may stand where they are for every kernel.
inline constexpr int64_t kPartAlignment = 16;

} // namespace tw::runtime
