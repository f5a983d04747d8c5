// SPDX-License-Identifier: Apache-2.0
#include "api/standard_plugins/standard_plugin.h"

namespace tw::api {

#define TW_PLUGINS(name) void registerPlugins_##name(StandardPlugins& list);
#include "api/standard_plugins/plugins.def"
#undef TW_PLUGINS

StandardPlugins const& standardPlugins()
{
    static StandardPlugins const& plugins = *[] {
        auto* const list = new StandardPlugins; // never destroyed, as the objects that point into it
#define TW_PLUGINS(name) registerPlugins_##name(*list);
#include "api/standard_plugins/plugins.def"
#undef TW_PLUGINS
        return list;
    }();
    return plugins;
}

} // namespace tw::api
