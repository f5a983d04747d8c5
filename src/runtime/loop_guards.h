// SPDX-License-Identifier: Apache-2.0
// A loop whose end the GPU finds may want to go on where a tensor that it iterates over, or an output that it stacks,
// ends, or may have none. It is ended there, and the run is an error. In a CUDA graph nobody waits for the run, so a
// function of the host stands behind the work where a tensor may end: whoever waits for the run waits for the report,
// too. It takes its time in every run (10 to 40 us), so loops without such a tensor go without: of one that has no end
// the next run knows.
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
    // then. `isWatched`: by a function of the host.
    int32_t* guard(ir::Node const& loop, Error error, bool isWatched);
    // Behind a run on a stream; where that captures, the graph ends with the function of the host, by which `report` hears
    // of errors. Without `report` there is none.
    Result<void> watch(CUstream_st* stream, std::shared_ptr<Report const> report);
    // The error of a run that is through, which no function of the host tells.
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
