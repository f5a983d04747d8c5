// SPDX-License-Identifier: Apache-2.0
// Conv. One spatial dimension runs as a 2-D convolution of height 1.
#include "importers/common/window.h"
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

void importConv(ImportContext& ctx)
{
    ITensor* x = &ctx.tensor(0);
    Value w = ctx.asWeights(ctx.input(1)), bias = ctx.asWeights(ctx.optionalInput(2));
    int const spatial = x->getDimensions().nbDims - 2;
    ctx.check(spatial >= 1 && spatial <= 3, "input of shape " + describe(x->getDimensions()) +
                                                " must have 1, 2 or 3 dimensions behind batch and channel");
    if (w.rank() != spatial + 2)
        ctx.invalid("kernel of shape " + describe(w.dims()) + " does not fit input of shape " +
                    describe(x->getDimensions()));
    ctx.check(isStatic(w.dims()), "the kernel's dimensions must be known, they are " + describe(w.dims()));
    Dims const wDims = w.dims();
    WindowAttrs window = readWindow(ctx, spatial, {wDims.d + 2, wDims.d + 2 + spatial});
    int64_t const groups = ctx.attrInt("group", 1);
    if (groups < 1 || groups > INT32_MAX)
        ctx.invalid("group is " + std::to_string(groups));

    if (spatial == 1) {
        x = &ctx.unsqueeze(*x, {2});
        Dims const d = w.dims();
        Dims const flat{4, {d.d[0], d.d[1], 1, d.d[2]}};
        w = w.isConstant() ? Value(ctx.reshaped(w.constant(), flat)) : Value(ctx.reshape(w.tensor(), flat));
        window.prependUnit();
    }
    nvinfer1::Weights const none{w.type(), nullptr, 0};
    nvinfer1::Weights const kernelWeights = w.isConstant() ? w.constant().weights() : none;
    nvinfer1::Weights const biasWeights = bias.isConstant() ? bias.constant().weights() : none;
    auto& conv = ctx.added(
        ctx.network().addConvolutionNd(*x, w.dims().d[0], makeDims(window.kernel), kernelWeights, biasWeights));
    conv.setStrideNd(makeDims(window.strides));
    conv.setDilationNd(makeDims(window.dilations));
    conv.setPaddingMode(window.mode);
    conv.setPrePadding(makeDims(window.before));
    conv.setPostPadding(makeDims(window.after));
    conv.setNbGroups(int32_t(groups));
    if (w.isTensor())
        conv.setInput(1, w.tensor());
    if (bias.isTensor())
        conv.setInput(2, bias.tensor());
    ctx.nameWeights(w);
    ctx.nameWeights(bias);
    ITensor& y = ctx.out(conv);
    ctx.setOutput(0, spatial == 1 ? ctx.squeeze(y, {2}) : y);
}

} // namespace

void register_convolution(ImporterMap& map)
{
    map.add("Conv", importConv);
}

} // namespace tw::onnx
