// SPDX-License-Identifier: Apache-2.0
// Network inputs and outputs in every public format, on the device of the test, and graphs whose formats another device
// chose.
#include "engine_run.h"
#include "ops/activation/op.h"
#include "ops/elementwise/op.h"
#include "runtime/retarget.h"
#include "tactic/convert_format.h"

namespace tw::test {

namespace {

using ops::activation::Kind;

// y = tanh(x) + x, z = relu(y): x is read twice, y is read on.
struct Network
{
    GraphMaker m;
    std::unique_ptr<ir::Graph> graph;

    Network(DataType type, Extents const& dims)
    {
        ir::Shape shape;
        for (int64_t d : dims)
            shape.push_back(d);
        ir::Value* x = m.g.addInput("x", type, shape);
        ir::Value* t = m.add(ops::activation::def(), ops::activation::Attrs(Kind::kTanh), {x}, "tanh");
        ir::Value* y =
            m.add(ops::elementwise::def(), ops::elementwise::Attrs(ops::elementwise::Operation::kSum), {t, x}, "sum");
        y->name = "y";
        ir::Value* z = m.add(ops::activation::def(), ops::activation::Attrs(Kind::kRelu), {y}, "relu");
        z->name = "z";
        m.g.outputs = {y, z};
        graph = m.take();
    }
};

Tensor inFormat(TensorRef const& t, Format f)
{
    Tensor packed(t.type, t.dims, f);
    std::memset(packed.data(), 0x5a, size_t(packed.ref().sizeBytes())); // in the gaps: nobody may depend on it
    ops::convertFormat(t, packed.ref());
    return packed;
}

void expectZeroGaps(TensorRef const& t)
{
    for (ops::Gap const& g : ops::gapsOf(t))
        for (int64_t row = 0; row < g.rows; ++row)
            for (int64_t i = 0; i < g.width; ++i)
                ASSERT_EQ(t.get(g.begin + row * g.pitch + i), 0) << "padding";
}

// The engine's outputs, in its formats, are those of the network.
void check(Network const& n, std::shared_ptr<runtime::Engine const> engine)
{
    std::vector<Tensor> const inputs = randomInputs(*n.graph);
    auto want = interp::run(*n.graph, refsOf(inputs));
    ASSERT_TRUE(want.ok()) << want.error().message;
    runtime::Context context(engine);
    context.setProfile(0);
    Tensor const x = inFormat(inputs[0].ref(), engine->graph().inputs[0]->format);
    auto got = runEngine(context, {x.ref()});
    ASSERT_TRUE(got.ok()) << got.error().message;
    double const tolerance = n.graph->inputs[0]->type == DataType::kHalf ? 2e-3 : 1e-5;
    for (size_t i = 0; i < want->size(); ++i) {
        TensorRef const& out = got->outputs[i];
        EXPECT_EQ(out.format, engine->graph().outputs[i]->format);
        Tensor linear(out.type, out.dims);
        ops::convertFormat(out, linear.ref());
        EXPECT_EQ(compare(linear.ref(), (*want)[i].ref(), ops::Tolerance{tolerance, tolerance}), "") << "output " << i;
        expectZeroGaps(out);
    }
}

std::vector<Format> formatsFor(int rank)
{
    std::vector<Format> list;
    for (Format f : kFormats)
        if (f != Format::kChannelsLast && fitsRank(f, rank))
            list.push_back(f);
    return list;
}

Result<std::shared_ptr<runtime::Engine>> load(plan::Contents contents)
{
    TW_ASSIGN(std::string bytes, plan::write(contents));
    TW_ASSIGN(plan::Contents loaded, plan::read(bytes.data(), bytes.size()));
    runtime::LoadOptions options;
    options.fingerprint = "test";
    TW_ASSIGN(options.cuda, testGpu());
    return runtime::Engine::load(std::move(loaded), options);
}

TEST(RuntimeIoFormats, EveryFormat)
{
    for (DataType type : {DataType::kFloat, DataType::kHalf})
        for (Extents const& dims : {Extents{2, 13, 5, 6}, Extents{32, 3, 4}, Extents{2, 9, 2, 3, 4}})
            for (Format f : formatsFor(dims.rank)) {
                SCOPED_TRACE(std::string(nameOf(type)) + dims.str() + " " + nameOf(f));
                Network n(type, dims);
                // The outputs: one in the same format, one in another.
                auto const all = formatsFor(dims.rank);
                Format const other = all[(size_t(std::find(all.begin(), all.end(), f) - all.begin()) + 3) % all.size()];
                auto built = buildContents(*n.graph, {{}}, {}, builder::FormatPolicy::kLeastTime,
                                           {{"x", {{f}}}, {"y", {{f}}}, {"z", {{other}}}});
                ASSERT_TRUE(built.ok()) << built.error().message;
                auto engine = load(std::move(*built));
                ASSERT_TRUE(engine.ok()) << engine.error().message;
                EXPECT_EQ((*engine)->graph().inputs[0]->format, f);
                EXPECT_EQ((*engine)->graph().outputs[0]->format, f);
                EXPECT_EQ((*engine)->graph().outputs[1]->format, other);
                check(n, *engine);
            }
}

// A plan without choices for this device: what clients see stays as it was.
TEST(RuntimeIoFormats, MakeLinearKeepsWhatClientsSee)
{
    for (Format f : formatsFor(4)) {
        SCOPED_TRACE(nameOf(f));
        Network n(DataType::kFloat, {2, 13, 5, 6});
        auto built = buildContents(*n.graph, {{}}, {}, builder::FormatPolicy::kLeastTime,
                                   {{"x", {{f}}}, {"y", {{Format::kHWC}}}, {"z", {{f}}}});
        ASSERT_TRUE(built.ok()) << built.error().message;
        built->targets.clear();
        // As if kernels of that device read and wrote the formats themselves.
        ir::Graph& g = *built->graph;
        for (auto const& v : g.values())
            for (auto const& node : g.nodes)
                if (std::string_view(node->op->name) == "reformat" && node->inputs[0] == v.get() &&
                    v.get() == g.inputs[0])
                    g.replaceAllUses(node->outputs[0], v.get());
        runtime::makeLinear(g);
        ASSERT_TRUE(ir::verify(g).ok()) << ir::verify(g).error().message;
        EXPECT_EQ(g.inputs[0]->format, f);
        EXPECT_EQ(g.outputs[0]->format, Format::kHWC);
        EXPECT_EQ(g.outputs[1]->format, f);
        for (auto const& v : g.values())
            EXPECT_TRUE(v.get() == g.inputs[0] || g.isOutput(v.get()) || v->format == Format::kLinear) << v->name;
        auto engine = load(std::move(*built));
        ASSERT_TRUE(engine.ok()) << engine.error().message;
        check(n, *engine);
    }
}

} // namespace

} // namespace tw::test
