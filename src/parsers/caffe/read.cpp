// SPDX-License-Identifier: Apache-2.0
#include "parsers/caffe/read.h"

#include <algorithm>
#include <array>
#include <climits>
#include <fstream>
#include <set>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/wire_format_lite.h>

#include "importers/common/values.h"
#include "tw_caffe.pb.h"

namespace tw::caffe {

namespace pb = google::protobuf;
using importers::fail;
using nvonnxparser::ErrorCode;
using pb::internal::WireFormatLite;

namespace {

// Of how a layer is trained, and which library runs it: they say nothing of what it computes.
constexpr std::array kSilent{"accuracy_param", "bias_filler",     "blobs_lr",       "crop_size",    "data_param",
                             "decay_mult",     "dropout_param",   "engine",         "filler",       "loss_param",
                             "loss_weight",    "param",           "propagate_down", "scale_filler", "sigmoid_param",
                             "tanh_param",     "transform_param", "weight_decay",   "weight_filler"};

class Listener final : public pb::io::ErrorCollector
{
public:
    explicit Listener(Warn const& warn) : warn_(warn) {}
    std::string error; // the first one

    void AddError(int line, int column, std::string const& message) override
    {
        if (error.empty())
            error = fmt::format("line {}, column {}: {}", line + 1, column + 1, message);
    }
    void AddWarning(int line, int, std::string const& message) override
    {
        // The last quoted word is the field's name.
        size_t const end = message.rfind('"'), begin = end == 0 ? end : message.rfind('"', end - 1);
        if (end == std::string::npos || begin == std::string::npos)
            return;
        std::string const field = message.substr(begin + 1, end - begin - 1);
        if (std::find(kSilent.begin(), kSilent.end(), field) == kSilent.end() && told_.insert(field).second)
            warn_(fmt::format("line {}: field '{}' is not known here and says nothing", line + 1, field));
    }

private:
    Warn const& warn_;
    std::set<std::string> told_;
};

// Text in which a few bytes would ask for much memory or stack: each message takes some hundred bytes.
void checkMessages(std::string_view text)
{
    constexpr int kMostMessages = 400'000, kDeepest = 50;
    int count = 0, depth = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        char const c = text[i];
        if (c == '#') {
            i = std::min(text.find('\n', i), text.size());
        } else if (c == '"' || c == '\'') {
            for (++i; i < text.size() && text[i] != c && text[i] != '\n'; ++i)
                i += text[i] == '\\';
        } else if (c == '{' || c == '<') {
            if (++count > kMostMessages)
                fail(ErrorCode::kMODEL_DESERIALIZE_FAILED,
                     fmt::format("the network's text has more than {} messages", kMostMessages));
            if (++depth > kDeepest)
                fail(ErrorCode::kMODEL_DESERIALIZE_FAILED,
                     fmt::format("the network's text has messages more than {} deep", kDeepest));
        } else if (c == '}' || c == '>') {
            --depth;
        }
    }
}

// Calls f(number, bytes) for each field of a message that has a length, and passes over the others. False: it is no message.
template <class F>
bool forEachField(std::string_view message, F&& f)
{
    pb::io::CodedInputStream in(reinterpret_cast<uint8_t const*>(message.data()), int(message.size()));
    while (uint32_t const tag = in.ReadTag()) {
        if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
            if (!WireFormatLite::SkipField(&in, tag))
                return false;
            continue;
        }
        uint32_t size = 0;
        if (!in.ReadVarint32(&size))
            return false;
        size_t const at = size_t(in.CurrentPosition());
        if (size > message.size() - at || !in.Skip(int(size)))
            return false;
        f(WireFormatLite::GetTagFieldNumber(tag), message.substr(at, size));
    }
    return in.ConsumedEntireMessage();
}

[[noreturn]] void failNoModel(std::string const& where)
{
    fail(ErrorCode::kMODEL_DESERIALIZE_FAILED,
         fmt::format("the weights are no binary Caffe model: {} cannot be read. Is the file complete, and no text?",
                     where));
}

} // namespace

