// SPDX-License-Identifier: Apache-2.0
// Loops of recipes beside the references of their ops: the same bits, in any dimensions and orders.
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "interp/interp.h"
#include "nodes.h"
#include "ops/concatenation/op.h"
#include "ops/quantize/op.h"
#include "ops/reduce/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "ops/unary/op.h"
#include "recipe/recipes.h"

namespace tw::test {

namespace {

class RecipeLoops : public testing::TestWithParam<DataType>
{
protected:
    int64_t any(int64_t from, int64_t to) { return std::uniform_int_distribution<int64_t>(from, to)(random_); }
    Extents dims(int rank, int64_t most)
    {
        Extents d;
        for (int i = 0; i < rank; ++i)
            d.push(any(0, 9) == 0 ? 1 : any(1, most));
        return d;
    }
    std::vector<int64_t> order(int rank)
    {
        std::vector<int64_t> o(size_t(rank), 0);
        std::iota(o.begin(), o.end(), 0);
        std::ranges::shuffle(o, random_);
        return o;
    }
    // Ordinary numbers, small ones whose products leave the normal range, zeros of both signs and infinities.
    Tensor values(Extents const& d)
    {
        static constexpr double kRare[] = {0.0, -0.0, INFINITY, 1e-7, -3e-5, 60000};
        Tensor t(GetParam(), d);
        std::normal_distribution<double> normal;
        for (int64_t i = 0; i < t.count(); ++i)
            t.ref().set(i, any(0, 15) == 0 ? kRare[any(0, 5)] : normal(random_));
        return t;
    }
    // What the loop makes of the node and what its reference does.
    void compare(ir::OpDef const& op, ir::AttrsBase const& attrs, std::vector<Tensor> const& inputs)
    {
        ir::Graph g;
        std::vector<ir::Value*> in;
        std::vector<TensorRef> refs;
        for (Tensor const& t : inputs) {
            auto c = std::make_shared<ir::Constant>();
            c->data = std::make_shared<Blob const>(t.data(), size_t(t.ref().sizeBytes()), nullptr);
            in.push_back(g.addConstant("c" + std::to_string(in.size()), t.type(), t.dims(), std::move(c)));
            refs.push_back(t.ref());
        }
        auto node = g.addNode(op, attrs.clone(), in, "node");
        ASSERT_TRUE(node.ok()) << node.error().message;
        Tensor const got = recipe::runLoop(**node, refs);
        ASSERT_NE(got.data(), nullptr);
        auto const want = interp::runNode(**node, refs);
        ASSERT_TRUE(want.ok()) << want.error().message;
        ASSERT_EQ(got.dims(), (*want)[0].dims());
        // Of NaN one is as good as another.
        auto const *a = static_cast<char const*>(got.data()), *b = static_cast<char const*>((*want)[0].data());
        size_t const size = size_t(sizeOf(got.type()));
        int64_t wrong = 0;
        for (int64_t i = 0; i < got.count(); ++i)
            wrong += std::memcmp(a + size_t(i) * size, b + size_t(i) * size, size) != 0 &&
                     !(std::isnan(got.ref().get(i)) && std::isnan((*want)[0].ref().get(i)));
        EXPECT_EQ(wrong, 0) << op.name << ", of " << got.count();
    }

