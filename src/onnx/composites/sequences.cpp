// SPDX-License-Identifier: Apache-2.0
// ReverseSequence, Compress: elements at computed places.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;
using nvinfer1::GatherMode;

// A vector along one axis of tensors of this rank.
ITensor& alongAxis(ImportContext& ctx, ITensor& v, int axis, int rank)
{
    std::vector<int> ones;
    for (int d = 0; d < rank; ++d)
        if (d != axis)
            ones.push_back(d);
    return ctx.unsqueeze(v, ones);
}

// Step t of sequence b comes from step lengths[b] - 1 - t while that is one, else from t.
void importReverseSequence(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    int const rank = x.getDimensions().nbDims;
    int const batch = ctx.axis(ctx.attrInt("batch_axis", 1), rank, "batch_axis");
    int const time = ctx.axis(ctx.attrInt("time_axis", 0), rank, "time_axis");
    if (batch == time)
        ctx.invalid(fmt::format("batch_axis and time_axis are both {}", batch));
    Sizes const sizes = ctx.sizesOf(x);
    ITensor& steps = alongAxis(ctx, positions(ctx, sizes[size_t(time)]), time, rank);
    ITensor& lengths = alongAxis(ctx, ctx.cast(ctx.tensor(1), DataType::kINT32), batch, rank);
    ITensor& last = ctx.elementwise(lengths, ctx.scalarLike(1, lengths), Op::kSUB);
    ITensor& turned = ctx.elementwise(last, steps, Op::kSUB);
    ITensor& isOutside = ctx.elementwise(turned, ctx.scalarLike(0, turned), Op::kLESS);
    ITensor& from = ctx.select(isOutside, steps, turned);
    ctx.setOutput(0, ctx.gather(x, ctx.expand(from, sizes), GatherMode::kELEMENT, time));
}

// Elements, or slices along the axis, whose condition holds; those behind its end do not.
void importCompress(ImportContext& ctx)
{
    ITensor* x = &ctx.tensor(0);
    int axis = 0;
    if (ctx.hasAttr("axis"))
        axis = ctx.axis(ctx.attrInt("axis", 0), x->getDimensions().nbDims);
    else
        x = &ctx.reshape(*x, Sizes{ctx.product(ctx.sizesOf(*x))});
    if (ctx.input(1).rank() != 1)
        ctx.invalid("the condition has shape " + describe(ctx.input(1).dims()) + ", it must be a vector");
    ITensor* indices = nullptr;
    if (ctx.isConstant(1)) {
        std::vector<int64_t> kept;
        Constant const& condition = ctx.input(1).constant();
        for (int64_t i = 0; i < condition.count; ++i)
            if (condition.intAt(i) != 0)
                kept.push_back(i);
        indices = &ctx.asTensor(Value(ctx.intConstant(kept)));
    } else {
        indices = &ctx.squeeze(ctx.out(ctx.added(ctx.network().addNonZero(ctx.tensor(1)))), {0});
    }
    ctx.setOutput(0, ctx.gather(*x, *indices, GatherMode::kDEFAULT, axis));
}

} // namespace

void register_composites_sequences(ImporterMap& map)
{
    map.add("ReverseSequence", importReverseSequence);
    map.add("Compress", importCompress);
}

} // namespace tw::onnx
