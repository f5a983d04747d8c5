// SPDX-License-Identifier: Apache-2.0
// Damaged and untrusted plans: an error that says what is wrong, whatever the bytes.
#include <cstring>
#include <functional>
#include <optional>
#include <random>

#include <gtest/gtest.h>

#include "plan/file.h"
#include "plan/network.h"
#include "plan_generated.h"
#include "support/run_small.h"
#include "support/share_of_the_day.h"

namespace tw::test {

namespace {

using flatbuffers::FlatBufferBuilder;
namespace fb = plan::fb;

std::string const& goodPlan()
{
    static std::string const bytes = [] {
        plan::Contents c = smallNetwork();
        EXPECT_TRUE(buildContents(c).ok());
        auto b = plan::write(c);
        return b.ok() ? *b : std::string();
    }();
    return bytes;
}

std::string const& refittablePlan()
{
    static std::string const bytes = [] {
        plan::Contents c = refittableNetwork();
        EXPECT_TRUE(buildContents(c).ok());
        auto b = plan::write(c);
        return b.ok() ? *b : std::string();
    }();
    return bytes;
}

void setHash(std::string& bytes)
{
    uint64_t const hash = plan::fileHash(bytes.data(), bytes.size(), plan::kMinor);
    std::memcpy(bytes.data() + offsetof(plan::FileHeader, hash), &hash, sizeof hash);
}

template <class T>
void put(std::string& bytes, size_t at, T v)
{
    std::memcpy(bytes.data() + at, &v, sizeof v);
}

void expectError(std::string const& bytes, std::string const& part)
{
    auto r = plan::read(bytes.data(), bytes.size());
    ASSERT_FALSE(r.ok()) << "was read; expected: " << part;
    EXPECT_NE(r.error().message.find(part), std::string::npos) << r.error().message;
}

// Nothing may happen but an error or a plan that can be loaded and run or refused.
void survive(std::string const& bytes)
{
    for (bool keepPanels : {false, true}) {
        auto const held = std::make_shared<std::string>(bytes);
        plan::ReadOptions options;
        options.keepPanels = keepPanels;
        if (keepPanels)
            options.owner = held;
        auto r = plan::read(held->data(), held->size(), options);
        if (!r.ok()) {
            EXPECT_FALSE(r.error().message.empty());
            return;
        }
        if (auto engine = loadEngine(std::move(*r)); engine.ok()) {
            runSmall(*engine);
            if (refitSmall(**engine))
                runSmall(*engine);
        }
    }
}

TEST(PlanUntrusted, NotAPlan)
{
    EXPECT_FALSE(plan::read(nullptr, 0).ok());
    EXPECT_FALSE(plan::read(nullptr, 100).ok());
    expectError("", "0 bytes");
    expectError(std::string(1000, 'x'), "magic");
    expectError(std::string(47, '\0'), "47 bytes");
}

TEST(PlanUntrusted, Versions)
{
    std::string b = goodPlan();
    put<uint16_t>(b, offsetof(plan::FileHeader, major), 2);
    setHash(b);
    expectError(b, "expecting format version 1.10 got 2.10, please rebuild");
    b = goodPlan();
    put<uint16_t>(b, offsetof(plan::FileHeader, minor), plan::kMinor + 1);
    setHash(b);
    expectError(b, "expecting format version 1.10 got 1.11, please rebuild");
    b = goodPlan();
    put<uint32_t>(b, offsetof(plan::FileHeader, library) + 4, 6);
    setHash(b);
    EXPECT_TRUE(plan::read(b.data(), b.size()).ok()) << "another library version is re-targeted";
    plan::ReadOptions strict;
    strict.strictVersion = true;
    auto r = plan::read(b.data(), b.size(), strict);
    ASSERT_FALSE(r.ok());
    EXPECT_NE(r.error().message.find("expecting library version 8.5.3.1 got 8.6.3.1"), std::string::npos)
        << r.error().message;
    EXPECT_TRUE(plan::read(goodPlan().data(), goodPlan().size(), strict).ok());
}

TEST(PlanUntrusted, TruncatedAnywhere)
{
    std::string const& good = goodPlan();
    std::vector<size_t> at{0, 1, 7, 8, 47, 48, good.size() - 1};
    auto sections = plan::unpackFile(good.data(), good.size(), false);
    ASSERT_TRUE(sections.ok());
    for (plan::Section const& s : *sections) {
        size_t const begin = size_t(static_cast<char const*>(s.data) - good.data());
        for (size_t p : {begin - 1, begin, begin + 1, begin + s.sizeBytes - 1, begin + s.sizeBytes})
            if (p < good.size())
                at.push_back(p);
    }
    std::mt19937 random(1);
    for (int i = 0; i < 200; ++i)
        at.push_back(random() % good.size());
    for (size_t p : at) {
        SCOPED_TRACE(p);
        std::string b = good.substr(0, p);
        expectError(b, p < sizeof(plan::FileHeader) ? "bytes" : "truncated");
        if (p <= sizeof(plan::FileHeader))
            continue;
        put<uint64_t>(b, offsetof(plan::FileHeader, fileBytes), p); // the header says so too
        setHash(b);
        if (p < good.size() - 1)
            survive(b);
    }
}

TEST(PlanUntrusted, EveryFlippedBitIsNoticed)
{
    std::string b = goodPlan();
    std::mt19937 random(2);
    for (int i = 0; i < 1500; ++i) {
        size_t const bit = i < 48 * 8 ? size_t(i) : random() % (b.size() * 8);
        b[bit / 8] = char(b[bit / 8] ^ (1 << bit % 8));
        EXPECT_FALSE(plan::read(b.data(), b.size()).ok()) << "bit " << bit;
        b[bit / 8] = char(b[bit / 8] ^ (1 << bit % 8));
    }
    EXPECT_TRUE(plan::read(b.data(), b.size()).ok());
}

// After the hash: random damage to the metadata of small plans.
// The plans of some op cases, others each day, and of all cases with regions, in 400 ways each.
TEST(PlanUntrusted, RandomDamageWithTheHashSetRight)
{
    constexpr size_t kShare = 48;
    std::vector<std::string> plans{goodPlan(), refittablePlan()};
    for (NamedCase const& c : opCases())
        if (isInShare(c.name, kShare) || !c.graph->node->regions.empty()) {
            plan::Contents contents = contentsOf(c.graph->graph);
            ASSERT_TRUE(buildContents(contents).ok()) << c.name;
            auto b = plan::write(contents);
            ASSERT_TRUE(b.ok());
            plans.push_back(*b);
        }
    for (size_t p = 0; p < plans.size(); ++p) {
        std::mt19937 random{unsigned(p)};
        auto sections = plan::unpackFile(plans[p].data(), plans[p].size(), false);
        ASSERT_TRUE(sections.ok());
        for (int round = 0; round < (p == 0 ? 4000 : 400); ++round) {
            SCOPED_TRACE("plan " + std::to_string(p) + ", round " + std::to_string(round));
            std::string b = plans[p];
            plan::Section const& s = (*sections)[random() % sections->size()];
            if (s.sizeBytes == 0)
                continue;
            size_t const begin = size_t(static_cast<char const*>(s.data) - plans[p].data());
            for (unsigned k = random() % 3; k < 3; ++k) {
                size_t const at = begin + random() % s.sizeBytes;
                uint32_t const odd[] = {0, 1, 0xff, 0x7fffffff, 0x80000000, 0xffffffff, uint32_t(random())};
                uint32_t const v = odd[random() % 7];
                std::memcpy(b.data() + at, &v, std::min<size_t>(random() % 4 + 1, begin + s.sizeBytes - at));
            }
            setHash(b);
            survive(b);
        }
    }
}

TEST(PlanUntrusted, SectionTables)
{
    size_t const table = sizeof(plan::FileHeader), entry = sizeof(plan::SectionEntry);
    auto damaged = [&](std::function<void(std::string&)> const& f) {
        std::string b = goodPlan();
        f(b);
        setHash(b);
        return b;
    };
    auto header = [&](size_t at, auto v) { return damaged([&](std::string& b) { put(b, at, v); }); };
    auto field = [&](int i, size_t at, auto v) { return header(table + size_t(i) * entry + at, v); };
    size_t const kind = offsetof(plan::SectionEntry, kind), offset = offsetof(plan::SectionEntry, offset),
                 size = offsetof(plan::SectionEntry, sizeBytes), reserved = offsetof(plan::SectionEntry, reserved);
    expectError(header(offsetof(plan::FileHeader, sectionCount), uint32_t(0)), "section is missing");
    expectError(header(offsetof(plan::FileHeader, sectionCount), uint32_t(65)), "lists 65 sections");
    expectError(header(offsetof(plan::FileHeader, sectionCount), ~uint32_t(0)), "4294967295 sections");
    expectError(header(offsetof(plan::FileHeader, fileBytes), ~uint64_t(0)), "truncated");
    expectError(header(offsetof(plan::FileHeader, fileBytes), uint64_t(0)), "section table does not fit");
    expectError(field(0, kind, uint32_t(0)), "unknown kind 0");
    expectError(field(0, kind, uint32_t(99)), "unknown kind 99");
    expectError(field(0, kind, uint32_t(2)), "repeats kind 2");
    expectError(field(0, reserved, uint32_t(1)), "unknown kind");
    expectError(field(0, offset, uint64_t(0)), "outside the file");
    expectError(field(0, offset, uint64_t(goodPlan().size() + 256)), "outside the file");
    expectError(field(0, offset, ~uint64_t(0) - 255), "outside the file");
    expectError(field(0, offset, uint64_t(257)), "outside the file");
    expectError(field(0, size, ~uint64_t(0)), "outside the file");
    expectError(field(0, size, uint64_t(goodPlan().size())), "outside the file");
    expectError(field(0, size, uint64_t(0)), "META is malformed");
    expectError(field(1, size, uint64_t(7)), "GRAPH is malformed");
    expectError(field(2, size, uint64_t(16)), "TARGET is malformed");
}

// What a refit would run must be of constants alone, and make what is said to be made.
TEST(PlanUntrusted, Recipes)
{
    using Change = std::function<void(plan::Contents&)>;
    auto const after = [](Change const& change) {
        auto c = plan::read(refittablePlan().data(), refittablePlan().size());
        EXPECT_TRUE(c.ok());
        change(*c);
        auto bytes = plan::write(*c);
        EXPECT_TRUE(bytes.ok());
        return bytes.ok() ? *bytes : std::string();
    };
    EXPECT_TRUE(plan::read(after([](auto&) {}).data(), after([](auto&) {}).size()).ok());
    expectError(after([](plan::Contents& c) { c.made.begin()->second = 1000; }), "recipe 1000 of");
    expectError(after([](plan::Contents& c) { c.made.begin()->second = -7; }), "recipe -7 of");
    expectError(after([](plan::Contents& c) { std::swap(c.made.begin()->second, std::next(c.made.begin())->second); }),
                "which its recipe makes");
    expectError(after([](plan::Contents& c) { c.recipes.reset(); }), "of 0");
    expectError(after([](plan::Contents& c) { c.recipes->addInput("x", DataType::kFloat, {ir::Dim(2)}); }),
                "recipes have inputs");
    expectError(after([](plan::Contents& c) {
                    c.recipes = c.graph->clone(); // runs nothing that is constant
                }),
                "recipes have inputs");
}

// ---- sections made by hand

std::string withSection(plan::SectionKind kind, FlatBufferBuilder const& b)
{
    auto sections = plan::unpackFile(goodPlan().data(), goodPlan().size(), false);
    for (plan::Section& s : *sections)
        if (s.kind == kind)
            s = plan::Section{kind, b.GetBufferPointer(), b.GetSize()};
    std::erase_if(*sections, [&](auto const& s) {
        return kind != plan::SectionKind::kTarget && s.kind == plan::SectionKind::kTarget; // does not fit any more
    });
    return plan::packFile(*sections);
}

// x f32[2] -> activation -> y, with one detail at a time made wrong.
struct Spec
{
    std::vector<std::string> shape{"2"};
    std::string xName = "x", op = "activation";
    uint8_t type = 0, fieldKind = 0;
    int32_t xFormat = 0, yFormat = 0;
    bool xOnHost = false;
    int32_t form = 4, fieldNumber = 1, deviceKind = 0, role = 4;
    std::vector<int32_t> inputs{0}, outputs{1}, nodeInputs{0}, nodeOutputs{1};
    std::vector<int64_t> fieldValues{0};
    uint64_t weightsOffset = 0, weightsSize = 0;
    fb::ValueKind secondKind = fb::ValueKind_Produced;
    int64_t lo = 0, hi = 1;
    int depth = 0, values = 2, constants = 0, outputTypes = 1;
    std::vector<int32_t> panels;                    // of constants; empty: none
    std::optional<std::vector<int32_t>> lastPanels; // of the last value, if it differs
    int32_t channels = 1, taps = 1, together = 1;
    bool outputsLast = false;
};

flatbuffers::Offset<fb::Graph> graphOf(FlatBufferBuilder& b, Spec const& s, int depth)
{
    std::vector<flatbuffers::Offset<fb::Value>> values;
    std::vector<std::string> const yShape{"2"};
    for (int i = 0; i < s.values; ++i) {
        auto name = b.CreateString(i == 0 ? s.xName : i == 1 ? "y" : "v" + std::to_string(i));
        auto shape = b.CreateVectorOfStrings(i == 0 ? s.shape : yShape);
        flatbuffers::Offset<fb::Panels> panels;
        auto const& list = i + 1 == s.values && s.lastPanels ? *s.lastPanels : s.panels;
        if (i >= 2 && !list.empty())
            panels = fb::CreatePanels(b, b.CreateVector(list), s.channels, 1, s.taps, s.together, s.outputsLast);
        values.push_back(fb::CreateValue(b, name, s.type, shape,
                                         i == 0   ? fb::ValueKind_Input
                                         : i == 1 ? s.secondKind
                                                  : fb::ValueKind_Constant,
                                         i == 0 && s.xOnHost, 0, 0, false, s.weightsOffset, s.weightsSize, 0, s.role, 0,
                                         i == 0   ? s.xFormat
                                         : i == 1 ? s.yFormat
                                                  : 0,
                                         panels));
    }
    auto integers = b.CreateVector(s.fieldValues);
    std::vector<flatbuffers::Offset<fb::Field>> fields{fb::CreateField(b, s.fieldNumber, s.fieldKind, integers)};
    std::vector<flatbuffers::Offset<fb::TypeWish>> types;
    for (int i = 0; i < s.outputTypes; ++i)
        types.push_back(fb::CreateTypeWish(b, 0, false));
    flatbuffers::Offset<fb::Graph> body;
    if (depth > 0)
        body = graphOf(b, s, depth - 1);
    auto op = b.CreateString(s.op), name = b.CreateString("node");
    auto fieldList = b.CreateVector(fields);
    auto in = b.CreateVector(s.nodeInputs), out = b.CreateVector(s.nodeOutputs);
    auto typeList = b.CreateVector(types);
    auto wish = fb::CreateTypeWish(b, 0, false);
    std::vector<flatbuffers::Offset<fb::Node>> nodes{
        fb::CreateNode(b, 0, op, name, fieldList, in, out, 0, body, 0, wish, typeList, s.deviceKind, -1, false)};
    std::vector<flatbuffers::Offset<fb::Symbol>> symbols{fb::CreateSymbol(b, b.CreateString("N"), s.lo, s.hi)};
    auto symbolList = b.CreateVector(symbols);
    auto valueList = b.CreateVector(values);
    auto graphIn = b.CreateVector(s.inputs), graphOut = b.CreateVector(s.outputs);
    auto nodeList = b.CreateVector(nodes);
    return fb::CreateGraph(b, b.CreateString("g"), s.form, symbolList, valueList, graphIn, graphOut, nodeList);
}

std::string planOfSpec(Spec const& s)
{
    FlatBufferBuilder b;
    b.Finish(graphOf(b, s, s.depth));
    return withSection(plan::SectionKind::kGraph, b);
}

TEST(PlanUntrusted, Graphs)
{
    auto bad = [](auto const& change, char const* part) {
        Spec s;
        change(s);
        SCOPED_TRACE(part);
        expectError(planOfSpec(s), part);
    };
    // The profile of the plan belongs to another network: what is wrong stands after the graph.
    bad([](Spec&) {}, "optimization profile 0: input 'x' has rank 4, the graph has [2]");
    bad([](Spec& s) { s.xName = "z"; }, "tensor 'x' is not what the graph has");
    bad([](Spec& s) { s.xName = "y"; }, "names of their own");
    bad([](Spec& s) { s.type = 77; }, "data type 77");
    bad([](Spec& s) { s.form = 9; }, "graph form 9");
    bad([](Spec& s) { s.form = -1; }, "graph form -1");
    bad([](Spec& s) { s.op = "no_such_op"; }, "which this library does not have");
    bad([](Spec& s) { s.op = ""; }, "which this library does not have");
    bad([](Spec& s) { s.shape = {"2", "2", "2", "2", "2", "2", "2", "2", "2"}; }, "rank 9");
    bad([](Spec& s) { s.shape = {"-2"}; }, "dimension -2");
    bad([](Spec& s) { s.shape = {"3000000000"}; }, "dimension 3000000000");
    bad([](Spec& s) { s.shape = {"2147483647", "2"}; }, "2^31 elements");
    bad([](Spec& s) { s.shape = {"99999999999999999999"}; }, "number expected");
    bad([](Spec& s) { s.shape = {"max(1"}; }, "expected");
    bad([](Spec& s) { s.shape = {std::string(5000, '(')}; }, "longer than");
    bad([](Spec& s) { s.shape = {std::string(4000, '(')}; }, "nested too deeply");
    bad([](Spec& s) { s.shape = {"3"}; }, "inference gives");
    bad([](Spec& s) { s.lo = 2; }, "empty range");
    bad([](Spec& s) { s.inputs = {7}; }, "value 7 of 2");
    bad([](Spec& s) { s.inputs = {-1}; }, "value -1 of 2");
    bad([](Spec& s) { s.inputs = {0, 0}; }, "twice");
    bad([](Spec& s) { s.inputs = {}; }, "before it is made");
    bad([](Spec& s) { s.outputs = {INT32_MAX}; }, "value 2147483647 of 2");
    bad([](Spec& s) { s.nodeInputs = {INT32_MIN}; }, "of 2");
    bad([](Spec& s) { s.nodeInputs = {-1}; }, "misses input 0");
    bad([](Spec& s) { s.nodeInputs = {1}; }, "before it is made");
    bad([](Spec& s) { s.nodeInputs = {}; }, "has 0 inputs");
    bad([](Spec& s) { s.nodeInputs = {0, 0, 0, 0}; }, "has 4 inputs");
    bad([](Spec& s) { s.nodeOutputs = {1, 1}; }, "made twice");
    bad([](Spec& s) { s.nodeOutputs = {0}; }, "made twice");
    bad([](Spec& s) { s.secondKind = fb::ValueKind_Input; }, "not what its kind says");
    bad([](Spec& s) { s.secondKind = static_cast<fb::ValueKind>(9); }, "not what its kind says");
    bad([](Spec& s) { s.outputTypes = 2; }, "number of output types");
    bad([](Spec& s) { s.deviceKind = 5; }, "unknown device");
    bad([](Spec& s) { s.fieldNumber = 99; }, "number 99");
    bad([](Spec& s) { s.fieldNumber = 0; }, "unknown attribute");
    bad([](Spec& s) { s.fieldKind = 7; }, "unknown attribute");
    bad([](Spec& s) { s.fieldKind = 3; }, "another kind");
    bad([](Spec& s) { s.fieldValues = {}; }, "another kind");
    bad([](Spec& s) { s.fieldValues = {1000}; }, "activation 'node'");
    bad([](Spec& s) { s.depth = 40; }, "nested deeper");
    for (int32_t format : {9, 10, 12, 99, 101, -1, INT32_MAX})
        bad([=](Spec& s) { s.xFormat = format; }, "unknown format");
    for (Format f : kFormats) {
        if (f == Format::kLinear)
            continue;
        bad([=](Spec& s) { s.xFormat = int32_t(f); }, "cannot be in format"); // of rank 1
        bad([=](Spec& s) { s.yFormat = int32_t(f); }, "cannot be in format");
        auto onHost = [=](Spec& s) {
            s.shape = {"2", "2", "2", "2"};
            s.xFormat = int32_t(f);
            s.xOnHost = true;
        };
        bad(onHost, "cannot be in format");
    }
    auto cube = [](int32_t format, int depth = 0) {
        return [=](Spec& s) {
            s.shape = {"2", "2", "2"};
            s.xFormat = format;
            s.depth = depth;
        };
    };
    bad(cube(int32_t(Format::kDHWC8)), "for tensors of rank 4");
    bad(cube(int32_t(Format::kCDHW32)), "for tensors of rank 4");
    bad(cube(int32_t(Format::kChannelsLast)), "which is internal");
    bad(cube(int32_t(Format::kHWC), 1), "inside regions and bodies");
    auto constant = [](uint64_t offset, uint64_t size, int count = 1) {
        return [=](Spec& s) {
            s.values = 2 + count;
            s.weightsOffset = offset;
            s.weightsSize = size;
        };
    };
    bad(constant(0, 4), "outside the weights");
    bad(constant(1, 8), "outside the weights");
    bad(constant(1u << 30, 8), "outside the weights");
    bad(constant(~uint64_t(0) - 255, 8), "outside the weights");
    bad(constant(0, ~uint64_t(0)), "outside the weights");
    bad(
        [&](Spec& s) {
            constant(0, 8)(s);
            s.role = 99;
        },
        "unknown role");
    auto panels = [&](std::vector<int32_t> list, auto const& change) {
        return [=](Spec& s) {
            constant(0, 8)(s);
            s.panels = list;
            change(s);
        };
    };
    auto asIs = [](Spec&) {};
    bad(panels({2}, asIs), "optimization profile 0"); // right
    bad(panels({1, 1}, asIs), "optimization profile 0");
    bad(panels({3}, asIs), "do not fit its shape");
    bad(panels({1}, asIs), "do not fit its shape");
    bad(panels({2, 0}, asIs), "do not fit its shape");
    bad(panels({4, -2}, asIs), "do not fit its shape");
    bad(panels({2}, [](Spec& s) { s.channels = 2; }), "do not fit its shape");
    bad(panels({2}, [](Spec& s) { s.channels = s.taps = INT32_MIN; }), "do not fit its shape");
    bad(panels({2}, [](Spec& s) { s.taps = 0; }), "do not fit its shape");
    bad(panels({2}, [](Spec& s) { s.together = -1; }), "do not fit its shape");
    bad(panels({1}, [](Spec& s) { s.taps = 2, s.outputsLast = true; }), "do not fit its shape");
    bad(panels({1}, [](Spec& s) { s.type = 3, s.channels = 2; }), "do not fit its shape"); // i32
    bad(panels({2}, [](Spec& s) { s.values = 4; }), "optimization profile 0");             // two of one range and order
    bad(panels({2}, [](Spec& s) { s.values = 4, s.lastPanels = std::vector<int32_t>{1, 1}; }), "overlap");
    bad(panels({2}, [](Spec& s) { s.values = 4, s.lastPanels.emplace(); }), "overlap");
    bad(panels({}, [](Spec& s) { s.values = 4, s.lastPanels = std::vector<int32_t>{2}; }), "overlap");
    bad(panels({2}, [](Spec& s) { s.depth = 1; }), "of a region or body lies in panels");
}

// A few bytes that name gigabytes: a text or list that everything shares.
TEST(PlanUntrusted, SharedTextsAndTables)
{
    FlatBufferBuilder b;
    auto name = b.CreateString(std::string(1 << 20, 'a'));
    std::vector<flatbuffers::Offset<fb::Value>> values;
    for (int i = 0; i < 200'000; ++i)
        values.push_back(fb::CreateValue(b, name));
    auto list = b.CreateVector(values);
    b.Finish(fb::CreateGraph(b, 0, 0, 0, list));
    expectError(withSection(plan::SectionKind::kGraph, b), "many times larger than the file");

    FlatBufferBuilder deep; // 16 levels of 16 nodes on the same body: 16^16 nodes
    flatbuffers::Offset<fb::Graph> graph = fb::CreateGraph(deep);
    for (int i = 0; i < 16; ++i) {
        auto node = fb::CreateNode(deep, 0, 0, 0, 0, 0, 0, 0, graph);
        auto nodes = deep.CreateVector(std::vector<flatbuffers::Offset<fb::Node>>(16, node));
        graph = fb::CreateGraph(deep, 0, 0, 0, 0, 0, 0, nodes);
    }
    deep.Finish(graph);
    expectError(withSection(plan::SectionKind::kGraph, deep), "GRAPH is malformed");
}

TEST(PlanUntrusted, MetaAndTargets)
{
    struct Meta
    {
        std::vector<int64_t> min{1, 1, 8, 8}, opt{2, 1, 8, 8}, max{4, 1, 8, 8};
        std::vector<int32_t> minValues, maxValues;
        std::string input = "x", second = "y";
        int32_t batch = 1, verbosity = 0;
        int profiles = 1, dimensionNames = 0, dlaFormat = 0, dlaModel = 0, dlaCore = 0, dlaLoadables = 0;
        std::vector<int64_t> dlaDims;
    };
    auto bad = [](auto const& change, char const* part) {
        Meta m;
        change(m);
        SCOPED_TRACE(part);
        FlatBufferBuilder b;
        std::vector<flatbuffers::Offset<fb::IoTensor>> io;
        auto names = b.CreateVectorOfStrings(std::vector<std::string>(size_t(m.dimensionNames), "d"));
        auto dlaDims = b.CreateVector(m.dlaDims);
        io.push_back(fb::CreateIoTensor(b, b.CreateString("x"), true, false, true, false, names, m.dlaFormat, dlaDims));
        io.push_back(fb::CreateIoTensor(b, b.CreateString(m.second)));
        std::vector<flatbuffers::Offset<fb::Profile>> profiles;
        for (int p = 0; p < m.profiles; ++p) {
            auto name = b.CreateString(m.input);
            auto min = b.CreateVector(m.min), opt = b.CreateVector(m.opt), max = b.CreateVector(m.max);
            auto low = b.CreateVector(m.minValues), high = b.CreateVector(m.maxValues);
            std::vector<flatbuffers::Offset<fb::ProfileInput>> inputs{
                fb::CreateProfileInput(b, name, true, min, opt, max, low, high, high)};
            profiles.push_back(fb::CreateProfile(b, b.CreateVector(inputs)));
        }
        auto profileList = b.CreateVector(profiles);
        b.Finish(fb::CreateMeta(b, 0, b.CreateVector(io), profileList, false, m.batch, false, m.verbosity, 0, 0, 0,
                                m.dlaModel, m.dlaCore, m.dlaLoadables));
        expectError(withSection(plan::SectionKind::kMeta, b), part);
    };
    bad([](Meta& m) { m.dlaModel = 3; }, "a DLA, core or number of loadables");
    bad([](Meta& m) { m.dlaCore = 2; }, "a DLA, core or number of loadables");
    bad([](Meta& m) { m.dlaLoadables = 17; }, "a DLA, core or number of loadables");
    bad([](Meta& m) { m.dlaFormat = 8; }, "in the DLA format 8, which does not exist");
    bad([](Meta& m) { m.dlaDims = {1, 1, 8, 8}; }, "dimensions of no DLA format");
    bad([](Meta& m) { m.dlaFormat = 9; }, "its plan or value is not");
    bad([](Meta& m) { m.dlaModel = 2, m.dlaFormat = 9; }, "its plan or value is not"); // x is dynamic
    bad([](Meta& m) { m.batch = 0; }, "maximum batch size 0");
    bad([](Meta& m) { m.verbosity = 3; }, "verbosity");
    bad([](Meta& m) { m.profiles = 0; }, "0 optimization profiles");
    bad([](Meta& m) { m.dimensionNames = 9; }, "9 dimension names");
    bad([](Meta& m) { m.input = "z"; }, "input 'z' is not in the graph");
    bad([](Meta& m) { m.second = "x"; }, "tensor 'x' is not what the graph has");
    bad([](Meta& m) { m.second = "z"; }, "tensor 'z' is not what the graph has");
    bad([](Meta& m) { m.min = {5, 1, 8, 8}; }, "ranges over [5,1,8,8], [2,1,8,8], [4,1,8,8]");
    bad([](Meta& m) { m.max = {4, 1, 8, 9}; }, "ranges over");
    bad([](Meta& m) { m.max = {4, 1, 8}; }, "differ in rank");
    bad([](Meta& m) { m.max = {-1, 1, 8, 8}; }, "dimension -1");
    bad([](Meta& m) { m.max = {1 << 30, 1, 8, 8}; }, "2^31 elements");
    bad([](Meta& m) { m.max = m.opt = m.min = std::vector<int64_t>(9, 1); }, "rank 9");
    bad([](Meta& m) { m.maxValues = {1}; }, "differ in rank");
    bad([](Meta& m) { m.minValues = m.maxValues = {1}; }, "has 1 values");

    auto badTarget = [](int steps, int32_t node, char const* part) {
        SCOPED_TRACE(part);
        FlatBufferBuilder b;
        std::vector<flatbuffers::Offset<fb::Step>> list;
        for (int i = 0; i < steps; ++i)
            list.push_back(fb::CreateStep(b, node < 0 ? i : node));
        auto block = fb::CreateBlock(b, b.CreateVector(list));
        b.Finish(fb::CreateTarget(b, b.CreateString("cpu"), 0, block));
        expectError(withSection(plan::SectionKind::kTarget, b), part);
    };
    auto good = plan::read(goodPlan().data(), goodPlan().size());
    ASSERT_TRUE(good.ok());
    int const steps = int(good->graph->nodes.size());
    badTarget(steps + 1, -1, "another number of steps");
    badTarget(steps, 3, "step 0 runs node 3");
    FlatBufferBuilder empty;
    empty.Finish(fb::CreateTarget(empty));
    expectError(withSection(plan::SectionKind::kTarget, empty), "no steps");
}

} // namespace

} // namespace tw::test
