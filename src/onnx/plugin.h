// SPDX-License-Identifier: Apache-2.0
// Operators without an importer as plugins: the creator is found by the operator's name and the attributes
// plugin_version ("1") and plugin_namespace (""), the other attributes become its fields.
#pragma once

#include "onnx/importer.h"

namespace tw::onnx {

nvinfer1::IPluginCreator* findPlugin(tw_onnx::NodeProto const& node);
void importPlugin(ImportContext& ctx, tw_onnx::NodeProto const& node, nvinfer1::IPluginCreator& creator);

} // namespace tw::onnx
