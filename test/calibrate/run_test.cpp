// SPDX-License-Identifier: Apache-2.0
// Networks that run for their values: every tensor's histogram against one that is counted from the interpreter's
// values, for every number of threads.
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "calibrate/calibrate.h"
#include "calibrate/network.h"
#include "device/thread_pool.h"
#include "ops/activation/op.h"
#include "ops/concatenation/op.h"
#include "ops/convolution/op.h"
#include "ops/pooling/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "ops/unary/op.h"
#include "support/graph_maker.h"

namespace tw::test {

using namespace calibrate;

namespace {

// Batches of random numbers, which grow from one to the next.
class RandomBatches final : public BatchSource
{
public:
    explicit RandomBatches(int count) : left_(count) {}
    Result<bool> next(std::vector<Network::Input>& inputs) override
    {
        if (left_-- == 0)
            return false;
        given.emplace_back();
        for (Network::Input& in : inputs) {
            Tensor& copy = given.back().emplace_back(in.memory.type(), in.memory.dims());
            fillRandom(copy.ref(), ops::Domain{}, given.size() * 100 + given.back().size());
            for (int64_t i = 0; i < copy.count(); ++i) {
                copy.ref().set(i, copy.ref().get(i) * double(given.size()));
                in.memory.ref().set(i, copy.ref().get(i));
            }
        }
        return true;
    }
    std::vector<std::vector<Tensor>> given;

private:
    int left_;
};

// A small network with shared storage of every kind, a concatenation, a slice of it and a reshape:
//   cat = x -> conv -> relu -> pool beside x -> avg;  y = tanh of cat -> part -> flat
std::unique_ptr<ir::Graph> smallNetwork(int64_t batch)
{
    using ops::activation::Kind;
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({batch, 3, 12, 12}));
    ir::Value* conv = m.add(ops::convolution::def(), ops::convolution::Attrs::plain(2),
                            {x, m.constant("w", {8, 3, 3, 3}), m.constant("b", {8})}, "conv");
    ir::Value* relu = m.add(ops::activation::def(), ops::activation::Attrs(Kind::kRelu), {conv}, "relu");
    ir::Value* pool =
        m.add(ops::pooling::def(), ops::pooling::Attrs::plain(ops::pooling::Kind::kMax, {2, 2}), {relu}, "pool");
    ir::Value* avg =
        m.add(ops::pooling::def(), ops::pooling::Attrs::plain(ops::pooling::Kind::kAverage, {4, 4}), {x}, "avg");
    ir::Value* cat = m.add(ops::concatenation::def(), ops::concatenation::Attrs(1), {pool, avg}, "cat");
    ops::slice::Attrs cut;
    cut.start = {0, 2, 0, 0};
    cut.size = {batch, 7, 9, 9};
    cut.stride = {1, 1, 1, 1};
    ir::Value* part = m.add(ops::slice::def(), cut, {cat}, "part");
    ops::shuffle::Attrs reshape;
    reshape.hasReshape = true;
    reshape.reshape = {batch, 7 * 81};
    ir::Value* flat = m.add(ops::shuffle::def(), reshape, {part}, "flat");
    m.output(m.add(ops::activation::def(), ops::activation::Attrs(Kind::kTanh), {flat}, "tanh"), "y");
    m.output(cat);
    return m.take();
}

// Histograms of the interpreter's values, batch by batch.
std::map<std::string, Histogram> interpreted(ir::Graph const& g, std::vector<std::vector<Tensor>> const& batches)
{
    std::map<std::string, Histogram> out;
    Tally tally(serialWorkers());
    for (auto const& batch : batches) {
        std::vector<TensorRef> inputs;
        for (size_t i = 0; i < batch.size(); ++i) {
            inputs.push_back(batch[i].ref());
            if (isFloating(batch[i].type()))
                tally.add(batch[i].ref(), out[g.inputs[i]->name]);
        }
        interp::Options options;
        options.observe = [&](ir::Value const& v, TensorRef const& r) {
            if (isFloating(v.type))
                tally.add(r, out[v.name]);
        };
        auto const result = interp::run(g, inputs, options);
        EXPECT_TRUE(result.ok()) << result.error().message;
    }
    return out;
}

// The shares of values below each bin's end agree; single values may be on the other side of a border.
void expectClose(Histogram const& a, Histogram const& b, std::string const& what)
{
    EXPECT_EQ(a.count(), b.count()) << what;
    EXPECT_EQ(a.zeros, b.zeros) << what;
    EXPECT_EQ(a.isFinite, b.isFinite) << what;
    EXPECT_NEAR(a.largest, b.largest, 1e-5 * b.largest) << what;
    ASSERT_EQ(a.doublings, b.doublings) << what;
    double sumA = 0, sumB = 0, most = 0;
    for (int i = 0; i < kBins; ++i) {
        sumA += double(a.bins[size_t(i)]);
        sumB += double(b.bins[size_t(i)]);
        most = std::max(most, std::fabs(sumA - sumB));
    }
    EXPECT_LE(most, 2 + 0.002 * double(b.count())) << what;
}

Result<Calibrated> calibrated(ir::Graph const& g, int batches, Settings const& settings, Workers& workers)
{
    RandomBatches source(batches);
    NetworkOptions options;
    options.workers = &workers;
    return calibrate::calibrate(g, {}, source, settings, options);
}

} // namespace

