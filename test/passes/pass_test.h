// SPDX-License-Identifier: Apache-2.0
// What every pass must keep: the graph is sound, the numbers are the same, outputs keep name, type and shape, and a
// second run changes nothing.
#pragma once

#include <optional>

#include "passes/list.h"
#include "refit_check.h"
#include "support/graph_maker.h"

namespace tw::test {

// "conv1 + relu1:convolution, ..." in order of execution.
inline std::string nodesOf(ir::Graph const& g)
{
    std::string s;
    for (auto const& n : g.nodes)
        s += (s.empty() ? "" : ", ") + n->name + ":" + n->op->name;
    return s;
}

// The fused node's body gives the node's result.
inline void checkBody(ir::Node const& n)
{
    ASSERT_NE(n.body, nullptr);
    auto const inputs = randomInputs(*n.body);
    auto whole = interp::runNode(n, refsOf(inputs));
    auto parts = interp::run(*n.body, refsOf(inputs));
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    ASSERT_TRUE(parts.ok()) << parts.error().message;
    expectSame(refsOf(*whole), *parts);
}

// An H200.
inline passes::TargetInfo const kGpu{
    passes::TargetInfo::Gpu{.capability = 90, .multiprocessors = 132, .l2Bytes = 50 << 20, .memoryBytes = 139LL << 30}};

struct PassCheck
{
    ir::Bindings sizes;
    bool refittable = false;
    double tolerance = 1e-5;
    Permissions permits = {};
    passes::PrecisionConstraints constraints = passes::PrecisionConstraints::kIgnore;
    passes::TargetInfo target = {};
    passes::Ranges ranges; // INT8 is permitted where there are some
};
inline PassCheck const kCheck{{{"N", 2}, {"S", 5}}};
inline PassCheck const kCheckOnGpu{.sizes = kCheck.sizes, .target = kGpu};

// All passes; whether other nodes are there then.
inline Result<bool> wholePipeline(ir::Graph& g, passes::PassContext const& ctx)
{
    std::string const before = nodesOf(g);
    TW_TRY(passes::run(g, ctx));
    return nodesOf(g) != before;
}

inline void checkPass(ir::Graph& g, passes::Run pass, bool expectChange, PassCheck const& check = {})
{
    auto const inputs = randomInputs(g, check.sizes);
    uint64_t state = 1;
    interp::Options options;
    options.randomState = &state;
    auto before = interp::run(g, refsOf(inputs), options);
    ASSERT_TRUE(before.ok()) << before.error().message;
    struct Seen
    {
        std::string name;
        DataType type;
        ir::Shape shape;
    };
    std::vector<Seen> outputs;
    for (ir::Value const* v : g.outputs)
        outputs.push_back({v->name, v->type, v->shape});

    std::optional<RefitCheck> refit;
    if (check.refittable)
        refit.emplace(g);
    NullLog log;
    passes::PassContext ctx{{check.target, check.permits, check.constraints, refit ? &refit->recipes : nullptr}, log};
    ctx.permits.set(Permission::kInt8, !check.ranges.empty());
    ctx.ranges = check.ranges.empty() ? nullptr : &check.ranges;
    auto changed = pass(g, ctx);
    ASSERT_TRUE(changed.ok()) << changed.error().message;
    EXPECT_EQ(*changed, expectChange);
    auto verified = ir::verify(g);
    ASSERT_TRUE(verified.ok()) << verified.error().message;
    ASSERT_EQ(g.outputs.size(), outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
        EXPECT_EQ(g.outputs[i]->name, outputs[i].name);
        EXPECT_EQ(g.outputs[i]->type, outputs[i].type);
        EXPECT_EQ(g.outputs[i]->shape, outputs[i].shape) << str(g.outputs[i]->shape) << str(outputs[i].shape);
    }
    state = 1;
    auto after = interp::run(g, refsOf(inputs), options);
    ASSERT_TRUE(after.ok()) << after.error().message;
    expectSame(refsOf(*after), *before, check.tolerance);

    std::string const once = nodesOf(g);
    changed = pass(g, ctx);
    ASSERT_TRUE(changed.ok()) << changed.error().message;
    EXPECT_FALSE(*changed);
    EXPECT_EQ(nodesOf(g), once);
    if (refit)
        refit->check(g, check.sizes, check.tolerance);
}

} // namespace tw::test
