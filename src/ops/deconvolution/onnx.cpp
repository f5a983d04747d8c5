// SPDX-License-Identifier: Apache-2.0
// ConvTranspose. One spatial dimension runs as a 2-D deconvolution of height 1.
#include <algorithm>

#include "importers/common/window.h"
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::PaddingMode;

// What ONNX trims from the full output of (in - 1) stride + extent elements, and adds after it: with output_padding
// and output_shape an output may reach beyond every window; it is the bias there.
struct Trim
{
    std::vector<int64_t> before, after, extra;
};

Trim trimOf(ImportContext& ctx, WindowAttrs const& window, Dims const& x, int spatial)
{
    auto list = [&](char const* attr) {
        std::vector<int64_t> v = ctx.attrInts(attr, std::vector<int64_t>(size_t(spatial), 0));
        if (int(v.size()) != spatial)
            ctx.invalid("attribute '" + std::string(attr) + "' has " + std::to_string(v.size()) + " entries, not " +
                        std::to_string(spatial));
        for (int64_t e : v)
            if (e < 0 || e > INT32_MAX)
                ctx.invalid("attribute '" + std::string(attr) + "' holds " + std::to_string(e));
        return v;
    };
    std::vector<int64_t> const outputPadding = list("output_padding"), outputShape = list("output_shape");
    bool const shapeGiven = ctx.hasAttr("output_shape");
    bool const same = window.mode != PaddingMode::kEXPLICIT_ROUND_DOWN;
    bool const upper = window.mode == PaddingMode::kSAME_UPPER;
    Trim trim;
    for (int i = 0; i < spatial; ++i) {
        int64_t const stride = window.strides[i], extent = 1 + window.dilations[i] * (window.kernel[i] - 1);
        int64_t before = window.before[i], after = window.after[i];
        int64_t const in = x.d[2 + i];
        ctx.check(in >= 0 || !shapeGiven,
                  "attribute 'output_shape' needs an input of known shape, it is " + describe(x));
        if (same || shapeGiven) {
            // SAME: the output is in * stride, whatever `in` is.
            int64_t const total = shapeGiven ? (in - 1) * stride + outputPadding[i] + extent - outputShape[i]
                                             : extent + outputPadding[i] - stride;
            int64_t const half = std::max<int64_t>(total, 0) / 2;
            before = upper ? half : std::max<int64_t>(total, 0) - half;
            after = total - before; // negative when there is too little
        }
        after -= outputPadding[i];
        ctx.check(before >= 0, "attribute 'pads' must not be negative: deconvolution only trims");
        trim.before.push_back(before);
        trim.after.push_back(std::max<int64_t>(after, 0));
        trim.extra.push_back(std::max<int64_t>(-after, 0));
    }
    return trim;
}

void importConvTranspose(ImportContext& ctx)
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
    int64_t const maps = groups >= 1 && groups <= INT32_MAX ? groups * w.dims().d[1] : -1;
    if (maps < 0 || maps > INT32_MAX)
        ctx.invalid("group is " + std::to_string(groups) + ", with " + std::to_string(w.dims().d[1]) +
                    " output maps each");
    Trim trim = trimOf(ctx, window, x->getDimensions(), spatial);

    if (spatial == 1) {
        x = &ctx.unsqueeze(*x, {2});
        Dims const d = w.dims();
        Dims const flat{4, {d.d[0], d.d[1], 1, d.d[2]}};
        w = w.isConstant() ? Value(ctx.reshaped(w.constant(), flat)) : Value(ctx.reshape(w.tensor(), flat));
        window.prependUnit();
        for (auto* list : {&trim.before, &trim.after, &trim.extra})
            list->insert(list->begin(), 0);
    }
    bool extended = false;
    for (int64_t e : trim.extra)
        extended = extended || e > 0;
    nvinfer1::Weights const none{w.type(), nullptr, 0};
    nvinfer1::Weights const kernelWeights = w.isConstant() ? w.constant().weights() : none;
    nvinfer1::Weights const biasWeights = bias.isConstant() && !extended ? bias.constant().weights() : none;
    auto& deconv = ctx.added(
        ctx.network().addDeconvolutionNd(*x, int32_t(maps), makeDims(window.kernel), kernelWeights, biasWeights));
    deconv.setStrideNd(makeDims(window.strides));
    deconv.setDilationNd(makeDims(window.dilations));
    deconv.setPrePadding(makeDims(trim.before));
    deconv.setPostPadding(makeDims(trim.after));
    deconv.setNbGroups(int32_t(groups));
    if (w.isTensor())
        deconv.setInput(1, w.tensor());
    if (bias.isTensor() && !extended)
        deconv.setInput(2, bias.tensor());
    ctx.nameWeights(w);
    ITensor* y = &ctx.out(deconv);
    if (!extended) {
        ctx.nameWeights(bias);
    } else {
        Sizes sizes = ctx.sizesOf(*y);
        size_t const first = sizes.size() - trim.extra.size();
        for (size_t i = 0; i < trim.extra.size(); ++i)
            sizes[first + i] = ctx.add(sizes[first + i], trim.extra[i]);
        y = &ctx.slice(*y, Sizes(sizes.size(), Size(0)), sizes, Sizes(sizes.size(), Size(1)),
                       nvinfer1::SliceMode::kFILL);
        if (!bias.isNull()) {
            ITensor* b = &ctx.asTensor(bias);
            Dims shape{int32_t(sizes.size()), {}};
            std::fill_n(shape.d, shape.nbDims, 1);
            shape.d[1] = int32_t(maps);
            y = &ctx.elementwise(*y, ctx.reshape(*b, shape), nvinfer1::ElementWiseOperation::kSUM);
        }
    }
    ctx.setOutput(0, spatial == 1 ? ctx.squeeze(*y, {2}) : *y);
}

} // namespace

void register_deconvolution(ImporterMap& map)
{
    map.add("ConvTranspose", importConvTranspose);
}

} // namespace tw::onnx
