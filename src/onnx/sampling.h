// SPDX-License-Identifier: Apache-2.0
// Elements of images of any number of dimensions at computed places, where IGridSampleLayer takes images of two.
#pragma once

#include <vector>

#include "onnx/importer.h"

namespace tw::onnx {

// x: [n, c, spatial...]. places: of each spatial axis one tensor [n, p], FLOAT: where in the image, in elements. `outside`:
// kFILL has 0 there, kCLAMP the elements at the ends. Gives [n, c, p].
ITensor& sampledAt(ImportContext& ctx, ITensor& x, std::vector<ITensor*> const& places,
                   nvinfer1::InterpolationMode mode, nvinfer1::SampleMode outside);

} // namespace tw::onnx
