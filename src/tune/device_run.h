// SPDX-License-Identifier: Apache-2.0
// A CUDA kernel on copies of host tensors, for checking and timing: shape tensors stay on the host, everything else
// lies in GPU memory.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "ops/tactic.h"

namespace tw::tune {

class DeviceRun
{
public:
    ~DeviceRun();
    // Copies inputs and outputs (what they hold shows what a kernel leaves unwritten).
    static Result<std::unique_ptr<DeviceRun>> create(ops::Problem const& problem, ops::Kernel const& kernel,
                                                     std::span<TensorRef const> inputs,
                                                     std::span<TensorRef const> outputs);
    // Runs once and copies the outputs back; a kernel with data-dependent sizes lowers dims.
    Result<void> run(std::span<TensorRef> outputs, uint64_t* randomState);
    // Microseconds of one run, from events round several of them.
    Result<double> microseconds();

private:
    DeviceRun();
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace tw::tune
