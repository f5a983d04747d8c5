// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "families/convolution/cuda_conv_f16.h"
#include "kernels/cuda/common/epilogue.h"

namespace tw::ops::conv_f16 {

namespace {

int64_t placeOf(Extents const& w, int64_t, int64_t r, int64_t s, int64_t channels)
{
    return (r * w[3] + s) * channels;
}

} // namespace

std::string fewSource(bool isHalf)
{
    return cuda::include(isHalf ? "families/convolution/few_f16.cuh" : "families/convolution/few_f32.cuh");
}

std::string epilogueSource(Problem const& p, bool isHalf)
{
    return isHalf ? cuda::epilogueFunction(epilogueOf(p)) : exactEpilogueOf(p);
}

Support supportsAlone(Problem const& p, DataType type)
{
    TW_SUPPORTS(supportsCommon(p, type));
    if (p.cuda->capability < 80)
        return Support::no("needs a GPU of compute capability 8.0 or later");
    Geometry const g = geometryOf(p, true);
    if (g.groups != g.c || g.k != g.c)
        return Support::no("takes one filter for each channel");
    return Support::yes();
}

std::vector<std::string> packAlone(Problem const& p)
{
    TensorSpec const& w = p.inputs[1];
    int64_t const channels = roundUp8(w.dims[0]), taps = w.dims[2] * w.dims[3];
    size_t const size = size_t(sizeOf(w.type));
    std::string const each = packFilters(w, w.dims[0], taps, placeOf, 1);
    std::string filters(size_t(taps * channels) * size, '\0');
    char const* from = each.data();
    for (int64_t c = 0; c < w.dims[0]; ++c)
        for (int64_t t = 0; t < taps; ++t, from += size)
            std::memcpy(filters.data() + size_t(t * channels + c) * size, from, size);
    return {packBias(p, channels), filters};
}

} // namespace tw::ops::conv_f16
