// SPDX-License-Identifier: Apache-2.0
// Graphs built by hand.
#include <vector>

#include "check.h"

namespace {

struct Step
{
    std::vector<int>* log;
    int value;
};

void runStep(void* data)
{
    auto const* step = static_cast<Step*>(data);
    step->log->push_back(step->value);
}

cudaGraphNode_t addStep(cudaGraph_t graph, Step& step, std::vector<cudaGraphNode_t> const& deps = {})
{
    cudaHostNodeParams const params{runStep, &step};
    cudaGraphNode_t node = nullptr;
    EXPECT_OK(cudaGraphAddHostNode(&node, graph, deps.data(), deps.size(), &params));
    return node;
}

TEST(Graph, RunsInOrderOfDependence)
{
    std::vector<int> log;
    Step steps[3] = {{&log, 0}, {&log, 1}, {&log, 2}};
    cudaGraph_t graph = nullptr;
    ASSERT_OK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t const last = addStep(graph, steps[2]);
    cudaGraphNode_t const middle = addStep(graph, steps[1]);
    cudaGraphNode_t const first = addStep(graph, steps[0]);
    cudaGraphNode_t const from[] = {first, middle};
    cudaGraphNode_t const to[] = {middle, last};
    ASSERT_OK(cudaGraphAddDependencies(graph, from, to, 2));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaGraphAddDependencies(graph, from, to, 1)); // there already
    cudaGraphExec_t exec = nullptr;
    ASSERT_OK(cudaGraphInstantiateWithFlags(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
    ASSERT_OK(cudaGraphUpload(exec, nullptr));
    ASSERT_OK(cudaGraphLaunch(exec, nullptr));
    EXPECT_EQ(log, (std::vector<int>{0, 1, 2}));

    // A cycle cannot be run.
    ASSERT_OK(cudaGraphAddDependencies(graph, &last, &first, 1));
    cudaGraphExec_t bad = nullptr;
    EXPECT_CUDA(cudaErrorInvalidValue, cudaGraphInstantiate(&bad, graph, 0));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaGraphAddDependencies(graph, &last, &last, 1));
    EXPECT_CUDA(cudaErrorNotSupported, cudaGraphInstantiate(&bad, graph, cudaGraphInstantiateFlagDeviceLaunch));
    ASSERT_OK(cudaGraphExecDestroy(exec));
    ASSERT_OK(cudaGraphDestroy(graph));
    (void)cudaGetLastError();
}

TEST(Graph, FillsCopiesAndNests)
{
    unsigned short values[4] = {};
    unsigned short copy[4] = {};
    cudaGraph_t inner = nullptr;
    cudaGraph_t outer = nullptr;
    ASSERT_OK(cudaGraphCreate(&inner, 0));
    ASSERT_OK(cudaGraphCreate(&outer, 0));
    cudaMemsetParams fill{};
    fill.dst = values;
    fill.elementSize = 2;
    fill.value = 0x1234;
    fill.width = 4;
    fill.height = 1;
    cudaGraphNode_t node = nullptr;
    ASSERT_OK(cudaGraphAddMemsetNode(&node, inner, nullptr, 0, &fill));
    cudaGraphNode_t child = nullptr;
    ASSERT_OK(cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, inner));
    ASSERT_OK(cudaGraphAddMemcpyNode1D(&node, outer, &child, 1, copy, values, sizeof(values), cudaMemcpyHostToHost));
    ASSERT_OK(cudaGraphDestroy(inner)); // the child is a copy
    cudaGraph_t clone = nullptr;
    ASSERT_OK(cudaGraphClone(&clone, outer));
    ASSERT_OK(cudaGraphDestroy(outer));
    cudaGraphExec_t exec = nullptr;
    ASSERT_OK(cudaGraphInstantiate(&exec, clone, nullptr, nullptr, 0)); // the form of CUDA 11
    ASSERT_OK(cudaGraphLaunch(exec, nullptr));
    EXPECT_EQ(copy[0], 0x1234);
    EXPECT_EQ(copy[3], 0x1234);
    fill.elementSize = 3;
    EXPECT_CUDA(cudaErrorInvalidValue, cudaGraphAddMemsetNode(&node, clone, nullptr, 0, &fill));
    EXPECT_CUDA(cudaErrorNotSupported, cudaGraphAddKernelNode(&node, clone, nullptr, 0, nullptr));
    ASSERT_OK(cudaGraphExecDestroy(exec));
    ASSERT_OK(cudaGraphDestroy(clone));
    (void)cudaGetLastError();
}

TEST(Graph, IsUpdatedOnlyByItsLike)
{
    std::vector<int> log;
    Step a{&log, 1};
    Step b{&log, 2};
    cudaGraph_t first = nullptr;
    cudaGraph_t second = nullptr;
    cudaGraph_t other = nullptr;
    ASSERT_OK(cudaGraphCreate(&first, 0));
    ASSERT_OK(cudaGraphCreate(&second, 0));
    ASSERT_OK(cudaGraphCreate(&other, 0));
    addStep(first, a);
    addStep(second, b);
    cudaGraphNode_t node = nullptr;
    ASSERT_OK(cudaGraphAddEmptyNode(&node, other, nullptr, 0));
    cudaGraphExec_t exec = nullptr;
    ASSERT_OK(cudaGraphInstantiate(&exec, first, 0));
    cudaGraphExecUpdateResultInfo info{};
    ASSERT_OK(cudaGraphExecUpdate(exec, second, &info));
    EXPECT_EQ(info.result, cudaGraphExecUpdateSuccess);
    EXPECT_CUDA(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, other, &info));
    EXPECT_EQ(info.result, cudaGraphExecUpdateErrorNodeTypeChanged);
    ASSERT_OK(cudaGraphAddEmptyNode(&node, other, nullptr, 0));
    EXPECT_CUDA(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, other, &info));
    EXPECT_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);
    ASSERT_OK(cudaGraphLaunch(exec, nullptr));
    EXPECT_EQ(log, (std::vector<int>{2}));
    ASSERT_OK(cudaGraphExecDestroy(exec));
    for (cudaGraph_t const graph : {first, second, other})
        ASSERT_OK(cudaGraphDestroy(graph));
    (void)cudaGetLastError();
}

TEST(Graph, RefusesChildrenThatMultiplyWithoutEnd)
{
    // Each level holds the one below twice: 2^40 steps.
    std::vector<cudaGraph_t> levels(41);
    cudaGraphNode_t node = nullptr;
    ASSERT_OK(cudaGraphCreate(&levels[0], 0));
    ASSERT_OK(cudaGraphAddEmptyNode(&node, levels[0], nullptr, 0));
    for (std::size_t i = 1; i < levels.size(); ++i) {
        ASSERT_OK(cudaGraphCreate(&levels[i], 0));
        ASSERT_OK(cudaGraphAddChildGraphNode(&node, levels[i], nullptr, 0, levels[i - 1]));
        ASSERT_OK(cudaGraphAddChildGraphNode(&node, levels[i], nullptr, 0, levels[i - 1]));
    }
    cudaGraphExec_t exec = nullptr;
    EXPECT_CUDA(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, levels.back(), 0));
    for (cudaGraph_t const graph : levels)
        ASSERT_OK(cudaGraphDestroy(graph));
    (void)cudaGetLastError();
}

} // namespace
