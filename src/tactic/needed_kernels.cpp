// SPDX-License-Identifier: Apache-2.0
// Which kernels of a source a problem needs, found by running its host's side without a GPU.
#include <algorithm>

#include "base/round.h"
#include "ir/graph.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops {

namespace {

// How a run's tensors may lie: what is chosen depends on it, and an engine decides it later.
struct LiesAt
{
    int64_t off = 0;     // bytes from a multiple of 16; kElement: one element
    bool isPart = false; // in a format by pixels: of a tensor with more channels
};
constexpr int64_t kElement = -1;
constexpr LiesAt kPlaces[] = {{0, false}, {8, false}, {kElement, false}, {0, true}, {8, true}, {kElement, true}};
constexpr int64_t kWiderBytes = 128;             // from pixel to pixel of such a part, more than it has itself
constexpr uintptr_t kApart = uintptr_t(1) << 40; // tensors of any size do not touch

// In no memory: all that is told of their contents are the addresses.
std::vector<TensorRef> tensorsAt(std::vector<TensorSpec> const& specs, uintptr_t address, LiesAt const& place)
{
    return mapped<TensorRef>(specs, [&](TensorSpec const& t) {
        address += kApart;
        uintptr_t const at = address + uintptr_t(place.off == kElement ? sizeOf(t.type) : place.off);
        TensorRef out{t.type, t.dims, t.present ? reinterpret_cast<void*>(at) : nullptr, t.format};
        if (place.isPart && isByPixel(t.format))
            out.stride = roundUp(out.pixelStride(), kMostUnit / sizeOf(t.type)) + kWiderBytes / sizeOf(t.type);
        return out;
    });
}

} // namespace

void CudaKernels::leaveOutUnneeded(Problem const& problem)
{
    auto isHost = [](ir::Value const* v) { return v && v->host; }; // its elements may decide, too
    if (source_.general < 0 || !isStatic(problem) || std::ranges::any_of(problem.node->inputs, isHost))
        return;
    std::vector<bool> needed(source_.names.size(), false);
    needed[size_t(source_.general)] = true;
    CudaLaunch const launch(needed, problem.target.cuda ? problem.target.cuda->multiprocessors : 1);
    for (LiesAt const& in : kPlaces)
        for (LiesAt const& out : kPlaces) {
            std::vector<TensorRef> const inputs = tensorsAt(problem.inputs, 0, in);
            std::vector<TensorRef> outputs = tensorsAt(problem.outputs, kApart << 12, out);
            RunArgs args{.inputs = inputs, .outputs = outputs};
            if (!run(launch, args).ok())
                return; // it is the run that says what is wrong
        }
    for (size_t i = 0; i < source_.added.size(); ++i)
        if (!needed[i] && !source_.added[i].empty())
            source_.names[i].clear();
}

} // namespace tw::ops
