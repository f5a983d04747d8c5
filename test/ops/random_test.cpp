// SPDX-License-Identifier: Apache-2.0
// Random shapes and attributes of every op with a randomCase(): by the seed of the day, so that every day other sizes
// are met. A failure names the seed: TW_TEST_SEED repeats it. TW_TEST_COUNT: cases of each op.
#include <algorithm>
#include <cstdlib>
#include <ctime>

#include <gtest/gtest.h>

#include "cases/draw.h"
#include "ops/run_case.h"
#include "tactic/registry.h"

namespace tw::test {

namespace {

constexpr int64_t kSecondsOfADay = 24 * 60 * 60;
constexpr int kFew = 8; // cases of each op

// Ops without random cases, and why.
struct Without
{
    std::string_view op, why;
};
constexpr Without kWithout[] = {
    {"assertion", "it has no result"},
    {"attention", "its sizes hang together: the cases go through them"},
    {"conditional", "its regions are texts"},
    {"expanded_depthwise", "its sizes hang together: the cases go through them"},
    {"plugin", "what it does is the user's matter: test/engine/plugin_test.cpp"},
    {"pointwise", "its expressions are random in test/runtime/random_expressions_test.cpp"},
    {"shape", "it has one result"},
};

uint64_t numberFrom(char const* variable, uint64_t otherwise)
{
    char const* text = std::getenv(variable);
    return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}
uint64_t seedOfRun()
{
    static uint64_t const seed = numberFrom("TW_TEST_SEED", uint64_t(std::time(nullptr) / kSecondsOfADay));
    return seed;
}

std::string describe(ops::Case const& c)
{
    std::string s;
    for (ops::CaseInput const& i : c.inputs)
        s += std::string(nameOf(i.type)) + i.dims.str() + " ";
    for (auto const& f : ir::fieldsOf(*c.attrs)) {
        s += f.name + "=";
        for (int64_t v : f.integers)
            s += std::to_string(v) + ",";
        s += " ";
    }
    return s;
}

} // namespace

class RandomShapes : public testing::TestWithParam<ops::OpCases const*>
{};

TEST_P(RandomShapes, TacticsAgreeWithReference)
{
    ir::OpDef const* op = ops::find(GetParam()->op);
    ASSERT_TRUE(op);
    uint64_t const count = numberFrom("TW_TEST_COUNT", kFew);
    for (uint64_t i = 0; i < count; ++i) {
        ops::Draw d(seedOfRun() * 1'000'003 + i);
        ops::CaseList list;
        GetParam()->addRandom(list, d, "random_" + std::to_string(seedOfRun()) + "_" + std::to_string(i));
        list.cases[0].isConstant = true; // by chance it may be
        SCOPED_TRACE("TW_TEST_SEED=" + std::to_string(seedOfRun()) + " TW_TEST_COUNT=" + std::to_string(i + 1) +
                     " test_ops --gtest_filter='*RandomShapes*" + op->name + "': " + describe(list.cases[0]));
        runCase(*op, list.cases[0]);
        if (HasFailure())
            return; // one is enough to look at
    }
}

std::vector<ops::OpCases const*> withRandomCases()
{
    std::vector<ops::OpCases const*> list;
    for (ops::OpCases const& c : ops::allCases())
        if (c.addRandom)
            list.push_back(&c);
    return list;
}
INSTANTIATE_TEST_SUITE_P(All, RandomShapes, testing::ValuesIn(withRandomCases()),
                         [](auto const& info) { return std::string(info.param->op); });

TEST(RandomCases, NoOpIsForgotten)
{
    for (ir::OpDef const* op : ops::all()) {
        auto const all = ops::allCases();
        bool const has = std::any_of(all.begin(), all.end(), [&](ops::OpCases const& c) {
            return c.addRandom && std::string_view(c.op) == op->name;
        });
        bool const isListed =
            std::any_of(std::begin(kWithout), std::end(kWithout), [&](Without const& w) { return w.op == op->name; });
        EXPECT_NE(has, isListed) << op->name
                                 << (has ? " has random cases: it needs no line in kWithout"
                                         : " has no randomCase(): write one, or say in kWithout why not");
    }
}

} // namespace tw::test
