// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <fstream>

#include <gtest/gtest.h>

#include "base/hash.h"
#include "device/thread_pool.h"
#include "interp/interp.h"
#include "kernels/cpu/jit/emitter.h"
#include "ops/activation/op.h"
#include "plan/file.h"
#include "plan/network.h"
#include "plan/old.h"
#include "runtime/constants.h"
#include "support/share_of_the_day.h"
#include "tactic/cpu_tactic.h"
#include "tactic/registry.h"

namespace tw::test {

namespace {

std::string written(plan::Contents const& c)
{
    auto bytes = plan::write(c);
    EXPECT_TRUE(bytes.ok()) << bytes.error().message;
    return bytes.ok() ? *bytes : std::string();
}

// Reads and writes again; the bytes must stay.
void expectStable(std::string const& bytes)
{
    auto read = plan::read(bytes.data(), bytes.size());
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_TRUE(written(*read) == bytes) << "a plan that was read is written differently";
}

TEST(PlanRoundTrip, ImportedGraphsOfEveryCase)
{
    ASSERT_GT(opCases().size(), 100u);
    for (NamedCase const& c : opCases()) {
        SCOPED_TRACE(c.name);
        std::string const bytes = written(contentsOf(c.graph->graph));
        EXPECT_TRUE(written(contentsOf(c.graph->graph)) == bytes) << "equal contents, other bytes";
        expectStable(bytes);
    }
}

TEST(PlanRoundTrip, BuiltGraphsOfEveryCaseRun)
{
    int withRegions = 0, withPanels = 0;
    size_t number = 0;
    for (NamedCase const& c : opCases()) {
        // Some of those with weights in panels come every day.
        bool const isOften = c.name.starts_with("convolution.3x3_to_") || c.name == "convolution.1x1_wide";
        if (!isInShare(number++, 4) && !isOften)
            continue;
        SCOPED_TRACE(c.name);
        if (c.graph->node->op->stateful && c.graph->node->op->stateful(*c.graph->node))
            continue;
        plan::Contents contents = contentsOf(c.graph->graph);
        auto want = interp::run(c.graph->graph, c.graph->graphInputs);
        ASSERT_TRUE(want.ok()) << want.error().message;
        auto built = buildContents(contents);
        ASSERT_TRUE(built.ok()) << built.error().message;
        std::string const bytes = written(contents);
        expectStable(bytes);
        auto read = plan::read(bytes.data(), bytes.size());
        ASSERT_TRUE(read.ok());
        EXPECT_EQ(read->targets.at(0).root, contents.targets.at(0).root);
        withRegions += !read->targets[0].root.steps.empty() && !read->targets[0].root.steps[0].regions.empty();
        auto engine = loadEngine(std::move(*read));
        ASSERT_TRUE(engine.ok()) << engine.error().message;
        auto got = runEngine(*engine, c.graph->graphInputs);
        ASSERT_TRUE(got.ok()) << got.error().message;
        for (size_t i = 0; i < want->size(); ++i)
            EXPECT_EQ(compare((*got)[i].ref(), (*want)[i].ref(), toleranceOf(*c.graph->node, (*want)[i].type())), "");
        if (contents.panels.empty())
            continue;
        // Weights in the kernels' order, used where they lie: the same to the last bit.
        auto const held = std::make_shared<Tensor>(DataType::kInt8, Extents{int64_t(bytes.size())});
        std::memcpy(held->data(), bytes.data(), bytes.size());
        plan::ReadOptions options;
        options.owner = held;
        options.keepPanels = true;
        auto kept = plan::read(held->data(), bytes.size(), options);
        ASSERT_TRUE(kept.ok()) << kept.error().message;
        auto again = loadEngine(std::move(*kept));
        ASSERT_TRUE(again.ok()) << again.error().message;
        auto same = runEngine(*again, c.graph->graphInputs);
        ASSERT_TRUE(same.ok()) << same.error().message;
        for (size_t i = 0; i < want->size(); ++i)
            EXPECT_EQ(compare((*same)[i].ref(), (*got)[i].ref(), {}), "");
        ++withPanels;
    }
    EXPECT_GT(withRegions, 0);
    EXPECT_TRUE(withPanels > 0 || !kernels::jit::isaOf(ops::thisCpu()));
}

TEST(PlanRoundTrip, BodiesAndSharedWeights)
{
    plan::Contents c = smallNetwork();
    ir::Graph& g = *c.graph;
    // Two constants on one blob, and a node whose body captures it too.
    std::shared_ptr<ir::Constant const> shared;
    for (auto const& v : g.values())
        if (v->name == "fc.w")
            shared = v->constant;
    g.addConstant("fc.w again", DataType::kFloat, {64, 10}, shared);
    auto body = std::make_unique<ir::Graph>();
    body->symbols = g.symbols;
    ir::Value* in = body->addInput("in", DataType::kFloat, g.outputs[0]->shape);
    body->addConstant("captured", DataType::kFloat, {10, 64}, shared);
    auto inner = body->addNode(ops::activation::def(), std::make_unique<ops::activation::Attrs>(), {in}, "inner");
    ASSERT_TRUE(inner.ok());
    body->outputs = (*inner)->outputs;
    auto fused = g.addNode(ops::activation::def(), std::make_unique<ops::activation::Attrs>(), {g.outputs[0]}, "fused",
                           {}, -1, std::move(body));
    ASSERT_TRUE(fused.ok());
    g.outputs[0]->name = "inside";
    g.outputs = (*fused)->outputs;
    g.outputs[0]->name = "y";
    std::string const bytes = written(c);
    expectStable(bytes);
    EXPECT_LT(bytes.size(), written(smallNetwork()).size() + 64 * 10 * sizeof(float))
        << "shared weights are written once";
}

// Kernels of one profile may be others than those of the first; what they share is loaded once.
TEST(PlanRoundTrip, ChoicesOfProfilesSurvive)
{
    plan::Contents c = smallNetwork();
    std::unique_ptr<ir::Graph> const network = c.graph->clone();
    ASSERT_TRUE(buildContents(c).ok());
    addPlainProfile(c);
    std::string const bytes = written(c);
    expectStable(bytes);
    auto read = plan::read(bytes.data(), bytes.size());
    ASSERT_TRUE(read.ok()) << read.error().message;
    auto engine = loadEngine(std::move(*read));
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    auto const now = (*engine)->generation();
    ASSERT_EQ(now->blocks.size(), 2u);
    for (size_t i = 0; i < now->block().steps.size(); ++i) {
        bool const isShared = i + 1 < now->block().steps.size();
        EXPECT_EQ(now->block(0).steps[i].kernel == now->block(1).steps[i].kernel, isShared) << i;
    }
    runtime::LoadedStep const& own = now->block(1).steps.back();
    EXPECT_EQ(own.tactic, own.node->op->cpuTactics->back());
    Tensor const x = smallNetworkInput(3);
    auto const want = interp::run(*network, {x.ref()});
    ASSERT_TRUE(want.ok());
    for (int profile : {0, 1}) {
        auto const got = runEngine(*engine, {x.ref()}, profile);
        ASSERT_TRUE(got.ok()) << got.error().message;
        EXPECT_EQ(compare((*got)[0].ref(), (*want)[0].ref(), {}), "") << profile;
    }
}

TEST(PlanRoundTrip, ChoicesForSomeProfilesAreRefused)
{
    plan::Contents c = smallNetwork();
    ASSERT_TRUE(buildContents(c).ok());
    addPlainProfile(c);
    c.profiles.push_back(c.profiles[0]);
    std::string const bytes = written(c);
    auto const read = plan::read(bytes.data(), bytes.size());
    ASSERT_FALSE(read.ok());
    EXPECT_NE(read.error().message.find("2 of 3 optimization profiles"), std::string::npos) << read.error().message;
}

// A refit of the engine that was loaded gives what the network gives with the new weights.
TEST(PlanRoundTrip, RecipesSurvive)
{
    plan::Contents c = refittableNetwork();
    std::unique_ptr<ir::Graph> const network = c.graph->clone();
    ASSERT_TRUE(buildContents(c).ok());
    addPlainProfile(c);
    EXPECT_EQ(c.made.size(), 3u);
    std::string const bytes = written(c);
    expectStable(bytes);
    auto read = plan::read(bytes.data(), bytes.size());
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->made.size(), 3u);
    auto engine = loadEngine(std::move(*read));
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    runtime::NewWeights weights;
    auto const constants = runtime::constantsOf(*(*engine)->contents().recipes);
    for (size_t i = 0; i < constants.size(); ++i) {
        ir::Constant const& from = *constants[i]->constant;
        if (from.layer.empty())
            continue;
        Tensor t(DataType::kFloat, ir::extentsOf(constants[i]->shape));
        for (int64_t k = 0; k < t.count(); ++k)
            t.ref().set(k, double(k * 17 % 23) / 23 - 0.5);
        weights[i] = Blob::copy(t.data(), from.data->sizeBytes());
        for (auto const& v : network->values())
            if (v->isConstant() && v->constant->layer == from.layer && v->constant->role == from.role)
                runtime::setData(*v, weights[i]);
    }
    EXPECT_EQ(weights.size(), 3u);
    auto const refitted = (*engine)->refit(weights, serialWorkers(), nullptr);
    ASSERT_TRUE(refitted.ok()) << refitted.error().message;
    Tensor const x = smallNetworkInput(3);
    auto const want = interp::run(*network, {x.ref()});
    ASSERT_TRUE(want.ok());
    for (int profile : {0, 1}) {
        auto const got = runEngine(*engine, {x.ref()}, profile);
        ASSERT_TRUE(got.ok());
        EXPECT_EQ(compare((*got)[0].ref(), (*want)[0].ref(), {}), "") << profile;
    }
}

TEST(PlanRoundTrip, EverySettingSurvives)
{
    plan::Contents c = smallNetwork();
    c.profiles.push_back(c.profiles[0]);
    c.profiles[1].inputs["x"].max = {3, 1, 8, 8};
    ASSERT_TRUE(buildContents(c).ok());
    c.implicitBatch = true;
    c.maxBatchSize = 17;
    c.refittable = true;
    c.profilingVerbosity = 2;
    c.engineCapability = 1;
    c.tacticSources = 5;
    c.io[0].broadcastAcrossBatch = true;
    c.io[0].isExecution = false;
    c.io[1].isShapeTensor = true;
    c.io[1].dimensionNames = {"", "classes"};
    c.scales[c.graph->values()[1].get()] = 0.25;
    c.graph->nodes[0]->precision = {DataType::kHalf, true};
    c.graph->nodes[0]->outputTypes[0] = {DataType::kFloat, true};
    c.graph->nodes[0]->device = {{ir::DeviceKind::kDla, 1}, true};
    c.graph->nodes[0]->layers = {"conv", "and more"};
    c.targets[0].root.steps[0].choice.image = std::string("bytes\0with zeros", 16);
    c.targets[0].root.steps[0].choice.config = {1, -2, 3};
    plan::Block other = c.targets[0].root;
    other.steps[0].choice = {.microseconds = 3};
    c.targets[0].others = {};
    c.targets.push_back(plan::Target{"cuda", "sm_90", c.targets[0].root, {other}});
    std::string const bytes = written(c);
    expectStable(bytes);
    auto r = plan::read(bytes.data(), bytes.size());
    ASSERT_TRUE(r.ok()) << r.error().message;
    EXPECT_EQ(r->io, c.io);
    EXPECT_EQ(r->profiles, c.profiles);
    EXPECT_EQ(r->notes, c.notes);
    EXPECT_EQ(r->engineName, c.engineName);
    EXPECT_TRUE(r->implicitBatch && r->refittable);
    EXPECT_EQ(r->maxBatchSize, 17);
    EXPECT_EQ(r->profilingVerbosity, 2);
    EXPECT_EQ(r->engineCapability, 1);
    EXPECT_EQ(r->tacticSources, 5u);
    ASSERT_EQ(r->targets.size(), 2u);
    EXPECT_EQ(r->targets[1].backend, "cuda");
    EXPECT_EQ(r->targets[1].fingerprint, "sm_90");
    EXPECT_EQ(r->targets[1].root, c.targets[1].root);
    EXPECT_TRUE(r->targets[0].others.empty());
    EXPECT_EQ(r->targets[1].others, c.targets[1].others);
    ir::Node const &a = *r->graph->nodes[0], &b = *c.graph->nodes[0];
    EXPECT_EQ(a.precision, b.precision);
    EXPECT_EQ(a.outputTypes, b.outputTypes);
    EXPECT_EQ(a.device, b.device);
    EXPECT_EQ(a.layers, b.layers);
    EXPECT_EQ(r->graph->symbols, c.graph->symbols);
    EXPECT_EQ(r->scales, (std::map<ir::Value const*, double>{{r->graph->values()[1].get(), 0.25}}));
    EXPECT_EQ(r->graph->form, ir::Form::kScheduled);
}

TEST(PlanRoundTrip, SameNetworkAndCacheGiveTheSameBytes)
{
    tune::TimingCache cache("test");
    std::string first;
    for (int round = 0; round < 3; ++round) {
        plan::Contents c = smallNetwork();
        auto built = buildContents(c, &cache);
        ASSERT_TRUE(built.ok()) << built.error().message;
        std::string const bytes = written(c);
        if (round == 0)
            first = bytes;
        EXPECT_TRUE(bytes == first) << "build " << round << " differs";
    }
    // A cache that was saved and loaded counts as the same.
    std::string const saved = cache.serialize();
    auto loaded = tune::TimingCache::deserialize(saved.data(), saved.size(), "test");
    ASSERT_TRUE(loaded.ok());
    plan::Contents c = smallNetwork();
    ASSERT_TRUE(buildContents(c, loaded->cache.get()).ok());
    EXPECT_TRUE(written(c) == first);
}

TEST(PlanRoundTrip, KeepsNoReferenceToTheCallersBytes)
{
    plan::Contents c = smallNetwork();
    Tensor const x = smallNetworkInput(3);
    auto want = interp::run(*c.graph, {x.ref()});
    ASSERT_TRUE(want.ok());
    ASSERT_TRUE(buildContents(c).ok());
    std::string bytes = written(c);
    for (size_t shift : {size_t(0), size_t(1), size_t(8)}) { // a client's blob may lie anywhere
        std::vector<char> blob(bytes.size() + shift);
        std::memcpy(blob.data() + shift, bytes.data(), bytes.size());
        auto read = plan::read(blob.data() + shift, bytes.size());
        ASSERT_TRUE(read.ok()) << read.error().message;
        std::fill(blob.begin(), blob.end(), char(0xff));
        blob = {};
        auto engine = loadEngine(std::move(*read));
        ASSERT_TRUE(engine.ok()) << engine.error().message;
        auto got = runEngine(*engine, {x.ref()});
        ASSERT_TRUE(got.ok()) << got.error().message;
        EXPECT_EQ(compare((*got)[0].ref(), (*want)[0].ref(), {}), "");
    }
}

TEST(PlanRoundTrip, SectionsAreAligned)
{
    plan::Contents c = smallNetwork();
    ASSERT_TRUE(buildContents(c).ok());
    std::string const bytes = written(c);
    auto sections = plan::unpackFile(bytes.data(), bytes.size(), true);
    ASSERT_TRUE(sections.ok());
    ASSERT_EQ(sections->size(), 4u);
    for (plan::Section const& s : *sections)
        EXPECT_EQ((static_cast<char const*>(s.data) - bytes.data()) % int64_t(plan::kAlignment), 0);
    EXPECT_EQ(bytes.size() % plan::kAlignment, 0u);
}

uint64_t wordAt(std::string const& bytes, size_t at)
{
    uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    return word;
}
// High half of a product.
uint64_t highProduct(uint64_t a, uint64_t b)
{
    uint64_t const aLow = uint32_t(a), aHigh = a >> 32, bLow = uint32_t(b), bHigh = b >> 32;
    uint64_t const middle = aHigh * bLow + (aLow * bLow >> 32), other = aLow * bHigh + uint32_t(middle);
    return aHigh * bHigh + (middle >> 32) + (other >> 32);
}

// The hash as plan/file.h describes it, in the plainest way.
uint64_t plainFileHash(std::string const& bytes)
{
    constexpr size_t kPiece = 1 << 20;
    std::string all = bytes.substr(0, offsetof(plan::FileHeader, hash));
    for (size_t at = sizeof(plan::FileHeader); at < bytes.size(); at += kPiece) {
        uint64_t const hash = hashBytes(bytes.data() + at, std::min(kPiece, bytes.size() - at));
        all.append(reinterpret_cast<char const*>(&hash), sizeof hash);
    }
    return hashBytes(all.data(), all.size());
}

// And as plan/old.h does.
uint64_t plainOldHash(std::string const& bytes, int minor)
{
    constexpr size_t kPiece = 1 << 20;
    size_t const lanes = minor < 3 ? 4 : 8, step = minor < 3 ? 32 : 128;
    plan::OldHasher h;
    h.bytes(bytes.data(), offsetof(plan::FileHeader, hash));
    for (size_t at = sizeof(plan::FileHeader); at < bytes.size(); at += kPiece) {
        size_t const size = std::min(kPiece, bytes.size() - at), whole = size / step * step;
        plan::OldHasher seeds;
        for (size_t lane = 0; lane < lanes; ++lane) {
            seeds.number(lane);
            uint64_t state = seeds.value();
            seeds.number(lane);
            uint64_t const key = seeds.value();
            plan::OldHasher words;
            for (size_t i = 0; i < whole; i += step) {
                if (minor < 3) {
                    words.number(wordAt(bytes, at + i + 8 * lane));
                    continue;
                }
                uint64_t const w = wordAt(bytes, at + i + 16 * lane), v = wordAt(bytes, at + i + 16 * lane + 8);
                uint64_t const x = state ^ w, y = key ^ v;
                state = ((x * y) ^ highProduct(x, y)) + w + v;
            }
            h.number(minor < 3 ? words.value() : state);
        }
        h.bytes(bytes.data() + at + whole, size - whole);
    }
    return h.value();
}

TEST(PlanFile, HashDoesNotDependOnWorkers)
{
    device::ThreadPool pool(3);
    std::string bytes(5 << 20, '\0');
    for (size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = char(i * 2654435761u >> 24);
    size_t const header = sizeof(plan::FileHeader), piece = 1 << 20;
    for (size_t size : {size_t(0), size_t(1), size_t(40), piece - 1, piece, piece + 31, piece + 33, 2 * piece,
                        3 * piece - 8, 3 * piece, 4 * piece + 100}) {
        std::string const file = bytes.substr(0, header + size);
        for (uint16_t minor : {uint16_t(1), uint16_t(2), uint16_t(5), plan::kMinor}) {
            uint64_t const want = minor == plan::kMinor ? plainFileHash(file) : plainOldHash(file, minor);
            EXPECT_EQ(plan::fileHash(file.data(), file.size(), minor), want) << size;
            EXPECT_EQ(plan::fileHash(file.data(), file.size(), minor, nullptr, pool.workers()), want) << size;
        }
    }
}

TEST(PlanFile, HashFindsEveryFlippedBit)
{
    std::string bytes(sizeof(plan::FileHeader) + 3 * 128 + 21, '\0'); // of zeros: factors may be zero too
    for (uint16_t minor : {uint16_t(5), plan::kMinor}) {
        uint64_t const before = plan::fileHash(bytes.data(), bytes.size(), minor);
        for (size_t at = sizeof(plan::FileHeader); at < bytes.size(); ++at)
            for (int bit = 0; bit < 8; ++bit) {
                bytes[at] = char(1 << bit);
                EXPECT_NE(plan::fileHash(bytes.data(), bytes.size(), minor), before) << at << ", bit " << bit;
                bytes[at] = 0;
            }
    }
}

// XXH3 of its published description, whatever it is compiled for.
TEST(Hash, IsXxh3)
{
    EXPECT_EQ(hashBytes("", 0), 0x2d06800538d394c2u);
    EXPECT_EQ(hashBytes128("", 0).low, 0x6001c324468d497fu);
    EXPECT_EQ(hashBytes128("", 0).high, 0x99aa06d3014798d8u);
    std::string bytes(3000, '\0');
    for (size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = char(i * 2654435761u >> 24);
    for (size_t size : {0, 1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 1024, 1025, 3000})
        for (size_t cut : {size_t(0), size / 3, size}) {
            Hasher h;
            h.bytes(bytes.data(), cut);
            h.bytes(bytes.data() + cut, size - cut);
            EXPECT_EQ(h.value(), hashBytes(bytes.data(), size)) << size << " cut at " << cut;
        }
}

std::string savedStem(char const* name)
{
    return std::string(TW_SAVED_PLANS) + "/" + name;
}

std::string savedPlan(char const* name)
{
    std::ifstream file(savedStem(name) + ".plan", std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), {});
    EXPECT_FALSE(bytes.empty()) << savedStem(name) << ".plan";
    return bytes;
}

void expectSaved(char const* name, TensorRef const& got)
{
    Tensor want(DataType::kFloat, got.dims);
    std::ifstream text(savedStem(name) + ".txt");
    double v = 0, lo = 1, hi = 0;
    for (int64_t i = 0; i < want.count(); ++i) {
        ASSERT_TRUE(text >> v) << savedStem(name) << ".txt ends at " << i;
        want.ref().set(i, v);
        lo = std::min(lo, v);
        hi = std::max(hi, v);
    }
    EXPECT_FALSE(text >> v) << savedStem(name) << ".txt has more";
    EXPECT_GT(hi - lo, 0.05) << "nearly constant outputs prove nothing";
    EXPECT_EQ(compare(got, want.ref(), {}), "");
}

// Each of the tactics that were chosen is still in its op's list, by name and id, if its version was not raised.
void expectTacticsAreThere(plan::Contents const& read)
{
    for (plan::Step const& step : read.targets.at(0).root.steps) {
        ir::Node const& n = *read.graph->nodes[size_t(step.node)];
        auto const list = *n.op->cpuTactics;
        auto const t = std::find_if(list.begin(), list.end(), [&](ops::Tactic const* candidate) {
            return candidate->name() == step.choice.name;
        });
        ASSERT_NE(t, list.end()) << n.name << ": " << step.choice.name;
        EXPECT_TRUE((*t)->id() == step.choice.tactic || (*t)->version() > step.choice.version)
            << n.name << ": " << step.choice.name;
    }
}

// Plans of each minor version stay readable and keep their meaning, on any CPU.
TEST(PlanSaved, LoadsAndGivesTheRecordedOutputs)
{
    for (int minor = 0; minor <= plan::kMinor; ++minor) {
        std::string const version = fmt::format("v1_{}", minor);
        SCOPED_TRACE(version);
        std::string const bytes = savedPlan(version.c_str());
        auto read = plan::read(bytes.data(), bytes.size());
        ASSERT_TRUE(read.ok()) << read.error().message;
        EXPECT_EQ(read->notes.at("made by"), "test_plan");
        EXPECT_EQ(read->panels.size(), minor < 3 ? 0u : minor < 4 ? 2u : 3u);
        size_t const profiles = minor < 10 ? 1 : 2;
        EXPECT_EQ(read->profiles.size(), profiles);
        EXPECT_EQ(read->targets.at(0).others.size(), profiles - 1);
        expectTacticsAreThere(*read);
        auto engine = loadEngine(std::move(*read));
        ASSERT_TRUE(engine.ok()) << engine.error().message;
        Tensor const x = smallNetworkInput(2);
        for (int profile = 0; profile < int(profiles); ++profile) {
            auto got = runEngine(*engine, {x.ref()}, profile);
            ASSERT_TRUE(got.ok()) << got.error().message;
            expectSaved(version.c_str(), (*got)[0].ref());
        }
    }
}

// A matrix product, a convolution and what was fused with them were seven ops more until 1.4, with tactics of their own.
TEST(PlanSaved, OldOpsRunWithTheirTactics)
{
    std::string const bytes = savedPlan("v1_3_ops");
    auto read = plan::read(bytes.data(), bytes.size());
    ASSERT_TRUE(read.ok()) << read.error().message;
    std::string ops;
    for (auto const& n : read->graph->nodes)
        ops += std::string(ops.empty() ? "" : " ") + n->op->name;
    EXPECT_EQ(ops, "reformat convolution convolution convolution reformat matrix_multiply matrix_multiply shuffle "
                   "matrix_multiply matrix_multiply matrix_multiply");
    expectTacticsAreThere(*read);
    expectStable(written(*read));
    auto engine = loadEngine(std::move(*read));
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    Tensor x(DataType::kFloat, {2, 4, 6, 6});
    for (int64_t i = 0; i < x.count(); ++i)
        x.ref().set(i, double((i * 29 + 7) % 50 - 25) / 32);
    auto got = runEngine(*engine, {x.ref()});
    ASSERT_TRUE(got.ok()) << got.error().message;
    expectSaved("v1_3_ops", (*got)[0].ref());
}

} // namespace

} // namespace tw::test
