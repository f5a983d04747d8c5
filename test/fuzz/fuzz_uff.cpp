// SPDX-License-Identifier: Apache-2.0
// UFF parser on untrusted bytes, through the public API: no crash, and every refusal has a reason.
#include <cstdint>

#include "NvInferPlugin.h"
#include "NvUffParser.h"
#include "onnx_client.h"

extern "C" int LLVMFuzzerTestOneInput(uint8_t const* data, size_t size)
{
    using namespace nvinfer1;
    tw::fuzz::QuietLogger logger;
    static bool const hasPlugins = initLibNvInferPlugins(nullptr, "");
    std::unique_ptr<IBuilder> const builder(createInferBuilder(logger));
    std::unique_ptr<INetworkDefinition> const network(builder->createNetworkV2(0));
    std::unique_ptr<nvuffparser::IUffParser> const parser(nvuffparser::createUffParser());
    // By turns: dimensions of the file, images in both orders, vectors; one output, or those that the graph marks.
    auto const order = static_cast<nvuffparser::UffInputOrder>(size % 3);
    if (size % 4 != 0)
        parser->registerInput("x", size % 3 == 2 ? Dims{1, {24}} : Dims3(3, 4, 5), order);
    if (size % 5 == 0)
        parser->registerOutput("y");
    DataType const type = size % 7 == 0 ? DataType::kHALF : DataType::kFLOAT;
    bool const ok = parser->parseBuffer(reinterpret_cast<char const*>(data), size, *network, type);
    if (ok ? network->getNbOutputs() == 0 : logger.errors == 0)
        logger.finding(ok ? "a parse without an output" : "a refusal without a reason");
    for (int i = 0; i < network->getNbLayers(); ++i) {
        ILayer& layer = *network->getLayer(i);
        for (int k = 0; k < layer.getNbOutputs(); ++k)
            if (ITensor* t = layer.getOutput(k); t && t->getDimensions().nbDims > Dims::MAX_DIMS)
                logger.finding("a tensor of too many dimensions");
    }
    return hasPlugins ? 0 : -1;
}
