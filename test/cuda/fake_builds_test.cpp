// SPDX-License-Identifier: Apache-2.0
// Whole builds on a GPU that is a double (fake_cuda_driver.cpp). Kernels do nothing there, and checks refuse them; a
// provider brings tactics that run the reference on the double's memory, which is the host's.
#include <algorithm>
#include <chrono>

#include "builder/build.h"
#include "cuda/fake_target.h"
#include "interp/interp.h"
#include "ops/activation/op.h"
#include "ops/convolution/op.h"
#include "ops/reformat/op.h"
#include "support/graph_maker.h"
#include "tune/device_run.h"
#include "tune/limit.h"
#include "tune/timing_cache.h"

namespace tw::test {

namespace {

// Computes where nobody has written yet, which is so in checks alone; when it is timed it takes a moment.
class UntimedReference final : public ops::Kernel
{
public:
    explicit UntimedReference(ir::Node const& node) : node_(node) {}
    Result<void> run(ops::RunArgs& args) const override
    {
        auto const* const first = args.outputs[0].as<unsigned char>();
        if (std::any_of(first, first + sizeOf(args.outputs[0].type),
                        [](unsigned char c) { return c != tune::DeviceRun::kUnwritten; }))
            return takeTime();
        std::vector<Tensor> linear;
        std::vector<TensorRef> inputs;
        for (TensorRef const& x : args.inputs) {
            linear.emplace_back(x.type, x.dims);
            for (int64_t k = 0; x.data && k < x.count(); ++k)
                linear.back().ref().set(k, x.get(x.place(k)));
            inputs.push_back(x.data ? linear.back().ref() : TensorRef{});
        }
        TW_ASSIGN(std::vector<Tensor> const results, interp::runNode(node_, inputs));
        for (size_t i = 0; i < results.size(); ++i)
            for (int64_t k = 0; k < results[i].count(); ++k)
                args.outputs[i].set(args.outputs[i].place(k), results[i].ref().get(k));
        return {};
    }

private:
    // More than the start of a kernel, below which none is called slow.
    static Result<void> takeTime()
    {
        auto const begin = std::chrono::steady_clock::now();
        while (std::chrono::steady_clock::now() - begin < std::chrono::microseconds(5)) {
        }
        return {};
    }

    ir::Node const& node_;
};

class ReferenceTactic final : public ops::Tactic
{
public:
    ReferenceTactic(char const* name, int version) : Tactic(name, version, ops::Backend::kCuda) {}
    std::vector<ops::Formats> formats(ops::Problem const& problem) const override
    {
        if (problem.node->op->convertsFormat)
            return ops::reformat::formatPairs(problem);
        return {ops::linearFormats(problem)};
    }
    Result<std::unique_ptr<ops::Kernel>> load(ops::Problem const& problem, ops::Config const&,
                                              std::string const&) const override
    {
        return std::unique_ptr<ops::Kernel>(std::make_unique<UntimedReference>(*problem.node));
    }
};

// Beside all others; with `asPlain` in the place of the plain tactic of convolutions.
class Provider final : public ops::TacticProvider
{
public:
    explicit Provider(bool asPlain) : asPlain_(asPlain) {}
    void tactics(ir::Node const& node, ops::Backend backend, std::vector<ops::Tactic const*>& out) const override
    {
        static ReferenceTactic const reference("reference_on_double", 1);
        ops::Tactic const* const plain = ops::convolution::cudaTactics.back();
        static ReferenceTactic const inPlace(plain->name(), plain->version());
        if (backend != ops::Backend::kCuda)
            return;
        if (asPlain_ && node.op == &ops::convolution::def())
            std::replace(out.begin(), out.end(), plain, static_cast<ops::Tactic const*>(&inPlace));
        else
            out.push_back(&reference);
    }

private:
    bool asPlain_;
};

// Two convolutions with ReLU between them.
plan::Contents network()
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({1, 32, 8, 8}));
    for (char const* name : {"first", "second"}) {
        ops::convolution::Attrs a = ops::convolution::Attrs::plain(2);
        a.prePadding = a.postPadding = {1, 1};
        x = m.add(ops::convolution::def(), a, {x, m.constant(std::string(name) + ".w", {32, 32, 3, 3})}, name);
    }
    m.output(m.add(ops::activation::def(), ops::activation::Attrs(ops::activation::Kind::kRelu), {x}, "relu"), "y");
    plan::Contents c;
    c.graph = m.take();
    c.io.push_back(plan::IoTensor{"x", true, false, true, false, {}});
    c.io.push_back(plan::IoTensor{"y", false, false, true, false, {}});
    return c;
}

