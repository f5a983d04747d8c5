// SPDX-License-Identifier: Apache-2.0
// Resize where IResizeLayer has no coordinates or filters like the operator's: along each axis a product with a matrix that
// the import computes, or a gather for the nearest element. Sizes have to be known.
#pragma once

#include <string>
#include <vector>

#include "onnx/importer.h"

namespace tw::onnx {

struct Resampling
{
    nvinfer1::InterpolationMode mode{};
    std::string coordinates, rounding; // as the attributes say them
    double cubicCoefficient = -0.75, extrapolation = 0;
    bool excludesOutside = false, antialiases = false;
};

struct ResampledAxis
{
    int axis = 0;
    int64_t in = 0, out = 0;
    double scale = 1;                // of the coordinates: what out was made of
    double roiStart = 0, roiEnd = 1; // tf_crop_and_resize
};

ITensor& resampled(ImportContext& ctx, ITensor& x, Resampling const& r, std::vector<ResampledAxis> const& axes);

} // namespace tw::onnx
