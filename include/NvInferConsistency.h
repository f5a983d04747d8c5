// SPDX-License-Identifier: Apache-2.0
// Checker of serialized safety engines: classes and the entry point of libnvinfer_checker.
#ifndef TENSORWRIGHT_NV_INFER_CONSISTENCY_H
#define TENSORWRIGHT_NV_INFER_CONSISTENCY_H

#include "NvInferRuntimeCommon.h"

#if defined(__GNUC__)
// Deprecated names are declared with the help of other deprecated names; only uses in client code shall warn.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {
namespace consistency {

/// Checks a serialized safety engine before it is deployed.
class TENSORRTAPI IConsistencyChecker
{
public:
    /// Whether the engine is what the builder made and its plugins agree. The library's checkers override this:
    /// programs that look for the library at run time, as trtexec does, link without it.
    virtual bool validate() const noexcept { return false; }

    virtual ~IConsistencyChecker() noexcept = default;

protected:
    IConsistencyChecker() = default;
    IConsistencyChecker(IConsistencyChecker const&) = delete;
    IConsistencyChecker& operator=(IConsistencyChecker const&) = delete;
    IConsistencyChecker(IConsistencyChecker&&) = delete;
    IConsistencyChecker& operator=(IConsistencyChecker&&) = delete;
};

/// A plugin creator that can also check its plugins in a serialized engine.
class TENSORRTAPI IPluginChecker : public IPluginCreator
{
public:
    /// Whether the serialized plugin fits these inputs, outputs and scratch bytes.
    virtual bool validate(char const* name, void const* serialData, size_t serialLength, PluginTensorDesc const* in,
                          size_t nbInputs, PluginTensorDesc const* out, size_t nbOutputs,
                          int64_t workspaceSize) const noexcept = 0;

    IPluginChecker() = default;
    ~IPluginChecker() noexcept override = default;

protected:
    IPluginChecker(IPluginChecker const&) = default;
    IPluginChecker(IPluginChecker&&) = default;
    IPluginChecker& operator=(IPluginChecker const&) & = default;
    IPluginChecker& operator=(IPluginChecker&&) & = default;
};

} // namespace consistency
} // namespace nvinfer1

/// Exported side of createConsistencyChecker().
extern "C" TENSORRTAPI void* createConsistencyChecker_INTERNAL(void* logger, void const* blob, size_t size,
                                                               int32_t version);

namespace nvinfer1 {
namespace consistency {

namespace {

/// A checker of the size bytes at blob, or nullptr. The caller deletes it.
inline IConsistencyChecker* createConsistencyChecker(ILogger& logger, void const* blob, size_t size)
{
    return static_cast<IConsistencyChecker*>(
        createConsistencyChecker_INTERNAL(&logger, blob, size, NV_TENSORRT_VERSION));
}

} // namespace

} // namespace consistency
} // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
