// SPDX-License-Identifier: Apache-2.0
// Names of tactics are <op>_<types>_<algorithm>_<arch> (docs/glossary.md), and true.
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "cases/cases.h"
#include "device/cuda/target.h"
#include "support/case_problem.h"
#include "tactic/registry.h"
#include "tactic/tactic.h"

namespace tw::test {

namespace {

struct Listed
{
    ir::OpDef const* op;
    ops::Tactic const* tactic;
};

std::vector<Listed> everyTactic()
{
    std::vector<Listed> out;
    for (ir::OpDef const* op : ops::all())
        for (bool const onGpu : {false, true})
            for (ops::Tactic const* t : op->tactics(onGpu))
                out.push_back({op, t});
    return out;
}

struct Name
{
    std::string types, algorithm, architecture;
};

// Empty, where it is no such name.
Name partsOf(Listed const& of)
{
    std::string_view name = of.tactic->name();
    std::string const op = std::string(of.op->name) + "_";
    size_t const last = name.rfind('_');
    if (!name.starts_with(op) || last <= op.size())
        return {};
    std::string_view const middle = name.substr(op.size(), last - op.size());
    size_t const first = middle.find('_');
    if (first == std::string_view::npos)
        return {};
    return {std::string(middle.substr(0, first)), std::string(middle.substr(first + 1)),
            std::string(name.substr(last + 1))};
}

constexpr char kAny[] = "any"; // of several types

// What the token says of x and y; several: kAny.
std::map<std::string, std::vector<DataType>> const& typeTokens()
{
    static std::map<std::string, std::vector<DataType>> const tokens = {
        {"f32", {DataType::kFloat}},
        {"f32f16", {DataType::kFloat}},
        {"tf32", {DataType::kFloat}},
        {"bf16", {}},
        {"f16", {DataType::kHalf}},
        {"i8", {DataType::kInt8}},
        {"i32", {DataType::kInt32}},
        {"bool", {DataType::kBool}},
        {kAny, {}},
    };
    return tokens;
}

bool isArchitecture(ops::Backend backend, std::string const& token)
{
    static std::set<std::string> const cpu = {"cpu", "avx2", "avx512", "amx"}, cuda = {"cuda", "sm80", "sm90", "sm90a"};
    return (backend == ops::Backend::kCpu ? cpu : cuda).contains(token);
}

// Every case of an op that has tactics, in each of their formats that they support.
template <class Visit>
void forEachSupported(cuda::Target const* target, Visit visit)
{
    for (ir::OpDef const* op : ops::all()) {
        ops::CaseList const list = ops::casesOf(op->name);
        for (ops::Case const& c : list.cases) {
            auto graph = makeCase(*op, c);
            ASSERT_TRUE(graph.ok()) << c.name << ": " << graph.error().message;
            auto problem = caseProblem(**graph);
            ASSERT_TRUE(problem.ok()) << c.name << ": " << problem.error().message;
            problem->target.cuda = target;
            for (bool const onGpu : {false, true})
                for (ops::Tactic const* t : op->tactics(onGpu))
                    for (ops::Formats const& f : t->formats(*problem)) {
                        ops::setFormats(*problem, f);
                        if (t->supports(*problem).ok)
                            visit(Listed{op, t}, *problem, c.name);
                    }
        }
    }
}

cuda::Target targetOf(char const* architecture, int capability)
{
    cuda::SearchPath nowhere;
    nowhere.given = {"/nonexistent"};
    cuda::Target target;
    target.compiler = std::make_shared<cuda::LazyCompiler>(nowhere);
    target.architecture = architecture;
    target.capability = capability;
    target.multiprocessors = 132;
    return target;
}

} // namespace

TEST(TacticNames, AreOpTypesAlgorithmArchitecture)
{
    std::set<std::string> seen;
    for (Listed const& l : everyTactic()) {
        Name const n = partsOf(l);
        EXPECT_TRUE(typeTokens().contains(n.types))
            << l.tactic->name() << ": no types behind the op '" << l.op->name << "'";
        EXPECT_TRUE(isArchitecture(l.tactic->backend(), n.architecture))
            << l.tactic->name() << ": '" << n.architecture << "' is no architecture of its backend";
        EXPECT_EQ(n.algorithm.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string::npos)
            << l.tactic->name();
        EXPECT_FALSE(n.algorithm.empty()) << l.tactic->name() << ": no algorithm";
        EXPECT_TRUE(seen.insert(l.tactic->name()).second) << l.tactic->name() << " is the name of two";
    }
}

// For people: the program asks traits().
TEST(TacticNames, SayWhatTraitsSay)
{
    for (Listed const& l : everyTactic()) {
        Name const n = partsOf(l);
        ops::Traits const traits = l.tactic->traits();
        auto const has = [&](char const* part) { return ("_" + n.algorithm + "_").find(part) != std::string::npos; };
        // Of tensors, or of factors alone.
        bool const hasTensors = l.tactic->backend() == ops::Backend::kCuda || has("_widened_") || has("_jit_");
        ops::Rounding const rounding =
            n.types == "tf32"                  ? ops::Rounding::kTf32
            : n.types == "bf16" && !hasTensors ? ops::Rounding::kBf16
            : n.types == "f32f16"              ? ops::Rounding::kHalfWeights
            : has("_winograd_") && l.tactic->backend() == ops::Backend::kCpu && n.types != "i8"
                ? ops::Rounding::kWinograd
                : ops::Rounding::kPlain;
        EXPECT_EQ(int(traits.rounding), int(rounding)) << l.tactic->name();
        EXPECT_EQ(traits.isSparse, has("_sparse_")) << l.tactic->name();
        bool const isVector = n.architecture == "avx2" || n.architecture == "avx512";
        if (isVector || n.architecture != "amx") {
            EXPECT_EQ(traits.isa, isVector ? n.architecture : std::string()) << l.tactic->name();
        }
    }
}

TEST(TacticNames, TypesAreThoseThatAreSupported)
{
    std::map<std::string, std::set<DataType>> types;
    cuda::Target const target = targetOf("sm_90a", 90);
    forEachSupported(&target, [&](Listed const& l, ops::Problem const& p, std::string const& name) {
        std::set<DataType> of;
        if (!p.inputs.empty())
            of.insert(p.inputs[0].type);
        if (!p.outputs.empty())
            of.insert(p.outputs[0].type);
        auto const token = typeTokens().find(partsOf(l).types);
        ASSERT_NE(token, typeTokens().end()) << l.tactic->name();
        bool const moves = std::string_view(l.op->name) == "reformat"; // elements of as many bytes
        for (DataType t : token->second)
            EXPECT_TRUE(of.contains(t) || (moves && sizeOf(*of.begin()) == sizeOf(t)))
                << l.tactic->name() << " takes " << l.op->name << "." << name;
        types[l.tactic->name()].merge(of);
    });
    for (Listed const& l : everyTactic())
        if (auto const found = types.find(l.tactic->name()); found != types.end() && partsOf(l).types == kAny) {
            EXPECT_GT(found->second.size(), 1u)
                << l.tactic->name() << " takes " << nameOf(*found->second.begin()) << " alone";
        }
    EXPECT_GT(types.size(), ops::all().size());
}

TEST(TacticNames, ArchitectureIsWhatIsNeeded)
{
    std::set<std::string> seen;
    for (int capability : {80, 90, 100}) {
        cuda::Target const target = targetOf(capability == 90   ? "sm_90a"
                                             : capability == 80 ? "sm_80"
                                                                : "sm_100",
                                             capability);
        forEachSupported(&target, [&](Listed const& l, ops::Problem const&, std::string const& name) {
            std::string const architecture = partsOf(l).architecture;
            bool const fits = architecture == "sm90a"  ? capability == 90
                              : architecture == "sm90" ? capability >= 90
                                                       : true;
            EXPECT_TRUE(fits) << l.tactic->name() << " takes " << l.op->name << "." << name << " at capability "
                              << capability;
            if (capability == 90)
                seen.insert(l.tactic->name());
        });
    }
    for (Listed const& l : everyTactic())
        // What is the user's has no case on a GPU: its cases work on host memory.
        if (l.tactic->backend() == ops::Backend::kCuda && l.tactic->source() == ops::Source::kOwn &&
            !dynamic_cast<ops::UntunedTactic const*>(l.tactic)) {
            EXPECT_TRUE(seen.contains(l.tactic->name())) << l.tactic->name() << " takes no case";
        }
}

TEST(TacticNames, FormerOnesAreOfTacticsThatExist)
{
    std::set<std::string_view> today, former;
    for (Listed const& l : everyTactic()) {
        today.insert(l.tactic->name());
        EXPECT_EQ(l.tactic->id(), ops::tacticId(l.tactic->name(), l.tactic->version()));
    }
    for (ops::FormerName const& n : ops::formerNames()) {
        EXPECT_TRUE(today.contains(n.today)) << n.today;
        EXPECT_FALSE(today.contains(n.former)) << n.former;
        EXPECT_TRUE(former.insert(n.former).second) << n.former;
        EXPECT_EQ(ops::todaysName(n.former), n.today);
    }
    EXPECT_FALSE(former.empty());
}

} // namespace tw::test
