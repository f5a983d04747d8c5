// SPDX-License-Identifier: Apache-2.0
// IUffParser: the published object round Model. Exceptions end here.
#include <climits>
#include <list>
#include <memory>
#include <new>

#include <fcntl.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <sys/stat.h>
#include <unistd.h>

#include "NvUffParser.h"
#include "parsers/report.h"
#include "parsers/uff/model.h"
#include "tw_uff.pb.h"

namespace tw::uff {

namespace {

// Of the process: parsers are made without one.
class CommonLogger final : public nvinfer1::ILogger
{
public:
    void log(Severity severity, char const* message) noexcept override
    {
        if (nvinfer1::ILogger* const logger = getLogger())
            logger->log(severity, message);
    }
};

// Pieces of a file.
class FilePieces final : public google::protobuf::io::CopyingInputStream
{
public:
    explicit FilePieces(int fd) : fd_(fd) {}
    ~FilePieces() override
    {
        if (fd_ >= 0)
            ::close(fd_);
    }
    int Read(void* buffer, int size) override
    {
        ssize_t const n = ::read(fd_, buffer, size_t(size));
        isBroken_ = isBroken_ || n < 0;
        return int(n);
    }
    bool isBroken() const { return isBroken_; }

private:
    int fd_;
    bool isBroken_ = false;
};

class UffParser final : public nvuffparser::IUffParser
{
public:
    bool registerInput(char const* name, Dims dims, nvuffparser::UffInputOrder order) noexcept override
    {
        return guarded([&] {
            if (!name || dims.nbDims < 0 || dims.nbDims > Dims::MAX_DIMS)
                fail(nvonnxparser::ErrorCode::kINVALID_VALUE,
                     "IUffParser::registerInput: the name must not be null, and 0 to 8 dimensions are possible");
            if (int32_t(order) < 0 || int32_t(order) > int32_t(nvuffparser::UffInputOrder::kNC))
                fail(nvonnxparser::ErrorCode::kINVALID_VALUE,
                     fmt::format("IUffParser::registerInput: input '{}' has order {} (allowed: kNCHW, kNHWC, kNC)",
                                 name, int32_t(order)));
            wishes_.inputs[name] = {dims, order};
        });
    }
    bool registerOutput(char const* name) noexcept override
    {
        return guarded([&] {
            if (!name)
                fail(nvonnxparser::ErrorCode::kINVALID_VALUE, "IUffParser::registerOutput: the name is null");
            wishes_.outputs.emplace_back(name);
        });
    }
    bool parse(char const* file, nvinfer1::INetworkDefinition& network, DataType weightsType) noexcept override
    {
        return guarded([&] { import(readFile(file), network, weightsType); });
    }
    bool parseBuffer(char const* buffer, std::size_t size, nvinfer1::INetworkDefinition& network,
                     DataType weightsType) noexcept override
    {
        return guarded([&] {
            checkSize("the model", buffer ? size : 0);
            auto message = std::make_unique<tw_uff::MetaGraph>();
            bool const isParsed = message->ParseFromArray(buffer, int(size));
            import(keep(isParsed, std::move(message)), network, weightsType);
        });
    }
    void destroy() noexcept override { delete this; }
    int32_t getUffRequiredVersionMajor() noexcept override { return UFF_REQUIRED_VERSION_MAJOR; }
    int32_t getUffRequiredVersionMinor() noexcept override { return UFF_REQUIRED_VERSION_MINOR; }
    int32_t getUffRequiredVersionPatch() noexcept override { return UFF_REQUIRED_VERSION_PATCH; }
    void setPluginNamespace(char const* space) noexcept override
    {
        guarded([&] { wishes_.pluginNamespace = space ? space : ""; });
    }
    void setErrorRecorder(nvinfer1::IErrorRecorder* recorder) noexcept override { recorder_.set(recorder); }
    nvinfer1::IErrorRecorder* getErrorRecorder() const noexcept override { return recorder_.get(); }

private:
    template <class F>
    bool guarded(F&& f) noexcept
    {
        try {
            try {
                f();
                return true;
            } catch (NodeError const& e) {
                report(e.error.code, fmt::format("{} error: {}: {}", e.kind, e.node, e.error.message));
            } catch (ImportError const& e) {
                report(e.code, e.message);
            } catch (std::bad_alloc const&) {
                report(nvonnxparser::ErrorCode::kMEM_ALLOC_FAILED, "out of memory");
            } catch (std::exception const& e) {
                report(nvonnxparser::ErrorCode::kINTERNAL_ERROR, e.what());
            }
        } catch (...) { // no memory even for the report
        }
        return false;
    }
    void report(nvonnxparser::ErrorCode code, std::string const& message) const
    {
        recorder_.report(parsers::codeOf(code), ("UffParser: " + message).c_str());
    }

