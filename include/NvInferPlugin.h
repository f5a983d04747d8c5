// SPDX-License-Identifier: Apache-2.0
// Entry point of the plugin library libnvinfer_plugin.
#ifndef TENSORWRIGHT_NV_INFER_PLUGIN_H
#define TENSORWRIGHT_NV_INFER_PLUGIN_H

#include "NvInfer.h"
#include "NvInferPluginUtils.h"

#if defined(__GNUC__)
// Deprecated names are declared with the help of other deprecated names; only uses in client code shall warn.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

/// Registers every plugin of the library under libNamespace. logger is an ILogger*, or null for getLogger(). Safe to
/// call more than once; false when a registration fails.
extern "C" TENSORRTAPI bool initLibNvInferPlugins(void* logger, char const* libNamespace);

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
