// SPDX-License-Identifier: Apache-2.0
// Loops that carry caches and write rows into them, in ways that let a cache stay where it is and in ways that do not.
#pragma once

#include "ops/append_attention/op.h"
#include "ops/cache_update/op.h"
#include "ops/elementwise/op.h"
#include "ops/fill/op.h"
#include "ops/loop/op.h"
#include "ops/scatter/op.h"
#include "ops/shuffle/op.h"
#include "support/graph_maker.h"

namespace tw::test {

using Operation = ops::elementwise::Operation;

// What the body of such a loop sees: places i32 [2], rows f32 [2, 1, 3], which double from trip to trip, two caches f32 [2, 5, 3].
struct UpdateBody
{
    GraphMaker& m;
    ir::Value *places, *rows, *a, *b;

    ir::Value* update(ir::Value* cache, char const* name, int64_t axis = 1) const
    {
        ops::cache_update::Attrs attrs;
        attrs.axis = axis;
        attrs.circular = true;
        return m.add(ops::cache_update::def(), attrs, {cache, rows, places}, name);
    }
    ir::Value* op(Operation o, ir::Value* x, ir::Value* y, char const* name) const
    {
        return m.add(ops::elementwise::def(), ops::elementwise::Attrs(o), {x, y}, name);
    }
    ir::Value* scatter(ir::Value* x, ir::Value* at, ir::Value* updates, ops::scatter::Mode mode,
                       ops::scatter::Reduction reduction, char const* name) const
    {
        ops::scatter::Attrs attrs;
        attrs.mode = mode;
        attrs.axis = 1;
        attrs.reduction = reduction;
        return m.add(ops::scatter::def(), attrs, {x, at, updates}, name);
    }
    ir::Value* reshape(ir::Value* x, std::vector<int64_t> dims, char const* name) const
    {
        ops::shuffle::Attrs attrs;
        attrs.hasReshape = true;
        attrs.reshape = std::move(dims);
        return m.add(ops::shuffle::def(), attrs, {x}, name);
    }
};
struct UpdateLoop
{
    char const* name;
    // Next values of a and b, and what is stacked; the last one may be null.
    std::vector<ir::Value*> (*next)(UpdateBody const&);
    bool aStays, bStays;
    bool aIsOverwritten = aStays; // though its next value lies elsewhere
};

inline std::vector<UpdateLoop> const& updateLoops()
{
    using V = std::vector<ir::Value*>;
    using B = UpdateBody const&;
    static std::vector<UpdateLoop> const list = {
        {"plain",
         [](B b) {
             return V{b.update(b.a, "a1"), b.update(b.b, "b1"), nullptr};
         },
         true, true},
        {"read_behind",
         [](B b) {
             V y{b.update(b.a, "a1"), b.update(b.b, "b1")};
             y.push_back(b.op(Operation::kSum, y[0], y[1], "sum"));
             return y;
         },
         true, true},
        {"read_in_front",
         [](B b) {
             ir::Value* const old = b.op(Operation::kSum, b.a, b.a, "old");
             return V{b.update(b.a, "a1"), b.b, old};
         },
         true, false},
        {"old_read_behind",
         [](B b) {
             ir::Value* const next = b.update(b.a, "a1");
             return V{next, b.update(b.b, "b1"), b.op(Operation::kSum, b.a, next, "both")};
         },
         false, true},
        {"twice",
         [](B b) {
             return V{b.update(b.update(b.a, "a1"), "a2"), b.update(b.b, "b1"), nullptr};
         },
         true, true},
        {"middle_read_behind",
         [](B b) {
             ir::Value *const first = b.update(b.a, "a1"), *const second = b.update(first, "a2");
             return V{second, b.b, b.op(Operation::kSum, first, second, "both")};
         },
         false, false, true},
        {"gathered",
         [](B b) {
             ir::Value *const a = b.update(b.a, "a1"), *const twice = b.update(a, "a2");
             return V{b.op(Operation::kSum, twice, b.b, "a3"), b.update(b.b, "b1"), nullptr};
         },
         false, true, true},
        {"stacked_and_gathered",
         [](B b) {
             ir::Value* const a = b.update(b.a, "a1");
             return V{b.op(Operation::kSum, a, b.b, "a2"), b.b, a};
         },
         false, false},
        {"followed_by_another",
         [](B b) {
             ir::Value* const a = b.update(b.a, "a1");
             return V{b.op(Operation::kSum, b.b, b.b, "a2"), b.b, b.op(Operation::kSum, a, a, "a3")};
         },
         false, false, true},
        {"followed_by_a_stacked_one",
         [](B b) {
             ir::Value *const a = b.update(b.a, "a1"), *const sum = b.op(Operation::kSum, a, b.b, "a2");
             return V{sum, b.b, sum};
         },
         false, false},
        {"views",
         [](B b) {
             ir::Value* const flat = b.reshape(b.a, {2, 5, 3}, "same");
             return V{b.reshape(b.update(flat, "a1"), {2, 5, 3}, "again"), b.update(b.b, "b1"), nullptr};
         },
         true, true},
        {"written_into_itself",
         [](B b) {
             ops::cache_update::Attrs attrs;
             attrs.axis = 1;
             attrs.circular = true;
             return V{b.m.add(ops::cache_update::def(), attrs, {b.a, b.a, b.places}, "a1"), b.update(b.b, "b1"),
                      nullptr};
         },
         false, true},
        {"attended",
         [](B b) {
             ops::append_attention::Attrs attrs;
             attrs.attention.size = attrs.attention.valueSize = 3;
             attrs.attention.lengths = true;
             attrs.keyHeadStride = attrs.valueHeadStride = 1;
             auto const cache = [&](ir::Value* x, char const* name) { return b.reshape(x, {2, 1, 5, 3}, name); };
             ir::Node const& n = *b.m.add(ops::append_attention::def(), attrs,
                                          {b.rows, cache(b.a, "keys"), cache(b.b, "values"), b.rows, b.rows, b.places,
                                           nullptr, nullptr, b.places},
                                          "attended")
                                      ->producer;
             return V{b.reshape(n.outputs[1], {2, 5, 3}, "a1"), b.reshape(n.outputs[2], {2, 5, 3}, "b1"), nullptr};
         },
         true, true},
        {"scatters",
         [](B b) {
             ir::Value* const rows = b.reshape(b.rows, {2, 3}, "flat");
             ir::Value* const a = b.scatter(b.a, b.m.constant("tuples", {2, 2}, {0, 3, 1, -1}, DataType::kInt32), rows,
                                            ops::scatter::Mode::kNd, ops::scatter::Reduction::kNone, "a1");
             return V{b.scatter(a, b.m.constant("more", {2, 2}, {0, 3, 0, 3}, DataType::kInt32), rows,
                                ops::scatter::Mode::kNd, ops::scatter::Reduction::kAdd, "a2"),
                      b.scatter(b.b, b.m.constant("places", {2, 1, 3}, {4, 0, 9, -5, 2, 2}, DataType::kInt32), b.rows,
                                ops::scatter::Mode::kElement, ops::scatter::Reduction::kNone, "b1"),
                      nullptr};
         },
         true, true},
        {"made_anew",
         [](B b) {
             ops::fill::Attrs attrs;
             attrs.dims = {30};
             return V{b.reshape(b.m.add(ops::fill::def(), attrs, {}, "numbers"), {2, 5, 3}, "a1"), b.update(b.b, "b1"),
                      b.update(b.a, "a2")};
         },
         false, true},
        {"changing_places",
         [](B b) {
             return V{b.update(b.b, "a1"), b.update(b.a, "b1"), nullptr};
         },
         false, false},
        {"handed_on",
         [](B b) {
             return V{b.update(b.a, "a1"), b.a, nullptr};
         },
         false, false},
        {"one_for_both",
         [](B b) {
             ir::Value* const next = b.update(b.a, "a1");
             return V{next, next, nullptr};
         },
         false, false},
        {"stacked",
         [](B b) {
             ir::Value* const next = b.update(b.a, "a1");
             return V{next, b.update(b.b, "b1"), next};
         },
         false, true},
        {"old_stacked",
         [](B b) {
             return V{b.update(b.a, "a1"), b.update(b.b, "b1"), b.a};
         },
         false, true},
        {"branches",
         [](B b) {
             return V{b.update(b.a, "a1"), b.update(b.a, "b1"), nullptr};
         }, // the second one comes behind the first
         false, false},
    };
    return list;
}

// What the loop begins with: inputs; values that are made for it; those, and one of them is an output, too.
enum class First
{
    kGiven,
    kMade,
    kMadeForTwo
};

// i, places, rows, a, b and up to `length` parts, of inputs of these names and `n`, how many trips.
inline void addUpdateLoop(GraphMaker& m, UpdateLoop const& kind, int64_t length, First first = First::kGiven)
{
    auto const i32 = DataType::kInt32;
    GraphMaker condition, body;
    for (GraphMaker* r : {&condition, &body, &m}) {
        r->input("i", {}, i32);
        r->input("places", ir::shapeOf({2}), i32);
        r->input("rows", ir::shapeOf({2, 1, 3}));
        r->input("a", ir::shapeOf({2, 5, 3}));
        r->input("b", ir::shapeOf({2, 5, 3}));
        r->input("n", {}, i32);
    }
    UpdateBody const see{condition, nullptr, nullptr, nullptr, nullptr};
    condition.output(see.op(Operation::kLess, condition.g.inputs[0], condition.g.inputs[5], "less"));
    auto const& in = body.g.inputs;
    UpdateBody const b{body, in[1], in[2], in[3], in[4]};
    auto const next = kind.next(b);
    body.output(b.op(Operation::kSum, in[0], body.constant("one", {}, {1}, i32), "next"));
    body.output(b.op(Operation::kSum, in[1], body.i32("steps", {1, 2}), "further"));
    body.output(b.op(Operation::kSum, in[2], in[2], "double"));
    body.output(next[0]);
    body.output(next[1]);
    auto attrs = std::make_unique<ops::loop::Attrs>();
    attrs->carried = 5;
    std::vector<ir::Value*> inputs(m.g.inputs.begin(), m.g.inputs.begin() + 5);
    for (size_t k = 3; k < 5 && first != First::kGiven; ++k)
        inputs[k] = UpdateBody{m, {}, {}, {}, {}}.op(Operation::kSum, inputs[k], inputs[k], k == 3 ? "a0" : "b0");
    if (first == First::kMadeForTwo)
        m.output(inputs[4], "first");
    inputs.push_back(nullptr);
    if (next[2]) {
        attrs->stackAxes = attrs->stackReverse = {0};
        body.output(next[2]);
        inputs.push_back(m.constant("length", {}, {double(length)}, i32));
    }
    inputs.push_back(m.g.inputs[5]);
    std::vector<std::unique_ptr<ir::Graph>> regions;
    regions.push_back(condition.take());
    regions.push_back(body.take());
    ir::Node* const n = m.addNode(ops::loop::def(), std::move(attrs), std::move(inputs), "loop", std::move(regions));
    for (size_t k = 0; k < n->outputs.size(); ++k)
        m.output(n->outputs[k], "y" + std::to_string(k));
}

inline std::vector<Tensor> updateInputs(ir::Graph const& g, int trips)
{
    auto inputs = randomInputs(g);
    inputs[0].ref().set(0, 3);
    inputs[5].ref().set(0, 3 + trips);
    return inputs;
}

} // namespace tw::test
