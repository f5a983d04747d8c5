// SPDX-License-Identifier: Apache-2.0
// Evaluates a node whose inputs are constants (or, for Shape and Size, have static dimensions), so that shape
// arithmetic written as nodes still gives importers the initializers that they need.
#pragma once

#include "onnx/importer.h"

namespace tw::onnx {

// True when all outputs of the node were set. False: the operator is not folded, or its inputs are not known; the
// importer then does the work and reports what is wrong.
bool fold(ImportContext& ctx);

} // namespace tw::onnx
