// SPDX-License-Identifier: Apache-2.0
#include <NvOnnxParser.h>

#include "network.h"
#ifdef TW_TRTEXEC_HAS_PARSERS
#include <NvCaffeParser.h>
#include <NvUffParser.h>
#endif

namespace tw::trtexec {

namespace {

void parseOnnx(LibraryLogger& logger, ModelOptions const& model, ParsedNetwork& target)
{
    std::shared_ptr<nvonnxparser::IParser> parser(
        required(nvonnxparser::createParser(*target.network, logger), "Creating the ONNX parser"));
    target.parser = parser;
    // The parser logs its errors itself.
    if (!parser->parseFromFile(model.model.c_str(), static_cast<int>(nvinfer1::ILogger::Severity::kINFO)))
        throw Failure("Failed to parse ONNX model '" + model.model + "'" +
                      (parser->getNbErrors() > 0 && parser->getError(0)->desc()
                           ? std::string(": ") + parser->getError(0)->desc()
                           : std::string()));
}

#ifdef TW_TRTEXEC_HAS_PARSERS

void parseCaffe(ModelOptions const& model, ParsedNetwork& target)
{
    std::shared_ptr<nvcaffeparser1::ICaffeParser> parser(
        required(nvcaffeparser1::createCaffeParser(), "Creating the Caffe parser"));
    target.parser = parser;
    nvcaffeparser1::IBlobNameToTensor const* blobs =
        parser->parse(model.prototxt.c_str(), model.model.empty() ? nullptr : model.model.c_str(), *target.network,
                      nvinfer1::DataType::kFLOAT);
    if (!blobs)
        throw Failure("Failed to parse Caffe model '" + model.prototxt + "'");
    for (std::string const& name : model.outputs) {
        nvinfer1::ITensor* tensor = blobs->find(name.c_str());
        if (!tensor)
            throw Failure("--output: the model has no tensor '" + name + "'");
        target.network->markOutput(*tensor);
    }
}

void parseUff(ModelOptions const& model, ParsedNetwork& target)
{
    std::shared_ptr<nvuffparser::IUffParser> parser(
        required(nvuffparser::createUffParser(), "Creating the UFF parser"));
    target.parser = parser;
    auto const order = model.uffNhwc ? nvuffparser::UffInputOrder::kNHWC : nvuffparser::UffInputOrder::kNCHW;
    for (UffInput const& input : model.uffInputs)
        if (!parser->registerInput(input.name.c_str(), nvinfer1::Dims3(input.dims[0], input.dims[1], input.dims[2]),
                                   order))
            throw Failure("--uffInput: the parser refuses input '" + input.name + "'");
    for (std::string const& name : model.outputs)
        if (!parser->registerOutput(name.c_str()))
            throw Failure("--output: the parser refuses output '" + name + "'");
    if (!parser->parse(model.model.c_str(), *target.network, nvinfer1::DataType::kFLOAT))
        throw Failure("Failed to parse UFF model '" + model.model + "'");
}

#endif

} // namespace

void parseModel(Log& log, LibraryLogger& logger, ModelOptions const& model, ParsedNetwork& target)
{
    log.info("Start parsing network model");
    switch (model.format) {
    case ModelFormat::kOnnx:
        parseOnnx(logger, model, target);
        break;
#ifdef TW_TRTEXEC_HAS_PARSERS
    case ModelFormat::kCaffe:
        parseCaffe(model, target);
        break;
    case ModelFormat::kUff:
        parseUff(model, target);
        break;
#else
    case ModelFormat::kCaffe:
    case ModelFormat::kUff:
        throw Failure("this trtexec was built without libnvparsers: Caffe and UFF models cannot be read");
#endif
    case ModelFormat::kAny:
        throw Failure("Model missing or format not recognized");
    }
    log.info("Finish parsing network model");
}

} // namespace tw::trtexec
