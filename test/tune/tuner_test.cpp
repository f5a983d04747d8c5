// SPDX-License-Identifier: Apache-2.0
// The tuner: a tactic that computes wrong values is never chosen, however fast; what the cache knows is not measured
// again.
#include "tune/tuner.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "families/convolution/tactics.h"
#include "ops/activation/op.h"
#include "support/messages.h"
#include "tactic/registry.h"
#include "tune/candidates.h"
#include "tune/region_key.h"
#include "tune/rivals.h"
#include "tune/timing_cache.h"

namespace tw::tune {

namespace {

using test::Messages;

// ReLU of n floats.
struct Relu
{
    ir::Graph graph;
    ops::Problem problem;

    explicit Relu(int64_t n)
    {
        ir::Value* x = graph.addInput("x", DataType::kFloat, {ir::Dim(n)});
        problem.node = *graph.addNode(ops::activation::def(), std::make_unique<ops::activation::Attrs>(), {x}, "relu");
        ops::TensorSpec const spec{.type = DataType::kFloat, .dims = {n}, .maxDims = {n}, .present = true};
        problem.inputs = problem.outputs = {spec};
    }
};

// The same of an op without tactics of its own.
struct LonelyRelu : Relu
{
    ir::OpDef lonely = ops::activation::def();

