// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/op.h"
#include "ops/elementwise/op.h"
#include "ops/matrix_multiply/op.h"
#include "pass_test.h"
#include "quantized.h"

namespace tw::test {

namespace {

using ops::matrix_multiply::MatrixOperation;

// x [N, S, 6] -> projections -> attention -> y.
class ProjectionMaker : public GraphMaker
{
public:
    static constexpr int64_t kHeads = 2, kSize = 4, kWidth = kHeads * kSize, kInner = 6;
    ir::Value* const x = input("x", {ir::Dim::symbol("N"), ir::Dim::symbol("S"), kInner});

    ir::Value* project(ir::Value* from, std::string const& name, bool transposed, bool bias, bool biasFirst = false)
    {
        ops::matrix_multiply::Attrs a;
        a.b = transposed ? MatrixOperation::kTranspose : MatrixOperation::kNone;
        int64_t const k = from->shape.back().value();
        Extents const dims = transposed ? Extents{1, kWidth, k} : Extents{1, k, kWidth};
        ir::Value* y = add(ops::matrix_multiply::def(), a, {from, constant(name + ".w", dims)}, name);
        if (!bias)
            return y;
        ir::Value* b = constant(name + ".b", {1, 1, kWidth});
        return add(ops::elementwise::def(), ops::elementwise::Attrs(ops::elementwise::Operation::kSum),
                   biasFirst ? std::vector<ir::Value*>{b, y} : std::vector<ir::Value*>{y, b}, name + ".sum");
    }
    // Of integers: a pair for each, or one for all.
    ir::Value* projectIntegers(ir::Value* from, std::string const& name, bool transposed, int axis, double scale = 0.25)
    {
        ops::matrix_multiply::Attrs a;
        a.b = transposed ? MatrixOperation::kTranspose : MatrixOperation::kNone;
        Extents const dims = transposed ? Extents{1, kWidth, kInner} : Extents{1, kInner, kWidth};
        ir::Value* const x = scale > 0 ? dequantized(*this, from, scale, name + ".x") : from;
        return add(ops::matrix_multiply::def(), a, {x, weights(*this, dims, axis, name + ".w")}, name);
    }
    ir::Node* attend(ir::Value* q, ir::Value* k, ir::Value* v)
    {
        ops::attention::Attrs a;
        a.heads = kHeads;
        a.size = a.valueSize = a.q.headStride = a.k.headStride = a.v.headStride = kSize;
        a.scale = 0.5;
        ir::Value* y = add(ops::attention::def(), a, {q, k, v}, "attention");
        output(y, "y");
        // A body that copies the node: it must follow when inputs change.
        auto body = std::make_unique<ir::Graph>();
        body->symbols = g.symbols;
        std::vector<ir::Value*> in;
        for (ir::Value const* value : {q, k, v})
            in.push_back(body->addInput(value->name, value->type, value->shape));
        body->outputs = {body->cloneNode(*y->producer, in)->outputs[0]};
        y->producer->body = std::move(body);
        return y->producer;
    }
};

} // namespace

TEST(MergeMatmuls, Quantized)
{
    for (bool transposed : {false, true})
        for (bool isShared : {false, true}) {
            ProjectionMaker m;
            int const axis = transposed ? 1 : 2;
            ir::Value* const q = quantized(m, m.x, 0.25, "q");
            ir::Value* const x = isShared ? dequantized(m, q, 0.25, "dq") : q;
            double const scale = isShared ? 0 : 0.25;
            // The values' product stands first, with a scale for the whole.
            ir::Value* const values = m.projectIntegers(x, "v", transposed, -1, scale);
            ir::Node* const n = m.attend(m.projectIntegers(x, "q", transposed, axis, scale),
                                         m.projectIntegers(x, "k", transposed, axis, scale), values);
            checkPass(m.g, passes::mergeMatmuls, true, kCheckOnGpu);
            EXPECT_EQ(n->inputs[0], n->inputs[2]);
            checkPass(m.g, passes::fuseQuantization, true, kCheckOnGpu);
            EXPECT_EQ(nodesOf(m.g), "q:quantize, q + k + v:matrix_multiply, attention:attention");
        }
    ProjectionMaker other; // another scale
    ir::Value* const q = quantized(other, other.x, 0.25, "q");
    ir::Value* const k = quantized(other, other.x, 0.5, "p");
    other.attend(other.projectIntegers(q, "q", false, 2), other.projectIntegers(k, "k", false, 2, 0.5),
                 other.projectIntegers(q, "v", false, 2));
    checkPass(other.g, passes::mergeMatmuls, true, kCheckOnGpu);
    EXPECT_EQ(nodesOf(other.g),
              "q:quantize, p:quantize, v.x:dequantize, q.w.dq + v.w.dq:dequantize, q + v:matrix_multiply, "
              "k.x:dequantize, k.w.dq:dequantize, k:matrix_multiply, attention:attention");
}

TEST(MergeMatmuls, QueriesKeysAndValues)
{
    for (bool transposed : {false, true})
        for (int biases = 0; biases < 8; ++biases) {
            ProjectionMaker m;
            ir::Value* q = m.project(m.x, "q", transposed, biases & 1);
            ir::Value* k = m.project(m.x, "k", transposed, biases & 2, true);
            ir::Value* v = m.project(m.x, "v", transposed, biases & 4);
            ir::Node* n = m.attend(q, k, v);
            checkPass(m.g, passes::mergeMatmuls, true, kCheckOnGpu);
            EXPECT_EQ(m.g.nodes.size(), biases ? 3u : 2u) << nodesOf(m.g);
            EXPECT_EQ(n->inputs[0], n->inputs[1]);
            EXPECT_EQ(n->inputs[0], n->inputs[2]);
            EXPECT_EQ(n->inputs[0]->shape.back(), ir::Dim(3 * ProjectionMaker::kWidth));
            auto const& a = n->attrsAs<ops::attention::Attrs>();
            EXPECT_EQ(a.q.offset, 0);
            EXPECT_EQ(a.k.offset, ProjectionMaker::kWidth);
            EXPECT_EQ(a.v.offset, 2 * ProjectionMaker::kWidth);
            EXPECT_EQ(m.g.nodes[0]->name, "q + k + v");
            EXPECT_EQ(m.g.nodes[0]->layers.size(), 3u);
            ASSERT_TRUE(n->body);
            EXPECT_EQ(n->body->inputs.size(), 3u);
        }
}

TEST(MergeMatmuls, KeysAndValuesOfAnotherTensor)
{
    ProjectionMaker m;
    ir::Value* other = m.input("other", {ir::Dim::symbol("N"), ir::Dim::symbol("S"), 10});
    ir::Value* q = m.project(m.x, "q", false, true);
    ir::Node* n = m.attend(q, m.project(other, "k", false, true), m.project(other, "v", false, true));
    checkPass(m.g, passes::mergeMatmuls, true, kCheckOnGpu);
    EXPECT_EQ(m.g.nodes.size(), 5u) << nodesOf(m.g);
    EXPECT_EQ(n->inputs[1], n->inputs[2]);
    EXPECT_NE(n->inputs[0], n->inputs[1]);
    EXPECT_EQ(n->attrsAs<ops::attention::Attrs>().v.offset, ProjectionMaker::kWidth);
}

TEST(MergeMatmuls, OneProductReadTwice)
{
    ProjectionMaker m;
    ir::Value* k = m.project(m.x, "k", false, true);
    ir::Node* n = m.attend(m.project(m.x, "q", false, true), k, k);
    checkPass(m.g, passes::mergeMatmuls, true, kCheckOnGpu);
    EXPECT_EQ(m.g.nodes.size(), 3u) << nodesOf(m.g);
    EXPECT_EQ(n->attrsAs<ops::attention::Attrs>().k.offset, ProjectionMaker::kWidth);
    EXPECT_EQ(n->attrsAs<ops::attention::Attrs>().v.offset, ProjectionMaker::kWidth);
}

TEST(MergeMatmuls, RefitFollows)
{
    ProjectionMaker m;
    ir::Value* q = m.project(m.x, "q", false, true);
    ir::Value* k = m.project(m.x, "k", false, true);
    m.attend(q, k, m.project(m.x, "v", false, true));
    for (auto const& v : m.g.values())
        if (v->isConstant()) {
            auto named = std::make_shared<ir::Constant>(*v->constant);
            named->layer = named->weightsName = v->name + std::to_string(v->id);
            v->constant = named;
        }
    PassCheck refit = kCheckOnGpu;
    refit.refittable = true;
    checkPass(m.g, passes::mergeMatmuls, true, refit);
}

TEST(MergeMatmuls, LeavesAlone)
{
    auto unchanged = [](PassCheck const& check, auto change) {
        ProjectionMaker m;
        ir::Value* q = m.project(m.x, "q", false, true);
        ir::Value* k = m.project(m.x, "k", false, true);
        ir::Value* v = m.project(m.x, "v", false, true);
        m.attend(q, k, v);
        change(m, q, k, v);
        checkPass(m.g, passes::mergeMatmuls, false, check);
    };
    PassCheck cpu = kCheckOnGpu;
    cpu.target = {};
    auto nothing = [](ProjectionMaker&, ir::Value*, ir::Value*, ir::Value*) {};
    unchanged(cpu, nothing);
    // Results that others read: two of them, so that no pair is left.
    unchanged(kCheckOnGpu, [](ProjectionMaker& m, ir::Value* q, ir::Value* k, ir::Value*) {
        m.output(q, "q.out");
        m.output(k, "k.out");
    });
    unchanged(kCheckOnGpu, [](ProjectionMaker&, ir::Value* q, ir::Value* k, ir::Value* v) {
        q->producer->inputs[0]->producer->precision = {DataType::kHalf, true};
        k->producer->inputs[0]->producer->precision = {DataType::kFloat, true};
        v->producer->inputs[0]->producer->precision = {DataType::kInt8, true};
    });
}

} // namespace tw::test
