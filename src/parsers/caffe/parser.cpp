// SPDX-License-Identifier: Apache-2.0
// The Caffe parser object. Importing comes later: every parse fails with an error line that says so.
#include <cstdio>
#include <new>

#include "NvCaffeParser.h"
#include "parsers/report.h"

namespace {

using nvcaffeparser1::IBinaryProtoBlob;
using nvcaffeparser1::IBlobNameToTensor;

class CaffeParser final : public nvcaffeparser1::ICaffeParser
{
public:
    IBlobNameToTensor const* parse(char const*, char const*, nvinfer1::INetworkDefinition&,
                                   nvinfer1::DataType) noexcept override
    {
        return missing("ICaffeParser::parse: importing Caffe models is not part of this version yet"), nullptr;
    }
    IBlobNameToTensor const* parseBuffers(uint8_t const*, std::size_t, uint8_t const*, std::size_t,
                                          nvinfer1::INetworkDefinition&, nvinfer1::DataType) noexcept override
    {
        return missing("ICaffeParser::parseBuffers: importing Caffe models is not part of this version yet"), nullptr;
    }
    IBinaryProtoBlob* parseBinaryProto(char const* fileName) noexcept override
    {
        if (!fileName) {
            recorder_.report(nvinfer1::ErrorCode::kINVALID_ARGUMENT,
                             "ICaffeParser::parseBinaryProto: the name is null");
            return nullptr;
        }
        char text[512]; // of a long name the beginning
        std::snprintf(text, sizeof text,
                      "ICaffeParser::parseBinaryProto: '%.200s' is not read: importing Caffe data is not part of this "
                      "version yet. Caffe's own caffe.io.blobproto_to_array() reads it; subtract the array with a "
                      "constant layer",
                      fileName);
        return missing(text), nullptr;
    }
    void setProtobufBufferSize(size_t) noexcept override {}
    void destroy() noexcept override { delete this; }
    void setPluginFactoryV2(nvcaffeparser1::IPluginFactoryV2*) noexcept override {}
    void setPluginNamespace(char const*) noexcept override {}
    void setErrorRecorder(nvinfer1::IErrorRecorder* recorder) noexcept override { recorder_.set(recorder); }
    nvinfer1::IErrorRecorder* getErrorRecorder() const noexcept override { return recorder_.get(); }

private:
    void missing(char const* message) const noexcept
    {
        recorder_.report(nvinfer1::ErrorCode::kUNSUPPORTED_STATE, message);
    }
    tw::parsers::Recorder recorder_;
};

} // namespace

namespace nvcaffeparser1 {

ICaffeParser* createCaffeParser() noexcept
{
    return new (std::nothrow) CaffeParser;
}
void shutdownProtobufLibrary() noexcept {} // no protobuf library is used

} // namespace nvcaffeparser1

extern "C" void* createNvCaffeParser_INTERNAL() noexcept
{
    return nvcaffeparser1::createCaffeParser();
}