TEST(CalibrationRun, EveryTensorIsSeenInEveryBatch)
{
    for (int64_t batch : {1, 3}) {
        auto const g = smallNetwork(batch);
        RandomBatches source(3);
        auto const out = calibrate::calibrate(*g, {}, source, {.algorithm = Algorithm::kLegacy}, {});
        ASSERT_TRUE(out.ok()) << out.error().message;
        auto const ours = readHistograms(out->histograms);
        ASSERT_TRUE(ours.ok()) << ours.error().message;
        auto const expected = interpreted(*g, source.given);
        std::vector<std::string> names;
        for (auto const& [name, h] : *ours) {
            names.push_back(name);
            ASSERT_TRUE(expected.contains(name)) << name;
            expectClose(h, expected.at(name), name);
        }
        EXPECT_EQ(names, (std::vector<std::string>{"x", "conv", "relu", "pool", "avg", "cat", "part", "flat", "y"}));
        EXPECT_EQ(expected.size(), names.size());
    }
}

TEST(CalibrationRun, EveryThreadCountGivesTheSameBytes)
{
    auto const g = smallNetwork(4);
    for (Algorithm a : {Algorithm::kEntropy2, Algorithm::kMinMax, Algorithm::kEntropy, Algorithm::kLegacy}) {
        Settings const settings{.algorithm = a, .isFused = a == Algorithm::kEntropy, .version = 8503};
        auto const one = calibrated(*g, 4, settings, serialWorkers());
        ASSERT_TRUE(one.ok()) << one.error().message;
        std::string const text = writeTable(one->table);
        EXPECT_EQ(text.find(std::string("TRT-8503-") + nameOf(a) + "\nx: "), 0u) << text;
        for (int threads : {2, 3, 8}) {
            device::ThreadPool pool(threads);
            auto const many = calibrated(*g, 4, settings, pool.workers());
            ASSERT_TRUE(many.ok()) << many.error().message;
            EXPECT_EQ(writeTable(many->table), text) << threads;
            EXPECT_EQ(many->histograms, one->histograms) << threads;
        }
    }
}

