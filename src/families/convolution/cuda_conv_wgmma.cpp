// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/cuda_conv_f16.h"

namespace tw::ops::conv_f16 {

Support supportsWgmma(Problem const& p, DataType type)
{
    TW_SUPPORTS(supportsCommon(p, type));
    if (p.cuda->capability != 90)
        return Support::no("needs a GPU of compute capability 9.0");
    if (p.node->attrsAs<KernelWindowAttrs>().groups != 1)
        return Support::no("takes one group");
    return Support::yes();
}

bool isProduct(Geometry const& g)
{
    bool product = true;
    for (int i = 1; i < 3; ++i)
        product = product && g.window[i] == 1 && g.stride[i] == 1 && g.before[i] == 0 && g.in[i] == g.out[i];
    return product;
}

cuda::gemm_f16::Shape wgmmaShape(bool image, DataType x, DataType y, Geometry const& g, int64_t pixelX, int64_t pixelY)
{
    cuda::gemm_f16::Shape s;
    int64_t const channels = pixelOf(x, g.c), filters = pixelOf(y, g.k);
    if (image) {
        cuda::gemm_f16::Image i;
        i.n = g.batch;
        i.h = g.in[1];
        i.w = g.in[2];
        i.c = channels;
        i.r = g.window[1];
        i.s = g.window[2];
        i.outH = g.out[1];
        i.outW = g.out[2];
        i.strideH = int(g.stride[1]);
        i.strideW = int(g.stride[2]);
        i.padH = int(g.before[1]);
        i.padW = int(g.before[2]);
        i.dilationH = int(g.dilation[1]);
        i.dilationW = int(g.dilation[2]);
        s = cuda::gemm_f16::imageShape(i, filters);
    } else {
        s.m = g.batch * g.out[1] * g.out[2];
        s.n = filters;
        s.k = g.c;
        s.lda = pixelX ? pixelX : channels;
        s.ldb = channels;
    }
    s.ldy = pixelY ? pixelY : filters;
    return s;
}

char const* unsupportedWindow(bool image, Geometry const& g)
{
    if (!image)
        return isProduct(g) ? nullptr : "a window of one position makes a product";
    // The corners of the box of filter origins are numbers of 8 bits.
    for (int i = 1; i < 3; ++i) {
        int64_t const upper = (g.out[i] - 1) * g.stride[i] - g.before[i] - (g.in[i] - 1);
        if (g.before[i] < -127 || upper < -128 || upper > 127)
            return "TMA's padding ends at 127";
    }
    return nullptr;
}

void readInPlace(cuda::TensorMapSpec& map, Geometry const& g, int64_t pixelX, int64_t elementBytes)
{
    map.dims[0] = uint64_t(g.c);
    uint64_t stride = uint64_t(pixelX * elementBytes);
    for (int i = 0; i < 3; ++i) {
        map.strides[i] = stride;
        stride *= map.dims[i + 1];
    }
}

void setPixelStride(cuda::TensorMapSpec& map, int64_t pixelBytes)
{
    map.strides[0] = uint64_t(pixelBytes);
    map.strides[1] = map.strides[0] * map.dims[1];
}

int64_t placeByPixels(Extents const& w, int64_t c, int64_t r, int64_t s, int64_t channels)
{
    return (r * w[3] + s) * channels + c;
}

} // namespace tw::ops::conv_f16
