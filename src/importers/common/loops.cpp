// SPDX-License-Identifier: Apache-2.0
#include "importers/common/loops.h"

namespace tw::importers {

using nvinfer1::ILoop;
using nvinfer1::LoopOutput;

ILoop& addLoop(ImportContext& ctx, std::string const& name)
{
    ILoop* loop = ctx.network().addLoop();
    if (!loop)
        ctx.refused("the network refused a loop");
    loop->setName(name.c_str());
    return *loop;
}

ITensor& Carried::add(ITensor& first)
{
    layers_.push_back(&ctx_.added(loop_.addRecurrence(first)));
    return ctx_.out(*layers_.back());
}

void Carried::setNext(size_t i, ITensor& next, std::string const& what)
{
    ITensor& first = *layers_[i]->getInput(0);
    Dims const a = first.getDimensions(), b = next.getDimensions();
    bool equal = first.getType() == next.getType() && a.nbDims == b.nbDims;
    for (int d = 0; equal && d < a.nbDims; ++d)
        equal = a.d[d] == b.d[d] || a.d[d] < 0 || b.d[d] < 0;
    if (!equal)
        ctx_.fail(what + " is " + typeName(first.getType()) + describe(a) + " before the first trip and " +
                  typeName(next.getType()) + describe(b) +
                  " after one; values that change their type or shape from trip to trip cannot be imported");
    layers_[i]->setInput(1, next);
}

ITensor& Carried::last(size_t i)
{
    return ctx_.out(ctx_.added(loop_.addLoopOutput(*layers_[i]->getOutput(0), LoopOutput::kLAST_VALUE)));
}

ITensor& stacked(ImportContext& ctx, ILoop& loop, ITensor& x, int axis, bool reverse, ITensor* length)
{
    auto& layer = ctx.added(loop.addLoopOutput(x, reverse ? LoopOutput::kREVERSE : LoopOutput::kCONCATENATE, axis));
    if (length)
        layer.setInput(1, *length);
    return ctx.out(layer);
}

} // namespace tw::importers
