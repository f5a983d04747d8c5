// SPDX-License-Identifier: Apache-2.0
#include "api/layer_report.h"

#include <cmath>

namespace tw::api {

namespace {

using Json = nlohmann::ordered_json;

// What plan::Choice says of a time.
void addTime(Json& j, double microseconds)
{
    if (microseconds != 0)
        j[microseconds > 0 ? "TimeMicroseconds" : "EstimateMicroseconds"] = std::abs(microseconds);
}

// Rivals are tactics, and types that the layer could have had.
bool isType(plan::Rival const& r)
{
    return r.name == typeText(DataType::kFloat) || r.name == typeText(DataType::kHalf);
}

Json rivalJson(char const* key, plan::Rival const& r)
{
    Json rival{{key, r.name}};
    addTime(rival, r.microseconds);
    rival["Reason"] = r.reason;
    return rival;
}

} // namespace

char const* typeText(DataType t)
{
    switch (t) {
    case DataType::kFloat:
        return "FP32";
    case DataType::kHalf:
        return "FP16";
    case DataType::kInt8:
        return "Int8";
    case DataType::kInt32:
        return "Int32";
    case DataType::kBool:
        return "Bool";
    case DataType::kUInt8:
        return "UInt8";
    }
    return "";
}

void addReport(Json& layer, ir::Node const& node, plan::Choice const& choice)
{
    addTime(layer, choice.microseconds);
    if (!choice.config.empty())
        layer["TacticConfig"] = choice.config;
    Json types = Json::array();
    for (plan::Rival const& r : choice.rivals) {
        if (isType(r))
            types.push_back(rivalJson("Type", r));
        else
            layer["RunnersUp"].push_back(rivalJson("TacticName", r));
    }
    if (!types.empty())
        layer["Precision"] = {{"Type", typeText(node.outputs[0]->type)}, {"Others", types}};
}

} // namespace tw::api
