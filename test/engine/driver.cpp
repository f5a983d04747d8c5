// SPDX-License-Identifier: Apache-2.0
// What is said of a driver or a GPU that cannot be used. usage: test_engine_driver whole|lacking, with the folder of
// one of the two drivers of fake_driver*.cpp before the loader's path.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "NvInfer.h"
#include "api/client.h"

using namespace nvinfer1;

namespace {

int failures = 0;

using Variables = std::initializer_list<std::pair<char const*, char const*>>;

// Asked for, a GPU that cannot be used is an error with the reason; else the CPU is taken, and the reason is told.
void expect(Variables variables, char const* wish, char const* reason)
{
    for (auto const& [name, value] : variables)
        setenv(name, value, 1);
    auto check = [&](bool good, char const* what, std::string const& got) {
        std::printf("%s: %s, %s\n", good ? "ok" : "FAILED", reason, what);
        if (!good)
            std::printf("  got: %s\n", got.c_str());
        failures += !good;
    };
    setenv("TENSORWRIGHT_DEVICE", wish, 1);
    tw::test::KeepingLogger logger;
    bool const refused = createInferRuntime(logger) == nullptr && createInferBuilder(logger) == nullptr;
    std::string const said = logger.lastError();
    check(refused && logger.errors() == 2 && tw::test::contains(said, "TENSORWRIGHT_DEVICE asks for a GPU: ") &&
              tw::test::contains(said, reason),
          "asked for", said);
    unsetenv("TENSORWRIGHT_DEVICE");
    if (!std::strcmp(wish, "cuda")) {
        tw::test::KeepingLogger other;
        std::unique_ptr<IRuntime> const runtime(createInferRuntime(other));
        std::string lines;
        for (auto const& line : other.lines)
            lines += line.text + "\n";
        check(runtime && other.errors() == 0 && tw::test::contains(lines, "The CPU is used: ") &&
                  tw::test::contains(lines, reason),
              "not asked for", lines);
    }
    for (auto const& [name, value] : variables)
        unsetenv(name);
}

} // namespace

int main(int argc, char** argv)
{
    if (argc == 2 && !std::strcmp(argv[1], "lacking")) {
        expect(
            {}, "cuda",
            "Cuda initialization failure with error 35: the CUDA driver is too old: it has no cuGetErrorName; update "
            "the NVIDIA driver");
    } else {
        expect(
            {{"TW_FAKE_VERSION", "11020"}}, "cuda",
            "Cuda initialization failure with error 35: the CUDA driver is too old: it is for CUDA 11.2, 11.4 is the "
            "oldest that works; update the NVIDIA driver");
        expect({{"TW_FAKE_CAPABILITY", "75"}}, "cuda",
               "GPU 0 (Fake GPU) has compute capability 7.5, 8.0 is the lowest that is supported; set "
               "TENSORWRIGHT_DEVICE=cpu to run on the CPU");
        expect({{"TW_FAKE_GPUS", "0"}}, "cuda",
               "Cuda initialization failure with error 100: the CUDA driver finds no GPU");
        expect({{"TW_FAKE_INIT", "100"}, {"TW_FAKE_GPUS", "0"}}, "cuda",
               "Cuda initialization failure with error 100: the CUDA driver finds no GPU"); // CUDA's status
        expect({{"TW_FAKE_INIT", "3"}}, "cuda", "Cuda initialization failure with error 3: cuInit: CUDA error 3");
        expect({{"TW_FAKE_GPUS", "2"}}, "cuda:2", "there is no GPU 2; this machine has GPUs 0..1");
        expect({}, "cuda", "cuDevicePrimaryCtxRetain: CUDA error 999"); // it has to fail somewhere
    }
    std::printf("%d failures\n", failures);
    return failures != 0;
}