TEST(CalibrationRun, MinMaxDoesNotLookAtTheOrder)
{
    auto const g = smallNetwork(2);
    class Turned final : public BatchSource
    {
    public:
        explicit Turned(bool isReversed) : isReversed_(isReversed) {}
        Result<bool> next(std::vector<Network::Input>& inputs) override
        {
            if (at_ == 5)
                return false;
            size_t const k = isReversed_ ? 4 - at_ : at_;
            ++at_;
            fillRandom(inputs[0].memory.ref(), ops::Domain{-double(k) - 1, double(k) + 1, false, false}, k + 1);
            return true;
        }

    private:
        bool isReversed_;
        size_t at_ = 0;
    } forwards(false), backwards(true);
    Settings const settings{.algorithm = Algorithm::kMinMax};
    auto const a = calibrate::calibrate(*g, {}, forwards, settings, {});
    auto const b = calibrate::calibrate(*g, {}, backwards, settings, {});
    ASSERT_TRUE(a.ok() && b.ok());
    EXPECT_EQ(a->table.scales, b->table.scales);
    EXPECT_NEAR(a->table.scales[0].second, 5. / 127, 0.001);
}

TEST(CalibrationRun, ConcatenationsAndPoolsShareTheirScale)
{
    auto const g = smallNetwork(2);
    auto scalesOf = [&](Algorithm a) {
        auto const out = calibrated(*g, 2, {.algorithm = a}, serialWorkers());
        EXPECT_TRUE(out.ok());
        return std::map<std::string, float>(out->table.scales.begin(), out->table.scales.end());
    };
    auto scales = scalesOf(Algorithm::kEntropy2);
    // One set: x - avg - cat - pool - relu; its scale is the largest of x, relu (before a pool) and cat.
    for (char const* name : {"avg", "cat", "pool", "relu"})
        EXPECT_EQ(scales[name], scales["x"]) << name;
    EXPECT_NE(scales["conv"], scales["x"]);
    auto own = scalesOf(Algorithm::kEntropy);
    EXPECT_EQ(scales["x"], std::max({own["x"], own["relu"], own["cat"]}));
    EXPECT_NE(own["avg"], own["x"]);
    EXPECT_EQ(own["conv"], scales["conv"]);
}

TEST(CalibrationRun, ThresholdsOfLeaders)
{
    // pool(a) -> b; cat(b, c) -> d; pool(d) -> e
    GraphMaker m;
    auto pool = [&](ir::Value* v, char const* name) {
        return m.add(ops::pooling::def(), ops::pooling::Attrs::plain(ops::pooling::Kind::kMax, {1, 1}), {v}, name);
    };
    ir::Value* b = pool(m.input("a", ir::shapeOf({1, 1, 2, 2})), "b");
    ir::Value* d = m.add(ops::concatenation::def(), ops::concatenation::Attrs(1),
                         {b, m.input("c", ir::shapeOf({1, 1, 2, 2}))}, "d");
    m.output(pool(d, "e"));
    std::map<std::string, double> t{{"a", 1}, {"b", 20}, {"c", 30}, {"d", 4}, {"e", 50}, {"other", 7}};
    shareThresholds(m.g, t);
    EXPECT_EQ(t, (std::map<std::string, double>{{"a", 4}, {"b", 4}, {"c", 4}, {"d", 4}, {"e", 4}, {"other", 7}}));
    // What is not calibrated has no part in it.
    t = {{"a", 3}, {"b", 2}};
    shareThresholds(m.g, t);
    EXPECT_EQ(t, (std::map<std::string, double>{{"a", 3}, {"b", 3}}));
}

TEST(CalibrationRun, FusedNetworksHaveFewerTensors)
{
    auto const g = smallNetwork(1);
    auto const out = calibrated(*g, 1, {.algorithm = Algorithm::kEntropy, .isFused = true}, serialWorkers());
    ASSERT_TRUE(out.ok()) << out.error().message;
    std::set<std::string> names;
    for (auto const& [name, scale] : out->table.scales)
        names.insert(name);
    EXPECT_TRUE(names.contains("x") && names.contains("y") && names.contains("relu"));
    EXPECT_FALSE(names.contains("conv")); // within the convolution with its activation
}

