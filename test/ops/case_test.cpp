// SPDX-License-Identifier: Apache-2.0
// Every case of every op is a test of its own, ops/<op>.<case>: each tactic against the reference; one tactic alone:
// tactics/<tactic>.<case>, where the filter asks for such a suite.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>

#include <gtest/gtest.h>

#include "device/thread_pool.h"
#include "interp/interp.h"
#include "ops/run_case.h"
#include "support/case_problem.h"
#include "tactic/convert_format.h"
#include "tactic/registry.h"
#include "tactic/rounded_factors.h"
#include "tactic/tactic.h"

namespace tw::test {

namespace {

// Memory between two zones of a known pattern, `shift` bytes after a cache line's begin: by one element where kernels
// may count on no more.
class GuardedBuffer
{
public:
    GuardedBuffer(int64_t bytes, int64_t shift)
        : bytes_(bytes), store_(size_t(bytes + 2 * kGuard + shift + kCacheLine), kPattern)
    {
        auto const at = reinterpret_cast<uintptr_t>(store_.data()) + kGuard;
        shift_ = int64_t((kCacheLine - at % kCacheLine) % kCacheLine) + shift;
    }
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
    int64_t bytes_, shift_ = 0;
    std::vector<unsigned char> store_;
};

// More workers than this machine may have CPUs: kernels must share out and choose scratch by worker.
device::ThreadPool& pool()
{
    static device::ThreadPool p(3);
    return p;
}

ops::Problem problemOf(CaseGraph const& g, std::vector<Tensor> const& want)
{
    ops::Problem p = caseProblem(g, want);
    p.threads = pool().threads();
    return p;
}

// Channels-last tensors as parts of wider ones, as joins without copies make them: other values' channels stand in
// front and after, and no kernel may touch them.
class Widened
{
public:
    static bool fits(TensorRef const& t)
    {
        return t.format == Format::kChannelsLast && t.data && t.dims[1] > 0 &&
               t.dims[1] * sizeOf(t.type) % kCacheLine == 0;
    }
    Widened(TensorRef const& t, bool copy) : line_(kCacheLine / sizeOf(t.type))
    {
        Extents wide = t.dims;
        wide[1] += 3 * line_;
        whole_ = Tensor(t.type, wide, t.format);
        std::memset(whole_.data(), kPattern, size_t(whole_.ref().sizeBytes()));
        part_ = t;
        part_.data = whole_.ref().as<std::byte>() + kCacheLine;
        part_.stride = whole_.ref().pixelStride();
        if (copy)
            ops::convertFormat(t, part_);
    }
    TensorRef const& part() const { return part_; }
    bool intact() const
    {
        auto const* bytes = whole_.ref().as<unsigned char>();
        int64_t const step = part_.stride * sizeOf(part_.type), own = part_.dims[1] * sizeOf(part_.type);
        for (int64_t i = 0; i < whole_.ref().sizeBytes(); ++i)
            if (int64_t const at = i % step - kCacheLine; (at < 0 || at >= own) && bytes[i] != kPattern)
                return false;
        return true;
    }

private:
    static constexpr unsigned char kPattern = 0xff; // NaN in f32 and f16
    int64_t line_;
    Tensor whole_;
    TensorRef part_;
};

ops::Tolerance toleranceOfTactic(ops::Tactic const& t, ir::Node const& node, DataType type)
{
    ops::Rounding const rounding = t.traits().rounding;
    ops::Tolerance tolerance = ops::toleranceFor(rounding, toleranceOf(node, type));
    if (ops::roundsFactors(rounding)) {
        // Of sums that may be several times larger than what an activation leaves of them.
        constexpr double kSlack = 4;
        tolerance.absolute *= kSlack;
    }
    return tolerance;
}

// The kernel once more on parts of wider tensors.
void runWidened(CaseGraph& g, ops::Kernel const& kernel, std::vector<TensorRef> inputs, std::vector<TensorRef> outputs,
                std::vector<Tensor> const& want, ops::Tactic const& tactic)
{
    char const* const name = tactic.name();
    std::vector<std::unique_ptr<Widened>> wide;
    for (auto* list : {&inputs, &outputs})
        for (TensorRef& t : *list)
            if (Widened::fits(t)) {
                wide.push_back(std::make_unique<Widened>(t, list == &inputs));
                t = wide.back()->part();
            }
    if (wide.empty())
        return;
    GuardedBuffer workspace(kernel.workspaceBytes(inputs, outputs), 0);
    uint64_t randomState = 1;
    auto prepared = kernel.prepare(inputs, outputs);
    ASSERT_TRUE(prepared.ok()) << prepared.error().message;
    ops::RunArgs args{inputs, outputs, workspace.data(), &randomState};
    args.prepared = prepared->get();
    auto ran = kernel.run(args);
    ASSERT_TRUE(ran.ok()) << name << ": " << ran.error().message;
    EXPECT_TRUE(workspace.intact()) << name << " wrote outside its workspace";
    for (auto const& w : wide)
        EXPECT_TRUE(w->intact()) << name << " wrote to other channels of a wider tensor";
    for (size_t i = 0; i < outputs.size(); ++i) {
        Tensor linear(outputs[i].type, outputs[i].dims);
        ops::convertFormat(outputs[i], linear.ref());
        EXPECT_EQ(compare(linear.ref(), want[i].ref(), toleranceOfTactic(tactic, *g.node, outputs[i].type)), "")
            << name << " on parts of wider tensors, output " << i;
    }
}

constexpr char kLacks[] = "needs a CPU with "; // as supportsIsa() begins

// One tactic in one combination of formats.
void runTactic(CaseGraph& g, ops::Tactic const& tactic, std::vector<Tensor> const& want, ops::Problem const& problem)
{
    if (ops::Support s = ops::supportsFormats(tactic, problem); !s.ok) {
        EXPECT_FALSE(s.reason.empty()) << tactic.name() << " refuses without a reason";
        if (s.reason.rfind(kLacks, 0) == 0) {
            ++caseCounts().skips;
            caseCounts().skippedFor.insert(s.reason.substr(std::strlen(kLacks)));
        }
        return;
    }
    std::vector<Tensor> copies;
    auto inputs = inFormats(g.nodeInputs, problem.inputs, copies);
    ASSERT_TRUE(inputs.ok()) << inputs.error().message;
    for (ops::Config const& config : tactic.configs(problem)) {
        auto image = tactic.build(problem, config);
        ASSERT_TRUE(image.ok()) << image.error().message;
        auto kernel = tactic.load(problem, config, *image);
        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        auto shapes = interp::inferConcrete(*g.node, g.nodeInputs);
        ASSERT_TRUE(shapes.ok());
        std::vector<std::unique_ptr<GuardedBuffer>> buffers;
        std::vector<TensorRef> outputs;
        for (size_t i = 0; i < shapes->size(); ++i) {
            TensorRef t{(*shapes)[i].type, (*shapes)[i].dims, nullptr, problem.outputs[i].format};
            bool const aligned = t.format != Format::kLinear; // its pixels start on cache lines
            buffers.push_back(std::make_unique<GuardedBuffer>(t.sizeBytes(), aligned ? 0 : sizeOf(t.type)));
            t.data = buffers.back()->data();
            outputs.push_back(t);
        }
        GuardedBuffer workspace((*kernel)->workspaceBytes(*inputs, outputs), 0);
        uint64_t randomState = 1;
        auto prepared = (*kernel)->prepare(*inputs, outputs);
        ASSERT_TRUE(prepared.ok()) << prepared.error().message;
        ops::RunArgs args{*inputs, outputs, workspace.data(), &randomState};
        args.prepared = prepared->get();
        args.workers = &pool().workers();
        auto ran = (*kernel)->run(args);
        Format const made = outputs.empty() ? Format::kLinear : outputs[0].format;
        std::string const name =
            std::string(tactic.name()) + (made != Format::kLinear ? std::string(" to ") + nameOf(made) : "");
        ASSERT_TRUE(ran.ok()) << name << ": " << ran.error().message;
        EXPECT_TRUE(workspace.intact()) << name << " wrote outside its workspace";
        for (size_t i = 0; i < outputs.size(); ++i) {
            EXPECT_TRUE(buffers[i]->intact()) << name << " wrote outside output " << i;
            Tensor linear(outputs[i].type, outputs[i].dims);
            ops::convertFormat(outputs[i], linear.ref());
            EXPECT_EQ(compare(linear.ref(), want[i].ref(), toleranceOfTactic(tactic, *g.node, outputs[i].type)), "")
                << name << ", output " << i;
        }
        runWidened(g, **kernel, *inputs, outputs, want, tactic);
        ++caseCounts().kernels;
    }
}

void runTactic(CaseGraph& g, ops::Tactic const& tactic, std::vector<Tensor> const& want)
{
    ops::Problem problem = problemOf(g, want);
    for (ops::Formats const& f : tactic.formats(problem)) {
        ops::setFormats(problem, f);
        runTactic(g, tactic, want, problem);
    }
}

// A kernel that writes one number everywhere would pass.
bool isNearlyConstant(TensorRef const& t, ops::Tolerance const& tolerance)
{
    Tensor constant(t.type, t.dims);
    for (int64_t i = 0; i < t.count(); ++i)
        constant.ref().set(i, t.get(0));
    return compare(constant.ref(), t, tolerance).empty();
}
void expectItMoves(CaseGraph const& g, ops::Case const& c, std::vector<Tensor> const& want)
{
    constexpr int64_t kFew = 8; // elements, which chance may have made equal
    if (!c.expected.empty() || c.isConstant)
        return;
    bool const moves = std::any_of(want.begin(), want.end(), [&](Tensor const& t) {
        return t.ref().count() <= kFew || !isNearlyConstant(t.ref(), toleranceOf(*g.node, t.type()));
    });
    EXPECT_TRUE(moves) << "the outputs are nearly constant, which proves nothing: give the case other inputs";
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

// The counts, on the screen and, where TW_TEST_REPORT names a file, in it.
class Report final : public testing::Environment
{
public:
    void TearDown() override
    {
        CaseCounts const& n = caseCounts();
        std::string lacks;
        for (std::string const& s : n.skippedFor)
            lacks += (lacks.empty() ? ": no " : "; no ") + s;
        std::string const line = std::to_string(n.cases) + " cases, " + std::to_string(n.kernels) +
                                 " kernels run and compared, " + std::to_string(n.skips) +
                                 " skipped for instructions that this CPU lacks" + lacks + "\n";
        std::fputs(line.c_str(), stdout);
        char const* const path = std::getenv("TW_TEST_REPORT");
        if (std::FILE* f = path ? std::fopen(path, "w") : nullptr) {
            std::fputs(line.c_str(), f);
            std::fclose(f);
        }
    }
};
[[maybe_unused]] testing::Environment* const report = testing::AddGlobalTestEnvironment(new Report);

} // namespace

CaseCounts& caseCounts()
{
    static CaseCounts counts;
    return counts;
}

void runCase(ir::OpDef const& op, ops::Case const& c, ops::Tactic const* one)
{
    ++caseCounts().cases;
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
    expectItMoves(g, c, *want);
    if (op.aliases)
        checkAliases(g, *want);
    if (!op.cpuTactics)
        return; // control flow: the executor runs it, see test/runtime
    auto const tactics = *op.cpuTactics;
    ASSERT_FALSE(tactics.empty());
    for (ops::Tactic const* t : tactics)
        if (!one || one == t)
            runTactic(g, *t, *want);
    EXPECT_TRUE(ops::supportsFormats(*tactics.back(), problemOf(g, *want)).ok)
        << "the last tactic must accept everything";
}

namespace {

class CaseTest final : public testing::Test
{
public:
    // With all tactics of the op, or with one.
    CaseTest(ir::OpDef const& op, ops::Case const& c, ops::Tactic const* one) : op_(op), case_(c), one_(one) {}
    void TestBody() override { runCase(op_, case_, one_); }

private:
    ir::OpDef const& op_;
    ops::Case const& case_;
    ops::Tactic const* const one_;
};

// The cases of all ops, made once; tests refer to them.
std::vector<ops::CaseList> const& lists()
{
    static std::vector<ops::CaseList> const all = [] {
        std::vector<ops::CaseList> made(ops::all().size());
        for (size_t i = 0; i < made.size(); ++i)
            made[i] = ops::casesOf(ops::all()[i]->name);
        return made;
    }();
    return all;
}

void registerCases(std::string const& suite, size_t i, ops::Tactic const* one)
{
    ir::OpDef const& op = *ops::all()[i];
    for (ops::Case const& c : lists()[i].cases)
        testing::RegisterTest(suite.c_str(), c.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                              [&op, &c, one]() -> testing::Test* { return new CaseTest(op, c, one); });
}

// Those of single tactics where the filter asks for them: they are parts of the others.
void registerCases()
{
    bool const tactics = testing::GTEST_FLAG(filter).find("tactics/") != std::string::npos;
    for (size_t i = 0; i < lists().size(); ++i) {
        ir::OpDef const& op = *ops::all()[i];
        registerCases(std::string("ops/") + op.name, i, nullptr);
        if (tactics && op.cpuTactics)
            for (ops::Tactic const* t : *op.cpuTactics)
                registerCases(std::string("tactics/") + t->name(), i, t);
    }
}

} // namespace

TEST(CaseLists, EveryOpHasNamedCasesAndValuesByHand)
{
    for (size_t i = 0; i < lists().size(); ++i) {
        char const* const op = ops::all()[i]->name;
        std::set<std::string> names;
        bool hasExpected = false;
        auto const first = makeCase(*ops::all()[i], lists()[i].cases.front());
        bool const hasOutputs = !first.ok() || !(*first)->node->outputs.empty();
        for (ops::Case const& c : lists()[i].cases) {
            EXPECT_TRUE(names.insert(c.name).second) << op << " has two cases named " << c.name;
            EXPECT_FALSE(c.name.empty() || c.name.find_first_of("*?:") != std::string::npos)
                << op << "." << c.name << " cannot be chosen by a filter";
            hasExpected = hasExpected || !c.expected.empty();
        }
        EXPECT_TRUE(hasExpected || !hasOutputs)
            << op << " has no case with values worked out by hand in src/ops/" << op << "/cases.cpp";
    }
    for (ops::OpCases const& c : ops::allCases())
        EXPECT_TRUE(ops::find(c.op)) << "src/ops/" << c.op << "/cases.cpp belongs to no op of ops.def";
}

TEST(Registry, NamesAndTacticIdsAreUnique)
{
    std::set<std::string> names;
    std::set<uint64_t> ids;
    for (ir::OpDef const* op : ops::all()) {
        EXPECT_TRUE(names.insert(op->name).second) << op->name;
        EXPECT_EQ(ops::find(op->name), op);
        for (bool const onGpu : {false, true})
            for (ops::Tactic const* t : op->tactics(onGpu))
                EXPECT_TRUE(ids.insert(t->id()).second) << t->name();
    }
}

} // namespace tw::test

int main(int argc, char** argv)
{
    testing::InitGoogleTest(&argc, argv);
    tw::test::registerCases();
    return RUN_ALL_TESTS();
}
