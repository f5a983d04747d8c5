// SPDX-License-Identifier: Apache-2.0
// A CUDA kernel on copies of host tensors, for checking and timing: shape tensors stay on the host, everything else
// lies in GPU memory.
#pragma once

#include <memory>
#include <span>

#include "base/result.h"
#include "base/tensor.h"
#include "tactic/tactic.h"

namespace tw::tune {

class AlikeImages;

// The tensors, for any number of runs, one at a time.
class DeviceTensors
{
public:
    ~DeviceTensors();
    // Copies the inputs; shape tensors stay where they are. `asParts`: what may be a part of a wider tensor is one
    // (tactic/parts.h), with NaN as its neighbours. `images`: of inputs that have some the host holds the originals alone.
    static Result<std::shared_ptr<DeviceTensors>> create(ops::Problem const& problem, std::span<TensorRef const> inputs,
                                                         std::span<TensorRef const> outputs, bool asParts = false,
                                                         AlikeImages const* images = nullptr);

private:
    friend class DeviceRun;
    DeviceTensors();
    struct State;
    std::unique_ptr<State> state_;
};

class DeviceRun
{
public:
    static constexpr unsigned char kUnwritten = 0xcd; // what outputs are filled with before a run

    ~DeviceRun();
    // Problem and kernel outlive it.
    static Result<std::unique_ptr<DeviceRun>> create(ops::Problem const& problem, ops::Kernel const& kernel,
                                                     std::shared_ptr<DeviceTensors> tensors);
    // Runs once and copies the outputs back, but of output 0 only the elements `wanted`, to `list` in that order, where there
    // are any; a kernel with data-dependent sizes lowers dims.
    Result<void> run(std::span<TensorRef> outputs, std::span<int64_t const> wanted, TensorRef const& list,
                     uint64_t* randomState);
    // Microseconds of one run, from events round several of them, `leastRuns` or more.
    Result<double> microseconds(int leastRuns = 1);

private:
    DeviceRun();
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace tw::tune
