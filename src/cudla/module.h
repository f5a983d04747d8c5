// SPDX-License-Identifier: Apache-2.0
// A loadable that has been loaded: its tensors, and the engine inside it.
#pragma once

#include <memory>
#include <vector>

#include "NvInferRuntime.h"
#include "cudla.h"
#include "dla/loadable.h"

namespace tw::cudla {

// An error line goes to the logger of the process (nvinfer1::getLogger()), if a client has made one: cuDLA has no texts.
class Logger final : public nvinfer1::ILogger
{
public:
    void log(Severity severity, nvinfer1::AsciiChar const* message) noexcept override;
};

class Module
{
public:
    static Result<std::unique_ptr<Module>> load(nvinfer1::IRuntime& runtime, void const* bytes, size_t sizeBytes);

    // Of inputs or of outputs, in order.
    std::vector<dla::LoadableTensor const*> side(bool isInput) const;
    // One address for each tensor, inputs first.
    bool enqueue(std::vector<void*> const& addresses, cudaStream_t stream);

private:
    Result<void> checkTensors() const;

    std::vector<dla::LoadableTensor> tensors_;
    std::unique_ptr<nvinfer1::ICudaEngine> engine_;
    std::unique_ptr<nvinfer1::IExecutionContext> context_;
};

cudlaModuleTensorDescriptor describe(dla::LoadableTensor const& t);

} // namespace tw::cudla