    std::mt19937 random_{20};
};

TEST_P(RecipeLoops, Elementwise)
{
    using enum ops::elementwise::Operation;
    for (int i = 0; i < 200; ++i) {
        Extents const wide = dims(int(any(1, 4)), 40);
        int const first = int(any(0, wide.rank - 1)), last = int(any(first + 1, wide.rank));
        Extents narrow = wide;
        for (int d = 0; d < wide.rank; ++d)
            narrow[d] = d < first || d >= last ? 1 : wide[d];
        std::vector<Tensor> in;
        in.push_back(values(wide));
        in.push_back(values(narrow));
        if (any(0, 1))
            std::swap(in[0], in[1]);
        for (auto op : {kSum, kProd, kSub, kDiv})
            compare(ops::elementwise::def(), ops::elementwise::Attrs(op), in);
    }
}

TEST_P(RecipeLoops, Int8)
{
    if (!isFullFloat(GetParam()))
        return; // narrow ones take the references
    for (int i = 0; i < 200; ++i) {
        Extents const d = dims(int(any(1, 4)), 20);
        std::vector<Tensor> in;
        in.push_back(values(d));
        if (any(0, 3) == 0)
            in[0].ref().set(any(0, in[0].count() - 1), NAN);
        for (auto op : {ops::unary::Operation::kAbs, ops::unary::Operation::kFloor, ops::unary::Operation::kCeil})
            compare(ops::unary::def(), ops::unary::Attrs(op), in);
        int const axis = int(any(-1, d.rank - 1));
        ops::reduce::Attrs largest;
        largest.kind = ops::reduce::Kind::kMax;
        largest.keepDims = any(0, 1);
        for (int k = 0; k < d.rank; ++k)
            largest.axes |= k == axis ? 0 : int64_t(1) << k;
        compare(ops::reduce::def(), largest, in);
        in.push_back(Tensor(DataType::kFloat, Extents{axis < 0 ? 1 : d[axis]}));
        for (int64_t k = 0; k < in[1].count(); ++k)
            in[1].ref().set(k, any(0, 9) == 0 ? 0 : std::ldexp(double(any(1, 200)), -8));
        compare(ops::quantize::def(), ops::quantize::Attrs(axis), in);
    }
}

TEST_P(RecipeLoops, Shuffles)
{
    for (int i = 0; i < 300; ++i) {
        Extents const x = dims(int(any(1, 5)), 11);
        ops::shuffle::Attrs a;
        if (any(0, 2))
            a.firstTranspose = order(x.rank);
        Extents const turned = ir::permuted(x, a.firstTranspose);
        a.reshape.assign(turned.begin(), turned.end());
        if (a.hasReshape = any(0, 1); a.hasReshape) {
            a.reshape = {turned.volume(0, turned.rank / 2), turned.volume(turned.rank / 2, turned.rank), 1};
            std::ranges::shuffle(a.reshape, random_);
        }
        if (any(0, 2))
            a.secondTranspose = order(int(a.reshape.size()));
        std::vector<Tensor> in;
        in.push_back(values(x));
        compare(ops::shuffle::def(), a, in);
    }
}

TEST_P(RecipeLoops, Slices)
{
    for (int i = 0; i < 200; ++i) {
        Extents const x = dims(int(any(1, 4)), 20);
        ops::slice::Attrs a;
        for (int64_t length : x) {
            a.start.push_back(any(0, length - 1));
            a.stride.push_back(any(-3, 3));
            int64_t const room = a.stride.back() > 0   ? (length - 1 - a.start.back()) / a.stride.back() + 1
                                 : a.stride.back() < 0 ? a.start.back() / -a.stride.back() + 1
                                                       : 3;
            a.size.push_back(any(1, room));
        }
        std::vector<Tensor> in;
        in.push_back(values(x));
        compare(ops::slice::def(), a, in);
    }
}

TEST_P(RecipeLoops, Concatenations)
{
    for (int i = 0; i < 50; ++i) {
        Extents x = dims(int(any(1, 4)), 9);
        int const axis = int(any(0, x.rank - 1));
        std::vector<Tensor> in;
        for (int k = int(any(1, 4)); k > 0; --k) {
            x[axis] = any(1, 5);
            in.push_back(values(x));
        }
        ops::concatenation::Attrs a;
        a.axis = axis;
        compare(ops::concatenation::def(), a, in);
    }
}

// The reference says what is wrong.
TEST(RecipeLoopsOutside, Slices)
{
    GraphMaker m;
    ops::slice::Attrs a;
    a.start = {2};
    a.size = {3};
    a.stride = {1};
    ir::Value* const y = m.add(ops::slice::def(), a, {m.input("x", {ir::Dim::symbol("N")})}, "slice");
    Tensor const x(DataType::kFloat, {4});
    EXPECT_EQ(recipe::runLoop(*y->producer, {x.ref()}).data(), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Types, RecipeLoops, testing::Values(DataType::kFloat, DataType::kHalf));

} // namespace

} // namespace tw::test
