// SPDX-License-Identifier: Apache-2.0
#include "importers/common/window.h"

namespace tw::importers {

void WindowAttrs::prependUnit()
{
    kernel.insert(kernel.begin(), 1);
    strides.insert(strides.begin(), 1);
    dilations.insert(dilations.begin(), 1);
    before.insert(before.begin(), 0);
    after.insert(after.begin(), 0);
}

WindowAttrs readWindow(ImportContext& ctx, int spatial, std::vector<int64_t> const& kernel)
{
    size_t const n = size_t(spatial);
    auto list = [&](char const* attr, size_t count, int64_t absent, int64_t low) {
        std::vector<int64_t> v = ctx.attrInts(attr, std::vector<int64_t>(count, absent));
        if (v.size() != count)
            ctx.invalid(fmt::format("attribute '{}' has {} entries, not {}", attr, v.size(), count));
        for (int64_t e : v)
            if (e < low || e > INT32_MAX)
                ctx.invalid(fmt::format("attribute '{}' holds {}", attr, e));
        return v;
    };
    WindowAttrs w;
    if (kernel.empty()) {
        ctx.requireInts("kernel_shape");
        w.kernel = list("kernel_shape", n, 1, 1);
    } else {
        w.kernel = kernel;
        if (ctx.hasAttr("kernel_shape") && ctx.attrInts("kernel_shape") != kernel)
            ctx.invalid("attribute 'kernel_shape' is not the shape of the kernel");
    }
    w.strides = list("strides", n, 1, 1);
    w.dilations = list("dilations", n, 1, 1);
    w.before.assign(n, 0);
    w.after.assign(n, 0);
    std::string const autoPad = ctx.attrString("auto_pad", "NOTSET");
    if (autoPad == "SAME_UPPER") {
        w.mode = nvinfer1::PaddingMode::kSAME_UPPER;
    } else if (autoPad == "SAME_LOWER") {
        w.mode = nvinfer1::PaddingMode::kSAME_LOWER;
    } else if (autoPad == "NOTSET") {
        std::vector<int64_t> const pads = list("pads", 2 * n, 0, INT32_MIN);
        w.before.assign(pads.begin(), pads.begin() + spatial);
        w.after.assign(pads.begin() + spatial, pads.end());
    } else if (autoPad != "VALID") {
        ctx.invalid("auto_pad '" + autoPad + "' is none of NOTSET, SAME_UPPER, SAME_LOWER, VALID");
    }
    return w;
}

bool roundUp(ImportContext& ctx, WindowAttrs& window, std::vector<int64_t> const& in)
{
    if (ctx.attrInt("ceil_mode", 0) == 0 || window.mode != nvinfer1::PaddingMode::kEXPLICIT_ROUND_DOWN)
        return false;
    window.mode = nvinfer1::PaddingMode::kEXPLICIT_ROUND_UP;
    bool hasEmpty = false, isSymmetric = true; // hasEmpty: some axis has or may have such a window
    for (size_t i = 0; i < in.size(); ++i) {
        int64_t const stride = window.strides[i], begin = in[i] + window.before[i];
        int64_t const room = begin + window.after[i] - window.extent(i);
        hasEmpty = hasEmpty || (in[i] >= 0 ? room >= 0 && (room + stride - 1) / stride * stride >= begin
                                           : window.after[i] + stride > window.extent(i)); // for some extent
        isSymmetric = isSymmetric && window.before[i] == window.after[i] && window.before[i] <= window.kernel[i];
    }
    if (hasEmpty && isSymmetric)
        window.mode = nvinfer1::PaddingMode::kCAFFE_ROUND_UP; // drops them itself, and takes one padding for both ends
    return hasEmpty && !isSymmetric;
}

ITensor& withoutEmptyWindows(ImportContext& ctx, ITensor& y, ITensor& x, WindowAttrs const& window)
{
    Sizes size = ctx.sizesOf(y);
    Sizes const in = ctx.sizesOf(x), start(size.size(), Size(0)), stride(size.size(), Size(1));
    bool isWhole = true;
    for (size_t i = 0; i < window.strides.size(); ++i) {
        size_t const axis = size.size() - window.strides.size() + i;
        // Windows begin at multiples of the stride: ceil((in + before) / stride) of them before the end.
        Size const most = ctx.floorDiv(ctx.add(in[axis], window.before[i] + window.strides[i] - 1), window.strides[i]);
        isWhole = isWhole && most.known() && size[axis].known() && most.value >= size[axis].value;
        size[axis] = ctx.min(size[axis], most);
    }
    return isWhole ? y : ctx.slice(y, start, size, stride);
}

} // namespace tw::importers
