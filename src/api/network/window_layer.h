// SPDX-License-Identifier: Apache-2.0
// What convolution, deconvolution and pooling layers share: a window over the last two or three dimensions.
#pragma once

#include "api/network/setter.h"
#include "families/convolution/window.h"

namespace tw::api {

template <class PublicLayer>
struct WindowLayer : LayerObject<PublicLayer>
{
    nvinfer1::Dims window{}, stride{}, prePadding{}, postPadding{};
    nvinfer1::PaddingMode paddingMode = nvinfer1::PaddingMode::kEXPLICIT_ROUND_DOWN;

    // For creators: its size, and the defaults that follow from it.
    Result<void> setWindow(nvinfer1::Dims const& size, std::string const& what)
    {
        TW_TRY(checkDims(size, 1, what));
        if (size.nbDims != 2 && size.nbDims != 3)
            return invalidArgument("{} {} must have 2 or 3 entries", what, str(size));
        window = size;
        stride = filledDims(size.nbDims, 1);
        prePadding = postPadding = filledDims(size.nbDims, 0);
        return {};
    }
    Result<void> checkEntries(nvinfer1::Dims const& d, int32_t least, char const* what) const
    {
        TW_TRY(checkDims(d, least, this->where(what)));
        if (d.nbDims != window.nbDims)
            return this->error("{} {} needs one entry for each of the {} window dimensions", what, str(d),
                               window.nbDims);
        return {};
    }

protected:
    // Everything but the window itself, as attributes of the op.
    template <class Attrs>
    Attrs windowAttrs() const
    {
        Attrs a;
        a.strides = toVector(stride);
        a.prePadding = toVector(prePadding);
        a.postPadding = toVector(postPadding);
        a.paddingMode = static_cast<ops::PaddingMode>(paddingMode);
        return a;
    }
};

} // namespace tw::api

// A setter and getter with all entries, and those for two dimensions.
#define TW_WINDOW_PROPERTY(Public, setX, getX, field, least, what)                                                     \
    TW_PROPERTY(Public, Dims, setX##Nd, getX##Nd, field, self.checkEntries(value, least, what))                        \
    TW_SETTER(Public, DimsHW, setX, setX##Nd(value))                                                                   \
    TW_GETTER(Public, DimsHW, getX, toHW(self.field))

#define TW_WINDOW_LAYER_METHODS(Public)                                                                                \
    TW_PROPERTY(Public, PaddingMode, setPaddingMode, getPaddingMode, paddingMode, checkEnum(value, "padding mode"))    \
    TW_WINDOW_PROPERTY(Public, setStride, getStride, stride, 1, "stride")                                              \
    TW_PROPERTY(Public, Dims, setPrePadding, getPrePadding, prePadding, self.checkEntries(value, 0, "pre-padding"))    \
    TW_PROPERTY(Public, Dims, setPostPadding, getPostPadding, postPadding,                                             \
                self.checkEntries(value, 0, "post-padding"))                                                           \
    TW_SETTER(Public, Dims, setPaddingNd, setPrePadding(value); setPostPadding(value))                                 \
    TW_GETTER(Public, Dims, getPaddingNd, self.prePadding)                                                             \
    TW_SETTER(Public, DimsHW, setPadding, setPaddingNd(value))                                                         \
    TW_GETTER(Public, DimsHW, getPadding, toHW(self.prePadding))
