// SPDX-License-Identifier: Apache-2.0
#include "ir/text.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "ir/op_def.h"
#include "support/op_case.h"
#include "tactic/registry.h"

namespace tw::ir {

namespace {

// Compares what the text carries, member by member: not through print().
void expectEqual(Graph const& a, Graph const& b);

void expectEqual(Value const* a, Value const* b)
{
    ASSERT_EQ(a == nullptr, b == nullptr);
    if (!a)
        return;
    EXPECT_EQ(a->name, b->name);
    EXPECT_EQ(a->type, b->type);
    EXPECT_EQ(a->shape, b->shape) << a->name;
    EXPECT_EQ(a->host, b->host);
    EXPECT_EQ(a->content, b->content) << a->name;
    EXPECT_EQ(a->producerIndex, b->producerIndex);
    ASSERT_EQ(a->isConstant(), b->isConstant());
    if (!a->isConstant())
        return;
    EXPECT_EQ(a->constant->layer, b->constant->layer);
    EXPECT_EQ(a->constant->role, b->constant->role);
    EXPECT_EQ(a->constant->weightsName, b->constant->weightsName);
    size_t const bytes = size_t(extentsOf(a->shape).volume() * sizeOf(a->type));
    EXPECT_EQ(std::memcmp(a->constant->data->data(), b->constant->data->data(), bytes), 0) << a->name;
}

void expectEqual(Node const& a, Node const& b)
{
    SCOPED_TRACE(a.name);
    EXPECT_EQ(a.id, b.id);
    EXPECT_EQ(a.op, b.op);
    EXPECT_TRUE(equalAttrs(*a.attrs, *b.attrs));
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.layers, b.layers);
    EXPECT_EQ(a.precision, b.precision);
    EXPECT_EQ(a.outputTypes, b.outputTypes);
    EXPECT_EQ(a.device, b.device);
    ASSERT_EQ(a.inputs.size(), b.inputs.size());
    for (size_t i = 0; i < a.inputs.size(); ++i)
        expectEqual(a.inputs[i], b.inputs[i]);
    ASSERT_EQ(a.outputs.size(), b.outputs.size());
    for (size_t i = 0; i < a.outputs.size(); ++i) {
        expectEqual(a.outputs[i], b.outputs[i]);
        EXPECT_EQ(b.outputs[i]->producer, &b);
    }
    ASSERT_EQ(a.regions.size(), b.regions.size());
    for (size_t i = 0; i < a.regions.size(); ++i)
        expectEqual(*a.regions[i], *b.regions[i]);
    ASSERT_EQ(a.body == nullptr, b.body == nullptr);
    if (a.body)
        expectEqual(*a.body, *b.body);
}

void expectEqual(Graph const& a, Graph const& b)
{
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.form, b.form);
    EXPECT_EQ(a.symbols, b.symbols);
    ASSERT_EQ(a.inputs.size(), b.inputs.size());
    for (size_t i = 0; i < a.inputs.size(); ++i)
        expectEqual(a.inputs[i], b.inputs[i]);
    ASSERT_EQ(a.nodes.size(), b.nodes.size());
    for (size_t i = 0; i < a.nodes.size(); ++i)
        expectEqual(*a.nodes[i], *b.nodes[i]);
    ASSERT_EQ(a.outputs.size(), b.outputs.size());
    for (size_t i = 0; i < a.outputs.size(); ++i)
        expectEqual(a.outputs[i], b.outputs[i]);
}

void roundTrip(Graph const& g)
{
    std::string const text = print(g);
    auto back = parse(text, ops::find);
    ASSERT_TRUE(back.ok()) << back.error().message << "\n" << text;
    expectEqual(g, **back);
    EXPECT_EQ(print(**back), text);
}

void expectError(std::string const& text, std::string const& message)
{
    auto g = parse(text, ops::find);
    ASSERT_FALSE(g.ok()) << "want: " << message;
    EXPECT_NE(g.error().message.find(message), std::string::npos) << g.error().message;
}

// Uses every clause.
constexpr char kRich[] = R"(graph "rich \"one\"\n\x01\xff" canonical {
  symbol $7.0 0..24 bound
  symbol N 1..8
  input %0 "x" f32[N,3] content [N, 2]
  input %1 "dims" i32[2] host content [(2*N + 1), -1]
  const %2 "w" f32[3,2] = [1, -0, inf, -inf, 0x7fc00001, 1e-45] layer "fc" role 0 weights "fc.weight"
  const %3 "half" f16[3] = [0.25, 65504, 0xfe01]
  const %4 "zeros" f32[100,100] = splat 0
  const %5 "bools" b[3] = [0, 1, 2]
  node 3 "fc" matrix_multiply(%0, %2) {a = 0, b = 0, activation = -1, alpha = 0, beta = 0, epsilon = 1e-05, connected = 0, gated = 0, output_type = -1, steps = [], parameters = [], first_norm = 0, first_epsilon = 1e-05}
    layers ["fc", "bias"]
    precision f16 user
    wish 0 f32 user
    device 1:0 user
    -> %6 "y" f32[N,2]
  node 7 "find" non_zero(%6)
    layers []
    -> %7 "found" i32[2,$7.0] host
  output %7
  output %6
}
)";

} // namespace

