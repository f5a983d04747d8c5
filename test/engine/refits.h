// SPDX-License-Identifier: Apache-2.0
// What tests of refits share: a run of an engine with FP32 inputs and outputs, and its refitter.
#pragma once

#include <memory>
#include <vector>

#include "engine/engines.h"

namespace tw::test {

inline std::vector<float> run(IExecutionContext& c)
{
    ICudaEngine const& e = c.getEngine();
    std::vector<std::vector<float>> memory(size_t(e.getNbIOTensors()));
    std::vector<float> out;
    for (int i = 0; i < e.getNbIOTensors(); ++i) {
        char const* name = e.getIOTensorName(i);
        auto const count = size_t(volume(list(c.getTensorShape(name))));
        memory[size_t(i)].resize(count);
        for (size_t k = 0; k < count; ++k)
            memory[size_t(i)][k] = float(int(k * 37 % 101) - 50) / 25;
        c.setTensorAddress(name, memory[size_t(i)].data());
    }
    EXPECT_TRUE(c.enqueueV3(nullptr));
    for (int i = 0; i < e.getNbIOTensors(); ++i)
        if (e.getTensorIOMode(e.getIOTensorName(i)) == TensorIOMode::kOUTPUT)
            out.insert(out.end(), memory[size_t(i)].begin(), memory[size_t(i)].end());
    return out;
}
inline std::vector<float> run(ICudaEngine& engine)
{
    return run(*contextOf(engine));
}

inline std::unique_ptr<IRefitter> refitterOf(ICudaEngine& engine, ILogger& logger)
{
    return std::unique_ptr<IRefitter>(createInferRefitter(engine, logger));
}

} // namespace tw::test
