// SPDX-License-Identifier: Apache-2.0
// libnvinfer_plugin. No plugin is built in yet; programs call initLibNvInferPlugins() whether they need one or not, so
// it succeeds and says what is missing. A network that uses a plugin fails by that plugin's name.
#include "NvInferPlugin.h"

extern "C" bool initLibNvInferPlugins(void* logger, char const* libNamespace)
{
    auto* log = static_cast<nvinfer1::ILogger*>(logger);
    if (!log)
        log = getLogger();
    if (!libNamespace) {
        if (log)
            log->log(nvinfer1::ILogger::Severity::kERROR, "initLibNvInferPlugins: the namespace is a null pointer");
        return false;
    }
    if (log)
        log->log(nvinfer1::ILogger::Severity::kWARNING,
                 "initLibNvInferPlugins: no standard plugin is part of this version yet; none is registered");
    return true;
}
