// SPDX-License-Identifier: Apache-2.0
// Passes by text: graphs/<pass>/<case>.graph holds a graph, a line "---" and what the pass makes of it, or "unchanged".
// The numbers of nodes do not count, and bodies only where the wanted text has one. Beside the text: what every pass
// keeps (pass_test.h). A line "#! ..." before the graph says what the pass is told:
//   gpu 90       the engine is for a GPU of this capability        cpu 1024   for a CPU with AVX2 and so many bytes of
// L2
//   avx512       for a CPU with AVX-512
//   half         FP16 is permitted                                 refittable
//   obey         precisions of layers are demands
//   tolerance t  of the numbers                                    N 2        the size of a symbol
//   large        nothing is computed: it would take seconds
//   range x s    INT8 is permitted, and so much is one step of tensor x
#include "ir/text.h"

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "pass_test.h"

namespace tw::test {

namespace {

namespace fs = std::filesystem;

struct Told
{
    PassCheck check;
    bool isLarge = false;
};

struct GraphCase
{
    std::string before, after; // empty: unchanged
    Told told;
};

fs::path const kGraphs = TW_PASS_GRAPHS;

std::vector<std::string> listOf(fs::path const& folder)
{
    std::vector<std::string> names;
    for (auto const& entry : fs::directory_iterator(folder))
        names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

// "pass/case", sorted.
std::vector<std::string> allCases()
{
    std::vector<std::string> all;
    for (std::string const& pass : listOf(kGraphs))
        for (std::string const& file : listOf(kGraphs / pass))
            all.push_back(pass + "/" + fs::path(file).stem().string());
    return all;
}

void readWord(std::istringstream& words, std::string const& word, Told& to)
{
    using passes::TargetInfo;
    if (word == "gpu") {
        to.check.target = kGpu;
        words >> std::get<TargetInfo::Gpu>(to.check.target.machine).capability;
    } else if (word == "cpu") {
        TargetInfo::Cpu cpu{.isa = TargetInfo::Isa::kAvx2};
        words >> cpu.l2Bytes;
        to.check.target = {cpu};
    } else if (word == "avx512") {
        to.check.target = {TargetInfo::Cpu{.isa = TargetInfo::Isa::kAvx512}};
    } else if (word == "half") {
        to.check.permits.set(Permission::kHalf);
    } else if (word == "obey") {
        to.check.constraints = passes::PrecisionConstraints::kObey;
    } else if (word == "refittable") {
        to.check.refittable = true;
    } else if (word == "tolerance") {
        words >> to.check.tolerance;
    } else if (word == "range") {
        std::string tensor;
        words >> tensor;
        words >> to.check.ranges[tensor];
    } else if (word == "large") {
        to.isLarge = true;
    } else {
        words >> to.check.sizes[word];
    }
    ASSERT_FALSE(words.fail()) << "after " << word;
}

GraphCase readCase(std::string const& name)
{
    GraphCase c;
    std::ifstream file(kGraphs / (name + ".graph"));
    bool isAfter = false;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("#!")) {
            std::istringstream words(line.substr(2));
            for (std::string word; words >> word;)
                readWord(words, word, c.told);
        } else if (line == "---") {
            isAfter = true;
        } else {
            (isAfter ? c.after : c.before) += line + "\n";
        }
    }
    EXPECT_TRUE(isAfter && !c.after.empty())
        << name << ".graph has no line --- with a graph or \"unchanged\" behind it";
    if (c.after == "unchanged\n")
        c.after.clear();
    return c;
}

std::unique_ptr<ir::Graph> parsed(std::string const& text)
{
    auto g = ir::parse(text, ops::find);
    EXPECT_TRUE(g.ok()) << (g.ok() ? "" : g.error().message) << "\n" << text;
    return g.ok() ? std::move(*g) : nullptr;
}

void dropBodies(ir::Graph& g)
{
    for (auto const& n : g.nodes) {
        n->body.reset();
        for (auto const& r : n->regions)
            dropBodies(*r);
    }
}

std::string comparable(ir::Graph& g, bool withBodies)
{
    if (!withBodies)
        dropBodies(g);
    static std::regex const kNumber("( +node) [0-9]+ ");
    return std::regex_replace(ir::print(g), kNumber, "$1 ");
}

passes::Run passNamed(std::string const& name)
{
    for (passes::Pass const& p : passes::pipeline())
        if (p.name == name)
            return p.run;
    return nullptr;
}

} // namespace

