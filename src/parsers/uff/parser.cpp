// SPDX-License-Identifier: Apache-2.0
// The UFF parser object. Importing comes later: every parse fails with an error line that says so.
#include <new>

#include "NvUffParser.h"
#include "parsers/report.h"

namespace {

class UffParser final : public nvuffparser::IUffParser
{
public:
    // Registrations are only read by parse(), so they are checked and not kept.
    bool registerInput(char const* inputName, nvinfer1::Dims inputDims, nvuffparser::UffInputOrder) noexcept override
    {
        if (inputName && inputDims.nbDims >= 0 && inputDims.nbDims <= nvinfer1::Dims::MAX_DIMS)
            return true;
        recorder_.report(nvinfer1::ErrorCode::kINVALID_ARGUMENT,
                         "IUffParser::registerInput: the name must not be null, and 0 to 8 dimensions are possible");
        return false;
    }
    bool registerOutput(char const* outputName) noexcept override
    {
        if (outputName)
            return true;
        recorder_.report(nvinfer1::ErrorCode::kINVALID_ARGUMENT, "IUffParser::registerOutput: the name is null");
        return false;
    }
    bool parse(char const*, nvinfer1::INetworkDefinition&, nvinfer1::DataType) noexcept override
    {
        return missing("IUffParser::parse: importing UFF models is not part of this version yet"), false;
    }
    bool parseBuffer(char const*, std::size_t, nvinfer1::INetworkDefinition&, nvinfer1::DataType) noexcept override
    {
        return missing("IUffParser::parseBuffer: importing UFF models is not part of this version yet"), false;
    }
    void destroy() noexcept override { delete this; }
    int32_t getUffRequiredVersionMajor() noexcept override { return UFF_REQUIRED_VERSION_MAJOR; }
    int32_t getUffRequiredVersionMinor() noexcept override { return UFF_REQUIRED_VERSION_MINOR; }
    int32_t getUffRequiredVersionPatch() noexcept override { return UFF_REQUIRED_VERSION_PATCH; }
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

namespace nvuffparser {

FieldMap::FieldMap(char const* n, void const* d, FieldType t, int32_t l) : name(n), data(d), type(t), length(l) {}

IUffParser* createUffParser() noexcept
{
    return new (std::nothrow) UffParser;
}
void shutdownProtobufLibrary() noexcept {} // no protobuf library is used

} // namespace nvuffparser

extern "C" void* createNvUffParser_INTERNAL() noexcept
{
    return nvuffparser::createUffParser();
}
