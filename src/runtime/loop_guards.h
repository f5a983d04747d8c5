// SPDX-License-Identifier: Apache-2.0
// A loop whose end the GPU finds may want to go on where a tensor that it iterates over, or an output that it stacks,
// ends. It ends there, and the run is an error. In a CUDA graph nobody waits for the run, so a function of the host
// stands behind its work: whoever waits for the run waits for the report, too.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "device/cuda/driver.h"

namespace tw::cuda {
class Device;
} // namespace tw::cuda
namespace tw::ir {
struct Graph;
struct Node;
} // namespace tw::ir

namespace tw::runtime {

class LoopGuards
{
public:
    // May be called in a thread of the driver, which must not call CUDA.
    using Report = std::function<void(Error const&)>;

    // Of the loops in `graph` and in its regions.
    static Result<std::unique_ptr<LoopGuards>> create(std::shared_ptr<cuda::Device const> device,
                                                      ir::Graph const& graph);
    ~LoopGuards();
    LoopGuards(LoopGuards const&) = delete;
    LoopGuards& operator=(LoopGuards const&) = delete;

    // Host memory that the GPU sees, which is not 0 behind a run in which the loop wanted to go on; the run is `error`
    // then.
    int32_t* guard(ir::Node const& loop, Error error);
    // Behind a run on a stream; where that captures, the graph ends with this. `report` hears of the errors; without
    // one, check() does.
    Result<void> watch(CUstream_st* stream, std::shared_ptr<Report const> report);
    // The error of a run that is through and that nobody has heard of.
    Result<void> check();

private:
    struct State;
    struct Watched;
    LoopGuards(std::shared_ptr<cuda::Device const> device, std::shared_ptr<State> state)
        : device_(std::move(device)), state_(std::move(state))
    {}
    static void tell(void* number);

    std::shared_ptr<cuda::Device const> device_;
    std::shared_ptr<State> state_;
};

} // namespace tw::runtime
