// SPDX-License-Identifier: Apache-2.0
// The check refuses what is wrong and nothing else: every tactic of every op passes it on the op's own cases, in all
// formats it works in; on half of the cases each day.
#include <gtest/gtest.h>

#include "interp/interp.h"
#include "support/case_problem.h"
#include "support/share_of_the_day.h"
#include "tactic/registry.h"
#include "tune/candidates.h"
#include "tune/rivals.h"

namespace tw::test {

TEST(RealTactics, NoneIsRefused)
{
    int checked = 0;
    for (ir::OpDef const* op : ops::all()) {
        if (!op->cpuTactics || op->regionCount > 0)
            continue;
        for (ops::CaseList const list = ops::casesOf(op->name); ops::Case const& c : list.cases) {
            if (!isInShare(c.name, 2))
                continue;
            auto g = makeCase(*op, c);
            ASSERT_TRUE(g.ok()) << g.error().message;
            auto const made = caseProblem(**g);
            ASSERT_TRUE(made.ok()) << made.error().message;
            ops::Problem const& problem = *made;
            tune::Checker checker(problem);
            for (ops::Tactic const* t : *op->cpuTactics)
                for (ops::Formats const& f : t->formats(problem)) {
                    ops::Problem in = problem;
                    ops::setFormats(in, f);
                    if (!t->supports(in).ok)
                        continue;
                    for (ops::Config const& config : t->configs(in)) {
                        auto image = t->build(in, config);
                        ASSERT_TRUE(image.ok()) << image.error().message;
                        auto kernel = t->load(in, config, *image);
                        ASSERT_TRUE(kernel.ok()) << kernel.error().message;
                        auto const result =
                            checker.check(in, **kernel, t->name(), serialWorkers(), {t->traits().rounding});
                        EXPECT_TRUE(result.ok())
                            << op->name << "." << c.name << ": " << (result.ok() ? "" : result.error().message);
                        checked += result.ok() && result->isRight();
                    }
                }
        }
    }
    EXPECT_GT(checked, 500);
}

// Kernels plan by sizes. A layer in a branch that is not taken at the optimum has none: only the plain tactic is asked.
TEST(RealTactics, WithoutSizesOnlyThePlainOne)
{
    int asked = 0, offered = 0;
    for (ir::OpDef const* op : ops::all()) {
        if (!op->cpuTactics || op->regionCount > 0)
            continue;
        for (ops::CaseList const list = ops::casesOf(op->name); ops::Case const& c : list.cases) {
            auto g = makeCase(*op, c);
            ASSERT_TRUE(g.ok()) << g.error().message;
            auto made = caseProblem(**g);
            ASSERT_TRUE(made.ok()) << made.error().message;
            bool hadSizes = false;
            for (std::vector<ops::TensorSpec>* specs : {&made->inputs, &made->outputs})
                for (ops::TensorSpec& s : *specs) {
                    hadSizes |= s.present && s.dims.rank > 0;
                    s.dims = s.maxDims = {};
                }
            if (!hadSizes)
                continue;
            tune::Options const options;
            tune::Rivals rivals({&*made, 1}, options);
            for (tune::Candidate const& candidate : tune::collectCandidates({&*made, 1}, options, rivals)) {
                EXPECT_TRUE(candidate.isPlain) << op->name << "." << c.name << ": " << candidate.tactic->name();
                ++offered;
            }
            ++asked;
        }
    }
    EXPECT_GT(asked, 1000);
    EXPECT_GT(offered, asked / 2);
}

} // namespace tw::test
