// SPDX-License-Identifier: Apache-2.0
// Loops that want to go on where a tensor of theirs ends, on the double with CUDA graphs: no read leaves the tensor, the
// error comes with the run that it belongs to, and the runs behind that one are as before.
#include "cuda/fake_loops.h"

namespace tw::test {

namespace {

// Sums rows [5,4] and stacks them, in a loop whose way the GPU finds: x is all of y, a number of trips is f32 where a
// condition compares it.
std::string summing(std::string const& inputs, std::string const& condition, std::string const& stackLength)
{
    std::string const seen = R"(input %0 "s" f32[] input %1 "x" f32[4] input %2 "row" f32[4] input %3 "limit" f32[] )";
    return "graph \"g\" imported { input %0 \"s\" f32[] input %1 \"x\" f32[4] input %2 \"rows\" f32[5,4] "
           "input %3 \"limit\" f32[] input %4 \"n\" i32[] const %5 \"length\" i32[] = [" +
           stackLength + "]\nnode 0 \"sums\" loop(" + inputs +
           ") {carried = 2, iterator_axes = [0], iterator_reverse = [0], stack_axes = [0], stack_reverse = [0]}\n"
           "region graph \"condition\" imported { " +
           seen + condition + " }\nregion graph \"body\" imported { " + seen +
           R"(const %4 "one" f32[] = [1]
           node 0 "next" elementwise(%0, %4) {operation = 0} -> %5 "next" f32[]
           node 1 "add" elementwise(%1, %2) {operation = 0} -> %6 "sum" f32[4] output %5 output %6 output %6 }
           -> %6 "last" f32[], %7 "y" f32[4], %8 "all" f32[)" +
           stackLength + ",4] output %7 output %8 }";
}
std::string const kLess = R"(node 0 "less" elementwise(%0, %3) {operation = 13} -> %4 "go_on" b[] output %4)";
std::string const kAlways = R"(const %4 "yes" b[] = [1] output %4)";

// An instance that runs on the double at the same addresses each time, so that the second run is captured.
class Sums
{
public:
    explicit Sums(std::string const& text, int stacked)
        : all_(DataType::kFloat, {stacked, 4}), out_{y_.ref(), all_.ref()}
    {
        auto made = make(text);
        EXPECT_TRUE(made.ok()) << made.error().message;
    }
    Result<void> run(double trips, std::shared_ptr<std::function<void(Error const&)> const> late = nullptr)
    {
        limit_.ref().set(0, trips);
        n_.ref().set(0, trips);
        runtime::ExecuteArgs args{arena_.data() + size_t(-reinterpret_cast<uintptr_t>(arena_.data())) % 512, in_, out_,
                                  &state_, nullptr};
        args.device = &target_->device;
        args.late = std::move(late);
        return runtime::execute(*instance_, args);
    }
    double sum() const { return y_.ref().get(0); }
    double stacked(int row) const { return all_.ref().get(4 * row); }
    size_t graphs() const { return instance_->replay ? instance_->replay->graphs() : 0; }
    void forget() { instance_.reset(); }

private:
    Result<void> make(std::string const& text)
    {
        TW_ASSIGN(target_, fakeTarget());
        TW_ASSIGN(graph_, ir::parse(text, ops::find));
        block_ = runtime::outlineBlock(*graph_);
        giveKernels(*block_, target_->device->driver());
        TW_ASSIGN(instance_, runtime::resolve(*block_, {{{}}, {{4}}, {{5, 4}}, {{}}, {{}}}));
        TW_TRY(runtime::placeInArena(*instance_));
        TW_TRY(runtime::uploadConstants(*block_, nullptr, target_->device));
        TW_TRY(runtime::uploadContents(*instance_, target_->device));
        arena_.resize(size_t(instance_->arenaBytes) + 512);
        for (int64_t i = 0; i < 20; ++i)
            rows_.ref().set(i, double(i / 4 + 1));
        return {};
    }

