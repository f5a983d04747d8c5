// SPDX-License-Identifier: Apache-2.0
// The check refuses what is wrong and nothing else: every tactic of every op passes it on the op's own cases, in all
// formats it works in.
#include <gtest/gtest.h>

#include "interp/interp.h"
#include "support/case_problem.h"
#include "tactic/registry.h"

namespace tw::test {

TEST(RealTactics, NoneIsRefused)
{
    int checked = 0;
    for (ir::OpDef const* op : ops::all()) {
        if (!op->cpuTactics || op->regionCount > 0)
            continue;
        for (ops::CaseList const list = ops::casesOf(op->name); ops::Case const& c : list.cases) {
            auto g = makeCase(*op, c);
            ASSERT_TRUE(g.ok()) << g.error().message;
            auto const made = caseProblem(**g);
            ASSERT_TRUE(made.ok()) << made.error().message;
            ops::Problem const& problem = *made;
            tune::Checker checker(problem);
            for (ops::Tactic const* t : op->cpuTactics())
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
                            checker.check(in, **kernel, t->name(), serialWorkers(), {ops::roundedFactorsOf(*t)});
                        EXPECT_TRUE(result.ok())
                            << op->name << "." << c.name << ": " << (result.ok() ? "" : result.error().message);
                        checked += result.ok() && result->isRight();
                    }
                }
        }
    }
    EXPECT_GT(checked, 500);
}

} // namespace tw::test
