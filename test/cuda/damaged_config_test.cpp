// SPDX-License-Identifier: Apache-2.0
// Configs come from plans and caches, so from outside: every CUDA tactic must write kernels, or refuse, whatever the
// numbers are. There is no compiler here, so nothing that is written gets compiled.
#include <gtest/gtest.h>

#include "cuda_cases.h"
#include "device/cuda/target.h"
#include "support/share_of_the_day.h"

namespace tw::test {

namespace {

constexpr size_t kConfigs = 3;                // of each problem
constexpr size_t kMostText = size_t(1) << 20; // no kernel is longer

std::vector<ops::Config> damaged(ops::Config const& good)
{
    std::vector<ops::Config> list{{}, good, good};
    list[1].push_back(1);
    if (!good.empty())
        list[2].pop_back();
    for (size_t i = 0; i < good.size(); ++i)
        for (int64_t v :
             {int64_t(0), int64_t(-1), int64_t(1), int64_t(7), int64_t(4096), int64_t(1) << 20, INT64_MAX, INT64_MIN}) {
            list.push_back(good);
            list.back()[i] = v;
        }
    return list;
}

} // namespace

TEST(DamagedConfigs, AreRefusedOrMakeKernels)
{
    cuda::SearchPath nowhere;
    nowhere.given = {"/nonexistent"};
    auto const lazy = std::make_shared<cuda::LazyCompiler>(nowhere);
    int failures = 0;
    std::vector<CudaCase> const cases =
        cudaCases("", failures, Results::kNone, [](size_t number) { return isInShare(number, 4); });
    EXPECT_EQ(failures, 0);
    int64_t tried = 0;
    for (auto const& [architecture, capability] : {std::pair("sm_80", 80), std::pair("sm_90a", 90)}) {
        cuda::Target target;
        target.compiler = lazy;
        target.architecture = architecture;
        target.capability = capability;
        target.multiprocessors = 132;
        for (CudaCase const& c : cases) {
            ops::Problem problem = c.problem;
            problem.target.cuda = &target;
            for (ops::Tactic const* t : *c.op->cudaTactics)
                for (ops::Formats const& f : t->formats(problem)) {
                    ops::setFormats(problem, f);
                    if (!t->supports(problem).ok)
                        continue;
                    std::vector<ops::Config> configs = t->configs(problem);
                    configs.resize(std::min(configs.size(), kConfigs));
                    for (ops::Config const& good : configs)
                        for (ops::Config const& config : damaged(good)) {
                            SCOPED_TRACE(c.name + ", " + t->name());
                            auto const image = t->build(problem, config);
                            EXPECT_TRUE(!image.ok() || image->size() < kMostText);
                            ++tried;
                        }
                }
        }
    }
    std::printf("%lld configs\n", static_cast<long long>(tried));
    EXPECT_GT(tried, 0);
}

} // namespace tw::test
