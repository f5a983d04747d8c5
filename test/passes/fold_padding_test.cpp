// SPDX-License-Identifier: Apache-2.0
#include "nodes.h"
#include "ops/convolution/op.h"
#include "ops/padding/op.h"
#include "ops/pooling/op.h"
#include "ops/slice/op.h"

namespace tw::test {

namespace {

using Pooling = ops::pooling::Kind;

ir::Value* pad(GraphMaker& m, ir::Value* x, std::vector<int64_t> pre, std::vector<int64_t> post)
{
    ops::padding::Attrs a;
    a.pre = std::move(pre);
    a.post = std::move(post);
    return m.add(ops::padding::def(), a, {x}, "pad");
}

// Padding by one on every side of the image, as importers write it.
ir::Value* fillSlice(GraphMaker& m, ir::Value* x, float value = 0, int64_t channels = 3)
{
    ops::slice::Attrs a;
    a.start = {0, channels == 3 ? 0 : -1, -1, -1};
    a.size = {2, channels, 8, 7};
    a.stride = {1, 1, 1, 1};
    a.mode = ops::slice::Mode::kFill;
    return m.add(ops::slice::def(), a,
                 {x, nullptr, nullptr, nullptr, m.g.addConstant("fill", DataType::kFloat, {}, &value)}, "pad");
}

ir::Value* convolution(GraphMaker& m, ir::Value* x)
{
    auto a = ops::convolution::Attrs::plain(2);
    a.prePadding = {1, 0};
    a.postPadding = {0, 2};
    return m.add(ops::convolution::def(), a, {x, m.constant("w", {4, x->shape[1].value(), 3, 3})}, "conv");
}

ir::Value* pooling(GraphMaker& m, ir::Value* x, Pooling kind = Pooling::kAverage, int64_t padding = 0,
                   bool exclude = true)
{
    auto a = ops::pooling::Attrs::plain(kind, {3, 3});
    a.prePadding = a.postPadding = {padding, padding};
    a.excludePadding = exclude;
    return m.add(ops::pooling::def(), a, {x}, "pool");
}

ir::Value* two(GraphMaker& m) // N known, for slices
{
    return m.input("x", ir::shapeOf({2, 3, 6, 5}));
}

} // namespace

TEST(FoldPadding, IntoConvolutions)
{
    for (bool slice : {false, true}) {
        GraphMaker m;
        m.output(convolution(m, slice ? fillSlice(m, two(m)) : pad(m, image(m), {1, 0}, {2, 3})), "y");
        checkPass(m.g, passes::foldPadding, true);
        EXPECT_EQ(nodesOf(m.g), "pad + conv:convolution");
        EXPECT_EQ(m.g.nodes[0]->layers, (std::vector<std::string>{"pad", "conv"}));
    }
}

TEST(FoldPadding, IntoAveragePooling)
{
    for (bool slice : {false, true})
        for (bool exclude : {false, true}) {
            GraphMaker m;
            ir::Value* padded = slice ? fillSlice(m, two(m)) : pad(m, image(m), {1, 0}, {1, 2});
            m.output(pooling(m, padded, Pooling::kAverage, 0, exclude), "y");
            checkPass(m.g, passes::foldPadding, true);
            EXPECT_EQ(nodesOf(m.g), "pad + pool:pooling");
        }
    GraphMaker m; // its own padding counts too
    m.output(pooling(m, pad(m, image(m), {1, 1}, {0, 1}), Pooling::kAverage, 1, false), "y");
    checkPass(m.g, passes::foldPadding, true);
}

TEST(FoldPadding, ReasonsNotTo)
{
    auto with = [](auto change) {
        GraphMaker m;
        change(m);
        checkPass(m.g, passes::foldPadding, false);
    };
    with([](GraphMaker& m) { m.output(pooling(m, pad(m, image(m), {1, 1}, {1, 1}), Pooling::kMax), "y"); });
    with([](GraphMaker& m) { m.output(pooling(m, pad(m, image(m), {1, 1}, {1, 1}), Pooling::kAverage, 1), "y"); });
    with([](GraphMaker& m) { m.output(convolution(m, pad(m, image(m), {-1, 0}, {1, 0})), "y"); }); // crops
    with([](GraphMaker& m) { m.output(convolution(m, fillSlice(m, two(m), 0.5f)), "y"); });
    with([](GraphMaker& m) { m.output(convolution(m, fillSlice(m, two(m), 0, 5)), "y"); }); // channels too
    with([](GraphMaker& m) {                                                                // others read it
        ir::Value* padded = pad(m, image(m), {1, 1}, {1, 1});
        m.output(convolution(m, padded), "y");
        m.output(padded, "z");
    });
}

} // namespace tw::test