TEST(Text, RichGraphRoundTrips)
{
    auto g = parse(std::string(kRich), ops::find);
    ASSERT_TRUE(g.ok()) << g.error().message;
    Graph const& r = **g;
    EXPECT_EQ(r.name, "rich \"one\"\n\x01\xff");
    EXPECT_EQ(r.form, Form::kCanonical);
    EXPECT_EQ(r.symbols.at("$7.0"), (Symbol{{0, 24}, true}));
    EXPECT_EQ(r.nodes[0]->layers, (std::vector<std::string>{"fc", "bias"}));
    EXPECT_EQ(r.nodes[0]->precision, (Requested<DataType>{DataType::kHalf, true}));
    EXPECT_EQ(r.nodes[0]->outputTypes[0], (Requested<DataType>{DataType::kFloat, true}));
    EXPECT_EQ(r.nodes[0]->device, (Requested<DevicePlace>{DevicePlace{DeviceKind::kDla, 0}, true}));
    EXPECT_TRUE(r.nodes[1]->layers.empty());
    EXPECT_EQ(r.nodes[1]->id, 7);
    EXPECT_EQ((*r.inputs[1]->content)[0], Dim::symbol("N") * 2 + 1);
    EXPECT_EQ(r.nodes[0]->inputs[1]->constant->role, WeightsRole::kKernel);
    uint32_t bits = 0;
    std::memcpy(&bits, r.nodes[0]->inputs[1]->constant->data->as<uint32_t>() + 4, 4);
    EXPECT_EQ(bits, 0x7fc00001u);
    EXPECT_EQ(print(r), std::string(kRich)) << "the text above is as print() writes it";
    roundTrip(r);
}

TEST(Text, EveryCaseOfEveryOpRoundTrips)
{
    int count = 0, regions = 0;
    for (OpDef const* op : ops::all()) {
        for (ops::CaseList const list = ops::casesOf(op->name); ops::Case const& c : list.cases) {
            auto made = test::makeCase(*op, c);
            ASSERT_TRUE(made.ok()) << made.error().message;
            SCOPED_TRACE((*made)->graph.name);
            roundTrip((*made)->graph);
            ++count;
            regions += int((*made)->node->regions.size());
        }
    }
    EXPECT_GT(count, 100);
    EXPECT_GT(regions, 20);
}

TEST(Text, BodiesRoundTrip)
{
    auto g = parse(R"(graph "g" fused {
      input %0 "x" f32[2,3]
      node 4 "mul + shape" shape(%0)
        body graph "inside" canonical {
          input %0 "x" f32[2,3]
          node 0 "shape" shape(%0) -> %1 "s" i32[2]
          output %1
        }
        -> %1 "s" i32[2]
      output %1 })",
                   ops::find);
    ASSERT_TRUE(g.ok()) << g.error().message;
    ASSERT_NE((*g)->nodes[0]->body, nullptr);
    roundTrip(**g);
}

TEST(Text, LargeConstantsGoToTheTable)
{
    Graph g;
    std::vector<float> v(1000);
    for (size_t i = 0; i < v.size(); ++i)
        v[i] = float(i) * 0.37f;
    g.outputs = {g.addConstant("big", DataType::kFloat, {10, 100}, v.data()),
                 g.addConstant("small", DataType::kFloat, {100}, v.data())};
    BlobTable table;
    std::string const text = print(g, &table);
    EXPECT_EQ(table.size(), 1u);
    EXPECT_LT(text.size(), 1500u);
    auto back = parse(text, ops::find, &table);
    ASSERT_TRUE(back.ok()) << back.error().message;
    expectEqual(g, **back);
    expectError(text, "is not at hand");
    roundTrip(g); // as hex
}