    std::shared_ptr<cuda::Target const> target_;
    std::unique_ptr<ir::Graph> graph_;
    std::unique_ptr<runtime::LoadedBlock> block_;
    std::unique_ptr<runtime::Instance> instance_;
    std::vector<std::byte> arena_;
    Tensor s_{DataType::kFloat, {}}, x_{DataType::kFloat, {4}}, rows_{DataType::kFloat, {5, 4}},
        limit_{DataType::kFloat, {}}, n_{DataType::kInt32, {}}, y_{DataType::kFloat, {4}}, all_;
    std::vector<TensorRef> in_{s_.ref(), x_.ref(), rows_.ref(), limit_.ref(), n_.ref()}, out_;
    uint64_t state_ = 0;
};

struct Ending
{
    char const* name;
    std::string text;
    int stacked;
    int most; // trips
    std::string error;
};
std::vector<Ending> endings()
{
    std::string const all = "%0, %1, _, %2, %5, %3", counted = "%0, %1, %4, %2, %5, %3";
    std::string const past = "iteration 5 is past the extent 5 of the iterated tensor 'rows'";
    return {{"while, a tensor", summing(all, kLess, "7"), 7, 5, past},
            {"while, a tensor and its stack", summing(all, kLess, "5"), 5, 5, past},
            {"while, a stack", summing(all, kLess, "3"), 3, 3, "4 iterations or more are made"},
            {"count, a tensor", summing(counted, kAlways, "7"), 7, 5, past},
            {"count and while, a tensor", summing(counted, kLess, "7"), 7, 5, past}};
}

double sumOf(int trips)
{
    return trips * (trips + 1) / 2.0;
}

} // namespace

TEST(FakeGuards, TheRunThatGoesTooFarIsTheErrorAndNoOther)
{
    for (Ending const& e : endings()) {
        SCOPED_TRACE(e.name);
        std::vector<std::string> told;
        auto const late = std::make_shared<std::function<void(Error const&)> const>([&](Error const& error) {
            EXPECT_EQ(error.code, ErrorCode::kFailedExecution);
            told.push_back(error.message);
        });
        Sums loop(e.text, e.stacked);
        for (int i = 0; i < 3; ++i) {
            ASSERT_TRUE(loop.run(e.most, late).ok());
            EXPECT_EQ(loop.sum(), sumOf(e.most));
        }
        ASSERT_EQ(loop.graphs(), 1U);
        for (int i = 1; i <= 2; ++i) { // the GPU ends it
            ASSERT_TRUE(loop.run(e.most + i, late).ok());
            ASSERT_EQ(told.size(), size_t(i));
            EXPECT_NE(told.back().find("layer 'sums'"), std::string::npos) << told.back();
            EXPECT_NE(told.back().find(e.error), std::string::npos) << told.back();
            EXPECT_EQ(loop.sum(), sumOf(e.most));
        }
        for (int trips : {2, 0, 1}) {
            ASSERT_TRUE(loop.run(trips, late).ok());
            EXPECT_EQ(loop.sum(), sumOf(trips));
            for (int row = 0; row < e.stacked; ++row)
                EXPECT_EQ(loop.stacked(row), row < trips ? sumOf(row + 1) : 0);
        }
        EXPECT_EQ(told.size(), 2U);
    }
}

// Who gives no function hears of it from the next run. A run by the host says so itself.
TEST(FakeGuards, WithoutAFunctionTheNextRunIsTheError)
{
    for (Ending const& e : endings()) {
        SCOPED_TRACE(e.name);
        Sums fresh(e.text, e.stacked);
        auto const byHost = fresh.run(e.most + 1);
        ASSERT_FALSE(byHost.ok());
        EXPECT_NE(byHost.error().message.find(e.error), std::string::npos) << byHost.error().message;
        Sums loop(e.text, e.stacked);
        for (int i = 0; i < 3; ++i)
            ASSERT_TRUE(loop.run(e.most).ok());
        EXPECT_TRUE(loop.run(e.most + 2).ok());
        auto const next = loop.run(e.most);
        ASSERT_FALSE(next.ok());
        EXPECT_NE(next.error().message.find("in a run before this one: layer 'sums'"), std::string::npos);
        EXPECT_NE(next.error().message.find(e.error), std::string::npos) << next.error().message;
        EXPECT_TRUE(loop.run(e.most - 1).ok());
        EXPECT_EQ(loop.sum(), sumOf(e.most - 1));
    }
}

} // namespace tw::test
