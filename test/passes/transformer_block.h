// SPDX-License-Identifier: Apache-2.0
// A transformer block as exporters write it, in f32 or in f16, there with normalization and softmax in f32 between
// conversions if wanted.
#pragma once

#include <cmath>
#include <limits>

#include "nodes.h"
#include "ops/softmax/op.h"

namespace tw::test {

class TransformerBlock : public NodeMaker
{
public:
    static constexpr int64_t kWidth = 12, kHeads = 3;

    DataType type = DataType::kFloat;
    bool normInFloat = false, softmaxInFloat = false;
    bool tanhGelu = false;

    void make()
    {
        ir::Value* x = input("x", {ir::Dim::symbol("N"), ir::Dim::symbol("S"), kWidth}, type);
        ir::Value* bias = mask();
        ir::Value* h = norm(x, "ln1");
        ir::Value* q = heads(dense(h, kWidth, kWidth, "q"), {0, 2, 1, 3}, "q.h");
        ir::Value* k = heads(dense(h, kWidth, kWidth, "k"), {0, 2, 3, 1}, "k.h");
        ir::Value* v = heads(dense(h, kWidth, kWidth, "v"), {0, 2, 1, 3}, "v.h");
        ir::Value* s = apply(Operation::kDiv, product(q, k, "scores"), number(4, "root", 2), "scaled");
        s = apply(Operation::kSum, s, bias, "masked");
        ops::softmax::Attrs axis;
        axis.axis = 3;
        bool const turns = softmaxInFloat && type == DataType::kHalf;
        s = turns ? cast(s, DataType::kFloat, "softmax.in") : s;
        s = add(ops::softmax::def(), axis, {s}, "softmax");
        s = turns ? cast(s, type, "softmax.out") : s;
        ops::shuffle::Attrs merge;
        merge.firstTranspose = {0, 2, 1, 3};
        merge.hasReshape = true;
        merge.reshape = {0, 0, kWidth};
        h = add(ops::shuffle::def(), merge, {product(s, v, "context")}, "merge");
        x = apply(Operation::kSum, dense(h, kWidth, kWidth, "o"), x, "residual1");
        h = gelu(dense(norm(x, "ln2"), kWidth, 2 * kWidth, "up"));
        x = apply(Operation::kSum, dense(h, 2 * kWidth, kWidth, "down"), x, "residual2");
        output(x, "y");
    }

private:
    ir::Value* weight(std::string const& name, Extents const& dims) { return constant(name, dims, {}, type); }
    ir::Value* number(int rank, std::string const& name, double v, bool inFloat = false)
    {
        Extents ones;
        for (int i = 0; i < rank; ++i)
            ones.push(1);
        return constant(name, ones, {v}, inFloat ? DataType::kFloat : type);
    }
    ir::Value* dense(ir::Value* v, int64_t from, int64_t to, std::string const& name)
    {
        ir::Value* y = product(v, weight(name + ".w", {1, from, to}), name);
        return apply(Operation::kSum, y, weight(name + ".b", {1, 1, to}), name + ".bias");
    }
    ir::Value* heads(ir::Value* v, std::vector<int64_t> const& order, std::string const& name)
    {
        ops::shuffle::Attrs a;
        a.hasReshape = true;
        a.reshape = {0, 0, kHeads, kWidth / kHeads};
        a.secondTranspose = order;
        return add(ops::shuffle::def(), a, {v}, name);
    }
    ir::Value* norm(ir::Value* v, std::string const& name)
    {
        bool const turns = normInFloat && type == DataType::kHalf;
        v = turns ? cast(v, DataType::kFloat, name + ".in") : v;
        ir::Value* d = apply(Operation::kSub, v, mean(v, name + ".m"), name + ".d");
        ir::Value* s = mean(apply(Operation::kPow, d, number(3, name + ".2", 2, turns), name + ".s"), name + ".v");
        // PyTorch's 1e-5 where f16 holds it, BERT's 1e-12 in f32.
        double const epsilon = v->type == DataType::kHalf ? 1e-5 : 1e-12;
        s = apply(Operation::kSum, s, number(3, name + ".e", epsilon, turns), name + ".plus");
        ir::Value* r = add(ops::unary::def(), ops::unary::Attrs(ops::unary::Operation::kSqrt), {s}, name + ".root");
        ir::Value* y = apply(Operation::kDiv, d, r, name + ".q");
        y = turns ? cast(y, type, name + ".out") : y;
        y = apply(Operation::kProd, y, weight(name + ".g", {1, 1, kWidth}), name + ".y");
        return apply(Operation::kSum, y, weight(name + ".beta", {1, 1, kWidth}), name);
    }
    // (1 - mask) * lowest, as exporters of BERT write it, for a mask of ones.
    ir::Value* mask()
    {
        ir::Value* m = input("mask", {ir::Dim::symbol("N"), 1, 1, ir::Dim::symbol("S")}, DataType::kInt32);
        m = apply(Operation::kMax,
                  apply(Operation::kMin, m, constant("i1", {1, 1, 1, 1}, {1}, DataType::kInt32), "low"),
                  constant("i1b", {1, 1, 1, 1}, {1}, DataType::kInt32), "ones");
        ir::Value* inverted = apply(Operation::kSub, number(4, "one", 1), cast(m, type, "cast"), "inverted");
        double const lowest = type == DataType::kHalf ? -65504 : double(std::numeric_limits<float>::lowest());
        return apply(Operation::kProd, inverted, number(4, "lowest", lowest), "bias");
    }
    ir::Value* gelu(ir::Value* x)
    {
        if (!tanhGelu) {
            ir::Value* e = apply(Operation::kDiv, x, number(3, "sqrt2", std::sqrt(2.0)), "gelu.d");
            e = add(ops::unary::def(), ops::unary::Attrs(ops::unary::Operation::kErf), {e}, "gelu.e");
            e = apply(Operation::kSum, e, number(3, "gelu1", 1), "gelu.s");
            return apply(Operation::kProd, apply(Operation::kProd, x, e, "gelu.p"), number(3, "half", 0.5), "gelu");
        }
        ir::Value* cube = apply(Operation::kPow, x, number(3, "three", 3), "gelu.c");
        ir::Value* e = apply(Operation::kProd, cube, number(3, "c", 0.044715), "gelu.k");
        e = apply(Operation::kProd, apply(Operation::kSum, x, e, "gelu.i"), number(3, "f", 0.7978845608), "gelu.f");
        e = add(ops::activation::def(), ops::activation::Attrs(ops::activation::Kind::kTanh), {e}, "gelu.t");
        e = apply(Operation::kSum, e, number(3, "gelu1", 1), "gelu.s");
        return apply(Operation::kProd, apply(Operation::kProd, x, number(3, "half", 0.5), "gelu.h"), e, "gelu");
    }
};

} // namespace tw::test
