// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "builder/confirm.h"

namespace tw::builder {

// An attempt on a GPU, ready to run; it outlives this.
class CudaRunnable
{
public:
    ~CudaRunnable();
    // An error when it cannot be timed: no memory, outputs on the host or of sizes that depend on data.
    static Result<std::unique_ptr<CudaRunnable>>
    make(Attempt const& attempt, std::vector<runtime::InputState> const& inputs, cuda::Target const& target);
    // Of one run, from events round several.
    Result<double> microseconds();

private:
    CudaRunnable();
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace tw::builder
