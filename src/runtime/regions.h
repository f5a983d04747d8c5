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

// How many inputs of region r are values that a loop carries and its body gives anew; 0 of every other region.
size_t carriedBy(ir::Node const& node, size_t r);

// Whether an instance is for exactly these shapes.
bool isFor(Instance const& region, std::span<Extents const> inputs);

// Where things lie in the workspace of a node with regions.
struct RegionMemory
{
    // For the trips of a turn, `pitch` bytes apart; runs by the host use the first place.
    struct Row
    {
        int64_t at = 0, pitch = 0;
    };
    int trips = 0;          // of a turn of a loop that a GPU decides, else 0
    int64_t counter = 0;    // of such a loop
    Row goesOn;             // what the condition gives
    std::vector<Row> spare; // a carried value has other places than the loop's output, but for what stays there
    std::vector<Row> slice; // of an iterated tensor, where it is no view; one more where the condition reads it
    std::vector<Row> part;  // what the body gives for a stack, where it is not written in place
    int64_t sizeBytes = 0;  // the arena, which the regions use in turns, stands first
};
// `regions`: null for those that are not used. `trips`: RegionMemory's.
RegionMemory regionMemory(ir::Node const& node, std::span<Instance const* const> regions, int trips);
// Whether the condition of a loop depends on iterated tensor s.
bool conditionSees(ir::Node const& loop, size_t s);

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
    RegionMemory memoryOf(std::span<Instance const* const> regions) const;

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

    Instance const& around_;
    size_t const index_;
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
