// SPDX-License-Identifier: Apache-2.0
// Shape arithmetic: what element-wise, unary, select, identity, concatenation and fill layers make of elements that are
// expressions; and what inference refuses.
#include <gtest/gtest.h>

#include "ir/op_def.h"
#include "ops/concatenation/op.h"
#include "ops/elementwise/op.h"
#include "ops/fill/op.h"
#include "ops/identity/op.h"
#include "ops/select/op.h"
#include "ops/unary/op.h"
#include "tactic/registry.h"

namespace tw::ops {

namespace {

using ir::Dim;
using Op = elementwise::Operation;

Dim const kN = Dim::symbol("N"), kZ = Dim::symbol("Z");

} // namespace

struct ShapeArithmetic : testing::Test
{
    ir::Graph g;
    int count = 0;

    // A 1-D tensor whose elements are known as expressions of the symbols N (1..) and Z (any).
    ir::Value* known(std::vector<Dim> content, DataType type = DataType::kInt32)
    {
        g.symbols["N"] = ir::Symbol{ir::Range{1, 1000}, false};
        g.symbols["Z"] = ir::Symbol{ir::Range{-1000, 1000}, false};
        ir::Value* v = g.addInput(fmt::format("in{}", count++), type, {Dim(int64_t(content.size()))});
        v->content = std::move(content);
        return v;
    }
    template <class A>
    ir::Value* add(ir::OpDef const& op, A attrs, std::vector<ir::Value*> inputs)
    {
        auto made =
            g.addNode(op, std::make_unique<A>(std::move(attrs)), std::move(inputs), fmt::format("node{}", count++));
        EXPECT_TRUE(made.ok()) << made.error().message;
        return made.ok() ? (*made)->outputs[0] : nullptr;
    }
    ir::Value* pair(Op o, ir::Value* a, ir::Value* b) { return add(elementwise::def(), elementwise::Attrs(o), {a, b}); }
    static std::string text(ir::Value const* v)
    {
        std::string s;
        if (!v || !v->content)
            return "unknown";
        for (Dim const& d : *v->content)
            s += (s.empty() ? "" : " ") + d.str();
        return s;
    }
    template <class A>
    std::string refusal(ir::OpDef const& op, A attrs, std::vector<ir::Value*> inputs)
    {
        auto made = g.addNode(op, std::make_unique<A>(std::move(attrs)), std::move(inputs), "bad");
        return made.ok() ? "accepted" : made.error().message;
    }
    ir::Value* plain(DataType type, ir::Shape shape) { return g.addInput(fmt::format("p{}", count++), type, shape); }
};

TEST_F(ShapeArithmetic, ElementWise)
{
    ir::Value *a = known({kN, 7, kZ}), *two = known({2});
    EXPECT_EQ(*pair(Op::kSum, a, two)->content, (std::vector<Dim>{kN + 2, 9, kZ + 2}));
    EXPECT_EQ(*pair(Op::kProd, a, two)->content, (std::vector<Dim>{Dim(2) * kN, 14, Dim(2) * kZ}));
    EXPECT_EQ(*pair(Op::kSub, two, a)->content, (std::vector<Dim>{Dim(2) - kN, -5, Dim(2) - kZ}));
    EXPECT_EQ(*pair(Op::kMax, a, two)->content, (std::vector<Dim>{max(kN, 2), 7, max(kZ, 2)}));
    EXPECT_EQ(*pair(Op::kFloorDiv, a, two)->content, (std::vector<Dim>{floorDiv(kN, 2), 3, floorDiv(kZ, 2)}));
    // A positive quotient truncates like it rounds down; Z may be negative.
    ir::Value* quotient = pair(Op::kDiv, a, two);
    ASSERT_TRUE(quotient->content);
    EXPECT_EQ((*quotient->content)[0], floorDiv(kN, 2));
    for (int64_t z : {-5, -4, -1, 0, 1, 5})
        EXPECT_EQ(*(*quotient->content)[2].eval({{"Z", z}}), z / 2) << z;
    EXPECT_EQ(text(pair(Op::kDiv, a, known({0}))), "0 0 0");
    EXPECT_EQ(text(pair(Op::kDiv, two, a)), "unknown") << "Z may be 0";
    EXPECT_EQ(text(pair(Op::kEqual, known({3, 4}), known({3, 5}))), "1 0");
    EXPECT_EQ(text(pair(Op::kGreater, known({3, 6}), known({3, 5}))), "0 1");
    EXPECT_EQ(text(pair(Op::kProd, known({1 << 20}), known({1 << 12}))), "0") << "wraps as an i32 store does";
}

TEST_F(ShapeArithmetic, LogicAndSelect)
{
    ir::Value* isOne = pair(Op::kEqual, known({kN, 1}), known({1}));
    ir::Value* chosen = add(select::def(), select::Attrs(), {isOne, known({10, 10}), known({kN, 3})});
    ASSERT_TRUE(chosen->content);
    EXPECT_EQ(*(*chosen->content)[0].eval({{"N", 1}}), 10);
    EXPECT_EQ(*(*chosen->content)[0].eval({{"N", 6}}), 6);
    EXPECT_TRUE((*chosen->content)[1].is(10));
    ir::Value *t = known({0, 0, 1, 1}, DataType::kBool), *u = known({0, 1, 0, 1}, DataType::kBool);
    EXPECT_EQ(text(pair(Op::kAnd, t, u)), "0 0 0 1");
    EXPECT_EQ(text(pair(Op::kOr, t, u)), "0 1 1 1");
    EXPECT_EQ(text(pair(Op::kXor, t, u)), "0 1 1 0");
    EXPECT_EQ(text(add(unary::def(), unary::Attrs(unary::Operation::kNot), {t})), "1 1 0 0");
}

TEST_F(ShapeArithmetic, SignCastConcatenationFill)
{
    EXPECT_EQ(text(add(unary::def(), unary::Attrs(unary::Operation::kSign), {known({-5, 0, 9})})), "-1 0 1");
    EXPECT_EQ(text(add(identity::def(), identity::Attrs(DataType::kBool), {known({-5, 0, 9})})), "1 0 1");
    EXPECT_EQ(text(add(identity::def(), identity::Attrs(), {known({kN, 3})})), "N 3");
    EXPECT_EQ(text(add(identity::def(), identity::Attrs(DataType::kFloat), {known({kN, 3})})), "unknown");
    EXPECT_EQ(text(add(concatenation::def(), concatenation::Attrs(0), {known({kN}), known({2, 3})})), "N 2 3");
    fill::Attrs line;
    line.dims = {3};
    line.alpha = 4;
    line.beta = -2;
    line.outputType = DataType::kInt32;
    EXPECT_EQ(text(add(fill::def(), line, {})), "4 2 0");
    ir::Value* dynamic = add(fill::def(), fill::Attrs(), {known({kN}), nullptr, nullptr});
    ASSERT_EQ(dynamic->shape.size(), 1u);
    EXPECT_EQ(dynamic->shape[0], kN);
}

TEST_F(ShapeArithmetic, Refusals)
{
    ir::Value *f = plain(DataType::kFloat, {2, 3}), *i = plain(DataType::kInt32, {2, 3}),
              *b = plain(DataType::kBool, {2, 3});
    auto sum = [](Op o) { return elementwise::Attrs(o); };
    EXPECT_NE(refusal(elementwise::def(), sum(Op::kSum), {f, i}), "accepted");
    EXPECT_NE(refusal(elementwise::def(), sum(Op::kPow), {i, i}), "accepted");
    EXPECT_NE(refusal(elementwise::def(), sum(Op::kAnd), {i, i}), "accepted");
    EXPECT_NE(refusal(elementwise::def(), sum(Op::kSum), {b, b}), "accepted");
    EXPECT_NE(refusal(elementwise::def(), sum(Op(14)), {f, f}), "accepted");
    EXPECT_NE(refusal(elementwise::def(), sum(Op(-1)), {f, f}), "accepted");
    EXPECT_NE(refusal(elementwise::def(), sum(Op::kSum), {f, plain(DataType::kFloat, {3})}), "accepted");
    EXPECT_NE(refusal(elementwise::def(), sum(Op::kSum), {f, plain(DataType::kFloat, {2, 4})}), "accepted");
    EXPECT_NE(refusal(unary::def(), unary::Attrs(unary::Operation::kNeg), {i}), "accepted");
    EXPECT_NE(refusal(unary::def(), unary::Attrs(unary::Operation::kNot), {i}), "accepted");
    EXPECT_NE(refusal(select::def(), select::Attrs(), {f, f, f}), "accepted");
    EXPECT_NE(refusal(identity::def(), identity::Attrs(DataType::kInt8), {f}), "accepted");
    EXPECT_NE(refusal(identity::def(), identity::Attrs(DataType(9)), {f}), "accepted");
    EXPECT_NE(refusal(concatenation::def(), concatenation::Attrs(2), {f, f}), "accepted");
    EXPECT_NE(refusal(concatenation::def(), concatenation::Attrs(-1), {f, f}), "accepted");
    EXPECT_NE(refusal(concatenation::def(), concatenation::Attrs(0), {f, i}), "accepted");
    fill::Attrs huge;
    huge.dims = {INT64_MAX};
    EXPECT_NE(refusal(fill::def(), huge, {}), "accepted");
    huge.dims = {-1};
    EXPECT_NE(refusal(fill::def(), huge, {}), "accepted");
    huge.dims.assign(1000, 1);
    EXPECT_NE(refusal(fill::def(), huge, {}), "accepted");
}

} // namespace tw::ops