TEST(CalibrationRun, BatchesThatAreRefused)
{
    auto const g = smallNetwork(1);
    auto const none = calibrated(*g, 0, {}, serialWorkers());
    ASSERT_FALSE(none.ok());
    EXPECT_NE(none.error().message.find("no batch at its first call"), std::string::npos) << none.error().message;
    for (double bad : {double(NAN), double(INFINITY), -double(INFINITY)}) {
        struct Bad final : BatchSource
        {
            explicit Bad(double value) : value(value) {}
            Result<bool> next(std::vector<Network::Input>& inputs) override
            {
                if (++batch == 3)
                    inputs[0].memory.ref().set(17, value);
                return true;
            }
            double value;
            int batch = 0;
        } source(bad);
        auto const out = calibrate::calibrate(*g, {}, source, {}, {});
        ASSERT_FALSE(out.ok());
        EXPECT_EQ(out.error().message.find("calibration batch 2: element 17 of input 'x' is "), 0u)
            << out.error().message;
    }
}

TEST(CalibrationRun, TensorsThatAreZeroOrInfinite)
{
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({4}));
    ir::Value* zero =
        m.add(ops::activation::def(), ops::activation::Attrs(ops::activation::Kind::kClip, 0, 0), {x}, "zero");
    ir::Value* log = m.add(ops::unary::def(), ops::unary::Attrs(ops::unary::Operation::kLog), {zero}, "log");
    m.output(log, "y");
    auto const out = calibrated(m.g, 1, {}, serialWorkers());
    ASSERT_TRUE(out.ok()) << out.error().message;
    EXPECT_EQ(out->zero, (std::vector<std::string>{"zero"}));
    EXPECT_EQ(out->infinite, (std::vector<std::string>{"y"}));
    ASSERT_EQ(out->table.scales.size(), 3u);
    EXPECT_GT(out->table.scales[0].second, 0);
    EXPECT_EQ(out->table.scales[1].second, 0);
    EXPECT_EQ(out->table.scales[2].second, 0);
}

TEST(CalibrationRun, DynamicShapesAtTheOptimum)
{
    GraphMaker m;
    ir::Shape shape = ir::shapeOf({0, 5});
    shape[0] = ir::Dim::symbol("n");
    m.g.symbols["n"] = {};
    m.output(m.add(ops::activation::def(), ops::activation::Attrs(ops::activation::Kind::kRelu), {m.input("x", shape)},
                   "relu"),
             "y");
    plan::Profile profile;
    profile.inputs["x"] = {.min = {1, 5}, .opt = {6, 5}, .max = {9, 5}, .hasShape = true};
    RandomBatches source(2);
    auto const out = calibrate::calibrate(m.g, profile, source, {}, {});
    ASSERT_TRUE(out.ok()) << out.error().message;
    EXPECT_EQ(source.given[0][0].dims(), (Extents{6, 5}));
    RandomBatches other(2);
    auto const without = calibrate::calibrate(m.g, {}, other, {}, {});
    ASSERT_FALSE(without.ok());
    EXPECT_NE(without.error().message.find("'x'"), std::string::npos) << without.error().message;
}

TEST(CalibrationRun, HistogramsInsteadOfBatches)
{
    auto const g = smallNetwork(1);
    Settings settings{.algorithm = Algorithm::kLegacy, .quantile = 0.9};
    auto const first = calibrated(*g, 2, settings, serialWorkers());
    ASSERT_TRUE(first.ok());
    auto known = readHistograms(first->histograms);
    ASSERT_TRUE(known.ok());
    RandomBatches nobody(0);
    auto const again = calibrate::calibrate(*g, {}, nobody, settings, {}, *known);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(again->table.scales, first->table.scales);
    settings.quantile = 0.5;
    auto const other = calibrate::calibrate(*g, {}, nobody, settings, {}, *known);
    ASSERT_TRUE(other.ok());
    EXPECT_LT(other->table.scales[0].second, first->table.scales[0].second);
}

} // namespace tw::test