class PassText : public testing::TestWithParam<std::string>
{};

TEST_P(PassText, Gives)
{
    std::string const pass = GetParam().substr(0, GetParam().find('/'));
    passes::Run const run = passNamed(pass);
    ASSERT_NE(run, nullptr) << "no pass is called " << pass;
    GraphCase const c = readCase(GetParam());
    auto const g = parsed(c.before);
    auto const wanted = parsed(c.after.empty() ? c.before : c.after);
    ASSERT_TRUE(g && wanted);
    if (c.told.isLarge) {
        NullLog log;
        PassCheck const& check = c.told.check;
        auto const changed = run(*g, {{check.target, check.permits, check.constraints}, log});
        ASSERT_TRUE(changed.ok()) << changed.error().message;
        EXPECT_EQ(*changed, !c.after.empty());
    } else {
        checkPass(*g, run, !c.after.empty(), c.told.check);
    }
    bool const withBodies = c.after.empty() || c.after.find("body graph") != std::string::npos;
    EXPECT_EQ(comparable(*g, withBodies), comparable(*wanted, withBodies)) << "the pass gives\n" << ir::print(*g);
}

// Whatever a pass makes of constants, other weights follow: with all constants a layer's weights, of which it may look at
// the elements (a constant's) or not (a kernel's).
TEST_P(PassText, RefitFollows)
{
    GraphCase const c = readCase(GetParam());
    passes::Run const run = passNamed(GetParam().substr(0, GetParam().find('/')));
    if (c.told.isLarge)
        return;
    for (ir::WeightsRole const role : {ir::WeightsRole::kKernel, ir::WeightsRole::kConstant}) {
        auto const g = parsed(c.before);
        ASSERT_TRUE(run && g);
        for (auto const& v : g->values())
            if (v->isConstant()) {
                auto named = std::make_shared<ir::Constant>(*v->constant);
                named->layer = "layer " + std::to_string(v->id);
                named->role = role;
                named->weightsName.clear();
                named->data = Blob::copy(named->data->data(), named->data->sizeBytes()); // a source of its own
                v->constant = named;
            }
        RefitCheck refit(*g);
        recipe::Recipes::Watch watch(&refit.recipes, *g);
        NullLog log;
        PassCheck const& check = c.told.check;
        auto const changed = run(*g, {{check.target, check.permits, check.constraints, &refit.recipes}, log});
        ASSERT_TRUE(changed.ok()) << changed.error().message;
        watch.finish();
        refit.check(*g, check.sizes, std::max(check.tolerance, 1e-4));
    }
}

INSTANTIATE_TEST_SUITE_P(, PassText, testing::ValuesIn(allCases()), [](auto const& info) {
    std::string name = info.param;
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
    return name;
});

// A pass without them is a pass that nobody can read by example.
TEST(PassTexts, EveryPassHasWhatItChangesAndWhatItLeavesAlone)
{
    for (passes::Pass const& p : passes::pipeline()) {
        int changed = 0, unchanged = 0;
        for (std::string const& name : allCases())
            if (name.substr(0, name.find('/')) == p.name)
                ++(readCase(name).after.empty() ? unchanged : changed);
        EXPECT_GT(changed, 0) << "test/passes/graphs/" << p.name << " has no graph that the pass changes";
        EXPECT_GT(unchanged, 0) << "test/passes/graphs/" << p.name << " has no graph that the pass leaves alone";
    }
}

} // namespace tw::test
