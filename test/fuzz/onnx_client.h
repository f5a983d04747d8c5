// SPDX-License-Identifier: Apache-2.0
// What the ONNX targets share: the public objects round one model.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "NvInfer.h"
#include "NvOnnxParser.h"

namespace tw::fuzz {

// Counts errors and shows nothing, until a finding is reported.
class QuietLogger final : public nvinfer1::ILogger
{
public:
    void log(Severity severity, char const* message) noexcept override
    {
        if (!message)
            finding("a log line without text");
        if (severity > Severity::kERROR)
            return;
        ++errors;
        last = message;
    }
    [[noreturn]] void finding(char const* what) const
    {
        std::fprintf(stderr, "finding: %s; last error: %s\n", what, last.c_str());
        std::abort();
    }
    int errors = 0;
    std::string last;
};

struct Client
{
    // Operators on quantized tensors, too.
    int const allowed = ::setenv("TENSORWRIGHT_ONNX_QUANTIZED_OPS", "1", 1);
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
            logger.finding("a refusal without a reason");
        for (int i = 0; i < parser->getNbErrors(); ++i)
            if (!parser->getError(i)->desc() || !*parser->getError(i)->desc())
                logger.finding("an error without text");
        return ok;
    }
};

} // namespace tw::fuzz
