// SPDX-License-Identifier: Apache-2.0
// Formats of whole graphs: the cheapest ones are found, reformats stand where they must, and the engine computes what
// the graph says.
#include "builder/formats.h"

#include <random>
#include <set>

#include "ir/text.h"
#include "ops/activation/op.h"
#include "ops/elementwise/op.h"
#include "ops/loop/op.h"
#include "runtime/engine_run.h"

namespace tw::test {

namespace {

using ops::activation::Kind;
using Operation = ops::elementwise::Operation;

// ReLU and sum, element by element, wherever the formats put them.
class AnywhereKernel final : public ops::Kernel
{
public:
    Result<void> run(ops::RunArgs& args) const override
    {
        TensorRef const& y = args.outputs[0];
        for (int64_t i = 0; i < y.count(); ++i) {
            double sum = 0;
            for (TensorRef const& x : args.inputs)
                sum += x.get(x.place(i));
            y.set(y.place(i), args.inputs.size() > 1 || sum > 0 ? sum : 0);
        }
        return {};
    }
};

// A tactic for some combination of formats that claims to take a while.
class Anywhere final : public ops::Tactic
{
public:
    Anywhere(char const* name, Format in, Format out, double relu, double sum)
        : Tactic(name, 1, ops::Backend::kCpu), in_(in), out_(out), relu_(relu), sum_(sum)
    {}
    std::vector<ops::Formats> formats(ops::Problem const& p) const override
    {
        return {{std::vector<Format>(p.inputs.size(), in_), {out_}}};
    }
    double estimate(ops::Problem const& p, ops::Config const&) const override
    {
        return p.inputs.size() == 1 ? relu_ : sum_;
    }
    Result<std::unique_ptr<ops::Kernel>> load(ops::Problem const&, ops::Config const&,
                                              std::string const&) const override
    {
        return std::unique_ptr<ops::Kernel>(std::make_unique<AnywhereKernel>());
    }

private:
    Format in_, out_;
    double relu_, sum_;
};

class Provider final : public ops::TacticProvider
{
public:
    void tactics(ir::Node const& node, ops::Backend, std::vector<ops::Tactic const*>& out) const override
    {
        bool const known = node.op == &ops::activation::def() || node.op == &ops::elementwise::def();
        for (auto const& t : list)
            if (known && node.outputs[0]->rank() == 4)
                out.push_back(t.get());
    }
    std::vector<std::unique_ptr<Anywhere>> list;
};

constexpr Format kLinear = Format::kLinear, kLast = Format::kChannelsLast;

struct Built
{
    std::unique_ptr<ir::Graph> imported;
    std::shared_ptr<runtime::Engine> engine;

    int count(char const* op) const
    {
        return int(std::count_if(engine->graph().nodes.begin(), engine->graph().nodes.end(),
                                 [&](auto const& n) { return std::string_view(n->op->name) == op; }));
    }
};

Built build(GraphMaker& m, Provider const& provider, builder::FormatPolicy policy = builder::FormatPolicy::kLeastTime)
{
    Built b;
    b.imported = m.take();
    plan::Contents c;
    c.graph = b.imported->clone();
    for (ir::Value const* v : b.imported->inputs)
        c.io.push_back(plan::IoTensor{v->name, true, false, true, false, {}});
    for (ir::Value const* v : b.imported->outputs)
        c.io.push_back(plan::IoTensor{v->name, false, false, true, false, {}});
    c.profiles.push_back(profileOf(*b.imported, {}));
    ops::TacticProvider const* const providers[] = {&provider};
    builder::Options options;
    options.fingerprint = "test";
    options.tune.heuristicOnly = true;
    options.tune.providers = providers;
    options.formats = policy;
    options.passes.disabled.push_back("fuse_pointwise"); // the layers are to stay apart
    auto built = builder::build(c, options);
    EXPECT_TRUE(built.ok()) << (built.ok() ? "" : built.error().message);
    auto bytes = plan::write(c);
    EXPECT_TRUE(bytes.ok()) << bytes.error().message;
    auto read = plan::read(bytes->data(), bytes->size());
    EXPECT_TRUE(read.ok()) << read.error().message;
    auto engine = runtime::Engine::load(std::move(*read), {providers, "test", nullptr});
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    b.engine = *engine;
    return b;
}

void check(Built const& b)
{
    EngineUnderTest e{b.imported->clone(), {}, b.engine};
    runtime::Context context(e.engine);
    context.setProfile(0);
    checkRun(e, context, randomInputs(*b.imported));
}

ir::Value* relu(GraphMaker& m, ir::Value* x, std::string name)
{
    return m.add(ops::activation::def(), ops::activation::Attrs(Kind::kRelu), {x}, std::move(name));
}
ir::Value* sum(GraphMaker& m, ir::Value* a, ir::Value* b, std::string name)
{
    return m.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kSum), {a, b}, std::move(name));
}

