// SPDX-License-Identifier: Apache-2.0
// libnvinfer_checker: whether bytes are a safety engine that the safe runtime would take, plugins included.
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "NvInfer.h"
#include "NvInferConsistency.h"
#include "base/safety.h"

namespace tw::safety {

namespace {

using nvinfer1::ILogger;

class Checker final : public nvinfer1::consistency::IConsistencyChecker
{
public:
    Checker(ILogger& logger, void const* blob, size_t size)
        : logger_(logger), blob_(static_cast<char const*>(blob), size)
    {}

    bool validate() const noexcept override
    try {
        // The plan's reader looks at sums, sizes and every layer; the runtime at the capability, and for each plugin at its checker.
        std::unique_ptr<nvinfer1::IRuntime> const runtime(static_cast<nvinfer1::IRuntime*>(
            createInferRuntime_INTERNAL(&logger_, versionFor(Purpose::kCheck, NV_TENSORRT_VERSION))));
        std::unique_ptr<nvinfer1::ICudaEngine> const engine(
            runtime ? runtime->deserializeCudaEngine(blob_.data(), blob_.size()) : nullptr);
        if (!engine || !haveFormats(*engine))
            return false;
        logger_.log(ILogger::Severity::kINFO,
                    "the engine is consistent as far as this checker looks; that certifies nothing");
        return true;
    } catch (...) {
        logger_.log(ILogger::Severity::kERROR, "validate: there is no memory");
        return false;
    }

private:
    // Inputs and outputs as safety engines have them.
    bool haveFormats(nvinfer1::ICudaEngine const& engine) const
    {
        for (int32_t i = 0; i < engine.getNbIOTensors(); ++i) {
            char const* const name = engine.getIOTensorName(i);
            if (isErrorCount(name))
                continue;
            bool const isFormat = (kFormats >> int32_t(engine.getTensorFormat(name)) & 1) != 0;
            bool const isType = (kTypes >> int32_t(engine.getTensorDataType(name)) & 1) != 0;
            if (isFormat && isType)
                continue;
            std::string const line = std::string("validate: tensor '") + name + "' has " +
                                     (isFormat ? "a type" : "a format") + " that safety engines do not have";
            logger_.log(ILogger::Severity::kERROR, line.c_str());
            return false;
        }
        return true;
    }

    ILogger& logger_;
    std::string blob_; // the client may free its own
};

} // namespace

} // namespace tw::safety

extern "C" void* createConsistencyChecker_INTERNAL(void* logger, void const* blob, size_t size, int32_t version)
try {
    auto* const to = static_cast<nvinfer1::ILogger*>(logger);
    if (!to)
        return nullptr;
    auto refuse = [&](std::string const& why) {
        to->log(nvinfer1::ILogger::Severity::kERROR, ("createConsistencyChecker: " + why).c_str());
        return nullptr;
    };
    if (version / 100 != NV_TENSORRT_VERSION / 100)
        return refuse("the program was compiled with headers of version " + std::to_string(version) +
                      ", this library is version " + std::to_string(NV_TENSORRT_VERSION));
    if (!blob || size == 0)
        return refuse("the engine is a null pointer or has no bytes");
    return static_cast<nvinfer1::consistency::IConsistencyChecker*>(new tw::safety::Checker(*to, blob, size));
} catch (...) {
    return nullptr;
}
