// SPDX-License-Identifier: Apache-2.0
// Conv, ConvTranspose. One spatial dimension runs as a 2-D convolution of height 1.
#include <algorithm>

#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::PaddingMode;

struct Parts
{
    ITensor* x;
    Value w, bias;
    int spatial;
    WindowAttrs window;
    int64_t groups;
};

// The window is for the caller to fill in: that of the node, or of a kernel that is another one than the node's.
Parts partsOf(ImportContext& ctx, ITensor& x, Value const& w, Value const& bias)
{
    int const spatial = x.getDimensions().nbDims - 2;
    ctx.check(spatial >= 1 && spatial <= 3, "input of shape " + describe(x.getDimensions()) +
                                                " must have 1, 2 or 3 dimensions behind batch and channel");
    if (w.rank() != spatial + 2)
        ctx.invalid("kernel of shape " + describe(w.dims()) + " does not fit input of shape " +
                    describe(x.getDimensions()));
    ctx.check(isStatic(w.dims()), "the kernel's dimensions must be known, they are " + describe(w.dims()));
    return {&x, w, bias, spatial, {}, ctx.attrInt("group", 1)};
}

Parts partsOf(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    Parts p = partsOf(ctx, x, ctx.asWeights(ctx.input(1)), ctx.asWeights(ctx.optionalInput(2)));
    p.window = convolutionWindow(ctx, p.w.dims());
    return p;
}

// A number of channels that the model leaves open is that of the kernel: exporters of speech models name all dimensions.
void knowChannels(ImportContext& ctx, Parts& p, int64_t channels)
{
    if (p.x->getDimensions().d[1] >= 0 || channels < 1 || channels > INT32_MAX)
        return;
    Sizes sizes = ctx.sizesOf(*p.x);
    sizes[1] = Size(channels);
    p.x = &ctx.reshape(*p.x, sizes);
}

void prependUnit(ImportContext& ctx, Parts& p)
{
    p.x = &ctx.unsqueeze(*p.x, {2});
    Dims const d = p.w.dims(), flat{4, {d.d[0], d.d[1], 1, d.d[2]}};
    p.w = p.w.isConstant() ? Value(ctx.reshaped(p.w.constant(), flat)) : Value(ctx.reshape(p.w.tensor(), flat));
    p.window.prependUnit();
}

// The arrays among the weights; tensors are inputs of the layer.
nvinfer1::Weights arrayOf(Value const& v, DataType type)
{
    return v.isConstant() ? v.constant().weights() : nvinfer1::Weights{type, nullptr, 0};
}

// `hasBias`: the bias of the operator is the layer's.
template <class Layer>
ITensor& finished(ImportContext& ctx, Layer& layer, Parts const& p, std::vector<int64_t> const& before,
                  std::vector<int64_t> const& after, bool hasBias)
{
    layer.setStrideNd(makeDims(p.window.strides));
    layer.setDilationNd(makeDims(p.window.dilations));
    layer.setPrePadding(makeDims(before));
    layer.setPostPadding(makeDims(after));
    layer.setNbGroups(int32_t(p.groups));
    if (p.w.isTensor())
        layer.setInput(1, p.w.tensor());
    if (p.bias.isTensor() && hasBias)
        layer.setInput(2, p.bias.tensor());
    ctx.nameWeights(p.w);
    if (hasBias)
        ctx.nameWeights(p.bias);
    return ctx.out(layer);
}

ITensor& convolution(ImportContext& ctx, Parts p)
{
    if (p.groups < 1 || p.groups > INT32_MAX)
        ctx.invalid(fmt::format("group is {}", p.groups));
    knowChannels(ctx, p, p.groups * p.w.dims().d[1]);
    if (p.spatial == 1)
        prependUnit(ctx, p);
    auto& conv = ctx.added(ctx.network().addConvolutionNd(*p.x, p.w.dims().d[0], makeDims(p.window.kernel),
                                                          arrayOf(p.w, p.w.type()), arrayOf(p.bias, p.w.type())));
    conv.setPaddingMode(p.window.mode);
    ITensor& y = finished(ctx, conv, p, p.window.before, p.window.after, true);
    return p.spatial == 1 ? ctx.squeeze(y, {2}) : y;
}

