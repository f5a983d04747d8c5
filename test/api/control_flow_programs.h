// SPDX-License-Identifier: Apache-2.0
// What programs with loops and conditionals share: they are built, run and asked for numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include "api/control_flow.h"

namespace tw::test {

struct Programs : ControlFlow
{
    ITensor* scalarOf(ITensor* oneElement)
    {
        IShuffleLayer* l = net.addShuffle(*oneElement);
        l->setReshapeDimensions(Dims{0, {}});
        return l->getOutput(0);
    }
    // Dimension d of x as a scalar.
    ITensor* extent(ITensor* x, int d)
    {
        ITensor* shape = net.addShape(*x)->getOutput(0);
        return scalarOf(net.addSlice(*shape, dims({d}), dims({1}), dims({1}))->getOutput(0));
    }
    ITensor* reshape(ITensor* x, std::vector<int32_t> const& d)
    {
        IShuffleLayer* l = net.addShuffle(*x);
        l->setReshapeDimensions(dims(d));
        return l->getOutput(0);
    }
    ITensor* reduce(ITensor* x, ReduceOperation o, uint32_t axes = 1, bool keep = false)
    {
        return net.addReduce(*x, o, axes, keep)->getOutput(0);
    }
    static Numbers number(double v) { return {{}, {v}}; }
};

} // namespace tw::test
