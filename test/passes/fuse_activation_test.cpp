// SPDX-License-Identifier: Apache-2.0
#include "nodes.h"
#include "ops/convolution/op.h"

namespace tw::test {

namespace {

ir::Value* convolution(GraphMaker& m, ir::Value* x, std::string const& name, bool bias = true)
{
    auto a = ops::convolution::Attrs::plain(2);
    a.prePadding = a.postPadding = {1, 1};
    std::vector<ir::Value*> in{x, m.constant(name + ".w", {3, 3, 3, 3})};
    if (bias)
        in.push_back(m.constant(name + ".b", {3}));
    return m.add(ops::convolution::def(), a, in, name);
}

} // namespace

TEST(FuseActivation, EveryKindBehindAConvolution)
{
    for (int k = 0; k < ops::activation::kKindCount; ++k) {
        GraphMaker m;
        m.output(activation(m, convolution(m, image(m), "conv1", k % 2 == 0), "act1", Kind(k)), "y");
        checkPass(m.g, passes::fuseActivation, true);
        EXPECT_EQ(nodesOf(m.g), "conv1 + act1:convolution");
        EXPECT_EQ(m.g.nodes[0]->layers, (std::vector<std::string>{"conv1", "act1"}));
        EXPECT_EQ(nodesOf(*m.g.nodes[0]->body), "conv1:convolution, act1:activation");
        checkBody(*m.g.nodes[0]);
    }
}

namespace {

ir::Value* clip(GraphMaker& m, ir::Value* x, float low, float high)
{
    return m.add(ops::activation::def(), ops::activation::Attrs(Kind::kClip, low, high), {x}, "clip");
}

// What several nodes compute on `x` with a gate: all ways to write it.
using Write = ir::Value* (*)(GraphMaker&, ir::Value*);
struct Written
{
    ops::FusedKind kind;
    Write write;
};
Written const kProducts[] = {
    {ops::FusedKind::kSwish,
     [](GraphMaker& m, ir::Value* x) {
         return binary(m, Operation::kProd, x, activation(m, x, "gate", Kind::kSigmoid), "mul");
     }},
    {ops::FusedKind::kSwish,
     [](GraphMaker& m, ir::Value* x) {
         return binary(m, Operation::kProd, activation(m, x, "gate", Kind::kSigmoid), x, "mul");
     }},
    {ops::FusedKind::kHardSwish,
     [](GraphMaker& m, ir::Value* x) {
         return binary(m, Operation::kProd, x, activation(m, x, "gate", Kind::kHardSigmoid), "mul");
     }},
    {ops::FusedKind::kHardSwish,
     [](GraphMaker& m, ir::Value* x) {
         ir::Value* gate = clip(m, sum(m, x, number(m, "three", 3), "add"), 0, 6);
         return binary(m, Operation::kProd, x, binary(m, Operation::kDiv, gate, number(m, "six", 6), "div"), "mul");
     }},
    {ops::FusedKind::kHardSwish,
     [](GraphMaker& m, ir::Value* x) {
         ir::Value* gate = clip(m, sum(m, number(m, "three", 3), x, "add"), 0, 6);
         ir::Value* product = binary(m, Operation::kProd, gate, x, "mul");
         return binary(m, Operation::kProd, number(m, "sixth", 1.0f / 6), product, "scale");
     }},
};

} // namespace

TEST(FuseActivation, Products)
{
    for (Written const& p : kProducts) {
        GraphMaker m;
        m.output(p.write(m, convolution(m, image(m), "conv1")), "y");
        checkPass(m.g, passes::fuseActivation, true);
        ASSERT_EQ(m.g.nodes.size(), 1u) << nodesOf(m.g);
        auto const& f = m.g.nodes[0]->attrsAs<ops::convolution::Attrs>().epilogue.activation;
        EXPECT_EQ(f.kind, int(p.kind));
        checkBody(*m.g.nodes[0]);
    }
}

TEST(FuseActivation, ProductsThatAreNone)
{
    auto with = [](char const* nodes, auto change) {
        GraphMaker m;
        change(m, convolution(m, image(m), "conv1"));
        NullLog log;
        ASSERT_TRUE(passes::fuseActivation(m.g, passes::PassContext{{}, log}).ok());
        EXPECT_EQ(nodesOf(m.g), nodes);
    };
    with("conv1:convolution, gate:activation, mul:elementwise", [](GraphMaker& m, ir::Value* y) { // the gate is read
        ir::Value* gate = activation(m, y, "gate", Kind::kSigmoid);
        m.output(binary(m, Operation::kProd, y, gate, "mul"), "y");
        m.output(gate, "z");
    });
    with("conv1:convolution, gate:activation, mul:elementwise", [](GraphMaker& m, ir::Value* y) { // no gate
        m.output(binary(m, Operation::kProd, y, activation(m, y, "gate", Kind::kTanh), "mul"), "y");
    });
    with("conv1:convolution, gate:activation, mul:elementwise, relu:activation", [](GraphMaker& m, ir::Value* y) {
        m.output(binary(m, Operation::kProd, y, activation(m, y, "gate", Kind::kSigmoid), "mul"), "y");
        m.output(activation(m, y, "relu"), "z"); // a third reader
    });
    with("conv1:convolution, add:elementwise, clip:activation, mul:elementwise, scale:elementwise",
         [](GraphMaker& m, ir::Value* y) { // 5 is not 6
             ir::Value* gate = clip(m, sum(m, y, number(m, "three", 3), "add"), 0, 6);
             ir::Value* product = binary(m, Operation::kProd, gate, y, "mul");
             m.output(binary(m, Operation::kDiv, product, number(m, "five", 5), "scale"), "y");
         });
}

TEST(FuseActivation, Residual)
{
    for (bool bias : {false, true})
        for (bool first : {false, true}) {
            GraphMaker m;
            ir::Value* x = image(m);
            ir::Value* y = convolution(m, x, "conv1", bias);
            m.output(activation(m, first ? sum(m, x, y, "add") : sum(m, y, x, "add"), "relu"), "y");
            checkPass(m.g, passes::fuseActivation, true);
            EXPECT_EQ(nodesOf(m.g), "conv1 + add + relu:convolution");
            checkBody(*m.g.nodes[0]);
        }
}

TEST(FuseActivation, TheLaterOfTwoConvolutionsTakesTheSum)
{
    GraphMaker m;
    ir::Value* x = image(m);
    ir::Value* a = convolution(m, x, "conv1");
    ir::Value* b = convolution(m, activation(m, x, "relu0"), "conv2");
    m.output(sum(m, a, b, "add"), "y");
    checkPass(m.g, passes::fuseActivation, true);
    EXPECT_EQ(nodesOf(m.g), "conv1:convolution, relu0:activation, conv2 + add:convolution");
}

TEST(FuseActivation, MatrixProducts)
{
    using enum ops::matrix_multiply::MatrixOperation;
    for (bool transposed : {false, true})
        for (int parts = 1; parts < 4; ++parts) { // bias, activation, both
            GraphMaker m;
            ops::matrix_multiply::Attrs a;
            a.b = transposed ? kTranspose : kNone;
            ir::Value* w = m.constant("w", transposed ? Extents{1, 5, 4} : Extents{1, 4, 5});
            ir::Value* y = m.add(ops::matrix_multiply::def(), a, {m.input("x", {ir::Dim::symbol("N"), 3, 4}), w}, "mm");
            if (parts & 1)
                y = sum(m, m.constant("bias", {1, 1, 5}), y, "add");
            if (parts & 2)
                y = activation(m, y, "sigmoid", Kind::kSigmoid);
            m.output(y, "y");
            checkPass(m.g, passes::fuseActivation, true);
            std::string const name = std::string("mm") + (parts & 1 ? " + add" : "") + (parts & 2 ? " + sigmoid" : "");
            EXPECT_EQ(nodesOf(m.g), name + ":matrix_multiply");
            checkBody(*m.g.nodes[0]);
        }
}

TEST(FuseActivation, ResidualOfAMatrixProduct)
{
    for (bool bias : {false, true})
        for (bool first : {false, true}) {
            GraphMaker m;
            ir::Value* r = m.input("r", {ir::Dim::symbol("N"), 3, 5});
            ir::Value* y = m.add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs{},
                                 {m.input("x", {ir::Dim::symbol("N"), 3, 4}), m.constant("w", {1, 4, 5})}, "mm");
            if (bias)
                y = sum(m, y, m.constant("bias", {1, 1, 5}), "add");
            m.output(activation(m, first ? sum(m, r, y, "plus") : sum(m, y, r, "plus"), "relu"), "y");
            checkPass(m.g, passes::fuseActivation, true);
            EXPECT_EQ(nodesOf(m.g), std::string(bias ? "mm + add" : "mm") + " + plus + relu:matrix_multiply");
            checkBody(*m.g.nodes[0]);
        }
}

