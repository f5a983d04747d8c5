// SPDX-License-Identifier: Apache-2.0
#include "api/standard_plugins/standard_plugin.h"
#include "ops/disentangled_attention/op.h"
#include "tactic/registry.h"

namespace tw::api {

void registerPlugins_disentangled_attention(StandardPlugins& list)
{
    namespace op = ops::disentangled_attention;
    list.push_back(
        {.name = "DisentangledAttention_TRT",
         .version = "1",
         .fields = {{"span", nvinfer1::PluginFieldType::kINT32}, {"factor", nvinfer1::PluginFieldType::kFLOAT32}},
         .types = {"TTT>T"},
         .lower =
             [](PluginLowering& p) {
                 op::Attrs a;
                 a.span = p.fields.integer("span");
                 a.factor = p.fields.number("factor");
                 p.outputs = {p.value(op::def(), a, {p.in(0), p.in(1), p.in(2)})};
             },
         .check =
             [](PluginFields const& f) {
                 int64_t const span = f.integer("span");
                 return span > 0 && span <= op::kMostSpan ? std::string()
                                                          : fmt::format("span is {}; it must be above 0", span);
             },
         .formats = {{nvinfer1::DataType::kINT8, nvinfer1::PluginFormat::kLINEAR, {0, 1, 2}, {0}}},
         .checksTypes = false});
}

} // namespace tw::api