    static void checkSize(std::string const& what, size_t size)
    {
        if (size == 0)
            fail(nvonnxparser::ErrorCode::kMODEL_DESERIALIZE_FAILED, what + " is empty");
        if (size > size_t(INT_MAX))
            fail(nvonnxparser::ErrorCode::kMODEL_DESERIALIZE_FAILED,
                 fmt::format("{} has {} bytes; a protobuf message has at most 2^31 - 1", what, size));
    }
    // The messages stay for the life of the parser: weights point into them.
    tw_uff::MetaGraph const& keep(bool isParsed, std::unique_ptr<tw_uff::MetaGraph> message)
    {
        if (!isParsed)
            fail(nvonnxparser::ErrorCode::kMODEL_DESERIALIZE_FAILED, "the bytes are not a UFF model");
        messages_.push_back(std::move(message));
        return *messages_.back();
    }
    tw_uff::MetaGraph const& readFile(char const* path)
    {
        if (!path)
            fail(nvonnxparser::ErrorCode::kMODEL_DESERIALIZE_FAILED, "no file name");
        int const fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe must not block
        FilePieces pieces(fd);
        struct stat info
        {};
        if (fd < 0 || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
            fail(nvonnxparser::ErrorCode::kMODEL_DESERIALIZE_FAILED, fmt::format("file '{}' cannot be read", path));
        checkSize(fmt::format("file '{}'", path), size_t(info.st_size));
        google::protobuf::io::CopyingInputStreamAdaptor stream(&pieces);
        auto message = std::make_unique<tw_uff::MetaGraph>();
        bool const isParsed = message->ParseFromZeroCopyStream(&stream);
        if (pieces.isBroken())
            fail(nvonnxparser::ErrorCode::kMODEL_DESERIALIZE_FAILED,
                 fmt::format("file '{}' cannot be read whole", path));
        return keep(isParsed, std::move(message));
    }

    void import(tw_uff::MetaGraph const& file, nvinfer1::INetworkDefinition& network, DataType weightsType)
    {
        if (weightsType != DataType::kFLOAT && weightsType != DataType::kHALF)
            fail(nvonnxparser::ErrorCode::kINVALID_VALUE,
                 fmt::format("the weights cannot be of type {} (allowed: kFLOAT, kHALF)", int32_t(weightsType)));
        Model(file, wishes_, network, logger_, memory_, weightsType).import();
    }

    CommonLogger logger_;
    parsers::Recorder recorder_;
    Wishes wishes_;
    Memory memory_;
    std::list<std::unique_ptr<tw_uff::MetaGraph>> messages_;
};

} // namespace

} // namespace tw::uff

namespace nvuffparser {

FieldMap::FieldMap(char const* n, void const* d, FieldType t, int32_t l) : name(n), data(d), type(t), length(l) {}

IUffParser* createUffParser() noexcept
{
    try {
        return new tw::uff::UffParser;
    } catch (...) {
        return nullptr;
    }
}
void shutdownProtobufLibrary() noexcept {} // every parser owns its messages

} // namespace nvuffparser

extern "C" void* createNvUffParser_INTERNAL() noexcept
{
    return nvuffparser::createUffParser();
}