TEST(FuseActivation, DeconvolutionAndFullyConnected)
{
    GraphMaker m;
    auto a = ops::convolution::Attrs::plain(2, true);
    a.strides = {2, 2};
    ir::Value* y = m.add(ops::convolution::def(), a, {image(m), m.constant("w", {3, 4, 3, 3})}, "deconv");
    m.output(activation(m, y, "relu1"), "y");
    ir::Value* z = m.input("z", ir::shapeOf({2, 3, 4, 5}));
    z = m.add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs::fullyConnected(),
              {z, m.constant("v", {7, 60}), m.constant("b", {7})}, "fc");
    m.output(activation(m, z, "tanh1", Kind::kTanh), "z_out");
    checkPass(m.g, passes::fuseActivation, true);
    EXPECT_EQ(nodesOf(m.g), "deconv + relu1:convolution, fc + tanh1:matrix_multiply");
    for (auto const& n : m.g.nodes)
        checkBody(*n);
}

TEST(FuseActivation, ReasonsNotTo)
{
    auto with = [](auto change) {
        GraphMaker m;
        change(m, convolution(m, image(m), "conv1"));
        checkPass(m.g, passes::fuseActivation, false);
    };
    with([](GraphMaker& m, ir::Value* y) { // others read the convolution
        m.output(activation(m, y, "relu"), "y");
        m.output(y, "z");
    });
    with([](GraphMaker& m, ir::Value* y) { m.output(sum(m, y, y, "twice"), "y"); });
    with([](GraphMaker& m, ir::Value* y) { // broadcast by the sum
        m.output(sum(m, y, m.constant("row", {1, 1, 1, 5}), "add"), "y");
    });
    with([](GraphMaker& m, ir::Value* y) { // wishes differ
        ir::Value* z = activation(m, y, "relu");
        y->producer->precision = {DataType::kHalf, true};
        z->producer->precision = {DataType::kFloat, true};
        m.output(z, "y");
    });
    GraphMaker m; // the sum's constant is no row
    ir::Value* product = m.add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs{},
                               {m.input("x", ir::shapeOf({3, 4})), m.constant("w", {4, 5})}, "mm");
    m.output(sum(m, product, m.constant("column", {3, 1}), "add"), "y");
    checkPass(m.g, passes::fuseActivation, false);
}