std::string readFile(char const* path, size_t limit, char const* what, char const* cure)
{
    std::ifstream file(path, std::ios::binary);
    if (!file)
        fail(ErrorCode::kINVALID_VALUE, fmt::format("{} '{}' cannot be opened", what, path));
    constexpr size_t kBlock = size_t(1) << 20;
    std::string bytes;
    if (file.seekg(0, std::ios::end); file.tellg() > 0)
        bytes.reserve(std::min(size_t(file.tellg()), limit) + kBlock);
    file.clear();
    file.seekg(0);
    file.clear(); // of what has no end and no places, a pipe
    while (file) {
        size_t const at = bytes.size();
        bytes.resize(at + kBlock);
        file.read(bytes.data() + at, std::streamsize(kBlock));
        bytes.resize(at + size_t(file.gcount()));
        if (bytes.size() > limit)
            fail(ErrorCode::kINVALID_VALUE, fmt::format("{} '{}' is larger than {} bytes{}", what, path, limit, cure));
    }
    if (!file.eof())
        fail(ErrorCode::kINVALID_VALUE, fmt::format("{} '{}' cannot be read", what, path));
    return bytes;
}

void readNetwork(std::string_view text, tw_caffe::NetParameter& net, Warn const& warn)
{
    if (text.size() > kMostTextBytes)
        fail(ErrorCode::kINVALID_VALUE,
             fmt::format("the network's text has {} bytes (at most {})", text.size(), kMostTextBytes));
    checkMessages(text);
    Listener listener(warn);
    pb::TextFormat::Parser parser;
    parser.RecordErrorsTo(&listener);
    parser.AllowUnknownField(true);
    pb::io::ArrayInputStream stream(text.data(), int(text.size()));
    if (!parser.Parse(&stream, &net))
        fail(ErrorCode::kMODEL_DESERIALIZE_FAILED,
             fmt::format("Could not parse deploy file: {}",
                         listener.error.empty() ? "it is no text of a Caffe network" : listener.error));
}

void readBlob(std::string_view bytes, tw_caffe::BlobProto& blob, std::string const& what)
{
    if (!blob.ParseFromArray(bytes.data(), int(bytes.size())))
        fail(ErrorCode::kMODEL_DESERIALIZE_FAILED,
             fmt::format("{} is no array of Caffe: its bytes cannot be read", what));
}

std::vector<ModelLayer> readModel(std::string_view bytes)
{
    if (bytes.size() > size_t(INT_MAX))
        fail(ErrorCode::kINVALID_VALUE,
             fmt::format("the binary model has {} bytes (at most {})", bytes.size(), INT_MAX));
    // Numbers of fields: of the network, and of its layers in both forms.
    enum
    {
        kNetLayers = 2,
        kNetLayer = 100
    };
    struct Form
    {
        int name, blobs;
    };
    constexpr Form kNow{1, 7}, kV1{4, 6};
    constexpr int kV0 = 1;
    std::vector<ModelLayer> layers, old;
    bool isV0 = false;
    constexpr int kMostParts = 1'000'000; // layers and arrays: some bytes of the file, and some more here
    int parts = 0;
    auto const counted = [&](std::string_view part) {
        if (++parts > kMostParts)
            fail(ErrorCode::kINVALID_VALUE,
                 fmt::format("the binary model has more than {} layers and arrays", kMostParts));
        return part;
    };
    auto const add = [&](std::vector<ModelLayer>& to, std::string_view message, Form form) {
        ModelLayer& layer = to.emplace_back();
        bool const ok = forEachField(counted(message), [&](int number, std::string_view field) {
            if (number == form.name)
                layer.name = field;
            else if (number == form.blobs)
                layer.blobs.push_back(counted(field));
            else if (number == kV0 && form.name == kV1.name)
                isV0 = true;
        });
        if (!ok)
            failNoModel(fmt::format("layer {}", to.size() - 1));
    };
    bool const ok = forEachField(bytes, [&](int number, std::string_view field) {
        if (number == kNetLayer)
            add(layers, field, kNow);
        else if (number == kNetLayers)
            add(old, field, kV1);
    });
    if (!ok)
        failNoModel("what stands behind its layers");
    if (!layers.empty())
        return layers;
    if (isV0)
        fail(ErrorCode::kUNSUPPORTED_GRAPH,
             "the binary model is of Caffe's first form (2013), which is not read: upgrade it with Caffe's "
             "upgrade_net_proto_binary");
    return old;
}

} // namespace tw::caffe