ir::Shape image()
{
    return ir::shapeOf({2, 5, 3, 4}); // a reformat is estimated at 0.24 us
}

Provider linearAndLast(double linearRelu, double linearSum, double lastRelu, double lastSum)
{
    Provider p;
    p.list.push_back(std::make_unique<Anywhere>("test_linear", kLinear, kLinear, linearRelu, linearSum));
    p.list.push_back(std::make_unique<Anywhere>("test_last", kLast, kLast, lastRelu, lastSum));
    return p;
}

// x -> sum with itself, five times, -> y; tanh would be folded nowhere and relu of relu is an identity.
void chainOfSums(GraphMaker& m)
{
    ir::Value* v = m.input("x", image());
    for (int i = 0; i < 5; ++i)
        v = sum(m, v, v, "sum" + std::to_string(i));
    m.output(v, "y");
}

} // namespace

TEST(Formats, ChainGoesToTheFasterFormatWithReformatsAtItsEnds)
{
    GraphMaker m;
    chainOfSums(m);
    Built const b = build(m, linearAndLast(1, 1, 0.5, 0.5));
    EXPECT_EQ(b.count("reformat"), 2);
    EXPECT_EQ(b.engine->graph().outputs[0]->format, kLinear);
    EXPECT_EQ(b.engine->graph().outputs[0]->name, "y");
    EXPECT_EQ(b.engine->graph().nodes.front()->name, "Reformatting CopyNode for Input Tensor 0 to sum0");
    EXPECT_EQ(b.engine->graph().nodes.back()->name, "Reformatting CopyNode for Output Tensor 0 to sum4");
    check(b);
}

TEST(Formats, TooLittleGainIsNotWorthTwoReformats)
{
    GraphMaker m;
    chainOfSums(m);
    Built const b = build(m, linearAndLast(1, 1, 1, 0.95)); // 5 * 0.05 < 2 * 0.24
    EXPECT_EQ(b.count("reformat"), 0);
    check(b);
}

// Layers alone are timed with errors: the assignments that are nearly as good are there for a contest of whole engines.
TEST(Formats, TheNearestAssignmentsInTheirOrder)
{
    GraphMaker m;
    chainOfSums(m);
    Provider const provider = linearAndLast(1, 1, 1, 1);
    ops::TacticProvider const* const providers[] = {&provider};
    tune::Options options;
    options.providers = providers;
    auto times = [](ops::Problem const& p, std::vector<ops::Formats> const& formats) {
        std::vector<Result<double>> list;
        for (ops::Formats const& f : formats)
            list.push_back(p.node->op == &ops::elementwise::def() ? f.outputs[0] == kLast ? 9.9 : 10.0 : 0.4);
        return list;
    };
    std::vector<double> costs;
    std::set<std::string> texts;
    int near = 0;
    for (int i = 0; i <= near + 1; ++i) {
        auto const g = m.g.clone();
        auto const block = runtime::outlineBlock(*g);
        auto const shapes = runtime::resolve(*block, {{ir::extentsOf(g->inputs[0]->shape), true, {}}});
        ASSERT_TRUE(shapes.ok());
        auto const s = builder::assignFormats(*g, *block, **shapes, **shapes, options,
                                              {builder::FormatPolicy::kLeastTime, i}, times, {});
        ASSERT_TRUE(s.ok()) << s.error().message;
        near = s->near;
        if (i > near) { // there is none: the best
            EXPECT_EQ(s->microseconds, costs[0]);
            break;
        }
        costs.push_back(s->microseconds);
        texts.insert(ir::print(*g));
    }
    ASSERT_EQ(near, 1);
    EXPECT_NEAR(costs[0], 50, 1e-9);
    EXPECT_NEAR(costs[1], 50.3, 1e-9); // whichever layer leaves its format, all do: two reformats, five times 0.1
    EXPECT_EQ(texts.size(), 2u);
}

TEST(Formats, PoliciesAreObeyed)
{
    for (auto policy : {builder::FormatPolicy::kLinear, builder::FormatPolicy::kChannelsLast}) {
        GraphMaker m;
        chainOfSums(m);
        bool const linear = policy == builder::FormatPolicy::kLinear;
        Built const b = build(m, linear ? linearAndLast(1, 1, 0.01, 0.01) : linearAndLast(0.01, 0.01, 1, 1), policy);
        EXPECT_EQ(b.count("reformat"), linear ? 0 : 2);
        check(b);
    }
}

