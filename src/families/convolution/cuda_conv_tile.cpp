// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/cuda_conv_tile.h"

#include <algorithm>

#include "ops/convolution/op.h"

namespace tw::ops::conv_f16 {

Support supportsTiles(Problem const& p, Arithmetic a)
{
    TW_SUPPORTS(needsSm80(p));
    TensorSpec const &x = p.inputs[0], &w = p.inputs[1];
    DataType const type = typeOf(p, a);
    if (p.node->attrsAs<convolution::Attrs>().kind() != WindowKind::kConvolution)
        return Support::no("takes no transposed convolutions");
    if (x.type != type || w.type != type || p.outputs[0].type != type)
        return Support::no(std::string("takes ") + nameOf(type) + " only");
    bool const hasBias = p.inputs.size() > 2 && p.inputs[2].present;
    if (!w.constant || (hasBias && !p.inputs[2].constant))
        return Support::no("takes constant filters and biases only");
    if (w.dims.volume() == 0)
        return Support::no("needs channels and filters");
    Geometry const g = geometryOf(p, true);
    if (g.groups != 1)
        return Support::no("takes one group");
    constexpr int64_t kLimit = int64_t(1) << 24;
    for (int i = 0; i < 3; ++i) {
        if (g.stride[i] != 1 || (g.dilation[i] != 1 && g.window[i] > 1))
            return Support::no("takes windows without strides and dilations");
        if (std::max({g.in[i], g.out[i], std::abs(g.before[i])}) >= kLimit)
            return Support::no("takes images of less than 2^24 along each axis");
    }
    return g.c < kLimit && g.k < kLimit / 8 ? Support::yes() : Support::no("counts in 32 bits");
}

std::string tileSource(Problem const& p, Geometry const& g, int64_t units)
{
    return cuda::include("kernels/cuda/common/matrix.cuh") + epilogueSource(p, true) + cuda::constant("UNITS", units) +
           cuda::constant("PASSES", passesOf(g, units)) + cuda::constant("TAIL", g.c - (unitsOf(g) - 1) * 8) +
           cuda::flag("RESIDUAL", hasResidual(p));
}

PatchParams tileParams(Geometry const& g, CudaLaunch const& launch, RunArgs const& args)
{
    PatchParams a;
    setOutput(a, args, launch.packed(0));
    a.m = int32_t(g.out[2]);
    a.n = int32_t(roundUp8(g.k));
    a.x = args.inputs[0].data;
    a.filters = launch.packed(1);
    a.pixelX = args.inputs[0].pixelStride();
    a.units = int32_t(unitsOf(g));
    cuda::i32* const in[] = {&a.d, &a.h, &a.w};
    cuda::i32* const before[] = {&a.padD, &a.padH, &a.padW};
    for (int i = 0; i < 3; ++i) {
        *in[i] = int32_t(g.in[i]);
        *before[i] = int32_t(g.before[i]);
    }
    a.outD = int32_t(g.out[0]);
    a.outH = int32_t(g.out[1]);
    return a;
}

} // namespace tw::ops::conv_f16
