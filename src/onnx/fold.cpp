// SPDX-License-Identifier: Apache-2.0
#include "onnx/fold.h"

namespace tw::onnx {

bool fold(ImportContext&)
{
    return false;
}

} // namespace tw::onnx