namespace {

// Parts of GELU as exporters order them.
class GeluMaker : public GraphMaker
{
public:
    DataType const type;

    explicit GeluMaker(DataType t = DataType::kFloat) : type(t) {}
    ir::Value* apply(Operation op, ir::Value* a, ir::Value* b)
    {
        return add(ops::elementwise::def(), ops::elementwise::Attrs(op), {a, b}, "n" + std::to_string(g.nodes.size()));
    }
    ir::Value* number(double v)
    {
        return constant("c" + std::to_string(g.nodes.size()) + "." + std::to_string(v), {1, 1}, {v}, type);
    }
    ir::Value* product()
    {
        ir::Value* y = add(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs{},
                           {input("x", {ir::Dim::symbol("N"), 4}, type), constant("w", {4, 5}, {}, type)}, "mm");
        return sum(*this, y, constant("bias", {1, 5}, {}, type), "add");
    }
    ir::Value* erf(ir::Value* x)
    {
        return add(ops::unary::def(), ops::unary::Attrs(ops::unary::Operation::kErf), {x}, "erf");
    }
    // One node with that activation. In FP16 the nodes round what the activation does not.
    void expect(ops::FusedKind kind)
    {
        PassCheck check;
        check.tolerance = type == DataType::kHalf ? 4e-3 : 1e-5;
        checkPass(g, passes::fuseActivation, true, check);
        ASSERT_EQ(g.nodes.size(), 1u) << nodesOf(g);
        EXPECT_EQ(g.nodes[0]->attrsAs<ops::matrix_multiply::Attrs>().epilogue.activation.kind, int(kind));
        if (type == DataType::kFloat)
            checkBody(*g.nodes[0]);
    }
};

} // namespace