// Two readers of one value want it in another format: one copy serves both, and it is counted once. Each reader alone
// would gain too little.
TEST(Formats, ReadersShareACopy)
{
    GraphMaker m;
    ir::Value* x = m.input("x", image());
    ir::Value *a = relu(m, x, "a"), *b = relu(m, x, "b"), *c = relu(m, x, "c");
    m.output(a);
    m.output(b);
    m.output(c);
    Provider p;
    p.list.push_back(std::make_unique<Anywhere>("test_linear", kLinear, kLinear, 1, 1));
    p.list.push_back(std::make_unique<Anywhere>("test_from_last", kLast, kLinear, 0.85, 1)); // 3 * 0.15 > 0.24
    Built const built = build(m, p);
    EXPECT_EQ(built.count("reformat"), 1);
    check(built);
}

// The value is a graph output and is read inside: the output is a copy, inside it stays as it was made.
TEST(Formats, OutputThatIsReadInside)
{
    GraphMaker m;
    ir::Value* x = m.input("x", image());
    ir::Value* a = sum(m, x, x, "a");
    ir::Value* b = sum(m, a, a, "b");
    m.output(a, "inner");
    m.output(sum(m, b, a, "c"), "outer");
    Built const built = build(m, linearAndLast(1, 1, 0.1, 0.1));
    EXPECT_EQ(built.count("reformat"), 3);
    EXPECT_EQ(built.engine->graph().outputs[0]->name, "inner");
    check(built);
}

TEST(Formats, InsideALoop)
{
    GraphMaker m, condition, body;
    ir::Value* i = m.input("i", {}, DataType::kInt32);
    ir::Value* x = m.input("x", image());
    for (GraphMaker* r : {&condition, &body}) {
        r->input("i", {}, DataType::kInt32);
        r->input("x", image());
    }
    ir::Value* limit = condition.constant("limit", {}, {3}, DataType::kInt32);
    condition.output(condition.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kLess),
                                   {condition.g.inputs[0], limit}, "less"));
    ir::Value* one = body.constant("one", {}, {1}, DataType::kInt32);
    body.output(sum(body, body.g.inputs[0], one, "next"));
    ir::Value* s = sum(body, body.g.inputs[1], body.g.inputs[1], "s");
    body.output(sum(body, s, relu(body, s, "r"), "t"));
    std::vector<std::unique_ptr<ir::Graph>> regions;
    regions.push_back(condition.take());
    regions.push_back(body.take());
    auto attrs = ops::loop::def().makeAttrs();
    static_cast<ops::loop::Attrs&>(*attrs).carried = 2;
    ir::Node* loop = m.addNode(ops::loop::def(), std::move(attrs), {i, x, nullptr}, "loop", std::move(regions));
    m.output(loop->outputs[1], "y");
    Built const built = build(m, linearAndLast(1, 1, 0.1, 0.1));
    ir::Graph const& inside = *built.engine->graph().nodes[0]->regions[1];
    EXPECT_TRUE(
        std::any_of(inside.values().begin(), inside.values().end(), [](auto const& v) { return v->format == kLast; }));
    check(built);
}

// Whatever the costs say, the engine computes what the graph says.
TEST(Formats, RandomGraphsComputeTheSame)
{
    int reformats = 0;
    for (unsigned seed = 0; seed < 40; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 random(seed);
        auto cost = [&] { return double(1 + random() % 100) / 100; };
        Provider p;
        for (Format in : {kLinear, kLast})
            for (Format out : {kLinear, kLast})
                p.list.push_back(std::make_unique<Anywhere>("test_any", in, out, cost(), cost()));
        GraphMaker m;
        std::vector<ir::Value*> values{m.input("x", image()), m.input("z", image())};
        for (int n = 0; n < 12; ++n) {
            ir::Value *a = values[random() % values.size()], *b = values[random() % values.size()];
            std::string const name = "n" + std::to_string(n);
            values.push_back(random() % 3 ? sum(m, a, b, name) : relu(m, a, name));
        }
        m.output(values.back(), "last");
        m.output(values[values.size() / 2], "middle");
        Built const built = build(m, p);
        reformats += built.count("reformat");
        check(built);
    }
    EXPECT_GT(reformats, 20);
}

} // namespace tw::test