TEST(Text, ErrorsNameTheLine)
{
    auto in = [](std::string const& body) { return "graph \"g\" imported {\n" + body + "\n}"; };
    expectError("", "line 1: 'graph' expected");
    expectError("graph \"g\" melted { }", "form expected");
    expectError("graph \"g\" imported {", "line 1: 'symbol', 'input'");
    expectError(in("") + " more", "line 3: text behind the end");
    expectError(in("input %0 \"x\" f33[2]"), "line 2: unknown type 'f33'");
    expectError(in("input %0 \"x\" f32[2,]"), "dimension expected");
    expectError(in("input %0 \"x\" f32[1,1,1,1,1,1,1,1,1]"), "more than 8");
    expectError(in("input %0 \"x\" f32[2"), "expected");
    expectError(in("input %0 \"x\" f32[2]\ninput %0 \"y\" f32[2]"), "line 3: value %0 is made twice");
    expectError(in("input %0 \"x f32[2]"), "string without end");
    expectError(in("input %0 \"\\q\" f32[2]"), "unknown escape");
    expectError(in("input %0 \"\\xg0\" f32[2]"), "bad \\x escape");
    expectError(in("symbol N 5..1"), "range lo..hi expected");
    expectError(in("symbol N 1..2\nsymbol N 1..2"), "given twice");
    expectError(in("symbol 12 1..2"), "cannot name a symbol");
    expectError(in("const %0 \"c\" f32[2] = [1]"), "1 elements given, the shape needs 2");
    expectError(in("const %0 \"c\" f32[N] = [1]"), "static shape");
    expectError(in("const %0 \"c\" f32[-1] = [1]"), "static shape");
    expectError(in("const %0 \"c\" f32[2] = hex \"00\""), "1 bytes given, the shape needs 8");
    expectError(in("const %0 \"c\" f32[1] = hex \"0000000g\""), "hex digits");
    expectError(in("const %0 \"c\" i8[1] = [128]"), "allowed: -128 to 127");
    expectError(in("const %0 \"c\" i32[1] = [1.5]"), "i32 element expected");
    expectError(in("const %0 \"c\" f32[1] = [1e]"), "number expected");
    expectError(in("const %0 \"c\" f16[1] = [0x10000]"), "more bits");
    expectError(in("const %0 \"c\" f32[100000,100000] = splat 0"), "2^31 elements");
    expectError(in("const %0 \"c\" f32[30000,30000] = splat 0"), "splats take more than");
    expectError(in("const %0 \"c\" f32[1] = missing"), "elements expected");
    expectError(in("output %3"), "line 2: value %3 is used before it is made");
    expectError(in("input %0 \"x\" f32[2]\nnode 0 \"n\" frobnicate(%0) -> %1 \"y\" f32[2]"), "unknown op 'frobnicate'");
    expectError(in("input %0 \"x\" f32[2]\nnode 0 \"n\" shape(%0) {k = 1} -> %1 \"y\" i32[1]"), "no attribute 'k'");
    expectError(in("input %0 \"x\" f32[2]\nnode 0 \"n\" shape(%0) -> %1 \"y\" i32[2]"), "inference gives i32[1]");
    expectError(in("input %0 \"x\" f32[2]\nnode 0 \"n\" shape(%0) ->"), "inference gives 1 outputs");
    expectError(in("input %0 \"x\" f32[2]\nnode 0 \"n\" shape(%0) region graph \"r\" imported { } -> %1 \"y\" i32[1]"),
                "1 regions given");
    expectError(in("input %0 \"x\" f32[2]\nnode 0 \"n\" shape() -> %1 \"y\" i32[1]"), "0 inputs given");
    expectError(in("input %0 \"x\" f32[2]\nnode 0 \"n\" shape(_) -> %1 \"y\" i32[1]"), "required input 0 is missing");
    expectError(in("input %0 \"x\" f32[2]\nnode 0 \"n\" shuffle(%0) {first_transpose = [0], first_transpose = [0]} -> "
                   "%1 \"y\" f32[2]"),
                "given twice");
    expectError(in("input %0 \"x\" f32[2]\nnode 0 \"n\" slice(%0) {start = [0], size = [5], stride = [1]} -> %1 \"y\" "
                   "f32[5]"),
                "out of the bounds");
}

TEST(Text, DeepNestingIsRefused)
{
    std::string text = "graph \"g\" imported { const %0 \"c\" b[] = [1] ";
    for (int i = 0; i < 10000; ++i)
        text += "node 0 \"n\" conditional(%0) region graph \"r\" imported { const %0 \"c\" b[] = [1] ";
    expectError(text, "nested deeper than");
}

TEST(Text, DamagedTextNeverCrashes)
{
    std::string const text = kRich;
    uint64_t const seed = 20240518;
    std::mt19937_64 random(seed);
    for (size_t cut = 0; cut < text.size(); ++cut)
        (void)parse(text.substr(0, cut), ops::find);
    static constexpr char kAlphabet[] = "()[]{}%,=\"\\ \n0919-xnfN$_#>:.";
    for (int round = 0; round < 3000; ++round) {
        std::string damaged = text;
        for (int i = 0; i <= int(random() % 3); ++i)
            damaged[random() % damaged.size()] = kAlphabet[random() % (sizeof(kAlphabet) - 1)];
        auto g = parse(damaged, ops::find);
        if (!g.ok())
            continue;
        EXPECT_TRUE(parse(print(**g), ops::find).ok()) << "seed " << seed << ", round " << round << "\n" << damaged;
    }
}

} // namespace tw::ir
