// SPDX-License-Identifier: Apache-2.0
// IParser: the published object round ModelImporter. Exceptions end here.
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <list>
#include <memory>
#include <new>
#include <stdexcept>
#include <string_view>

#include <fcntl.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onnx/importer.h"
#include "onnx/model.h"
#include "tw_onnx.pb.h"

namespace tw::onnx {

using nvinfer1::ILogger;
using nvonnxparser::ErrorCode;

namespace {

char const* codeName(ErrorCode code)
{
    static char const* const kNames[]{
        "SUCCESS",       "INTERNAL_ERROR", "MEM_ALLOC_FAILED",  "MODEL_DESERIALIZE_FAILED", "INVALID_VALUE",
        "INVALID_GRAPH", "INVALID_NODE",   "UNSUPPORTED_GRAPH", "UNSUPPORTED_NODE"};
    return kNames[int(code)];
}

} // namespace

class Parser final : public nvonnxparser::IParser
{
public:
    // quantizedOps: the model may have the operators on quantized tensors, which 8.5 does not know.
    Parser(nvinfer1::INetworkDefinition& network, ILogger& logger, bool quantizedOps)
        : network_(network), logger_(logger)
    {
        registerAll(importers_);
        if (quantizedOps)
            return;
        for (char const* op : kQuantizedOps)
            importers_.remove(op);
        for (char const* op : kMicrosoftQuantizedOps)
            importers_.remove(op, kMicrosoft);
    }

    bool parse(void const* data, size_t size, char const* modelPath) override
    {
        return guarded([&] { importModel(read(data, size), modelPath ? modelPath : ""); });
    }

    bool parseWithWeightDescriptors(void const* data, size_t size) override { return parse(data, size, nullptr); }

    bool parseFromFile(char const* path, int verbosity) override
    {
        (void)verbosity; // the ILogger decides what it shows
        return guarded([&] { importModel(readFile(path), path); });
    }

    bool supportsModel(void const* data, size_t size, SubGraphCollection_t& parts, char const* modelPath) override
    {
        parts.clear();
        bool all = false;
        guarded([&] {
            tw_onnx::ModelProto const& model = read(data, size);
            std::vector<int> const order = ModelImporter::topologicalOrder(model.graph());
            ModelImporter importer(network_, logger_, importers_, memory_, models_);
            int opset = 1;
            for (auto const& set : model.opset_import())
                if (set.domain().empty() || set.domain() == "ai.onnx")
                    opset = int(std::clamp<int64_t>(set.version(), 1, INT32_MAX));
            all = guarded([&] { importer.import(model, modelPath ? modelPath : ""); });
            // Runs of nodes that have importers; true for those that were imported whole.
            bool open = false;
            for (size_t i = 0; i < order.size(); ++i) {
                auto const& node = model.graph().node(order[i]);
                bool const failed = !all && int(i) == importer.nbImported();
                bool const isFunction = std::ranges::any_of(model.functions(), [&](auto const& f) {
                    return f.name() == node.op_type() && f.domain() == node.domain();
                });
                if (failed || !(isFunction || importers_.find(node.op_type(), opset) || findPlugin(node))) {
                    open = false;
                    continue;
                }
                if (!open)
                    parts.push_back({{}, true});
                open = true;
                parts.back().first.push_back(size_t(order[i]));
                parts.back().second = parts.back().second && int(i) < importer.nbImported();
            }
        });
        return all;
    }

    bool supportsOperator(char const* name) const override
    {
        try {
            return name && importers_.contains(name);
        } catch (...) {
            return false;
        }
    }

    void destroy() override { delete this; }
    int getNbErrors() const override { return int(errors_.size()); }
    nvonnxparser::IParserError const* getError(int index) const override
    {
        return index >= 0 && index < int(errors_.size()) ? errors_[size_t(index)].get() : nullptr;
    }
    void clearErrors() override { errors_.clear(); }

private:
    template <class F>
    bool guarded(F&& f)
    {
        try {
            try {
                f();
                return true;
            } catch (ModelImporter::NodeError const& e) {
                report(e.error, e.node, fmt::format("node {} '{}' ({}): ", e.node, e.name, e.opType));
            } catch (ImportError const& e) {
                report(e, -1, "");
            } catch (std::bad_alloc const&) {
                report({ErrorCode::kMEM_ALLOC_FAILED, "out of memory", SourceLocation::current()}, -1, "");
            } catch (std::exception const& e) {
                report({ErrorCode::kINTERNAL_ERROR, e.what(), SourceLocation::current()}, -1, "");
            }
        } catch (...) { // no memory even for the report
        }
        return false;
    }