TEST(FuseActivation, GeluByErrorFunction)
{
    for (int i = 0; i < 8; ++i) {
        int const form = i % 4;
        GeluMaker m(i < 4 ? DataType::kFloat : DataType::kHalf);
        ir::Value* x = m.product();
        ir::Value* e = form % 2 == 0 ? m.apply(Operation::kDiv, x, m.number(1.4142135))
                                     : m.apply(Operation::kProd, m.number(0.70710677), x);
        ir::Value* one = m.apply(Operation::kSum, m.erf(e), m.number(1));
        ir::Value* y = nullptr;
        if (form < 2) // PyTorch: x (1 + erf) / 2
            y = m.apply(Operation::kProd, m.apply(Operation::kProd, x, one), m.number(0.5));
        else if (form == 2) // x ((1 + erf) / 2)
            y = m.apply(Operation::kProd, x, m.apply(Operation::kProd, m.number(0.5), one));
        else // (x / 2) (1 + erf)
            y = m.apply(Operation::kProd, one, m.apply(Operation::kProd, x, m.number(0.5)));
        m.output(y, "y");
        m.expect(ops::FusedKind::kGeluErf);
    }
}

TEST(FuseActivation, GeluByTanh)
{
    for (int i = 0; i < 4; ++i) {
        int const form = i % 2;
        GeluMaker m(i < 2 ? DataType::kFloat : DataType::kHalf);
        ir::Value* x = m.product();
        ir::Value* half = m.apply(Operation::kProd, x, m.number(0.5));
        ir::Value* cube = form == 0 ? m.apply(Operation::kPow, x, m.number(3))
                                    : m.apply(Operation::kProd, x, m.apply(Operation::kProd, x, x));
        ir::Value* u = m.apply(Operation::kSum, x, m.apply(Operation::kProd, cube, m.number(0.044715)));
        u = activation(m, m.apply(Operation::kProd, u, m.number(0.7978845608028654)), "tanh", Kind::kTanh);
        m.output(m.apply(Operation::kProd, half, m.apply(Operation::kSum, u, m.number(1))), "y");
        m.expect(ops::FusedKind::kGeluTanh);
    }
}

TEST(FuseActivation, NotQuiteGelu)
{
    for (double one : {1.0, 0.99}) {
        GeluMaker m;
        ir::Value* x = m.product();
        ir::Value* e = m.erf(m.apply(Operation::kDiv, x, m.number(1.4142135)));
        ir::Value* y = m.apply(Operation::kProd, x, m.apply(Operation::kSum, e, m.number(one)));
        m.output(m.apply(Operation::kProd, y, m.number(one == 1 ? 0.4 : 0.5)), "y");
        checkPass(m.g, passes::fuseActivation, true); // product and bias alone
        EXPECT_GT(m.g.nodes.size(), 1u) << nodesOf(m.g);
    }
}

} // namespace tw::test
