// SPDX-License-Identifier: Apache-2.0
// ICaffeParser: the published object round NetworkImporter. Exceptions end here.
#include <climits>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>

#include "NvCaffeParser.h"
#include "parsers/caffe/network.h"
#include "parsers/caffe/upgrade.h"
#include "parsers/report.h"

namespace tw::caffe {

using importers::ImportError;
using nvinfer1::Dims4;
using nvinfer1::ILogger;

namespace {

// Where nobody has made a builder there is no logger.
class NoLogger final : public ILogger
{
public:
    void log(Severity, char const*) noexcept override {}
};

class Table final : public nvcaffeparser1::IBlobNameToTensor
{
public:
    explicit Table(std::unordered_map<std::string, BlobTensor> blobs) : blobs_(std::move(blobs)) {}
    ~Table() noexcept override = default;
    ITensor* find(char const* name) const noexcept override
    {
        auto const it = name ? blobs_.find(name) : blobs_.end();
        return it == blobs_.end() ? nullptr : it->second.tensor;
    }

private:
    std::unordered_map<std::string, BlobTensor> const blobs_;
};

class BinaryBlob final : public nvcaffeparser1::IBinaryProtoBlob
{
public:
    BinaryBlob(Dims4 dims, std::vector<float> values, DataType type)
        : dims_(dims), values_(std::move(values)), type_(type)
    {
        if (type_ != DataType::kHALF)
            return;
        halves_.resize(values_.size() * 2);
        Constant c;
        c.type = type_;
        c.count = int64_t(values_.size());
        c.values = halves_.data();
        for (int64_t i = 0; i < c.count; ++i)
            ImportContext::store(c, i, double(values_[size_t(i)]));
    }
    void const* getData() noexcept override
    {
        return type_ == DataType::kHALF ? static_cast<void const*>(halves_.data()) : values_.data();
    }
    Dims4 getDimensions() noexcept override { return dims_; }
    DataType getDataType() noexcept override { return type_; }
    void destroy() noexcept override { delete this; }

private:
    Dims4 dims_;
    std::vector<float> values_;
    std::vector<char> halves_;
    DataType type_;
};

class Parser final : public nvcaffeparser1::ICaffeParser
{
public:
    nvcaffeparser1::IBlobNameToTensor const* parse(char const* deploy, char const* model,
                                                   nvinfer1::INetworkDefinition& network,
                                                   DataType weightType) noexcept override
    {
        return guarded("ICaffeParser::parse", [&]() -> Table const* {
            if (!deploy)
                importers::fail(nvonnxparser::ErrorCode::kINVALID_VALUE, "the name of the deploy file is null");
            std::string const text = readFile(deploy, kMostTextBytes, "deploy file", "");
            std::optional<std::string> bytes;
            if (model)
                bytes = readFile(model, modelLimit_, "model file", "; setProtobufBufferSize() sets the limit");
            return &import(text, bytes ? std::optional<std::string_view>(*bytes) : std::nullopt, network, weightType);
        });
    }

    nvcaffeparser1::IBlobNameToTensor const* parseBuffers(uint8_t const* deploy, size_t deployLength,
                                                          uint8_t const* model, size_t modelLength,
                                                          nvinfer1::INetworkDefinition& network,
                                                          DataType weightType) noexcept override
    {
        return guarded("ICaffeParser::parseBuffers", [&]() -> Table const* {
            if (!deploy)
                importers::fail(nvonnxparser::ErrorCode::kINVALID_VALUE, "the deploy buffer is null");
            if (model && modelLength > modelLimit_)
                importers::fail(
                    nvonnxparser::ErrorCode::kINVALID_VALUE,
                    fmt::format("the model buffer is larger than {} bytes; setProtobufBufferSize() sets the "
                                "limit",
                                modelLimit_));
            auto const view = [](uint8_t const* p, size_t n) {
                return std::string_view(reinterpret_cast<char const*>(p), n);
            };
            return &import(view(deploy, deployLength),
                           model ? std::optional<std::string_view>(view(model, modelLength)) : std::nullopt, network,
                           weightType);
        });
    }