struct FakeGpuBuild
{
    tune::TimingCache cache{"fake"};
    plan::Contents contents = network();

    Result<void> run(bool asPlain, bool half)
    {
        Provider const provider(asPlain);
        ops::TacticProvider const* const providers[] = {&provider};
        builder::Options options;
        TW_ASSIGN(options.cuda, fakeTarget());
        options.fingerprint = "fake";
        options.tune.permits.set(Permission::kHalf, half);
        options.tune.providers = providers;
        options.tune.cache = &cache;
        return builder::build(contents, options);
    }
    plan::Choice const& choiceOf(std::string const& layer) const
    {
        for (size_t i = 0; i < contents.graph->nodes.size(); ++i)
            if (contents.graph->nodes[i]->name.find(layer) != std::string::npos)
                return contents.targets[0].root.steps[i].choice;
        ADD_FAILURE() << "no layer " << layer;
        static plan::Choice const none;
        return none;
    }
};

} // namespace

TEST(FakeGpuBuilds, PlainTacticsLackAFastKernel)
{
    FakeGpuBuild b;
    auto const built = b.run(true, false);
    ASSERT_TRUE(built.ok()) << built.error().message;
    for (char const* layer : {"first", "second"}) {
        plan::Choice const& c = b.choiceOf(layer);
        EXPECT_EQ(c.tactic, ops::convolution::cudaTactics.back()->id()) << c.name;
        EXPECT_GE(c.limitMicroseconds, 2) << "a kernel's launch";
        EXPECT_NE(c.lack, "") << layer;
    }
    // What kept the others out: of one that could have been taken, then what supports() gives.
    std::string const lack = b.choiceOf("first").lack;
    EXPECT_EQ(lack.rfind("convolution_f32_", 0), 0U) << lack;
    EXPECT_NE(lack.find("takes f16 only"), std::string::npos) << lack;
    EXPECT_EQ(lack.find("does not work in these formats"), std::string::npos) << lack;
}

TEST(FakeGpuBuilds, OthersDoNot)
{
    FakeGpuBuild b;
    auto const built = b.run(false, false);
    ASSERT_TRUE(built.ok()) << built.error().message;
    int fast = 0; // a busy machine may interrupt what takes no time
    for (plan::Step const& s : b.contents.targets[0].root.steps) {
        EXPECT_GT(s.choice.microseconds, 0) << s.choice.name;
        EXPECT_GT(s.choice.limitMicroseconds, 0) << s.choice.name;
        if (s.choice.microseconds > tune::kSlow * s.choice.limitMicroseconds)
            continue;
        ++fast;
        EXPECT_EQ(s.choice.lack, "") << s.choice.name;
    }
    EXPECT_GT(fast, 0);
}

TEST(FakeGpuBuilds, EqualTimingCachesGiveEqualPlans)
{
    for (bool half : {false, true}) {
        FakeGpuBuild filling;
        auto const built = filling.run(false, half);
        ASSERT_TRUE(built.ok()) << built.error().message;
        std::string const bytes = filling.cache.serialize();
        std::string plans[2];
        for (std::string& plan : plans) {
            FakeGpuBuild b;
            auto loaded = tune::TimingCache::deserialize(bytes.data(), bytes.size(), "fake");
            ASSERT_TRUE(loaded.ok()) << loaded.error().message;
            ASSERT_TRUE(b.cache.combine(*loaded->cache, false).ok());
            auto const again = b.run(false, half);
            ASSERT_TRUE(again.ok()) << again.error().message;
            EXPECT_EQ(b.cache.serialize(), bytes) << "something was timed";
            auto const written = plan::write(b.contents);
            ASSERT_TRUE(written.ok()) << written.error().message;
            plan = *written;
        }
        EXPECT_EQ(plans[0], plans[1]) << (half ? "with FP16" : "without");
    }
}

} // namespace tw::test
