// SPDX-License-Identifier: Apache-2.0
#include "api/standard_plugins/standard_plugin.h"
#include "ops/deformable_attention/op.h"
#include "tactic/registry.h"

namespace tw::api {

void registerPlugins_deformable_attention(StandardPlugins& list)
{
    list.push_back({.name = "MultiscaleDeformableAttnPlugin_TRT",
                    .version = "1",
                    .types = {"TiiTT>T"},
                    .lower = [](PluginLowering& p) {
                        p.outputs = {p.value(ops::deformable_attention::def(), ops::deformable_attention::Attrs(),
                                             {p.in(0), p.in(1), p.in(2), p.in(3), p.in(4)})};
                    }});
}

} // namespace tw::api
