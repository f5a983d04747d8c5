// SPDX-License-Identifier: Apache-2.0
// A constant that several layers read: once in the plan, and in an engine once in each form that kernels read.
#include <atomic>
#include <cstring>
#include <fstream>

#include <gtest/gtest.h>

#include "device/thread_pool.h"
#include "interp/interp.h"
#include "kernels/cpu/jit/emitter.h"
#include "ops/convolution/op.h"
#include "ops/gather/op.h"
#include "ops/matrix_multiply/op.h"
#include "plan/bytes.h"
#include "plan/network.h"
#include "tactic/cpu_tactic.h"
#include "tactic/packed_constants.h"
#include "tactic/registry.h"

namespace tw::test {

namespace {

enum class Sharing
{
    kValue, // all nodes read one value
    kBytes, // values of their own with one memory
    kNot,   // equal bytes, each in memory of its own
};

class Weights
{
public:
    Weights(ir::Graph& g, Sharing sharing, Extents const& dims)
        : g_(g), sharing_(sharing), elements_(DataType::kFloat, dims)
    {
        double const scale = 4 / double(elements_.count() / dims[0]);
        for (int64_t i = 0; i < elements_.count(); ++i)
            elements_.ref().set(i, double((i * 37 + i / 64 * 11) % 64 - 31.5) / 64 * scale);
    }
    ir::Value* next()
    {
        std::string const name = "w" + std::to_string(count_++);
        if (!first_ || sharing_ == Sharing::kNot)
            return first_ = g_.addConstant(name, DataType::kFloat, elements_.dims(), elements_.data());
        if (sharing_ == Sharing::kValue)
            return first_;
        return g_.addConstant(name, DataType::kFloat, elements_.dims(), first_->constant);
    }
    size_t sizeBytes() const { return size_t(elements_.ref().sizeBytes()); }

private:
    ir::Graph& g_;
    Sharing sharing_;
    Tensor elements_;
    ir::Value* first_ = nullptr;
    int count_ = 0;
};

constexpr int kLayers = 8;

// x f32[1,32,12,12], `kLayers` convolutions 3x3 with the same filters, then y.
plan::Contents convolutions(Sharing sharing, size_t& weightBytes)
{
    ir::Graph g;
    ir::Value* x = g.addInput("x", DataType::kFloat, {1, 32, 12, 12});
    Weights w(g, sharing, {32, 32, 3, 3});
    weightBytes = w.sizeBytes();
    auto a = ops::convolution::Attrs::plain(2);
    a.prePadding = a.postPadding = {1, 1};
    for (int i = 0; i < kLayers; ++i)
        x = (*g.addNode(ops::convolution::def(), a.clone(), {x, w.next()}, "conv" + std::to_string(i)))->outputs[0];
    x->name = "y";
    g.outputs = {x};
    return contentsOf(g);
}

// x i32[4] -> rows of w f32[n,n] -> `layers` products with w -> y f32[4,n]
plan::Contents products(Sharing sharing, int64_t n, int layers, size_t& weightBytes)
{
    ir::Graph g;
    ir::Value* x = g.addInput("x", DataType::kInt32, {4});
    Weights w(g, sharing, {n, n});
    weightBytes = w.sizeBytes();
    x = (*g.addNode(ops::gather::def(), ops::gather::Attrs{}.clone(), {w.next(), x}, "rows"))->outputs[0];
    for (int i = 0; i < layers; ++i)
        x = (*g.addNode(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs().clone(), {x, w.next()},
                        "product" + std::to_string(i)))
                ->outputs[0];
    x->name = "y";
    g.outputs = {x};
    return contentsOf(g);
}

Tensor inputOf(ir::Graph const& g)
{
    Tensor t(g.inputs[0]->type, ir::extentsOf(g.inputs[0]->shape));
    for (int64_t i = 0; i < t.count(); ++i)
        t.ref().set(i, t.type() == DataType::kInt32 ? double(i * 5 % 7) : double((i * 29 + 7) % 50 - 25) / 32);
    return t;
}

Result<Tensor> outputOf(plan::Contents contents)
{
    Tensor const x = inputOf(*contents.graph);
    TW_ASSIGN(auto engine, loadEngine(std::move(contents)));
    TW_ASSIGN(auto out, runEngine(engine, {x.ref()}));
    return std::move(out[0]);
}

// The plan gives what the interpreter gives of `before`, whether panels are read where they lie or undone.
void expectRight(std::string const& bytes, plan::Contents const& before)
{
    Tensor const x = inputOf(*before.graph);
    auto want = interp::run(*before.graph, {x.ref()});
    ASSERT_TRUE(want.ok()) << want.error().message;
    auto kept = readKept(bytes);
    auto plain = plan::read(bytes.data(), bytes.size());
    ASSERT_TRUE(kept.ok()) << kept.error().message;
    ASSERT_TRUE(plain.ok()) << plain.error().message;
    EXPECT_TRUE(planOf(*kept) == bytes);
    EXPECT_TRUE(planOf(*plain) == bytes);
    auto const a = outputOf(std::move(*kept)), b = outputOf(std::move(*plain));
    ASSERT_TRUE(a.ok()) << a.error().message;
    ASSERT_TRUE(b.ok()) << b.error().message;
    EXPECT_EQ(compare(a->ref(), b->ref(), {}), "");
    EXPECT_EQ(compare(a->ref(), (*want)[0].ref(), ops::Tolerance{1e-4, 1e-4}), "");
}

int64_t residentBytes()
{
    std::ifstream file("/proc/self/statm");
    int64_t pages = 0;
    file >> pages >> pages;
    return pages * 4096;
}

} // namespace

TEST(SharedWeights, ConvolutionsKeepOneCopyInPanels)
{
    for (Sharing sharing : {Sharing::kValue, Sharing::kBytes, Sharing::kNot}) {
        SCOPED_TRACE(int(sharing));
        size_t weightBytes = 0;
        plan::Contents c = convolutions(sharing, weightBytes);
        plan::Contents const before = contentsOf(*c.graph);
        ASSERT_TRUE(buildContents(c).ok());
        std::string const bytes = planOf(c);
        EXPECT_LT(bytes.size(), 2 * weightBytes);
        expectRight(bytes, before);
        // In an order that all of them read, or that none does: it is undone once.
        ops::PanelOrder const odd{{5, 27}, 32, 3, 3, 7, false};
        c.panels.clear();
        for (auto const& v : c.graph->values())
            if (v->isConstant() && v->rank() == 4)
                c.panels[v.get()] = odd;
        std::string const other = planOf(c);
        EXPECT_LT(other.size(), 2 * weightBytes);
        expectRight(other, before);
        // A writer that wants two orders gets two copies.
        if (c.panels.size() > 1) {
            c.panels.begin()->second = ops::PanelOrder{{16, 16}, 32, 3, 3, 1, false};
            std::string const two = planOf(c);
            EXPECT_GE(two.size(), other.size() + weightBytes);
            EXPECT_LT(two.size(), other.size() + 2 * weightBytes);
            expectRight(two, before);
        }
    }
}

TEST(SharedWeights, OneOrderForAllReadersOrNone)
{
    if (!kernels::jit::isaOf(ops::thisCpu()))
        GTEST_SKIP() << "no emitted kernels on this CPU";
    size_t weightBytes = 0;
    plan::Contents c = convolutions(Sharing::kBytes, weightBytes);
    ASSERT_TRUE(buildContents(c).ok());
    for (auto const& [v, order] : c.panels)
        EXPECT_EQ(order, c.panels.begin()->second);
    // A second kind of reader: the bytes stay in the order of the shape, since there is one copy.
    plan::Contents d = convolutions(Sharing::kBytes, weightBytes);
    ir::Graph& g = *d.graph;
    ir::Value* at = g.addInput("at", DataType::kInt32, {2});
    auto rows = g.addNode(ops::gather::def(), ops::gather::Attrs{}.clone(), {g.nodes[0]->inputs[1], at}, "rows");
    ASSERT_TRUE(rows.ok());
    g.outputs.push_back((*rows)->outputs[0]);
    g.outputs.back()->name = "z";
    plan::Contents two = contentsOf(g);
    ASSERT_TRUE(buildContents(two).ok());
    EXPECT_TRUE(two.panels.empty());
    EXPECT_LT(planOf(two).size(), 2 * weightBytes);
}

TEST(SharedWeights, ProductsAndRowsOfOneTable)
{
    for (Sharing sharing : {Sharing::kValue, Sharing::kBytes, Sharing::kNot}) {
        SCOPED_TRACE(int(sharing));
        size_t weightBytes = 0;
        plan::Contents c = products(sharing, 128, kLayers, weightBytes);
        plan::Contents const before = contentsOf(*c.graph);
        ASSERT_TRUE(buildContents(c).ok());
        std::string const bytes = planOf(c);
        EXPECT_LT(bytes.size(), 2 * weightBytes);
        expectRight(bytes, before);
    }
}

TEST(SharedWeights, AnEngineHoldsThemOnceInEachForm)
{
    constexpr int kMany = 40;
    size_t weightBytes = 0;
    plan::Contents c = products(Sharing::kNot, 768, kMany, weightBytes);
    ASSERT_TRUE(buildContents(c).ok());
    auto kept = readKept(planOf(c));
    ASSERT_TRUE(kept.ok()) << kept.error().message;
    c = {};
    int64_t const before = residentBytes();
    auto engine = loadEngine(std::move(*kept));
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    // Each would pack its own 2.25 MiB. One packed copy, one for the rows, and large pages that are not full.
    EXPECT_LT(residentBytes() - before, int64_t(8 * weightBytes));
}

TEST(PackedConstants, OnceForEachConstantAndRecipe)
{
    ops::PackedConstants packed;
    BlobPtr const a = Blob::copy("abcd", 4), b = Blob::copy("abcd", 4);
    std::atomic<int> made = 0;
    auto get = [&](BlobPtr const& constant, ops::Recipe const& recipe) {
        auto r = packed.get<std::string>(*constant, recipe, [&]() -> Result<std::string> {
            ++made;
            return std::string(constant->as<char>(), constant->sizeBytes()) + std::to_string(recipe.numbers.size());
        });
        EXPECT_TRUE(r.ok());
        return *r;
    };
    ops::Recipe const one{"one", {1, 2}}, other{"one", {1, 3}};
    auto const first = get(a, one);
    EXPECT_EQ(*first, "abcd2");
    EXPECT_EQ(get(a, one), first);
    EXPECT_NE(get(a, other), first);
    EXPECT_NE(get(b, one), first) << "constants are told apart by address";
    EXPECT_EQ(made, 3);
    std::weak_ptr<std::string const> const gone = get(a, {"two", {}});
    EXPECT_TRUE(gone.expired()) << "nobody holds it";
    EXPECT_EQ(made, 4);
    auto const failed = packed.get<std::string>(*a, {"three", {}}, [&]() -> Result<std::string> {
        return Error{ErrorCode::kFailedAllocation, "no memory"};
    });
    EXPECT_FALSE(failed.ok());
    EXPECT_EQ(*get(a, {"three", {}}), "abcd0") << "who comes later tries again";
}

TEST(PackedConstants, WorkersThatAskAtOnceGetTheSame)
{
    ops::PackedConstants packed;
    BlobPtr const a = Blob::copy("abcd", 4);
    std::atomic<int> made = 0;
    std::vector<std::shared_ptr<int64_t const>> got(64);
    device::ThreadPool pool(4);
    pool.workers().run(int64_t(got.size()), [&](int64_t i, int) {
        auto r = packed.get<int64_t>(*a, {"number", {i % 4}}, [&]() -> Result<int64_t> {
            ++made;
            return i % 4;
        });
        if (r.ok())
            got[size_t(i)] = *r;
    });
    EXPECT_EQ(made, 4);
    for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_TRUE(got[i]);
        EXPECT_EQ(got[i], got[i % 4]);
        EXPECT_EQ(*got[i], int64_t(i % 4));
    }
}

} // namespace tw::test