void importConv(ImportContext& ctx)
{
    ctx.setOutput(0, convolution(ctx, partsOf(ctx)));
}

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
            ctx.invalid(fmt::format("attribute '{}' has {} entries, not {}", attr, v.size(), spatial));
        for (int64_t e : v)
            if (e < 0 || e > INT32_MAX)
                ctx.invalid(fmt::format("attribute '{}' holds {}", attr, e));
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
    Parts p = partsOf(ctx);
    int64_t const maps = p.groups >= 1 && p.groups <= INT32_MAX ? p.groups * p.w.dims().d[1] : -1;
    if (maps < 0 || maps > INT32_MAX)
        ctx.invalid(fmt::format("group is {}, with {} output maps each", p.groups, p.w.dims().d[1]));
    knowChannels(ctx, p, p.w.dims().d[0]);
    Trim trim = trimOf(ctx, p.window, p.x->getDimensions(), p.spatial);
    if (p.spatial == 1) {
        prependUnit(ctx, p);
        for (auto* list : {&trim.before, &trim.after, &trim.extra})
            list->insert(list->begin(), 0);
    }
    bool const extended = std::any_of(trim.extra.begin(), trim.extra.end(), [](int64_t e) { return e > 0; });
    nvinfer1::Weights const none{p.w.type(), nullptr, 0};
    auto& deconv = ctx.added(ctx.network().addDeconvolutionNd(*p.x, int32_t(maps), makeDims(p.window.kernel),
                                                              arrayOf(p.w, p.w.type()),
                                                              extended ? none : arrayOf(p.bias, p.w.type())));
    ITensor* y = &finished(ctx, deconv, p, trim.before, trim.after, !extended);
    if (extended) {
        Sizes sizes = ctx.sizesOf(*y);
        size_t const first = sizes.size() - trim.extra.size();
        for (size_t i = 0; i < trim.extra.size(); ++i)
            sizes[first + i] = ctx.add(sizes[first + i], trim.extra[i]);
        y = &ctx.slice(*y, Sizes(sizes.size(), Size(0)), sizes, Sizes(sizes.size(), Size(1)),
                       nvinfer1::SliceMode::kFILL);
        if (!p.bias.isNull()) {
            ITensor* b = &ctx.asTensor(p.bias);
            Dims shape = unitDims(int(sizes.size()));
            shape.d[1] = int32_t(maps);
            y = &ctx.elementwise(*y, ctx.reshape(*b, shape), nvinfer1::ElementWiseOperation::kSUM);
        }
    }
    ctx.setOutput(0, p.spatial == 1 ? ctx.squeeze(*y, {2}) : *y);
}

} // namespace

WindowAttrs convolutionWindow(ImportContext& ctx, Dims const& kernel)
{
    return readWindow(ctx, kernel.nbDims - 2, {kernel.d + 2, kernel.d + kernel.nbDims});
}

ITensor& convolved(ImportContext& ctx, ITensor& x, Value const& w, Value const& bias, WindowAttrs const& window)
{
    return convolved(ctx, x, w, bias, window, ctx.attrInt("group", 1));
}

ITensor& convolved(ImportContext& ctx, ITensor& x, Value const& w, Value const& bias, WindowAttrs const& window,
                   int64_t groups)
{
    Parts p = partsOf(ctx, x, w, bias);
    p.window = window;
    p.groups = groups;
    return convolution(ctx, p);
}

void register_convolution(ImporterMap& map)
{
    map.add("Conv", importConv);
    map.add("ConvTranspose", importConvTranspose);
}

} // namespace tw::onnx
