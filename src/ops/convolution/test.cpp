// SPDX-License-Identifier: Apache-2.0
// What the case table cannot express of convolutions of i8: what is refused, and that kernels are there for all others.
#include <gtest/gtest.h>

#include "families/elementwise/epilogue.h"
#include "ops/convolution/op.h"
#include "support/case_problem.h"
#include "tactic/registry.h"
#include "tactic/tactic.h"

namespace tw::ops::convolution {

namespace {

struct In
{
    DataType type = DataType::kFloat;
    Extents dims;
    bool present = true;
};

constexpr DataType i8 = DataType::kInt8, f32 = DataType::kFloat, f16 = DataType::kHalf;

// The error of a node with such inputs; empty: none.
std::string errorOf(std::vector<In> const& inputs, Attrs const& a = Attrs::plain(2))
{
    ir::Graph graph;
    std::vector<ir::Value*> values;
    for (In const& in : inputs)
        values.push_back(in.present ? graph.addInput(fmt::format("x{}", values.size()), in.type, ir::shapeOf(in.dims))
                                    : nullptr);
    auto node = graph.addNode(def(), std::make_unique<Attrs>(a), values, "conv");
    return node.ok() ? std::string() : node.error().message;
}

// x, w, bias, residual and the scales of a convolution that there may be.
std::vector<In> fine()
{
    In const none{f32, {}, false};
    return {{i8, {1, 4, 5, 5}}, {i8, {6, 4, 3, 3}}, {f32, {6}}, {i8, {1, 6, 3, 3}}, none, none, {f32, {6}}, {f32, {1}}};
}

std::string with(size_t position, In const& in, DataType out = i8)
{
    std::vector<In> inputs = fine();
    inputs.resize(std::max(inputs.size(), position + 1), In{f32, {}, false});
    inputs[position] = in;
    Attrs a = Attrs::plain(2);
    a.epilogue.outputType = int32_t(out);
    return errorOf(inputs, a);
}

#define EXPECT_SAYS(error, text) EXPECT_NE((error).find(text), std::string::npos) << (error)

} // namespace

TEST(ConvolutionOfIntegers, RefusesOtherTypesAndCounts)
{
    In const none{f32, {}, false};
    EXPECT_EQ(with(0, fine()[0]), "");
    EXPECT_EQ(with(Epilogue::kScale, {f32, {}}), "");
    EXPECT_EQ(with(Epilogue::kScale, {f32, {1}}), "");
    EXPECT_EQ(with(Epilogue::kOutputScale, {f32, {1}}), "");
    EXPECT_SAYS(with(0, {f32, {1, 4, 5, 5}}), "must have one type");
    EXPECT_SAYS(with(1, {f32, {6, 4, 3, 3}}), "must have one type");
    EXPECT_SAYS(with(0, {DataType::kUInt8, {1, 4, 5, 5}}), "must be f32, f16 or i8");
    EXPECT_SAYS(with(2, {i8, {6}}), "the bias of i8: f32");
    EXPECT_SAYS(with(2, {f32, {5}}), "must have shape [6]");
    EXPECT_SAYS(with(Epilogue::kScale, none), "need a scale, input 6");
    EXPECT_SAYS(with(Epilogue::kScale, {f32, {5}}), "must be f32[1] or f32[6]");
    EXPECT_SAYS(with(Epilogue::kScale, {f16, {6}}), "must be f32[1] or f32[6]");
    EXPECT_SAYS(with(Epilogue::kScale, {f32, {1, 6}}), "must be f32[1] or f32[6]");
    EXPECT_SAYS(with(Epilogue::kResidualScale, none), "needs a scale, input 7");
    EXPECT_SAYS(with(Epilogue::kResidualScale, {f32, {6}}), "residual scale input 'x7' (f32[6]) must be f32[1]");
    EXPECT_SAYS(with(Epilogue::kOutputScale, {f32, {6}}), "output scale input 'x8' (f32[6]) must be f32[1]");
    EXPECT_SAYS(with(Epilogue::kResidual, {f32, {1, 6, 3, 3}}), "but no residual of i8");
    EXPECT_SAYS(with(Epilogue::kResidual, {i8, {1, 6, 3, 2}}), "must have the output's shape");
    EXPECT_SAYS(with(Epilogue::kGamma, {f32, {6}}), "takes no norm");
    EXPECT_SAYS(with(0, fine()[0], DataType::kInt32), "output_type i32 of i8 factors is not possible");
}

TEST(ConvolutionOfIntegers, ResidualsOfFloatsAreOfTheOutputsType)
{
    std::vector<In> inputs = fine();
    inputs.resize(Epilogue::kScale + 1);
    Attrs a = Attrs::plain(2);
    for (DataType out : {i8, f32, f16})
        for (DataType r : {f32, f16}) {
            inputs[Epilogue::kResidual] = {r, {1, 6, 3, 3}};
            a.epilogue.outputType = int32_t(out);
            if (out == i8 || out == r)
                EXPECT_EQ(errorOf(inputs, a), "");
            else
                EXPECT_SAYS(errorOf(inputs, a), "must be i8 or, as the output");
        }
    inputs[Epilogue::kResidual] = {DataType::kInt32, {1, 6, 3, 3}};
    EXPECT_SAYS(errorOf(inputs, a), "must be i8, f32 or f16");
}

TEST(ConvolutionOfIntegers, SumsHave32Bits)
{
    std::vector<In> inputs = fine();
    inputs.resize(Epilogue::kScale + 1);
    inputs[Epilogue::kResidual].present = false;
    inputs[0].dims = {1, 131071, 5, 5};
    inputs[1].dims = {6, 131071, 1, 1};
    EXPECT_EQ(errorOf(inputs), "");
    inputs[0].dims[1] = inputs[1].dims[1] = 131072;
    EXPECT_SAYS(errorOf(inputs), "a sum of 131072 products of i8 may need more than 32 bits");
}

TEST(ConvolutionOfIntegers, FloatsHaveNoScales)
{
    std::vector<In> inputs{{f32, {1, 4, 5, 5}}, {f32, {6, 4, 3, 3}}};
    Attrs a = Attrs::plain(2);
    a.epilogue.outputType = int32_t(f32);
    EXPECT_EQ(errorOf(inputs, a), "");
    a.epilogue.outputType = int32_t(i8);
    EXPECT_SAYS(errorOf(inputs, a), "output_type i8 must be that of the factors, f32");
    inputs.resize(Epilogue::kScale, {f32, {}, false});
    inputs.push_back({f32, {6}});
    EXPECT_SAYS(errorOf(inputs), "only sums of i8 are scaled");
}

// Convolutions with constant weights, of channels and one batch dimension, run by emitted kernels.
TEST(ConvolutionOfIntegers, NoneIsLeftToThePlainKernel)
{
    int seen = 0;
    CaseList const list = casesOf("convolution");
    for (Case const& c : list.cases) {
        if (c.inputs[0].type != i8 || !c.inputs[1].constant || c.inputs[0].dims[1] == 0 ||
            c.inputs[0].dims.rank != c.inputs[1].dims.rank)
            continue;
        auto g = test::makeCase(def(), c);
        ASSERT_TRUE(g.ok()) << g.error().message;
        auto shapes = interp::inferConcrete(*(*g)->node, (*g)->nodeInputs);
        ASSERT_TRUE(shapes.ok()) << shapes.error().message;
        std::vector<Tensor> outputs;
        outputs.emplace_back((*shapes)[0].type, (*shapes)[0].dims);
        Problem p = test::caseProblem(**g, outputs);
        std::string why;
        bool isTaken = false;
        for (Tactic const* t : cpuTactics.first(cpuTactics.size() - 1))
            for (Formats const& f : t->formats(p)) {
                setFormats(p, f);
                Support const s = supportsFormats(*t, p);
                isTaken = isTaken || s.ok;
                why += std::string("  ") + t->name() + ": " + s.reason + "\n";
            }
        if (why.find("needs a CPU with") != std::string::npos && !isTaken)
            continue; // no such instructions here
        EXPECT_TRUE(isTaken) << c.name << "\n" << why;
        ++seen;
    }
    EXPECT_GT(seen, 300);
}

} // namespace tw::ops::convolution
