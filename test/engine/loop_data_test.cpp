// SPDX-License-Identifier: Apache-2.0
// Numbers that end loops: where nothing needs them when shapes are set, they stay data, which each run reads in the order
// of its stream, whatever the builder makes of the loop.
#include <cuda_runtime_api.h>

#include "engine/engines.h"

using namespace tw::test;

namespace {

ITensor* number(Maker& m, int32_t const& v)
{
    return m.network->addConstant(Dims{}, Weights{DataType::kINT32, &v, 1})->getOutput(0);
}

constexpr int32_t kZero = 0, kOne = 1, kLength = 5;

// y = x + 1 + ... + 1 while i < n, and all of them in a stack of 5; in a loop of one trip around it where `isNested`.
void build(Maker& m, bool isNested, bool isCaptured)
{
    ITensor* const x = m.input("x", {2});
    ITensor* const n = m.input("n", {1}, DataType::kINT32);
    IShuffleLayer* const scalar = m.network->addShuffle(*n);
    scalar->setReshapeDimensions(Dims{});
    ITensor* const limit = scalar->getOutput(0);
    ILoop* const outer = isNested ? m.network->addLoop() : nullptr;
    IRecurrenceLayer* const around = outer ? outer->addRecurrence(*x) : nullptr;
    if (outer)
        outer->addTripLimit(*number(m, kOne), TripLimit::kCOUNT);
    ILoop* const loop = m.network->addLoop();
    loop->setName("loop");
    IRecurrenceLayer* const i = loop->addRecurrence(*number(m, kZero));
    IRecurrenceLayer* const value = loop->addRecurrence(around ? *around->getOutput(0) : *x);
    // On either side of the comparison.
    loop->addTripLimit(*m.network
                            ->addElementWise(isCaptured ? *limit : *i->getOutput(0),
                                             isCaptured ? *i->getOutput(0) : *limit,
                                             isCaptured ? ElementWiseOperation::kGREATER : ElementWiseOperation::kLESS)
                            ->getOutput(0),
                       TripLimit::kWHILE);
    i->setInput(
        1, *m.network->addElementWise(*i->getOutput(0), *number(m, kOne), ElementWiseOperation::kSUM)->getOutput(0));
    static float const one = 1;
    Dims shape{};
    shape.nbDims = 1;
    shape.d[0] = 1;
    ITensor* const next =
        m.add(value->getOutput(0), m.network->addConstant(shape, Weights{DataType::kFLOAT, &one, 1})->getOutput(0));
    value->setInput(1, *next);
    ITensor* last = loop->addLoopOutput(*value->getOutput(0), LoopOutput::kLAST_VALUE)->getOutput(0);
    if (outer) {
        around->setInput(1, *last);
        last = outer->addLoopOutput(*around->getOutput(0), LoopOutput::kLAST_VALUE)->getOutput(0);
    } else {
        ILoopOutputLayer* const all = loop->addLoopOutput(*next, LoopOutput::kCONCATENATE);
        all->setInput(1, *number(m, kLength));
        m.output(all->getOutput(0), "all");
    }
    m.output(last, "y");
}

} // namespace

TEST(LoopData, WhatALoopComparesWithStaysData)
{
    for (bool const isNested : {false, true})
        for (bool const isCaptured : {false, true}) {
            Maker m;
            build(m, isNested, isCaptured);
            auto engine = m.engine();
            ASSERT_TRUE(engine) << m.errors();
            EXPECT_EQ(engine->getTensorLocation("n"), TensorLocation::kDEVICE);
            EXPECT_FALSE(engine->isShapeInferenceIO("n"));
            Context c = contextOf(*engine);
            float x[2] = {3, 4}, y[2] = {}, all[2 * kLength];
            int32_t n = 2;
            c->setTensorAddress("x", x);
            c->setTensorAddress("n", &n);
            c->setTensorAddress("y", y);
            if (!isNested)
                c->setTensorAddress("all", all);
            cudaStream_t stream{};
            cudaGraph_t graph{};
            cudaGraphExec_t exec{};
            ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
            ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
            ASSERT_TRUE(c->enqueueV3(stream)) << m.errors();
            ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
            ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
            for (int32_t const trips : {2, 0, 4, 1}) {
                n = trips; // read when the graph runs, not when it was captured
                std::fill(all, all + 2 * kLength, -1.0F);
                ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
                ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
                EXPECT_EQ(y[0], 3 + float(trips));
                for (int k = 0; k < kLength && !isNested; ++k)
                    EXPECT_EQ(all[2 * k], k < trips ? 4 + float(k) : 0) << k << " of " << trips;
            }
            cudaGraphExecDestroy(exec);
            cudaGraphDestroy(graph);
            cudaStreamDestroy(stream);
            EXPECT_EQ(m.errors(), "");
        }
}
