// SPDX-License-Identifier: Apache-2.0
// Equal regions are tuned once; a kernel that looks at a constant's elements is not given to a layer with others.
#include "builder/build.h"
#include "ops/elementwise/op.h"
#include "support/graph_maker.h"

namespace tw::test {

namespace {

Result<void> addOne(ir::Node const&, ops::RunArgs& args)
{
    for (int64_t i = 0; i < args.outputs[0].count(); ++i)
        args.outputs[0].as<float>()[i] = args.inputs[0].as<float>()[i] + 1;
    return {};
}

// Sums with a constant of ones.
class AddOne final : public ops::Tactic
{
public:
    constexpr AddOne() : Tactic("elementwise_add_one", 1, ops::Backend::kCpu) {}
    ops::Support supports(ops::Problem const& p) const override
    {
        Blob const* c = p.inputs[1].constant;
        return c && c->as<float>()[0] == 1 ? ops::Support::yes() : ops::Support::no("takes ones only");
    }
    Result<std::unique_ptr<ops::Kernel>> load(ops::Problem const& p, ops::Config const& config,
                                              std::string const& image) const override
    {
        return ops::PlainTactic("inner", 1, addOne).load(p, config, image);
    }
};

class AddOneProvider final : public ops::TacticProvider
{
public:
    void tactics(ir::Node const& node, ops::Backend, std::vector<ops::Tactic const*>& out) const override
    {
        static constexpr AddOne kAddOne;
        if (node.op == &ops::elementwise::def())
            out = {&kAddOne, out.back()};
    }
};

} // namespace

TEST(Sharing, ElementsOfConstantsThatAKernelLooksAt)
{
    GraphMaker m;
    double const values[] = {1, 2, 1, 3};
    for (size_t i = 0; i < std::size(values); ++i) {
        std::string const n = std::to_string(i);
        m.output(m.add(ops::elementwise::def(), ops::elementwise::Attrs(ops::elementwise::Operation::kSum),
                       {m.input("x" + n, ir::shapeOf({1000})),
                        m.constant("c" + n, {1000}, std::vector<double>(1000, values[i]))},
                       "sum" + n),
                 "y" + n);
    }
    plan::Contents c;
    c.graph = m.take();
    for (ir::Value const* v : c.graph->inputs)
        c.io.push_back(plan::IoTensor{v->name, true, false, true, false, {}});
    for (ir::Value const* v : c.graph->outputs)
        c.io.push_back(plan::IoTensor{v->name, false, false, true, false, {}});
    AddOneProvider const provider;
    ops::TacticProvider const* const providers[] = {&provider};
    builder::Options options;
    options.fingerprint = "test";
    options.tune.providers = providers;
    options.tune.heuristicOnly = true;
    auto const built = builder::build(c, options);
    ASSERT_TRUE(built.ok()) << built.error().message;
    for (size_t i = 0; i < c.graph->nodes.size(); ++i) {
        bool const isOnes = values[size_t(c.graph->nodes[i]->name.back() - '0')] == 1;
        EXPECT_EQ(c.targets[0].root.steps[i].choice.name == "elementwise_add_one", isOnes) << i;
    }
}

} // namespace tw::test
