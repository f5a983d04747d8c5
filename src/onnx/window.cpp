// SPDX-License-Identifier: Apache-2.0
#include "onnx/window.h"

namespace tw::onnx {

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
            ctx.invalid("attribute '" + std::string(attr) + "' has " + std::to_string(v.size()) + " entries, not " +
                        std::to_string(count));
        for (int64_t e : v)
            if (e < low || e > INT32_MAX)
                ctx.invalid("attribute '" + std::string(attr) + "' holds " + std::to_string(e));
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

} // namespace tw::onnx
