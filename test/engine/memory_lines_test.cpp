// SPDX-License-Identifier: Apache-2.0
// The lines about memory that scripts look for, and whether their numbers are true.
#include <fstream>
#include <regex>

#include <unistd.h>

#include "base/sanitizers.h"
#include "engine/engines.h"

using namespace tw::test;

namespace {

// The text behind `pattern` in the only line that matches it; empty, and a failure, when there is not one.
std::vector<int64_t> numbersIn(KeepingLogger const& logger, std::string const& pattern)
{
    std::regex const regex(pattern);
    std::vector<int64_t> numbers;
    int found = 0;
    for (KeepingLogger::Line const& line : logger.lines) {
        std::smatch match;
        if (!std::regex_match(line.text, match, regex))
            continue;
        EXPECT_EQ(line.severity, ILogger::Severity::kINFO) << line.text;
        numbers.clear();
        for (size_t i = 1; i < match.size(); ++i)
            numbers.push_back(std::stoll(match[i]));
        ++found;
    }
    EXPECT_EQ(found, 1) << pattern;
    return numbers;
}

std::string change(char const* what)
{
    return std::string("\\[MemUsageChange\\] ") + what +
           ": CPU ([+-]\\d+), GPU ([+-]\\d+), now: CPU (\\d+), GPU (\\d+) \\(MiB\\)";
}

int64_t residentMib()
{
    std::ifstream file("/proc/self/statm");
    int64_t total = 0, resident = 0;
    file >> total >> resident;
    return resident * sysconf(_SC_PAGESIZE) >> 20;
}

TEST(MemoryLines, OfABuildAreThereOnceAndTrue)
{
    Maker m;
    ITensor* x = m.input("x", {1, 64, 32, 32});
    std::vector<float> const weights(64 * 64 * 9, 0.01f);
    for (int i = 0; i < 3; ++i) {
        Weights const w{DataType::kFLOAT, weights.data(), int64_t(weights.size())};
        IConvolutionLayer* const conv = m.network->addConvolutionNd(*x, 64, Dims2(3, 3), w, {});
        conv->setPaddingNd(Dims2(1, 1));
        x = conv->getOutput(0);
    }
    m.output(x, "y");
    std::unique_ptr<IHostMemory> const plan(m.builder->buildSerializedNetwork(*m.network, *m.config));
    ASSERT_TRUE(plan) << m.errors();
    int64_t const host = numbersIn(m.logger, "Total Host Persistent Memory: (\\d+)").at(0);
    EXPECT_GT(host, 0);
    EXPECT_LT(host, 1 << 20);
    EXPECT_EQ(numbersIn(m.logger, "Total Device Persistent Memory: (\\d+)").at(0), 0);
    int64_t const scratch = numbersIn(m.logger, "Total Scratch Memory: (\\d+)").at(0);
    int64_t const activations = numbersIn(m.logger, "Total Activation Memory: (\\d+)").at(0);
    EXPECT_LE(scratch, activations);
    numbersIn(m.logger, "Total Weights Memory: (\\d+)");
    auto const peak = numbersIn(
        m.logger,
        "\\[MemUsageStats\\] Peak memory usage of TRT CPU/GPU memory allocators: CPU (\\d+) MiB, GPU (\\d+) MiB");
    EXPECT_EQ(peak.at(1), 0) << "no GPU";
    numbersIn(m.logger, change("Init CUDA"));
    auto const building = numbersIn(m.logger, change("TensorRT-managed allocation in building engine"));
    EXPECT_GE(peak.at(0) + 1, building.at(0)); // both cut to whole MiB

    KeepingLogger logger;
    std::unique_ptr<IRuntime> const runtime(createInferRuntime(logger));
    std::unique_ptr<ICudaEngine> const engine(runtime->deserializeCudaEngine(plan->data(), plan->size()));
    ASSERT_TRUE(engine);
    EXPECT_EQ(int64_t(engine->getDeviceMemorySize()), activations);
    EXPECT_EQ(numbersIn(logger, "Loaded engine size: (\\d+) MiB").at(0), int64_t(plan->size() >> 20));
    numbersIn(logger, change("Init CUDA"));
    auto const now = numbersIn(logger, change("TensorRT-managed allocation in engine deserialization"));
    if (!tw::kAddressSanitizer && !tw::kThreadSanitizer) {
        EXPECT_NEAR(double(now.at(2)), double(residentMib()), 8);
    }
    EXPECT_EQ(now.at(3), 0) << "no GPU";
}

TEST(MemoryLines, OfAContextAreThereOnce)
{
    Maker m;
    ITensor* x = m.input("x", {1, 4});
    m.output(m.relu(x), "y");
    auto const engine = m.engine();
    ASSERT_TRUE(engine) << m.errors();
    Context const context = contextOf(*engine);
    ASSERT_TRUE(context);
    numbersIn(m.logger, change("TensorRT-managed allocation in IExecutionContext creation"));
}

} // namespace
