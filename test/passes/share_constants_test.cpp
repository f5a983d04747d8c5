// SPDX-License-Identifier: Apache-2.0
#include "nodes.h"

namespace tw::test {

namespace {

void const* bytesOf(ir::Value const* v)
{
    return v->constant->data->data();
}

} // namespace

TEST(ShareConstants, EqualBytesLieOnce)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({64, 64}));
    ir::Value* a = m.constant("a", {64, 64});
    Tensor const same = [&] {
        Tensor t(DataType::kFloat, {64, 64});
        std::memcpy(t.data(), bytesOf(a), 4 * 64 * 64);
        return t;
    }();
    ir::Value* b = m.g.addConstant("b", DataType::kFloat, {1, 64, 64}, same.data());
    auto c = std::make_shared<ir::Constant>();
    c->data = Blob::copy(same.data(), 4 * 64 * 64);
    c->layer = "third";
    c->role = ir::WeightsRole::kKernel;
    ir::Value* third = m.g.addConstant("c", DataType::kFloat, {64, 64}, c);
    // Alike in all but one element, and with another size.
    Tensor other(DataType::kFloat, {64, 64});
    std::memcpy(other.data(), same.data(), 4 * 64 * 64);
    other.ref().set(64 * 64 / 2 + 1, 5);
    ir::Value* d = m.g.addConstant("d", DataType::kFloat, {64, 64}, other.data());
    ir::Value* e = m.g.addConstant("e", DataType::kFloat, {63, 64}, same.data());
    ir::Value* y = sum(m, sum(m, x, a, "ab"), third, "c1");
    y = sum(m, y, d, "d1");
    m.output(y, "y");
    m.output(sum(m, m.input("z", ir::shapeOf({1, 64, 64})), b, "b1"), "w");
    m.output(sum(m, m.input("u", ir::shapeOf({63, 64})), e, "e1"), "v");
    checkPass(m.g, passes::shareConstants, true);
    EXPECT_EQ(bytesOf(a), bytesOf(b));
    EXPECT_EQ(bytesOf(a), bytesOf(third));
    EXPECT_NE(bytesOf(a), bytesOf(d));
    EXPECT_NE(bytesOf(a), bytesOf(e));
    EXPECT_EQ(third->constant->layer, "third") << "refit finds it";
    EXPECT_EQ(third->constant->role, ir::WeightsRole::kKernel);
}

TEST(ShareConstants, ManyThatLookAlike)
{
    constexpr int kCount = 20;
    GraphMaker m;
    std::vector<ir::Value*> list;
    ir::Value* y = m.input("x", ir::shapeOf({5000}));
    for (int i = 0; i < kCount; ++i) {
        Tensor t(DataType::kFloat, {5000}); // zeros but for one element, between the samples
        t.ref().set(i / 2 * 17 + 30, 1);
        list.push_back(m.g.addConstant("c" + std::to_string(i), DataType::kFloat, {5000}, t.data()));
        y = sum(m, y, list.back(), "sum");
    }
    m.output(y, "y");
    checkPass(m.g, passes::shareConstants, true);
    for (int i = 0; i < kCount; ++i)
        for (int k = 0; k < i; ++k)
            EXPECT_EQ(bytesOf(list[size_t(i)]) == bytesOf(list[size_t(k)]), i / 2 == k / 2) << i << " " << k;
}

TEST(ShareConstants, WithinRegionsToo)
{
    auto region = [](char const* name) {
        GraphMaker m;
        m.g.name = name;
        m.output(sum(m, m.input("x", ir::shapeOf({8})), m.constant("weights", {8}), "inner"));
        return m.take();
    };
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({8}));
    ir::Value* flag = m.input("flag", {}, DataType::kBool);
    std::vector<std::unique_ptr<ir::Graph>> regions;
    regions.push_back(region("then"));
    regions.push_back(region("else"));
    ir::Node* n =
        m.addNode(ops::conditional::def(), std::make_unique<ir::NoAttrs>(), {flag, x}, "if", std::move(regions));
    ASSERT_NE(n, nullptr);
    ir::Value* outside = m.constant("weights", {8});
    m.output(sum(m, n->outputs[0], outside, "sum"), "y");
    checkPass(m.g, passes::shareConstants, true);
    for (auto const& r : n->regions)
        for (auto const& v : r->values())
            if (v->isConstant()) {
                EXPECT_EQ(bytesOf(v.get()), bytesOf(outside));
            }
}

} // namespace tw::test
