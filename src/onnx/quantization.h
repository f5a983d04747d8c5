// SPDX-License-Identifier: Apache-2.0
// What QuantizeLinear and DequantizeLinear share: scale, zero point and axis, by the rules of 8.5: scales are initializers
// and positive, zero points are 0 and of INT8.
#pragma once

#include "onnx/importer.h"

namespace tw::onnx {

struct QuantizationScale
{
    Constant scale; // one number, or one for each index along `axis`
    int axis = -1;  // of input 0; -1: one number for all
};
// Of the node's inputs 1 and 2. `type`: of the quantized tensor, which the zero point has, too.
QuantizationScale readQuantizationScale(ImportContext& ctx, DataType type);

// [] or [n], as the layers take it.
ITensor& scaleTensor(ImportContext& ctx, QuantizationScale const& s);

} // namespace tw::onnx
