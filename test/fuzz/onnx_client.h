// SPDX-License-Identifier: Apache-2.0
// What the ONNX targets share: the public objects round one model.
#pragma once

#include <cstdlib>
#include <memory>

#include "NvInfer.h"
#include "NvOnnxParser.h"

namespace tw::fuzz {

// Counts errors and shows nothing.
class QuietLogger final : public nvinfer1::ILogger
{
public:
    void log(Severity severity, char const* message) noexcept override
    {
        if (!message)
            std::abort();
        errors += severity <= Severity::kERROR;
    }
    int errors = 0;
};

struct Client
{
    QuietLogger logger;
    std::unique_ptr<nvinfer1::IBuilder> builder{nvinfer1::createInferBuilder(logger)};
    std::unique_ptr<nvinfer1::INetworkDefinition> network{builder->createNetworkV2(
        1u << static_cast<uint32_t>(nvinfer1::NetworkDefinitionCreationFlag::kEXPLICIT_BATCH))};
    std::unique_ptr<nvonnxparser::IParser> parser{nvonnxparser::createParser(*network, logger)};

    // A failure has an error and a line in the log.
    bool parse(void const* data, size_t size)
    {
        bool const ok = parser->parse(data, size);
        if (!ok && (parser->getNbErrors() == 0 || logger.errors == 0))
            std::abort();
        for (int i = 0; i < parser->getNbErrors(); ++i)
            if (!parser->getError(i)->desc() || !*parser->getError(i)->desc())
                std::abort();
        return ok;
    }
};

} // namespace tw::fuzz