    void report(ImportError const& e, int node, std::string const& prefix)
    {
        auto error = std::make_unique<ParserError>(e.code, prefix + e.message, e.where, node);
        logger_.log(ILogger::Severity::kERROR, (fmt::format("ONNX parser: {}: {} [{}:{}]", codeName(e.code),
                                                            error->desc_, error->file_, error->line_))
                                                   .c_str());
        errors_.push_back(std::move(error));
    }

    // The model stays for the life of the parser: weights point into it.
    tw_onnx::ModelProto const& read(void const* data, size_t size)
    {
        auto const here = SourceLocation::current();
        checkSize("the model", data ? size : 0, here);
        auto model = std::make_unique<tw_onnx::ModelProto>();
        bool const isParsed = model->ParseFromArray(data, int(size)); // before the pointer moves
        return keep(isParsed, std::move(model));
    }

    static void checkSize(std::string const& what, size_t size, SourceLocation const& here)
    {
        if (size == 0)
            throw ImportError{ErrorCode::kMODEL_DESERIALIZE_FAILED, "the model is empty", here};
        if (size > size_t(INT_MAX))
            throw ImportError{
                ErrorCode::kMODEL_DESERIALIZE_FAILED,
                fmt::format(
                    "{} has {} bytes; a protobuf message has at most 2^31 - 1, keep the weights in external files",
                    what, size),
                here};
    }

    tw_onnx::ModelProto const& keep(bool isParsed, std::unique_ptr<tw_onnx::ModelProto> model)
    {
        if (!isParsed)
            throw ImportError{ErrorCode::kMODEL_DESERIALIZE_FAILED, "the bytes are not an ONNX model",
                              SourceLocation::current()};
        models_.push_back(std::move(model));
        return *models_.back();
    }

    void importModel(tw_onnx::ModelProto const& model, std::string const& path)
    {
        ModelImporter(network_, logger_, importers_, memory_, models_).import(model, path);
    }

    // In pieces: the file is never in memory as a whole.
    tw_onnx::ModelProto const& readFile(char const* path)
    {
        constexpr int kPieceBytes = 1 << 20;
        auto const here = SourceLocation::current();
        if (!path)
            throw ImportError{ErrorCode::kMODEL_DESERIALIZE_FAILED, "no file name", here};
        int const fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe must not block
        google::protobuf::io::FileInputStream stream(fd, kPieceBytes);
        stream.SetCloseOnDelete(fd >= 0);
        struct stat info
        {};
        if (fd < 0 || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
            throw ImportError{ErrorCode::kMODEL_DESERIALIZE_FAILED, "file '" + std::string(path) + "' cannot be read",
                              here};
        checkSize("file '" + std::string(path) + "'", size_t(info.st_size), here);
        auto model = std::make_unique<tw_onnx::ModelProto>();
        bool const isParsed = model->ParseFromZeroCopyStream(&stream);
        if (stream.GetErrno() != 0)
            throw ImportError{ErrorCode::kMODEL_DESERIALIZE_FAILED,
                              "file '" + std::string(path) + "' cannot be read whole", here};
        return keep(isParsed, std::move(model));
    }

    nvinfer1::INetworkDefinition& network_;
    ILogger& logger_;
    ImporterMap importers_;
    Memory memory_;
    std::list<std::unique_ptr<tw_onnx::ModelProto>> models_;
    std::vector<std::unique_ptr<ParserError>> errors_;
};

} // namespace tw::onnx

extern "C" TENSORRTAPI void* createNvOnnxParser_INTERNAL(void* network, void* logger, int version)
{
    // The factory of our header adds the ABI marker's value, which is 0.
    if (!network || !logger)
        return nullptr;
    auto& log = *static_cast<nvinfer1::ILogger*>(logger);
    try {
        if (version / 100 != NV_ONNX_PARSER_VERSION / 100) {
            log.log(
                nvinfer1::ILogger::Severity::kERROR,
                (fmt::format("ONNX parser: the program was compiled for parser version {}, this library is version {}",
                             version, NV_ONNX_PARSER_VERSION))
                    .c_str());
            return nullptr;
        }
        char const* const quantizedOps = std::getenv("TENSORWRIGHT_ONNX_QUANTIZED_OPS");
        return static_cast<nvonnxparser::IParser*>(
            new tw::onnx::Parser(*static_cast<nvinfer1::INetworkDefinition*>(network), log,
                                 quantizedOps && std::string_view(quantizedOps) == "1"));
    } catch (std::logic_error const& e) {
        log.log(nvinfer1::ILogger::Severity::kINTERNAL_ERROR, (std::string("ONNX parser: ") + e.what()).c_str());
        return nullptr;
    } catch (...) {
        return nullptr;
    }
}

extern "C" TENSORRTAPI int getNvOnnxParserVersion()
{
    return NV_ONNX_PARSER_VERSION;
}
