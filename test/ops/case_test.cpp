// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "interp/interp.h"
#include "ops/registry.h"
#include "ops/tactic.h"
#include "support/op_case.h"

namespace tw::test {

namespace {

// Output memory between two zones of a known pattern, shifted off the natural alignment by one element.
class GuardedBuffer
{
public:
    GuardedBuffer(int64_t bytes, int64_t elementSize)
        : bytes_(bytes), shift_(elementSize), store_(size_t(bytes + 2 * kGuard + elementSize), kPattern)
    {}
    void* data() { return store_.data() + kGuard + shift_; }
    bool intact() const
    {
        for (int64_t i = 0; i < kGuard + shift_; ++i)
            if (store_[size_t(i)] != kPattern)
                return false;
        for (size_t i = size_t(kGuard + shift_ + bytes_); i < store_.size(); ++i)
            if (store_[i] != kPattern)
                return false;
        return true;
    }

private:
    static constexpr int64_t kGuard = 256;
    static constexpr unsigned char kPattern = 0xa5;
    int64_t bytes_, shift_;
    std::vector<unsigned char> store_;
};

ops::Problem problemOf(CaseGraph const& g, std::vector<Tensor> const& want)
{
    ops::Problem p;
    p.node = g.node;
    uint32_t const shapeInputs = g.node->op->shapeInputs ? g.node->op->shapeInputs(*g.node) : 0;
    for (size_t i = 0; i < g.nodeInputs.size(); ++i) {
        TensorRef const& t = g.nodeInputs[i];
        ir::Value const* v = g.node->inputs[i];
        ops::TensorSpec spec;
        spec.type = t.type;
        spec.dims = spec.maxDims = t.dims;
        spec.constant = v && v->constant ? v->constant->data.get() : nullptr;
        if (i < 32 && (shapeInputs >> i & 1) != 0)
            spec.contents = t;
        spec.present = t.data != nullptr;
        p.inputs.push_back(spec);
    }
    for (Tensor const& t : want) {
        ops::TensorSpec spec;
        spec.type = t.type();
        spec.dims = spec.maxDims = t.dims();
        spec.present = true;
        p.outputs.push_back(spec);
    }
    return p;
}

void runTactic(CaseGraph& g, ops::Tactic const& tactic, std::vector<Tensor> const& want)
{
    ops::Problem const problem = problemOf(g, want);
    if (ops::Support s = tactic.supports(problem); !s.ok) {
        EXPECT_FALSE(s.reason.empty()) << tactic.name() << " refuses without a reason";
        return;
    }
    for (ops::Config const& config : tactic.configs(problem)) {
        auto image = tactic.build(problem, config);
        ASSERT_TRUE(image.ok()) << image.error().message;
        auto kernel = tactic.load(problem, config, *image);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        auto shapes = interp::inferConcrete(*g.node, g.nodeInputs);
        ASSERT_TRUE(shapes.ok());
        std::vector<std::unique_ptr<GuardedBuffer>> buffers;
        std::vector<TensorRef> outputs;
        for (auto const& s : *shapes) {
            TensorRef t{s.type, s.dims, nullptr};
            buffers.push_back(std::make_unique<GuardedBuffer>(t.sizeBytes(), sizeOf(t.type)));
            t.data = buffers.back()->data();
            outputs.push_back(t);
        }
        GuardedBuffer workspace((*kernel)->workspaceBytes(g.nodeInputs, outputs), 64);
        uint64_t randomState = 1;
        ops::RunArgs args{g.nodeInputs, outputs, workspace.data(), &randomState};
        auto ran = (*kernel)->run(args);
        ASSERT_TRUE(ran.ok()) << tactic.name() << ": " << ran.error().message;
        EXPECT_TRUE(workspace.intact()) << tactic.name() << " wrote outside its workspace";
        for (size_t i = 0; i < outputs.size(); ++i) {
            EXPECT_TRUE(buffers[i]->intact()) << tactic.name() << " wrote outside output " << i;
            EXPECT_EQ(compare(outputs[i], want[i].ref(), toleranceOf(*g.node, outputs[i].type)), "")
                << tactic.name() << ", output " << i;
        }
    }
}

// Storage that the op says input and output can share holds the same bytes.
void checkAliases(CaseGraph const& g, std::vector<Tensor> const& want)
{
    TensorRef const out[] = {want[0].ref()};
    for (ir::Alias const& a : g.node->op->aliases(*g.node, g.nodeInputs, std::span(out, 1))) {
        TensorRef const& in = g.nodeInputs[size_t(a.input)];
        TensorRef const &whole = a.outputInInput ? in : out[0], &part = a.outputInInput ? out[0] : in;
        ASSERT_GE(a.offset, 0);
        ASSERT_LE(a.offset + part.count(), whole.count());
        EXPECT_EQ(
            std::memcmp(whole.as<std::byte>() + a.offset * sizeOf(whole.type), part.data, size_t(part.sizeBytes())), 0)
            << "alias of input " << a.input;
    }
}

void runCase(ir::OpDef const& op, ops::Case const& c)
{
    SCOPED_TRACE(std::string(op.name) + "." + c.name);
    auto made = makeCase(op, c);
    ASSERT_TRUE(made.ok()) << made.error().message;
    CaseGraph& g = **made;
    auto verified = ir::verify(g.graph);
    EXPECT_TRUE(verified.ok()) << verified.error().message;
    uint64_t randomState = 1;
    interp::Options options;
    options.randomState = &randomState;
    auto want = interp::runNode(*g.node, g.nodeInputs, options);
    ASSERT_TRUE(want.ok()) << want.error().message;
    for (size_t i = 0; i < c.expected.size(); ++i) {
        TensorRef const& got = (*want)[i].ref();
        ASSERT_EQ(got.count(), int64_t(c.expected[i].size())) << "output " << i << " has shape " << got.dims.str();
        Tensor expected(got.type, got.dims);
        for (int64_t k = 0; k < got.count(); ++k)
            expected.ref().set(k, c.expected[i][size_t(k)]);
        EXPECT_EQ(compare(got, expected.ref(), toleranceOf(*g.node, got.type)), "") << "reference, output " << i;
    }
    if (op.aliases)
        checkAliases(g, *want);
    if (!op.cpuTactics)
        return; // control flow: the executor runs it, see test/runtime
    auto const tactics = op.cpuTactics();
    ASSERT_FALSE(tactics.empty());
    for (ops::Tactic const* t : tactics)
        runTactic(g, *t, *want);
    EXPECT_TRUE(tactics.back()->supports(problemOf(g, *want)).ok) << "the last tactic must accept everything";
}

} // namespace

// One test for each op, so that a failure names it.
class OpCases : public testing::TestWithParam<ir::OpDef const*>
{};

TEST_P(OpCases, TacticsAgreeWithReference)
{
    ir::OpDef const& op = *GetParam();
    ops::CaseList list;
    ASSERT_NE(op.cases, nullptr) << op.name << " has no cases";
    op.cases(list);
    ASSERT_FALSE(list.cases.empty());
    std::set<std::string> names;
    bool hasExpected = false;
    for (ops::Case const& c : list.cases) {
        EXPECT_TRUE(names.insert(c.name).second) << "two cases named " << c.name;
        hasExpected = hasExpected || !c.expected.empty();
        runCase(op, c);
    }
    EXPECT_TRUE(hasExpected) << op.name << " has no case with values worked out by hand";
}

INSTANTIATE_TEST_SUITE_P(All, OpCases, testing::ValuesIn(ops::all().begin(), ops::all().end()),
                         [](auto const& info) { return std::string(info.param->name); });

TEST(Registry, NamesAndTacticIdsAreUnique)
{
    std::set<std::string> names;
    std::set<uint64_t> ids;
    for (ir::OpDef const* op : ops::all()) {
        EXPECT_TRUE(names.insert(op->name).second) << op->name;
        EXPECT_EQ(ops::find(op->name), op);
        if (!op->cpuTactics)
            continue;
        for (ops::Tactic const* t : op->cpuTactics())
            EXPECT_TRUE(ids.insert(t->id()).second) << t->name();
    }
}

} // namespace tw::test
