// SPDX-License-Identifier: Apache-2.0
// usage: test_cuda_compile [--all | --sample N] [--seed S] [--filter TEXT] [--report FILE]
// Compiles the kernels of the op cases for sm_80 and sm_90a, without a GPU: each distinct source once. --sample takes N
// cases, by a seed that is today's date unless given. Exit status 77, with the reason: there is no NVRTC.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <random>

#include "device/cuda/target.h"

#include "cuda_cases.h"

namespace {

using namespace tw;

struct Total
{
    int kernels = 0, spilling = 0, mostRegisters = 0;
    double seconds = 0;
};

} // namespace

int main(int argc, char** argv)
{
    size_t sample = 60;
    std::time_t const now = std::time(nullptr);
    std::tm day{};
    gmtime_r(&now, &day);
    uint64_t seed = uint64_t((day.tm_year + 1900) * 10000 + (day.tm_mon + 1) * 100 + day.tm_mday);
    std::string filter, report;
    for (int i = 1; i < argc; ++i) {
        auto next = [&] { return i + 1 < argc ? argv[++i] : ""; };
        if (!std::strcmp(argv[i], "--all"))
            sample = SIZE_MAX;
        else if (!std::strcmp(argv[i], "--sample"))
            sample = size_t(std::atoll(next()));
        else if (!std::strcmp(argv[i], "--seed"))
            seed = uint64_t(std::atoll(next()));
        else if (!std::strcmp(argv[i], "--filter"))
            filter = next();
        else if (!std::strcmp(argv[i], "--report"))
            report = next();
    }
    auto const lazy = std::make_shared<cuda::LazyCompiler>(test::testSearchPath());
    auto compiler = lazy->get();
    if (!compiler.ok()) {
        std::printf("skipped: %s\n", compiler.error().message.c_str());
        return 77;
    }
    int failures = 0;
    std::vector<test::CudaCase> cases = test::cudaCases(filter, failures);
    size_t const all = cases.size();
    std::shuffle(cases.begin(), cases.end(), std::mt19937_64(seed));
    if (cases.size() > sample)
        cases.erase(cases.begin() + std::ptrdiff_t(sample), cases.end());

    std::map<std::string, std::map<std::string, Total>> totals; // tactic -> architecture
    for (char const* architecture : {"sm_80", "sm_90a"}) {
        cuda::Target target;
        target.compiler = lazy;
        target.architecture = architecture;
        target.capability = architecture[3] == '9' ? 90 : 80;
        target.multiprocessors = target.capability == 90 ? 132 : 108; // H200, A100: configs depend on it
        for (test::CudaCase const& c : cases) {
            ops::Problem problem = c.problem;
            problem.cuda = &target;
            for (ops::Tactic const* t : c.op->cudaTactics()) {
                if (!t->supports(problem).ok)
                    continue;
                for (ops::Config const& config : t->configs(problem)) {
                    size_t const before = (*compiler)->compiledCount();
                    auto image = t->build(problem, config);
                    if (!image.ok()) {
                        std::printf("FAILED %s %s %s: %s\n", c.name.c_str(), t->name(), architecture,
                                    image.error().message.c_str());
                        ++failures;
                        continue;
                    }
                    if ((*compiler)->compiledCount() == before)
                        continue;
                    auto const last = (*compiler)->lastCompiled();
                    Total& total = totals[t->name()][architecture];
                    total.seconds += last->seconds;
                    for (cuda::KernelResources const& k : last->kernels) {
                        ++total.kernels;
                        total.spilling += k.spillBytes > 0;
                        total.mostRegisters = std::max(total.mostRegisters, k.registers);
                    }
                }
            }
        }
    }
    std::string text;
    Total sum;
    char line[256];
    for (auto const& [tactic, of] : totals)
        for (auto const& [architecture, t] : of) {
            std::snprintf(line, sizeof(line), "%-36s %-7s %4d kernels %4d registers %3d spilling %6.2f s\n",
                          tactic.c_str(), architecture.c_str(), t.kernels, t.mostRegisters, t.spilling, t.seconds);
            text += line;
            sum.kernels += t.kernels;
            sum.spilling += t.spilling;
            sum.seconds += t.seconds;
        }
    std::snprintf(line, sizeof(line),
                  "%zu of %zu cases (seed %llu): %zu sources, %d kernels compiled, %d spill, %.1f s; %d failed\n",
                  cases.size(), all, (unsigned long long)seed, (*compiler)->compiledCount(), sum.kernels, sum.spilling,
                  sum.seconds, failures);
    std::printf("%s%s", text.c_str(), line);
    if (!report.empty())
        if (std::FILE* f = std::fopen(report.c_str(), "w")) {
            std::fputs(line, f);
            std::fclose(f);
        }
    return failures ? 1 : 0;
}
