// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "api/engine/engine.h"

namespace tw::api {

struct InspectorObject final : nvinfer1::IEngineInspector
{
    InspectorObject(Reporter const& r, EngineObject const& e) : reporter(r), state(e.state) {}
    mutable Reporter reporter;
    std::shared_ptr<EngineState> state;
    nvinfer1::IExecutionContext const* context = nullptr;
    mutable std::string layerText, engineText;

    std::string layer(int index, bool json) const;
};
TW_OBJECT(nvinfer1::IEngineInspector, InspectorObject)

} // namespace tw::api
