// SPDX-License-Identifier: Apache-2.0
// A program that links no CUDA runtime: the null stream works, other streams and events are refused with the cure, and a run asks the
// kernel for nothing.
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "NvInfer.h"
#include "api/client.h"

using namespace nvinfer1;

namespace {

int failures = 0;

void check(bool condition, char const* what)
{
    if (!condition)
        std::printf("FAIL: %s\n", what), ++failures;
}

volatile std::sig_atomic_t systemCalls = 0, oneOfThem = -1;

void onSystemCall(int, siginfo_t* info, void*)
{
    systemCalls = systemCalls + 1;
    oneOfThem = info->si_syscall;
}

// From here on system calls of this thread are not made but counted: all but waiting for workers and what ends a thread.
bool countSystemCalls()
{
    struct sigaction action = {};
    action.sa_sigaction = onSystemCall;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSYS, &action, nullptr);
    constexpr uint32_t kLet[] = {SYS_futex,      SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_exit,
                                 SYS_exit_group, SYS_madvise,      SYS_munmap,         SYS_rseq};
    constexpr uint8_t kCount = sizeof kLet / sizeof *kLet;
    sock_filter code[kCount + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
    for (uint8_t i = 0; i < kCount; ++i)
        code[i + 1] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kLet[i], uint8_t(kCount - i), 0);
    code[kCount + 1] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    code[kCount + 2] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    sock_fprog const program = {kCount + 3, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

void checkSystemCalls(IExecutionContext& context, void** bindings)
{
    bool isCounted = false, ran = true;
    std::thread([&] {
        context.enqueueV3(nullptr); // what a thread does once
        context.executeV2(bindings);
        isCounted = countSystemCalls();
        for (int i = 0; i < 10; ++i)
            ran = ran && context.enqueueV3(nullptr) && context.executeV2(bindings);
    }).join();
    if (!isCounted) {
        std::printf("system calls are not counted: this system lets no program filter its own\n");
        return;
    }
    check(ran, "runs without system calls");
    check(systemCalls == 0, "runs make system calls");
    if (systemCalls)
        std::printf("%d in 20 runs, the last is number %d\n", int(systemCalls), int(oneOfThem));
}

} // namespace

int main()
{
    setenv("TENSORWRIGHT_DEVICE", "cpu", 1); // also where there is a GPU
    tw::test::KeepingLogger logger;
    std::unique_ptr<IBuilder> builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(1));
    std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
    ITensor* x = network->addInput("x", DataType::kFLOAT, Dims2(1, 4));
    ITensor* y = network->addActivation(*x, ActivationType::kRELU)->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    std::unique_ptr<ICudaEngine> engine(builder->buildEngineWithConfig(*network, *config));
    check(engine != nullptr, "an engine is built");
    if (!engine)
        return 1;
    std::unique_ptr<IExecutionContext> context(engine->createExecutionContext());
    float in[4] = {-1, 2, -3, 4}, out[4] = {9, 9, 9, 9};
    void* bindings[] = {in, out};
    check(context->executeV2(bindings), "executeV2");
    check(out[0] == 0 && out[1] == 2 && out[2] == 0 && out[3] == 4, "its output");
    check(context->enqueueV2(bindings, nullptr, nullptr), "enqueueV2 on the null stream");
    context->setTensorAddress("x", in);
    context->setTensorAddress("y", out);
    check(context->enqueueV3(nullptr), "enqueueV3 on the null stream");
    check(logger.errors() == 0, "no error so far");
    checkSystemCalls(*context, bindings);

    int someStream = 0;
    auto* stream = reinterpret_cast<cudaStream_t>(&someStream);
    auto* event = reinterpret_cast<cudaEvent_t>(&someStream);
    out[1] = 9;
    check(!context->enqueueV3(stream), "a stream is refused");
    check(tw::test::contains(logger.lastError(), "lib/hostcuda"), "the error names lib/hostcuda");
    check(!context->enqueueV2(bindings, stream, nullptr), "a stream is refused by enqueueV2");
    check(!context->enqueueV2(bindings, nullptr, &event), "an event is refused");
    check(tw::test::contains(logger.lastError(), "lib/hostcuda"), "the error names lib/hostcuda");
    check(logger.errors() == 3, "one error each");
    check(out[1] == 9, "nothing was run");
    check(context->executeV2(bindings) && out[1] == 2, "the context still works");

    setenv("TENSORWRIGHT_DEVICE", "cuda:99", 1);
    check(createInferRuntime(logger) == nullptr && createInferBuilder(logger) == nullptr, "a GPU that is not there");
    check(tw::test::contains(logger.lastError(), "TENSORWRIGHT_DEVICE asks for a GPU: "), "the error says why");
    std::printf(failures ? "%d checks failed\n" : "passed\n", failures);
    return failures != 0;
}
