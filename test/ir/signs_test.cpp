// SPDX-License-Identifier: Apache-2.0
// What is said of signs, against what the references compute of inputs of both signs.
#include "ir/signs.h"

#include <gtest/gtest.h>

#include "interp/interp.h"
#include "ir/text.h"
#include "tactic/registry.h"
#include "tune/check.h"

namespace tw::ir {

namespace {

struct Told
{
    char const* nodes; // of %0 "x" and %1 "z", f32[2,4]; the last value's number follows
    int last;
    bool isNonNegative;
};

constexpr Told kTold[] = {
    {R"(node 0 "a" activation(%0) {kind = 0, alpha = 0, beta = 0} -> %2 "y" f32[2,4])", 2, true},
    {R"(node 0 "a" activation(%0) {kind = 1, alpha = 0, beta = 0} -> %2 "y" f32[2,4])", 2, true},
    {R"(node 0 "a" activation(%0) {kind = 2, alpha = 0, beta = 0} -> %2 "y" f32[2,4])", 2, false},
    {R"(node 0 "a" activation(%0) {kind = 8, alpha = 0, beta = 6} -> %2 "y" f32[2,4])", 2, true},
    {R"(node 0 "a" activation(%0) {kind = 8, alpha = -1, beta = 6} -> %2 "y" f32[2,4])", 2, false},
    {R"(node 0 "a" activation(%0) {kind = 0, alpha = 0, beta = 0} -> %2 "a" f32[2,4]
        node 1 "b" activation(%1) {kind = 1, alpha = 0, beta = 0} -> %3 "b" f32[2,4]
        node 2 "c" concatenation(%2, %3) {axis = 0} -> %4 "y" f32[4,4])",
     4, true},
    {R"(node 0 "a" activation(%0) {kind = 0, alpha = 0, beta = 0} -> %2 "a" f32[2,4]
        node 1 "c" concatenation(%2, %1) {axis = 0} -> %3 "y" f32[4,4])",
     3, false},
    {R"(node 0 "s" softmax(%0) {axis = 1, log = 0} -> %2 "y" f32[2,4])", 2, true},
    {R"(node 0 "s" softmax(%0) {axis = 1, log = 1} -> %2 "y" f32[2,4])", 2, false},
    // x0 * x0, x0 * x1, max(x0, |x1|).
    {R"(node 0 "p" pointwise(%0) {steps = [3, 0, 0, 0], parameters = [0, 0], inputs = [0, 0], output_type = 0}
            -> %2 "y" f32[2,4])",
     2, true},
    {R"(node 0 "p" pointwise(%0, %1) {steps = [3, 0, 1, 0], parameters = [0, 0], inputs = [0, 0, 0, 0], output_type = 0}
            -> %2 "y" f32[2,4])",
     2, false},
    {R"(node 0 "p" pointwise(%0, %1) {steps = [14, 1, 0, 0, 5, 0, 2, 0], parameters = [0, 0, 0, 0], inputs = [0, 0, 0, 0], output_type = 0}
            -> %2 "y" f32[2,4])",
     2, true},
    // A sum without an end tells nothing, one with a ReLU all.
    {R"(const %2 "w" f32[4,4] = [1, -1, 1, 1, -1, 1, 1, 1, 1, -1, 1, 1, 1, 1, -1, 1]
        node 0 "m" matrix_multiply(%0, %2) {a = 0, b = 0, activation = -1, alpha = 0, beta = 0, epsilon = 0.00001, connected = 0, gated = 0, output_type = -1}
            -> %3 "y" f32[2,4])",
     3, false},
    {R"(const %2 "w" f32[4,4] = [1, -1, 1, 1, -1, 1, 1, 1, 1, -1, 1, 1, 1, 1, -1, 1]
        node 0 "m" matrix_multiply(%0, %2) {a = 0, b = 0, activation = 0, alpha = 0, beta = 0, epsilon = 0.00001, connected = 0, gated = 0, output_type = -1}
            -> %3 "y" f32[2,4])",
     3, true},
};

TEST(Signs, AreThoseOfTheReferences)
{
    for (Told const& t : kTold) {
        std::string const text =
            std::string("graph \"g\" fused {\n input %0 \"x\" f32[2,4]\n input %1 \"z\" f32[2,4]\n ") + t.nodes +
            "\n output %" + std::to_string(t.last) + "\n}\n";
        SCOPED_TRACE(text);
        auto g = parse(text, ops::find);
        ASSERT_TRUE(g.ok()) << g.error().message;
        ir::Value const& y = *(*g)->outputs[0];
        EXPECT_EQ(Signs().isNonNegative(y), t.isNonNegative);
        bool isBelow = false;
        for (uint64_t seed = 0; seed < 20; ++seed) {
            Tensor x(DataType::kFloat, {2, 4}), z(DataType::kFloat, {2, 4});
            tune::fillRandom(x.ref(), {-3, 3, false, false}, seed);
            tune::fillRandom(z.ref(), {-3, 3, false, false}, seed + 100);
            auto const made = interp::run(**g, {x.ref(), z.ref()});
            ASSERT_TRUE(made.ok()) << made.error().message;
            for (int64_t i = 0; i < (*made)[0].ref().count(); ++i)
                isBelow = isBelow || (*made)[0].ref().get(i) < 0;
        }
        EXPECT_EQ(isBelow, !t.isNonNegative);
    }
}

// A chain of any length ends somewhere.
TEST(Signs, OfLongChainsAreUnknown)
{
    Graph g;
    Value* v = g.addInput("x", DataType::kFloat, {Dim(1)});
    auto add = [&](char const* op, std::vector<Value*> inputs) {
        OpDef const& def = *ops::find(op);
        auto node = g.addNode(def, def.makeAttrs(), std::move(inputs), op);
        ASSERT_TRUE(node.ok()) << node.error().message;
        v = (*node)->outputs[0];
    };
    add("activation", {v}); // ReLU
    for (int i = 0; i < 40; ++i)
        add("elementwise", {v, v}); // of a sum: 2^40 ways
    EXPECT_FALSE(Signs().isNonNegative(*v));
}

} // namespace

} // namespace tw::ir
