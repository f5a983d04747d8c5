// SPDX-License-Identifier: Apache-2.0
// Plugin creators of the process, by (name, version, namespace).
#pragma once

#include <mutex>
#include <tuple>
#include <vector>

#include "api/report.h"

namespace tw::api {

class PluginRegistry final : public nvinfer1::IPluginRegistry
{
public:
    bool registerCreator(nvinfer1::IPluginCreator& creator,
                         nvinfer1::AsciiChar const* pluginNamespace) noexcept override;
    // The array is a copy that stays as it is until the next call; null when there is no creator.
    nvinfer1::IPluginCreator* const* getPluginCreatorList(int32_t* numCreators) const noexcept override;
    nvinfer1::IPluginCreator* getPluginCreator(nvinfer1::AsciiChar const* pluginName,
                                               nvinfer1::AsciiChar const* pluginVersion,
                                               nvinfer1::AsciiChar const* pluginNamespace) noexcept override;
    void setErrorRecorder(nvinfer1::IErrorRecorder* recorder) noexcept override;
    nvinfer1::IErrorRecorder* getErrorRecorder() const noexcept override;
    bool deregisterCreator(nvinfer1::IPluginCreator const& creator) noexcept override;

private:
    struct Entry
    {
        std::string key; // "name version N namespace 'S'", for messages
        std::tuple<std::string, std::string, std::string> id;
        nvinfer1::IPluginCreator* creator;
    };
    void report(Error const& error) const noexcept;

    mutable std::mutex mutex_;
    std::vector<Entry> entries_; // in the order of registration
    mutable std::vector<nvinfer1::IPluginCreator*> list_;
    Reporter recorder_{nullptr}; // holds the recorder; lines go to the process-wide logger
};

PluginRegistry& processRegistry();
// Of plugins in safety engines.
PluginRegistry& safetyRegistry();

} // namespace tw::api
