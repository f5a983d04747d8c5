// SPDX-License-Identifier: Apache-2.0
// HannWindow, HammingWindow, BlackmanWindow: a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), i below size, n = size, or
// size - 1 for those that are not periodic.

#include "onnx/importer.h"
#include "onnx/weights.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;

struct Coefficients
{
    double a0, a1, a2;
};

void importWindow(ImportContext& ctx, Coefficients const& c)
{
    Sizes const given = ctx.sizesFrom(ctx.input(0));
    if (given.size() != 1)
        ctx.invalid(fmt::format("the size has {} elements, it must have one", given.size()));
    DataType type = DataType::kFLOAT;
    int64_t const number = ctx.attrInt("output_datatype", 1);
    ctx.check(number > 0 && number < 100 && dataTypeOf(int(number), type) && type != DataType::kUINT8,
              fmt::format("output_datatype {} cannot be imported", number));
    Size const period = ctx.attrInt("periodic", 1) != 0 ? given[0] : ctx.sub(given[0], 1);
    ITensor& i = ctx.cast(positions(ctx, given[0]), DataType::kFLOAT);
    ITensor& n = ctx.cast(ctx.asTensor(period), DataType::kFLOAT);
    ITensor& turn = ctx.elementwise(ctx.elementwise(i, ctx.scalarLike(2 * M_PI, i), Op::kPROD), n, Op::kDIV);
    auto wave = [&](ITensor& angle, double amplitude) -> ITensor& {
        ITensor& cosine = ctx.unary(angle, nvinfer1::UnaryOperation::kCOS);
        return ctx.elementwise(cosine, ctx.scalarLike(amplitude, cosine), Op::kPROD);
    };
    ITensor* y = &ctx.elementwise(ctx.scalarLike(c.a0, i), wave(turn, c.a1), Op::kSUB);
    if (c.a2 != 0)
        y = &ctx.elementwise(*y, wave(ctx.elementwise(turn, turn, Op::kSUM), c.a2), Op::kSUM);
    ctx.setOutput(0, ctx.cast(*y, type));
}

} // namespace

void register_composites_windows(ImporterMap& map)
{
    map.add("HannWindow", [](auto& ctx) { importWindow(ctx, {0.5, 0.5, 0}); });
    map.add("HammingWindow", [](auto& ctx) { importWindow(ctx, {25.0 / 46, 21.0 / 46, 0}); });
    map.add("BlackmanWindow", [](auto& ctx) { importWindow(ctx, {0.42, 0.5, 0.08}); });
}

} // namespace tw::onnx
