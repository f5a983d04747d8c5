// SPDX-License-Identifier: Apache-2.0
// A network of one layer through its reference, with numbers that are worked by hand.
#pragma once

#include <cmath>
#include <deque>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "api/client.h"
#include "api/network/network.h"
#include "base/tensor.h"
#include "interp/interp.h"

namespace operator_rules {

using namespace nvinfer1;
using namespace tw::test;

using Numbers = std::vector<double>;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct OperatorRules : testing::Test
{
    KeepingLogger logger;
    tw::api::Reporter reporter{&logger, nullptr};
    std::unique_ptr<tw::api::NetworkObject> object;
    std::vector<Numbers> values; // of inputs
    std::deque<std::vector<float>> floats;
    std::deque<std::vector<int32_t>> integers;
    Weights none{DataType::kFLOAT, nullptr, 0};

    void SetUp() override { another(); }
    void another()
    {
        object = std::make_unique<tw::api::NetworkObject>(reporter);
        values.clear();
    }
    INetworkDefinition& net() { return *object; }
    // Elements missing at the end are zeros.
    ITensor& input(std::vector<int32_t> const& shape, Numbers v = {}, DataType type = DataType::kFLOAT)
    {
        values.push_back(std::move(v));
        return *net().addInput(("x" + std::to_string(net().getNbInputs())).c_str(), type, dims(shape));
    }
    Weights weights(std::vector<float> v)
    {
        floats.push_back(std::move(v));
        return {DataType::kFLOAT, floats.back().data(), int64_t(floats.back().size())};
    }
    ITensor& list(std::vector<int32_t> v)
    {
        integers.push_back(std::move(v));
        auto const n = int32_t(integers.back().size());
        return *net().addConstant(dims({n}), {DataType::kINT32, integers.back().data(), n})->getOutput(0);
    }
    static std::string shapeOf(ILayer* l, int output = 0)
    {
        return l ? tw::api::str(l->getOutput(output)->getDimensions()) : "no layer";
    }
    // Its shape cannot be, and the last error says `part`.
    testing::AssertionResult refused(ILayer* l, char const* part)
    {
        if (l && l->getOutput(0)->getDimensions().nbDims >= 0)
            return testing::AssertionFailure() << "it has the shape " << shapeOf(l);
        another();
        if (!contains(logger.lastError(), part))
            return testing::AssertionFailure() << logger.lastError();
        return testing::AssertionSuccess();
    }
    Numbers run(ILayer* l, int output = 0)
    {
        if (!l)
            return {};
        net().markOutput(*l->getOutput(output));
        auto g = object->toGraph();
        EXPECT_TRUE(g.ok()) << g.error().message;
        if (!g.ok())
            return {};
        std::vector<tw::Tensor> storage;
        std::vector<tw::TensorRef> in;
        for (tw::ir::Value const* v : (*g)->inputs) {
            storage.emplace_back(v->type, tw::ir::extentsOf(v->shape));
            in.push_back(storage.back().ref());
            Numbers const& numbers = values[in.size() - 1];
            for (size_t i = 0; i < numbers.size(); ++i)
                in.back().set(int64_t(i), numbers[i]);
        }
        auto out = tw::interp::run(**g, in);
        EXPECT_TRUE(out.ok()) << out.error().message;
        Numbers result;
        for (int64_t i = 0; out.ok() && i < (*out)[0].count(); ++i)
            result.push_back((*out)[0].ref().get(i));
        another();
        return result;
    }
};

} // namespace operator_rules
