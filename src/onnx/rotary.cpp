// SPDX-License-Identifier: Apache-2.0
#include "onnx/rotary.h"

namespace tw::onnx {

using Op = nvinfer1::ElementWiseOperation;

namespace {

// x [.., n] from `start` on, every `stride`-th of the last dimension.
ITensor& partOf(ImportContext& ctx, ITensor& x, int64_t start, int64_t count, int64_t stride)
{
    Sizes size = ctx.sizesOf(x), from(size.size(), Size(0)), steps(size.size(), Size(1));
    from.back() = Size(start);
    size.back() = Size(count);
    steps.back() = Size(stride);
    return ctx.slice(x, from, size, steps);
}

} // namespace

ITensor& rotated(ImportContext& ctx, ITensor& x, ITensor& cosines, ITensor& sines, Rotary const& how)
{
    int64_t const size = x.getDimensions().d[3], pairs = how.turned / 2;
    ITensor& head = how.turned == size ? x : partOf(ctx, x, 0, how.turned, 1);
    ITensor& first = how.neighbours ? partOf(ctx, head, 0, pairs, 2) : partOf(ctx, head, 0, pairs, 1);
    ITensor& second = how.neighbours ? partOf(ctx, head, 1, pairs, 2) : partOf(ctx, head, pairs, pairs, 1);
    ITensor& low = ctx.elementwise(ctx.elementwise(first, cosines, Op::kPROD),
                                   ctx.elementwise(second, sines, Op::kPROD), Op::kSUB);
    ITensor& high = ctx.elementwise(ctx.elementwise(second, cosines, Op::kPROD),
                                    ctx.elementwise(first, sines, Op::kPROD), Op::kSUM);
    ITensor* y = nullptr;
    if (how.neighbours)
        y = &ctx.reshape(ctx.concat({&ctx.unsqueeze(low, {4}), &ctx.unsqueeze(high, {4})}, 4), ctx.sizesOf(head));
    else
        y = &ctx.concat({&low, &high}, 3);
    if (how.turned != size)
        y = &ctx.concat({y, &partOf(ctx, x, how.turned, size - how.turned, 1)}, 3);
    return *y;
}

ITensor& rotaryFactors(ImportContext& ctx, int input, ITensor& places, DataType type, int heads, int64_t pairs)
{
    ITensor& table = ctx.tensor(input);
    Dims const d = table.getDimensions();
    if (d.nbDims != 2 || (d.d[1] >= 0 && d.d[1] != pairs))
        ctx.invalid(fmt::format("input {} has shape {}; [positions, half of what is turned: {}] is possible with "
                                "position_ids",
                                input, describe(d), pairs));
    if (!isFloating(table.getType()))
        ctx.invalid(fmt::format("input {} is {}, not FLOAT or HALF", input, typeName(table.getType())));
    ITensor& rows = ctx.gather(ctx.cast(table, type), places, nvinfer1::GatherMode::kDEFAULT, 0);
    return ctx.unsqueeze(rows, {heads});
}

} // namespace tw::onnx
