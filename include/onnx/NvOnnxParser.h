// SPDX-License-Identifier: Apache-2.0
// Forwards to the parser header: some programs include it by the path of the parser's source tree.
#ifndef TENSORWRIGHT_ONNX_NV_ONNX_PARSER_H
#define TENSORWRIGHT_ONNX_NV_ONNX_PARSER_H

#include "../NvOnnxParser.h"

#endif
