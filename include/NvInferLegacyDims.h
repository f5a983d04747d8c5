// SPDX-License-Identifier: Apache-2.0
// Dimensions of fixed rank, used by the 2D methods of the network API.
#ifndef TENSORWRIGHT_NV_INFER_LEGACY_DIMS_H
#define TENSORWRIGHT_NV_INFER_LEGACY_DIMS_H

#include "NvInferRuntimeCommon.h"

#if defined(__GNUC__)
// Deprecated names are declared with the help of other deprecated names; only uses in client code shall warn.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

/// Two dimensions; the rest of d is 0.
class Dims2 : public Dims
{
public:
    Dims2() : Dims2(0, 0) {}
    Dims2(int32_t d0, int32_t d1)
    {
        nbDims = 2;
        d[0] = d0;
        d[1] = d1;
        for (int32_t i = 2; i < MAX_DIMS; ++i) {
            d[i] = 0;
        }
    }
};

/// Height and width of an image or window.
class DimsHW : public Dims2
{
public:
    DimsHW() : DimsHW(0, 0) {}
    DimsHW(int32_t height, int32_t width) : Dims2(height, width) {}

    int32_t& h() { return d[0]; }
    int32_t h() const { return d[0]; }

    int32_t& w() { return d[1]; }
    int32_t w() const { return d[1]; }
};

/// Three dimensions; the rest of d is 0.
class Dims3 : public Dims2
{
public:
    Dims3() : Dims3(0, 0, 0) {}
    Dims3(int32_t d0, int32_t d1, int32_t d2) : Dims2(d0, d1)
    {
        nbDims = 3;
        d[2] = d2;
    }
};

/// Four dimensions; the rest of d is 0.
class Dims4 : public Dims3
{
public:
    Dims4() : Dims4(0, 0, 0, 0) {}
    Dims4(int32_t d0, int32_t d1, int32_t d2, int32_t d3) : Dims3(d0, d1, d2)
    {
        nbDims = 4;
        d[3] = d3;
    }
};

} // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