    nvcaffeparser1::IBinaryProtoBlob* parseBinaryProto(char const* fileName) noexcept override
    {
        return guarded("ICaffeParser::parseBinaryProto", [&]() -> BinaryBlob* {
            if (!fileName)
                importers::fail(nvonnxparser::ErrorCode::kINVALID_VALUE, "the name is null");
            std::string const bytes =
                readFile(fileName, modelLimit_, "file", "; setProtobufBufferSize() sets the limit");
            std::string const what = fmt::format("the array in '{}'", fileName);
            Blob blob = numbersOf(bytes, what);
            if (blob.values.empty() || blob.shape.size() > 4)
                importers::fail(nvonnxparser::ErrorCode::kINVALID_VALUE,
                                fmt::format("{} has {} numbers in {} dimensions; some in at most 4 are read", what,
                                            blob.values.size(), blob.shape.size()));
            blob.shape.insert(blob.shape.begin(), 4 - blob.shape.size(), 1);
            for (int64_t d : blob.shape)
                if (d > INT32_MAX)
                    importers::fail(nvonnxparser::ErrorCode::kINVALID_VALUE,
                                    fmt::format("{} has a dimension of {}", what, d));
            Dims4 const dims(int32_t(blob.shape[0]), int32_t(blob.shape[1]), int32_t(blob.shape[2]),
                             int32_t(blob.shape[3]));
            return new BinaryBlob(dims, std::move(blob.values), blob.isHalf ? DataType::kHALF : DataType::kFLOAT);
        });
    }

    void setProtobufBufferSize(size_t size) noexcept override { modelLimit_ = size; }
    void destroy() noexcept override { delete this; }
    void setPluginFactoryV2(nvcaffeparser1::IPluginFactoryV2* factory) noexcept override
    {
        settings_.factory = factory;
    }
    void setPluginNamespace(char const* space) noexcept override
    {
        guarded("ICaffeParser::setPluginNamespace", [&]() -> Table const* {
            settings_.pluginNamespace = space ? space : "";
            return nullptr;
        });
    }
    void setErrorRecorder(nvinfer1::IErrorRecorder* recorder) noexcept override { recorder_.set(recorder); }
    nvinfer1::IErrorRecorder* getErrorRecorder() const noexcept override { return recorder_.get(); }

private:
    Table const& import(std::string_view text, std::optional<std::string_view> model,
                        nvinfer1::INetworkDefinition& network, DataType weightType)
    {
        if (weightType != DataType::kFLOAT && weightType != DataType::kHALF)
            importers::fail(
                nvonnxparser::ErrorCode::kINVALID_VALUE,
                fmt::format("weights of type number {} are not made (allowed: kFLOAT, kHALF)", int(weightType)));
        NoLogger none;
        ILogger* const logger = getLogger();
        importers::ImportedNetwork to(network, logger ? *logger : none, memory_, "Caffe parser");
        auto const warn = [&](std::string const& line) { to.log(ILogger::Severity::kWARNING, "deploy file, " + line); };
        tw_caffe::NetParameter net;
        readNetwork(text, net, warn);
        upgrade(net);
        WeightSource weights(model, weightType);
        NetworkImporter importer(to, net, weights, settings_);
        importer.run();
        tables_.push_back(std::make_unique<Table>(importer.blobs()));
        return *tables_.back();
    }

    // What f gives; nullptr, an error line and a record where it throws.
    template <class F>
    auto guarded(char const* call, F&& f) const noexcept -> decltype(f())
    {
        auto const report = [&](nvinfer1::ErrorCode code, char const* why) {
            try {
                recorder_.report(code, fmt::format("{}: {}", call, why).c_str());
            } catch (...) { // no memory for the sentence
                recorder_.report(code, call);
            }
            return nullptr;
        };
        try {
            return f();
        } catch (ImportError const& e) {
            return report(parsers::codeOf(e.code), e.message.c_str());
        } catch (std::bad_alloc const&) {
            return report(nvinfer1::ErrorCode::kFAILED_ALLOCATION, "no memory for it");
        } catch (std::exception const& e) {
            return report(nvinfer1::ErrorCode::kINTERNAL_ERROR, e.what());
        } catch (...) { // a plugin factory of the client
            return report(nvinfer1::ErrorCode::kUNSPECIFIED_ERROR,
                          "something was thrown that is no exception of C++'s own");
        }
    }

    importers::Memory memory_; // weights; the network refers to them
    std::vector<std::unique_ptr<Table>> tables_;
    NetworkImporter::Settings settings_;
    size_t modelLimit_ = INT_MAX;
    parsers::Recorder recorder_;
};

} // namespace

} // namespace tw::caffe

namespace nvcaffeparser1 {

ICaffeParser* createCaffeParser() noexcept
{
    return new (std::nothrow) tw::caffe::Parser;
}
void shutdownProtobufLibrary() noexcept {} // other parsers may be at work

} // namespace nvcaffeparser1

extern "C" void* createNvCaffeParser_INTERNAL() noexcept
{
    return nvcaffeparser1::createCaffeParser();
}
