// SPDX-License-Identifier: Apache-2.0
#include "api/plugin/registry.h"

#include <algorithm>

#include "api/standard_plugins/standard_plugin.h"

namespace tw::api {

using nvinfer1::AsciiChar;
using nvinfer1::IPluginCreator;

namespace {

// A longer name is a missing terminator.
constexpr size_t kMaxName = 1024;

Result<std::string> keyPart(AsciiChar const* text, char const* what)
{
    if (!text)
        return invalidArgument("plugin registry: the creator's {} is a null pointer", what);
    size_t const length = strnlen(text, kMaxName);
    if (length == kMaxName)
        return invalidArgument("plugin registry: the creator's {} has {} bytes or more", what, kMaxName);
    return std::string(text, length);
}

} // namespace

PluginRegistry& processRegistry()
{
    static PluginRegistry& registry = *new PluginRegistry; // never destroyed: other libraries deregister at exit
    return registry;
}

PluginRegistry& safetyRegistry()
{
    static PluginRegistry& registry = *new PluginRegistry;
    return registry;
}

void PluginRegistry::report(Error const& error) const noexcept
{
    Reporter reporter(getLogger(), recorder_.recorder());
    guardedVoid(reporter, [&]() -> Result<void> { return error; });
}

bool PluginRegistry::registerCreator(IPluginCreator& creator, AsciiChar const* pluginNamespace) noexcept
{
    Reporter reporter(getLogger(), recorder_.recorder());
    return guarded<bool>(reporter, false, [&]() -> Result<bool> {
        TW_ASSIGN(std::string const name, keyPart(creator.getPluginName(), "name"));
        TW_ASSIGN(std::string const version, keyPart(creator.getPluginVersion(), "version"));
        TW_ASSIGN(std::string const space, keyPart(pluginNamespace, "namespace"));
        if (name.empty() || version.empty())
            return invalidArgument("plugin registry: a creator needs a name and a version ('{}', '{}')", name, version);
        std::string const key = "'" + name + "' version '" + version + "' namespace '" + space + "'";
        std::lock_guard lock(mutex_);
        auto const id = std::tuple(name, version, space);
        for (Entry const& e : entries_)
            if (e.id == id)
                return invalidState("plugin registry: a creator for {} is registered already", key);
        // The namespace is a property of the creator too: plugins made by it carry it.
        creator.setPluginNamespace(pluginNamespace);
        entries_.push_back({key, id, &creator});
        return true;
    });
}

bool PluginRegistry::deregisterCreator(IPluginCreator const& creator) noexcept
{
    std::lock_guard lock(mutex_);
    auto it = std::ranges::find_if(entries_, [&](Entry const& e) { return e.creator == &creator; });
    if (it == entries_.end())
        return false;
    entries_.erase(it);
    return true;
}

IPluginCreator* const* PluginRegistry::getPluginCreatorList(int32_t* numCreators) const noexcept
{
    if (!numCreators) {
        report(invalidArgument("IPluginRegistry::getPluginCreatorList: numCreators is a null pointer"));
        return nullptr;
    }
    Reporter reporter(getLogger(), recorder_.recorder());
    *numCreators = 0;
    return guarded<IPluginCreator* const*>(reporter, nullptr, [&]() -> Result<IPluginCreator* const*> {
        std::lock_guard lock(mutex_);
        list_.clear();
        for (Entry const& e : entries_)
            list_.push_back(e.creator);
        *numCreators = int32_t(list_.size());
        return list_.empty() ? nullptr : list_.data();
    });
}

IPluginCreator* PluginRegistry::getPluginCreator(AsciiChar const* pluginName, AsciiChar const* pluginVersion,
                                                 AsciiChar const* pluginNamespace) noexcept
{
    if (!pluginName || !pluginVersion || !pluginNamespace) {
        report(invalidArgument("IPluginRegistry::getPluginCreator: name, version and namespace must not be null"));
        return nullptr;
    }
    if (pluginNamespace == std::string_view(kStandardNamespace))
        return standardCreator(pluginName, pluginVersion);
    std::lock_guard lock(mutex_);
    for (Entry const& e : entries_) {
        auto const& [name, version, space] = e.id;
        if (name == pluginName && version == pluginVersion && space == pluginNamespace)
            return e.creator;
    }
    return nullptr;
}

void PluginRegistry::setErrorRecorder(nvinfer1::IErrorRecorder* recorder) noexcept
{
    recorder_.setRecorder(recorder);
}
nvinfer1::IErrorRecorder* PluginRegistry::getErrorRecorder() const noexcept
{
    return recorder_.recorder();
}

} // namespace tw::api
