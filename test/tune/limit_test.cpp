// SPDX-License-Identifier: Apache-2.0
// Limits of layers on a machine whose rates are planted, and what is said of tactics that are no fast kernels.
#include "tune/limit.h"

#include <gtest/gtest.h>

#include "ops/convolution/op.h"
#include "ops/elementwise/op.h"
#include "ops/gather/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/pooling/op.h"
#include "support/case_problem.h"
#include "support/graph_maker.h"
#include "tune/timing_cache.h"

namespace tw::test {

namespace {

// 1000 bytes and 10,000 operations a microsecond.
struct Machine
{
    tune::TimingCache cache{"planted"};
    tune::Options options;

    Machine()
    {
        options.device = "planted";
        options.cache = &cache;
        cache.insert("planted|rate of copies", {0, {1000 * 1000}, 0, {}});
        cache.insert("planted|rate of f32 products", {0, {10'000 * 1000}, 0, {}});
    }
};

// Of the last node of a graph.
ops::Problem problemOf(ir::Graph const& g)
{
    ops::Problem p;
    p.node = g.nodes.back().get();
    auto spec = [](ir::Value const* v) {
        ops::TensorSpec t;
        if (!v)
            return t;
        t.present = true;
        t.type = v->type;
        t.dims = t.maxDims = ir::extentsOf(v->shape);
        t.constant = v->isConstant() ? v->constant->data.get() : nullptr;
        return t;
    };
    for (ir::Value const* v : p.node->inputs)
        p.inputs.push_back(spec(v));
    for (ir::Value const* v : p.node->outputs)
        p.outputs.push_back(spec(v));
    return p;
}

double limitOf(ir::Graph const& g)
{
    Machine machine;
    tune::Rates rates(machine.options);
    return tune::limitOf(problemOf(g), rates);
}

constexpr double kStart = 5; // microseconds of a CPU's kernel

} // namespace

TEST(Limit, IsTheTimeOfTheBytesWhereNothingIsMultiplied)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({100, 100}));
    ir::Value* b = m.input("b", ir::shapeOf({1, 100}));
    m.output(m.add(ops::elementwise::def(), ops::elementwise::Attrs(ops::elementwise::Operation::kSum), {x, b}, "sum"),
             "y");
    EXPECT_DOUBLE_EQ(limitOf(m.g), 4 * (10'000 + 100 + 10'000) / 1000.0 + kStart);
}

TEST(Limit, ATensorThatIsReadTwiceCountsOnce)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({100, 100}));
    m.output(
        m.add(ops::elementwise::def(), ops::elementwise::Attrs(ops::elementwise::Operation::kProd), {x, x}, "square"),
        "y");
    EXPECT_DOUBLE_EQ(limitOf(m.g), 4 * 20'000 / 1000.0 + kStart);
}

TEST(Limit, OfATableOnlyTheRowsThatAreTaken)
{
    GraphMaker m;
    ir::Value* table = m.input("table", ir::shapeOf({10'000, 100}));
    ir::Value* rows = m.input("rows", ir::shapeOf({10}), DataType::kInt32);
    m.output(m.add(ops::gather::def(), ops::gather::Attrs(), {table, rows}, "gather"), "y");
    EXPECT_DOUBLE_EQ(limitOf(m.g), 4 * (1000 + 10 + 1000) / 1000.0 + kStart);
}

TEST(Limit, OfProductsTheirOperations)
{
    using ops::matrix_multiply::MatrixOperation;
    GraphMaker m;
    ir::Value* a = m.input("a", ir::shapeOf({3, 200, 300}));
    ir::Value* b = m.input("b", ir::shapeOf({1, 400, 300}));
    ops::matrix_multiply::Attrs attrs(MatrixOperation::kNone, MatrixOperation::kTranspose);
    m.output(m.add(ops::matrix_multiply::def(), attrs, {a, b}, "product"), "y");
    EXPECT_DOUBLE_EQ(limitOf(m.g), 2.0 * 3 * 200 * 300 * 400 / 10'000 + kStart);
}

TEST(Limit, OfConvolutionsEitherWay)
{
    for (bool transposed : {false, true}) {
        GraphMaker m;
        ir::Value* x = m.input("x", ir::shapeOf({1, 16, 30, 30}));
        ir::Value* w = m.constant("w", transposed ? Extents{16, 8, 5, 5} : Extents{32, 8, 5, 5});
        ops::convolution::Attrs a = ops::convolution::Attrs::plain(2, transposed);
        a.groups = 2;
        ir::Value* y = m.add(ops::convolution::def(), a, {x, w}, "convolution");
        m.output(y, "y");
        // Each product reads one element of x (transposed) or belongs to one of y.
        double const products = transposed ? 16.0 * 30 * 30 * 8 * 25 : 32.0 * 26 * 26 * 8 * 25;
        EXPECT_EQ(ir::extentsOf(y->shape)[2], transposed ? 34 : 26);
        EXPECT_DOUBLE_EQ(limitOf(m.g), 2 * products / 10'000 + kStart) << transposed;
    }
}

TEST(Limit, IsMeasuredOnceAndKeptInTheCache)
{
    tune::TimingCache cache("here");
    tune::Options options;
    options.device = "here";
    options.cache = &cache;
    tune::Rates first(options);
    double const bytes = first.bytes(), operations = first.operations(DataType::kFloat);
    EXPECT_GT(bytes, 100) << "less than 0.1 GB/s";
    EXPECT_LT(bytes, 1e7) << "more than 10 TB/s";
    EXPECT_EQ(cache.size(), operations > 0 ? 2U : 1U);
    tune::Rates second(options);
    EXPECT_EQ(second.bytes(), bytes);
    EXPECT_EQ(second.operations(DataType::kFloat), operations);
}

TEST(Limit, IsMeasuredOnceInAProcess)
{
    tune::Options options; // no cache: each build of a small network would measure for longer than it takes
    options.device = "here alone";
    double const bytes = tune::Rates(options).bytes(), operations = tune::Rates(options).operations(DataType::kFloat);
    EXPECT_GT(bytes, 100);
    EXPECT_EQ(tune::Rates(options).bytes(), bytes);
    EXPECT_EQ(tune::Rates(options).operations(DataType::kFloat), operations);
}

TEST(Limit, APlainTacticLacksWhatTheOthersRefuse)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({1, 8, 16, 16}));
    ops::pooling::Attrs a = ops::pooling::Attrs::plain(ops::pooling::Kind::kMaxAverageBlend, {2, 2});
    a.blend = 0.5F;
    m.output(m.add(ops::pooling::def(), a, {x}, "pool"), "y");
    ops::Problem const problem = problemOf(m.g);
    tune::Options options;
    plan::Choice choice;
    choice.tactic = ops::pooling::cpuTactics.back()->id();
    std::string const lack = tune::lackOf(problem, choice, options);
    EXPECT_NE(lack.find("does not blend maximum and average"), std::string::npos) << lack;
    choice.tactic = ops::pooling::cpuTactics.front()->id();
    choice.limitMicroseconds = 10;
    choice.microseconds = 29;
    EXPECT_EQ(tune::lackOf(problem, choice, options), "");
    choice.microseconds = 42;
    EXPECT_EQ(tune::lackOf(problem, choice, options), "42 us are 4.2 times its limit of 10 us");
    EXPECT_EQ(tune::lackOf(problem, choice, options, true), "");
    choice.limitMicroseconds = 0; // not known
    EXPECT_EQ(tune::lackOf(problem, choice, options), "");
    // What takes less than a kernel's start lacks nothing, the plain one neither.
    choice.tactic = ops::pooling::cpuTactics.back()->id();
    EXPECT_NE(tune::lackOf(problem, choice, options), "");
    choice.limitMicroseconds = 30; // nor does what is near its limit
    EXPECT_EQ(tune::lackOf(problem, choice, options), "");
    choice.limitMicroseconds = 0;
    choice.microseconds = 0.9 * kStart;
    EXPECT_EQ(tune::lackOf(problem, choice, options), "");
}

} // namespace tw::test
