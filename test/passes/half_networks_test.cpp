// SPDX-License-Identifier: Apache-2.0
// Networks that are in f16 already are fused as those in f32 are, conversions around parts in f32 included.
#include "families/elementwise/activate.h"
#include "ops/layer_norm/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/pointwise/op.h"
#include "transformer_block.h"

namespace tw::test {

namespace {

// Without what only GPUs do to products that read the same.
Result<bool> unmerged(ir::Graph& g, passes::PassContext const& ctx)
{
    std::string const before = nodesOf(g);
    passes::Options options;
    options.disabled = {"merge_matmuls"};
    TW_TRY(passes::run(g, ctx, options));
    return nodesOf(g) != before;
}

std::string opsOf(ir::Graph const& g)
{
    std::string s;
    for (auto const& n : g.nodes)
        s += (s.empty() ? "" : " ") + std::string(n->op->name);
    return s;
}

// Bodies within bodies, too.
void checkBodyTypes(ir::Graph const& g)
{
    for (auto const& n : g.nodes) {
        if (!n->body)
            continue;
        for (size_t i = 0; i < n->inputs.size(); ++i)
            EXPECT_EQ(n->body->inputs[i]->type, n->inputs[i]->type) << n->name;
        EXPECT_EQ(n->body->outputs[0]->type, n->outputs[0]->type) << n->name;
        checkBodyTypes(*n->body);
    }
}

void checkBodies(ir::Graph const& g, ir::Bindings const& sizes)
{
    checkBodyTypes(g);
    for (auto const& n : g.nodes) {
        if (!n->body)
            continue;
        // Inside, nothing is rounded to f16 but the result.
        for (auto const& inner : n->body->nodes)
            for (ir::Value const* v : inner->outputs)
                EXPECT_TRUE(v->type != DataType::kHalf || v == n->body->outputs[0]) << n->name << ": " << inner->name;
        auto const inputs = randomInputs(*n->body, sizes);
        auto whole = interp::runNode(*n, refsOf(inputs));
        auto parts = interp::run(*n->body, refsOf(inputs));
        ASSERT_TRUE(whole.ok()) << whole.error().message;
        ASSERT_TRUE(parts.ok()) << parts.error().message;
        expectSame(refsOf(*whole), *parts, 1e-3);
    }
}

} // namespace

TEST(HalfNetworks, TransformerBlockIsFusedAsInFloat)
{
    ir::Bindings const sizes{{"N", 2}, {"S", 5}};
    for (bool tanhGelu : {false, true}) {
        TransformerBlock reference;
        reference.tanhGelu = tanhGelu;
        reference.make();
        checkPass(reference.g, wholePipeline, true, {sizes});
        std::string const wanted = opsOf(reference.g);
        EXPECT_NE(wanted.find("attention"), std::string::npos) << wanted;
        for (int islands = 0; islands < 4; ++islands)
            for (bool permitted : {false, true}) {
                TransformerBlock m;
                m.tanhGelu = tanhGelu;
                m.type = DataType::kHalf;
                m.normInFloat = islands & 1;
                m.softmaxInFloat = islands & 2;
                m.make();
                PassCheck check{sizes, false, 1e-2, permitted ? Permissions{Permission::kHalf} : Permissions{},
                                {},    kGpu};
                checkPass(m.g, unmerged, true, check);
                EXPECT_EQ(opsOf(m.g), wanted) << islands << nodesOf(m.g);
                checkBodies(m.g, sizes);
                auto known = [](ir::Graph const& g) {
                    std::vector<int32_t> kinds;
                    for (auto const& n : g.nodes)
                        if (n->op == &ops::matrix_multiply::def())
                            kinds.push_back(n->attrsAs<ops::matrix_multiply::Attrs>().epilogue.activation.kind);
                    return kinds;
                };
                EXPECT_EQ(known(m.g), known(reference.g));
            }
    }
}

// What of a block runs on a GPU, in either type.
TEST(HalfNetworks, TransformerBlockIsSevenKernelsOnAGpu)
{
    ir::Bindings const sizes{{"N", 2}, {"S", 5}};
    for (DataType type : {DataType::kFloat, DataType::kHalf}) {
        TransformerBlock m;
        m.type = type;
        m.make();
        PassCheck check{sizes, false, 1e-2, {Permission::kHalf}};
        check.target = kGpu;
        checkPass(m.g, wholePipeline, true, check);
        std::string const ops = opsOf(m.g);
        std::string const wanted = "layer_norm matrix_multiply attention matrix_multiply layer_norm "
                                   "matrix_multiply matrix_multiply";
        EXPECT_NE(ops.find(wanted), std::string::npos) << ops;
    }
}

TEST(HalfNetworks, GammaThatHalfCannotHoldKeepsFloat)
{
    GraphMaker m; // x -> f32, normalized, * gamma in f32 -> f16
    auto apply = [&](ops::elementwise::Operation op, ir::Value* a, ir::Value* b, std::string const& name) {
        return m.add(ops::elementwise::def(), ops::elementwise::Attrs(op), {a, b}, name);
    };
    auto mean = [&](ir::Value* x, std::string const& name) {
        ops::reduce::Attrs a;
        a.kind = ops::reduce::Kind::kAvg;
        a.axes = 2;
        a.keepDims = true;
        return m.add(ops::reduce::def(), a, {x}, name);
    };
    using enum ops::elementwise::Operation;
    ir::Value* x = m.add(ops::identity::def(), ops::identity::Attrs(DataType::kFloat),
                         {m.input("x", {3, 8}, DataType::kHalf)}, "in");
    ir::Value* d = apply(kSub, x, mean(x, "mean"), "d");
    ir::Value* v = apply(kSum, mean(apply(kProd, d, d, "square"), "v"), m.constant("e", {1, 1}, {1e-5}), "plus");
    ir::Value* y =
        apply(kDiv, d, m.add(ops::unary::def(), ops::unary::Attrs(ops::unary::Operation::kSqrt), {v}, "r"), "q");
    y = apply(kProd, y, m.constant("gamma", {1, 8}, {1.0 + 0x1p-20}), "scaled");
    m.output(m.add(ops::identity::def(), ops::identity::Attrs(DataType::kHalf), {y}, "out"), "y");
    checkPass(m.g, passes::fuseLayerNorm, true, {{}, false, 1e-3});
    EXPECT_EQ(opsOf(m.g), "identity layer_norm identity");
}

TEST(HalfNetworks, PointwiseChainsInHalfAndMixed)
{
    GraphMaker m;
    auto apply = [&](ops::elementwise::Operation op, ir::Value* a, ir::Value* b, std::string const& name) {
        return m.add(ops::elementwise::def(), ops::elementwise::Attrs(op), {a, b}, name);
    };
    using enum ops::elementwise::Operation;
    ir::Value *x = m.input("x", {3, 8}, DataType::kHalf), *z = m.input("z", {3, 8}, DataType::kHalf);
    ir::Value* wide = m.add(ops::identity::def(), ops::identity::Attrs(DataType::kFloat), {z}, "wide");
    ir::Value* y = apply(kProd, x, m.constant("s", {1, 1}, {2}, DataType::kHalf), "twice");
    y = apply(kSum, y, wide, "sum"); // f16 + f32
    m.output(apply(kMax, y, m.constant("0", {1, 1}, {0}), "relu"), "y");
    auto copy = m.g.clone();
    checkPass(m.g, passes::fusePointwise, true, {{}, false, 1e-3});
    EXPECT_EQ(opsOf(m.g), "identity pointwise");
    // On a GPU the conversion joins in: it costs no pass over memory of its own.
    checkPass(*copy, passes::fusePointwise, true, {{}, false, 1e-3, {}, {}, kGpu});
    EXPECT_EQ(opsOf(*copy), "pointwise");
    EXPECT_EQ(copy->outputs[0]->type, DataType::kFloat);
    checkBodies(*copy, {});
}

} // namespace tw::test
