// SPDX-License-Identifier: Apache-2.0
// ONNX parser on untrusted bytes, through the public API: no crash, and every refusal has a reason.
#include <cstdint>

#include "onnx_client.h"

extern "C" int LLVMFuzzerTestOneInput(uint8_t const* data, size_t size)
{
    tw::fuzz::Client client;
    if (size % 8 == 0) {
        SubGraphCollection_t parts;
        (void)client.parser->supportsModel(data, size, parts);
        return 0;
    }
    (void)client.parse(data, size);
    // Whatever stands in the network can be asked for its types and shapes.
    for (int i = 0; i < client.network->getNbLayers(); ++i) {
        nvinfer1::ILayer& layer = *client.network->getLayer(i);
        for (int k = 0; k < layer.getNbOutputs(); ++k)
            if (nvinfer1::ITensor* t = layer.getOutput(k); t && t->getDimensions().nbDims > nvinfer1::Dims::MAX_DIMS)
                std::abort();
    }
    return 0;
}
