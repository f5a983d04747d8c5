// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "onnx/importer.h"

namespace tw::onnx {

// 0, 1, ... count - 1: kINT32, [count].
ITensor& positions(ImportContext& ctx, Size const& count);

} // namespace tw::onnx