    explicit LonelyRelu(int64_t n) : Relu(n)
    {
        lonely.cpuTactics = nullptr;
        const_cast<ir::Node*>(problem.node)->op = &lonely;
    }
};

int64_t floats(ops::RunArgs& args)
{
    return args.outputs[0].count();
}

// Right, and faster than the plain one on large tensors: it does nothing more than needed.
Result<void> right(ir::Node const&, ops::RunArgs& args)
{
    float const* x = args.inputs[0].as<float>();
    float* y = args.outputs[0].as<float>();
    for (int64_t i = 0, n = floats(args); i < n; ++i)
        y[i] = x[i] > 0 ? x[i] : 0.0f;
    return {};
}
// Wrong in the last element only: the usual tail.
Result<void> offByOneTail(ir::Node const& node, ops::RunArgs& args)
{
    TW_TRY(right(node, args));
    args.outputs[0].as<float>()[floats(args) - 1] = -1;
    return {};
}
// Wrong from element 8 on when there is more than one block.
Result<void> staleBlock(ir::Node const&, ops::RunArgs& args)
{
    for (int64_t i = 0, n = floats(args); i < n; ++i)
        args.outputs[0].as<float>()[i] = std::max(args.inputs[0].as<float>()[i % 8], 0.0f);
    return {};
}
// As fast as can be.
Result<void> doesNothing(ir::Node const&, ops::RunArgs&)
{
    return {};
}
Result<void> fails(ir::Node const&, ops::RunArgs&)
{
    return Error{ErrorCode::kFailedExecution, "it fails"};
}

Result<void> lacksMemory(ir::Node const&, ops::RunArgs&)
{
    return Error{ErrorCode::kFailedAllocation, "no GPU memory"};
}

class Provider final : public ops::TacticProvider
{
public:
    explicit Provider(std::vector<ops::Tactic const*> list) : list_(std::move(list)) {}
    void tactics(ir::Node const&, ops::Backend, std::vector<ops::Tactic const*>& out) const override
    {
        out.insert(out.end(), list_.begin(), list_.end());
    }

private:
    std::vector<ops::Tactic const*> list_;
};

Result<plan::Choice> chooseWith(ops::Problem const& problem, std::vector<ops::Tactic const*> extra, Messages& log,
                                TimingCache* cache = nullptr, int64_t workspaceBytes = INT64_MAX)
{
    Provider const provider(std::move(extra));
    ops::TacticProvider const* const providers[] = {&provider};
    Options options;
    options.providers = providers;
    options.log = &log;
    options.cache = cache;
    options.device = "test";
    options.workspaceBytes = workspaceBytes;
    return std::move(chooseEach(problem, {ops::formatsOf(problem)}, options)[0]);
}

} // namespace

TEST(Tuner, WrongTacticsAreRefusedHoweverFast)
{
    static constexpr ops::PlainTactic kWrong[] = {
        {"relu_off_by_one_tail", 1, offByOneTail},
        {"relu_stale_block", 1, staleBlock},
        {"relu_does_nothing", 1, doesNothing},
        {"relu_fails", 1, fails},
    };
    for (int64_t n : {1, 7, 8, 9, 4095, 4097, 100000}) {
        Relu const relu(n);
        Messages log;
        std::vector<ops::Tactic const*> wrong;
        for (ops::PlainTactic const& t : kWrong)
            if (n > 8 || std::string(t.name()) != "relu_stale_block")
                wrong.push_back(&t);
        auto const chosen = chooseWith(relu.problem, wrong, log);
        ASSERT_TRUE(chosen.ok()) << chosen.error().message;
        EXPECT_EQ(chosen->name.find("activation_"), 0u) << chosen->name << ", n = " << n;
        for (ops::Tactic const* t : wrong)
            EXPECT_NE(log.text.find(t->name()), std::string::npos)
                << t->name() << " is refused without a word, n = " << n;
    }
}

namespace {

// What an op's own plain kernel may do, though the reference does otherwise: it rounds.
Result<void> roundedSigmoid(ir::Node const&, ops::RunArgs& args)
{
    for (int64_t i = 0, n = floats(args); i < n; ++i)
        args.outputs[0].as<float>()[i] = std::round(100 / (1 + std::exp(-args.inputs[0].as<float>()[i]))) / 100;
    return {};
}
constexpr ops::PlainTactic kRounded{"sigmoid_rounded", 1, roundedSigmoid};

} // namespace

TEST(Tuner, PlainKernelThatDiffersIsAWarningWithLayerTensorAndError)
{
    Relu sigmoid(64);
    ir::OpDef own = ops::activation::def();
    ops::TacticList const rounded = ops::kTactics<kRounded>;
    own.cpuTactics = &rounded;
    auto& node = const_cast<ir::Node&>(*sigmoid.problem.node);
    node.attrs = ops::activation::Attrs(ops::activation::Kind::kSigmoid).clone();
    node.op = &own;
    node.outputs[0]->name = "scores";
    Messages log;
    auto const chosen = chooseWith(sigmoid.problem, {}, log);
    ASSERT_TRUE(chosen.ok()) << chosen.error().message;
    EXPECT_EQ(chosen->name, "sigmoid_rounded");
    for (char const* part : {"'relu'", "sigmoid_rounded", "output 0 ('scores')", "got ", "want "})
        EXPECT_NE(log.warnings.find(part), std::string::npos) << part << ": " << log.text;
    Messages quiet;
    ASSERT_TRUE(chooseWith(Relu(64).problem, {}, quiet).ok());
    EXPECT_EQ(quiet.warnings, "");
}

// What IBuilder::setMaxThreads limits is the workers that candidates are built on, one part for each.
TEST(Tuner, CandidatesAreBuiltOnTheBuildersWorkers)
{
    struct Counting final : Workers
    {
        int64_t parts = 0;
        void run(int64_t n, FunctionRef<void(int64_t, int)> body) override
        {
            parts += n;
            Workers::run(n, body);
        }
    } building, running;
    static constexpr ops::PlainTactic kRight[] = {{"relu_right_a", 1, right}, {"relu_right_b", 1, right}};
    Provider const provider({&kRight[0], &kRight[1]});
    ops::TacticProvider const* const providers[] = {&provider};
    Relu const relu(1000);
    Options options;
    options.providers = providers;
    options.buildWorkers = &building;
    options.workers = &running;
    options.heuristicOnly = true;
    ASSERT_TRUE(chooseEach(relu.problem, {ops::formatsOf(relu.problem)}, options)[0].ok());
    EXPECT_GE(building.parts, 2);
    EXPECT_LT(building.parts, 100) << "kernels are run on others";
}

TEST(Tuner, NoCandidateLeftNamesEveryReason)
{
    static constexpr ops::PlainTactic kFails{"relu_fails", 1, fails};
    LonelyRelu relu(16);
    Messages log;
    auto const chosen = chooseWith(relu.problem, {&kFails}, log);
    ASSERT_FALSE(chosen.ok());
    EXPECT_NE(chosen.error().message.find("could not find any implementation for node relu"), std::string::npos);
    EXPECT_NE(chosen.error().message.find("relu_fails: it fails"), std::string::npos) << chosen.error().message;
    EXPECT_EQ(chosen.error().message.find("workspace"), std::string::npos) << "that would not help";
}

// Out of memory is another error, and no news for a timing cache.
TEST(Tuner, NoMemoryToTryIsNoVerdict)
{
    static constexpr ops::PlainTactic kLacks{"relu_lacks", 1, lacksMemory};
    LonelyRelu relu(16);
    Messages log;
    auto const chosen = chooseWith(relu.problem, {&kLacks}, log);
    ASSERT_FALSE(chosen.ok());
    EXPECT_EQ(chosen.error().code, ErrorCode::kFailedAllocation);
    EXPECT_NE(chosen.error().message.find("not enough memory"), std::string::npos) << chosen.error().message;
}

// IBuilderConfig::setMemoryPoolLimit(kWORKSPACE). Keys differ: the cache of one limit says nothing of another.
TEST(Tuner, WorkspacesHaveALimit)
{
    static constexpr ops::PlainTactic kNeedy{"relu_needy", 1, right,
                                             [](ir::Node const&, auto, auto) { return int64_t(1000); }};
    LonelyRelu relu(64);
    TimingCache cache("test");
    Messages log;
    auto const fits = chooseWith(relu.problem, {&kNeedy}, log, &cache, 1000);
    ASSERT_TRUE(fits.ok()) << fits.error().message;
    EXPECT_EQ(fits->name, "relu_needy");
    EXPECT_EQ(log.text.find("workspace"), std::string::npos) << log.text;
    auto const chosen = chooseWith(relu.problem, {&kNeedy}, log, &cache, 999);
    ASSERT_FALSE(chosen.ok());
    for (char const* part : {"relu_needy: it needs a workspace of 1000 bytes, the limit is 999",
                             "Try increasing the workspace size with IBuilderConfig::setMemoryPoolLimit()"})
        EXPECT_NE(chosen.error().message.find(part), std::string::npos) << chosen.error().message;
    EXPECT_NE(log.text.find("more workspace than 999 bytes are left out"), std::string::npos) << log.text;
    // An op's own plain kernel stays.
    Relu const plain(64);
    EXPECT_TRUE(chooseWith(plain.problem, {&kNeedy}, log, nullptr, 0).ok());
}

TEST(Tuner, CacheHitIsTakenAndForeignEntryIsAMiss)
{
    static constexpr ops::PlainTactic kRight{"relu_right", 1, right};
    Relu const relu(64);
    Messages log;
    auto keyWith = [&](std::vector<ops::Tactic const*> extra) {
        Provider const provider(std::move(extra));
        ops::TacticProvider const* const providers[] = {&provider};
        Options options;
        options.providers = providers;
        options.device = "test";
        return cacheKey(relu.problem, options);
    };
    TimingCache known("test");
    ASSERT_TRUE(known.insert(keyWith({&kRight}), CacheEntry{kRight.id(), {}, 3.5}));
    auto const hit = chooseWith(relu.problem, {&kRight}, log, &known);
    ASSERT_TRUE(hit.ok());
    EXPECT_EQ(hit->name, "relu_right");
    EXPECT_EQ(hit->microseconds, 3.5);
    // The tactic of the entry is not there: an ordinary choice follows, without an error.
    TimingCache foreign("test");
    ASSERT_TRUE(foreign.insert(keyWith({}), CacheEntry{12345, {7}, 1.0}));
    auto const miss = chooseWith(relu.problem, {}, log, &foreign);
    ASSERT_TRUE(miss.ok());
    EXPECT_EQ(miss->name.find("activation_"), 0u) << miss->name;
    // A tactic that was not there when the entry was made has its turn.
    EXPECT_NE(keyWith({}), keyWith({&kRight}));
    static constexpr ops::PlainTactic kNewer{"relu_right", 2, right};
    EXPECT_NE(keyWith({&kNewer}), keyWith({&kRight}));
}

// By estimate: of layers that take long each candidate takes its time, so fewer are tried; the reason is told.
TEST(Tuner, LongLayersTryFewerCandidates)
{
    static constexpr ops::PlainTactic kAny{"relu_any", 1, right};
    Relu const relu(64);
    auto kept = [&](double best) {
        Options const options;
        Rivals rivals(std::span(&relu.problem, 1), options);
        std::vector<Candidate> list, reserve;
        for (double times : {1.0, 1.9, 2.9, 3.1, 7.9, 8.1}) {
            Candidate& c = list.emplace_back();
            c.tactic = &kAny;
            c.estimate = times * best;
        }
        size_t const count = prune(std::move(list), std::span(&relu.problem, 1), reserve, rivals).size();
        EXPECT_EQ(size_t(std::ranges::count(rivals.textOf(0), '\n')), 6 - count) << rivals.textOf(0);
        EXPECT_TRUE(reserve.empty());
        return count;
    };
    EXPECT_EQ(kept(100), 5U);
    EXPECT_EQ(kept(999), 5U);
    EXPECT_EQ(kept(1000), 3U);
    EXPECT_EQ(kept(3999), 3U);
    EXPECT_EQ(kept(4000), 2U);
    EXPECT_EQ(kept(50'000), 2U);
}

TEST(Tuner, WinogradIsNoCandidateWhenItIsOff)
{
    ir::Node node;
    node.op = ops::find("convolution");
    ASSERT_NE(node.op, nullptr);
    auto count = [&](Options const& options) {
        auto const list = candidates(node, options);
        return std::count_if(list.begin(), list.end(),
                             [](ops::Tactic const* t) { return t->traits().rounding == ops::Rounding::kWinograd; });
    };
    Options options;
    EXPECT_GT(count(options), 0);
    options.permits = {};
    EXPECT_EQ(count(options), 0);
}

} // namespace tw::tune
