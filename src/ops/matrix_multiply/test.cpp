// SPDX-License-Identifier: Apache-2.0
// What the case table cannot express of products of i8: what is refused.
#include <gtest/gtest.h>

#include "families/elementwise/epilogue.h"
#include "ops/matrix_multiply/op.h"
#include "tactic/registry.h"

namespace tw::ops::matrix_multiply {

namespace {

constexpr DataType i8 = DataType::kInt8, f32 = DataType::kFloat;

struct In
{
    DataType type = DataType::kFloat;
    Extents dims;
    bool present = true;
};

std::string errorOf(std::vector<In> const& inputs, Attrs const& a = {})
{
    ir::Graph graph;
    std::vector<ir::Value*> values;
    for (In const& in : inputs)
        values.push_back(in.present ? graph.addInput(fmt::format("x{}", values.size()), in.type, ir::shapeOf(in.dims))
                                    : nullptr);
    auto node = graph.addNode(def(), std::make_unique<Attrs>(a), values, "product");
    return node.ok() ? std::string() : node.error().message;
}

std::vector<In> fine()
{
    In const none{f32, {}, false};
    return {{i8, {5, 4}}, {i8, {4, 6}}, {f32, {6}}, none, none, none, {f32, {6}}};
}

std::string with(size_t position, In const& in, Attrs const& a = {})
{
    std::vector<In> inputs = fine();
    inputs.resize(std::max(inputs.size(), position + 1), In{f32, {}, false});
    inputs[position] = in;
    return errorOf(inputs, a);
}

#define EXPECT_SAYS(error, text) EXPECT_NE((error).find(text), std::string::npos) << (error)

} // namespace

TEST(ProductOfIntegers, RefusesOtherTypesAndCounts)
{
    EXPECT_EQ(errorOf(fine()), "");
    EXPECT_SAYS(with(0, {f32, {5, 4}}), "must have one type");
    EXPECT_SAYS(with(1, {DataType::kInt32, {4, 6}}), "must be f32, f16 or i8");
    EXPECT_SAYS(with(Epilogue::kBias, {i8, {6}}), "must be f32[6]");
    EXPECT_SAYS(with(Epilogue::kScale, {f32, {}, false}), "need a scale, input 6");
    EXPECT_SAYS(with(Epilogue::kScale, {f32, {5}}), "must be f32[1] or f32[6]");
    EXPECT_SAYS(with(Epilogue::kResidual, {i8, {5, 6}}), "needs a scale, input 7");
    EXPECT_SAYS(with(Epilogue::kResidualScale, {f32, {1}}), "but no residual of i8");
    EXPECT_SAYS(with(Epilogue::kGamma, {f32, {6}}), "sums of i8 are not normalized");
}

TEST(ProductOfIntegers, RefusesGates)
{
    Attrs a;
    a.gated = true;
    EXPECT_SAYS(errorOf(fine(), a), "gates are for f32 and f16");
}

TEST(ProductOfNormalizedRows, RefusesWhatHasNoRows)
{
    Attrs a;
    a.firstNorm = FirstNorm::kRms;
    std::vector<In> const rows{{f32, {5, 4}}, {f32, {4, 6}}};
    EXPECT_EQ(errorOf(rows, a), "");
    EXPECT_SAYS(errorOf(fine(), a), "normalized first, which is for f32 and f16");
    Attrs transposed = a;
    transposed.a = MatrixOperation::kTranspose;
    EXPECT_SAYS(errorOf({{f32, {4, 5}}, {f32, {4, 6}}}, transposed), "but it is transposed");
    transposed.a = MatrixOperation::kVector;
    EXPECT_SAYS(errorOf({{f32, {4}}, {f32, {4, 6}}}, transposed), "a vector");
    Attrs connected = Attrs::fullyConnected();
    connected.firstNorm = FirstNorm::kLayer;
    EXPECT_SAYS(errorOf({{f32, {3, 4, 2, 1}}, {f32, {7, 8}}}, connected), "connected");
    a.firstEpsilon = -1;
    EXPECT_SAYS(errorOf(rows, a), "first_epsilon -1 must be finite and not negative");
    a.firstEpsilon = 0;
    a.firstNorm = FirstNorm(3);
    EXPECT_SAYS(errorOf(rows, a), "is unknown (allowed: 0 to 2)");
    a.firstNorm = FirstNorm::kLayer;
    In const row{f32, {6}};
    EXPECT_SAYS(errorOf({{f32, {5, 4}}, {f32, {4, 6}}, row, {f32, {5, 6}}, row, row}, a), "not both normalized");
}

TEST(ProductOfIntegers, ConnectedLayersHaveAScaleForEachOutput)
{
    std::vector<In> inputs{{i8, {3, 4, 2, 1}}, {i8, {7, 8}}, {f32, {7}}};
    inputs.resize(Epilogue::kScale, {f32, {}, false});
    inputs.push_back({f32, {7}});
    EXPECT_EQ(errorOf(inputs, Attrs::fullyConnected()), "");
    inputs[Epilogue::kScale].dims = {3};
    EXPECT_SAYS(errorOf(inputs, Attrs::fullyConnected()), "must be f32[1] or f32[7]");
    inputs[Epilogue::kScale].dims = {7};
    inputs[Epilogue::kBias].type = i8;
    EXPECT_SAYS(errorOf(inputs, Attrs::fullyConnected()), "the bias of i8: f32");
}

TEST(ProductOfIntegers, SumsHave32Bits)
{
    std::vector<In> inputs = fine();
    inputs[0].dims = {1, 131072};
    inputs[1].dims = {131072, 6};
    EXPECT_SAYS(errorOf(inputs), "a sum of 131072 products of i8 may need more than 32 bits");
}

} // namespace tw::ops::matrix_multiply
