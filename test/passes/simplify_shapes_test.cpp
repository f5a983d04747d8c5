// SPDX-License-Identifier: Apache-2.0
#include "ops/concatenation/op.h"
#include "ops/elementwise/op.h"
#include "ops/fill/op.h"
#include "ops/gather/op.h"
#include "ops/resize/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "pass_test.h"

namespace tw::test {

namespace {

ir::Dim batch(GraphMaker& m)
{
    m.g.symbols["N"].range = {1, 16};
    return ir::Dim::symbol("N");
}

ir::Value* sizeOfAxis(GraphMaker& m, ir::Value* x, double axis, std::string const& name)
{
    ir::Value* shape = m.add(ops::shape::def(), {x}, name + ".shape");
    return m.add(ops::gather::def(), ops::gather::Attrs{}, {shape, m.i32(name + ".axis", {axis})}, name);
}

template <class A>
A const& attrsOf(ir::Value const* v)
{
    return v->producer->attrsAs<A>();
}

} // namespace

TEST(SimplifyShapes, ConstantDimensionsBecomeAttributes)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({1, 2, 3, 4}));
    ops::resize::Attrs nearest;
    ir::Value* large = m.add(ops::resize::def(), nearest, {x, m.i32("to", {1, 2, 6, 8})}, "large");
    ir::Value* flat = m.add(ops::shuffle::def(), ops::shuffle::Attrs{}, {large, m.i32("dims", {0, -1})}, "flat");
    ir::Value* part = m.add(ops::slice::def(), ops::slice::Attrs{},
                            {flat, m.i32("start", {0, 8}), m.i32("size", {1, 4}), m.i32("stride", {1, 2})}, "part");
    ops::fill::Attrs line;
    ir::Value* fill = m.add(ops::fill::def(), line, {m.i32("count", {5})}, "fill");
    m.output(part, "y");
    m.output(fill, "z");
    checkPass(m.g, passes::simplifyShapes, true);
    for (auto const& n : m.g.nodes)
        EXPECT_LE(n->inputs.size(), n->op == &ops::fill::def() ? 0u : 1u) << n->name;
    EXPECT_EQ(attrsOf<ops::resize::Attrs>(large).outputDims, (std::vector<int64_t>{1, 2, 6, 8}));
    EXPECT_EQ(attrsOf<ops::shuffle::Attrs>(flat).reshape, (std::vector<int64_t>{0, -1}));
    EXPECT_EQ(attrsOf<ops::slice::Attrs>(part).start, (std::vector<int64_t>{0, 8}));
    EXPECT_EQ(attrsOf<ops::fill::Attrs>(fill).dims, (std::vector<int64_t>{5}));
}

TEST(SimplifyShapes, ReshapeThatFollowsItsInput)
{
    GraphMaker m;
    ir::Value* x = m.input("x", {batch(m), 2, 3, 4});
    ir::Value* dims = m.add(ops::concatenation::def(), ops::concatenation::Attrs(0),
                            {sizeOfAxis(m, x, 0, "n"), m.i32("rest", {6, 4})}, "dims");
    ir::Value* y = m.add(ops::shuffle::def(), ops::shuffle::Attrs{}, {x, dims}, "reshape");
    m.output(y, "y");
    checkPass(m.g, passes::simplifyShapes, true);
    EXPECT_EQ(y->producer->inputs.size(), 1u);
    EXPECT_EQ(attrsOf<ops::shuffle::Attrs>(y).reshape, (std::vector<int64_t>{0, 6, 4}));
}

TEST(SimplifyShapes, ReshapeWithOneDimensionToInfer)
{
    GraphMaker m;
    ir::Value* x = m.input("x", {batch(m), 2, 3});
    ir::Value* rows = m.add(ops::elementwise::def(), ops::elementwise::Attrs(ops::elementwise::Operation::kProd),
                            {sizeOfAxis(m, x, 0, "n"), m.i32("two", {2})}, "rows");
    ir::Value* dims =
        m.add(ops::concatenation::def(), ops::concatenation::Attrs(0), {rows, m.i32("rest", {3})}, "dims");
    ir::Value* y = m.add(ops::shuffle::def(), ops::shuffle::Attrs{}, {x, dims}, "reshape");
    m.output(y, "y");
    checkPass(m.g, passes::simplifyShapes, true);
    EXPECT_EQ(attrsOf<ops::shuffle::Attrs>(y).reshape, (std::vector<int64_t>{-1, 3}));
}

TEST(SimplifyShapes, ReshapeToAnotherInputsSizeStays)
{
    GraphMaker m;
    ir::Value* x = m.input("x", {ir::Dim::symbol("N"), 1});
    ir::Value* z = m.input("z", {ir::Dim::symbol("M")});
    ir::Value* y = m.add(ops::shuffle::def(), ops::shuffle::Attrs{}, {x, m.add(ops::shape::def(), {z}, "shape")}, "r");
    m.output(y, "y");
    checkPass(m.g, passes::simplifyShapes, false);
    EXPECT_EQ(y->producer->inputs.size(), 2u);
}

TEST(SimplifyShapes, EqualArithmeticIsOne)
{
    GraphMaker m;
    ir::Value* x = m.input("x", {batch(m), 3});
    ir::Value* a = sizeOfAxis(m, x, 0, "a");
    ir::Value* b = sizeOfAxis(m, x, 0, "b");
    ir::Value* z = m.input("z", ir::shapeOf({1}), DataType::kInt32);
    auto sum = ops::elementwise::Attrs(ops::elementwise::Operation::kSum);
    ir::Value* first = m.add(ops::elementwise::def(), sum, {z, a}, "first");
    m.output(m.add(ops::elementwise::def(), sum, {first, b}, "second"), "y");
    checkPass(m.g, passes::simplifyShapes, true);
    EXPECT_EQ(m.g.useCount(b), 0);
    EXPECT_EQ(m.g.useCount(a), 2);
}

} // namespace tw::test
