// SPDX-License-Identifier: Apache-2.0
#include "parsers/caffe/weights.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "tw_caffe.pb.h"

namespace tw::caffe {

using importers::fail;
using nvonnxparser::ErrorCode;
using tw_caffe::BlobProto;

namespace {

// Elements of raw_data; nothing of a type that weights are not of.
std::optional<std::vector<float>> rawNumbers(BlobProto const& blob)
{
    size_t size = sizeof(float);
    switch (blob.raw_data_type()) {
    case BlobProto::FLOAT:
        break;
    case BlobProto::FLOAT16:
        size = 2;
        break;
    case BlobProto::DOUBLE:
        size = sizeof(double);
        break;
    default:
        return {};
    }
    std::string const& raw = blob.raw_data();
    if (raw.size() % size)
        return {};
    std::vector<float> values(raw.size() / size);
    if (size == sizeof(float)) {
        std::copy_n(raw.data(), raw.size(), reinterpret_cast<char*>(values.data()));
    } else if (size == sizeof(double)) {
        std::vector<double> doubles(values.size());
        std::copy_n(raw.data(), raw.size(), reinterpret_cast<char*>(doubles.data()));
        values.assign(doubles.begin(), doubles.end());
    } else {
        Constant halves;
        halves.type = DataType::kHALF;
        halves.count = int64_t(values.size());
        halves.values = raw.data();
        values = halves.floats();
    }
    return values;
}

// The shape that the file gives, which may be none.
std::vector<int64_t> shapeOf(BlobProto const& blob)
{
    if (blob.has_shape())
        return {blob.shape().dim().begin(), blob.shape().dim().end()};
    if (blob.has_num() || blob.has_channels() || blob.has_height() || blob.has_width())
        return {blob.num(), blob.channels(), blob.height(), blob.width()};
    return {};
}

} // namespace

Blob numbersOf(std::string_view bytes, std::string const& what)
{
    BlobProto proto;
    readBlob(bytes, proto, what);
    Blob blob;
    if (proto.has_raw_data()) {
        std::optional<std::vector<float>> values = rawNumbers(proto);
        if (!values)
            fail(ErrorCode::kINVALID_VALUE, fmt::format("{} has {} bytes of raw data of type {}; whole numbers of type "
                                                        "FLOAT, FLOAT16 or DOUBLE are read",
                                                        what, proto.raw_data().size(), int(proto.raw_data_type())));
        blob.values = std::move(*values);
        blob.isHalf = proto.raw_data_type() == BlobProto::FLOAT16;
    } else if (proto.data_size() > 0) {
        blob.values.assign(proto.data().begin(), proto.data().end());
    } else {
        blob.values.assign(proto.double_data().begin(), proto.double_data().end());
    }
    blob.shape = shapeOf(proto);
    int64_t count = 1;
    bool isValid = true;
    for (int64_t d : blob.shape)
        isValid = isValid && d >= 0 && !__builtin_mul_overflow(count, d, &count);
    if (!blob.shape.empty() && (!isValid || count != int64_t(blob.values.size())))
        fail(ErrorCode::kINVALID_VALUE, fmt::format("{} has {} numbers, but its shape is [{}]", what,
                                                    blob.values.size(), fmt::join(blob.shape, ", ")));
    if (blob.shape.empty())
        blob.shape = {int64_t(blob.values.size())};
    return blob;
}

WeightSource::WeightSource(std::optional<std::string_view> model, DataType type) : isRandom_(!model), type_(type)
{
    if (!model)
        return;
    for (ModelLayer& layer : readModel(*model))
        layers_.emplace(layer.name, std::move(layer.blobs)); // of layers with one name the first
}

std::vector<std::string_view> const& WeightSource::blobsOf(std::string const& layer) const
{
    static std::vector<std::string_view> const kNone;
    auto const it = layers_.find(layer);
    return it == layers_.end() ? kNone : it->second;
}

void WeightSource::draw(Constant& c, Random const& random)
{
    // A prime: no layer's rows repeat.
    constexpr size_t kDrawn = 65521;
    if (normal_.empty()) {
        std::mt19937 engine(1); // the same numbers in each parse
        std::normal_distribution<float> normal;
        for (size_t i = 0; i < kDrawn; ++i) {
            normal_.push_back(normal(engine));
            uniform_.push_back(std::erf(normal_.back() / std::sqrt(2.f))); // its own function makes it uniform
        }
    }
    std::vector<float> const& drawn = random.isNormal ? normal_ : uniform_;
    auto* const to = static_cast<float*>(const_cast<void*>(c.values));
    for (int64_t i = 0; i < c.count; ++i) {
        to[i] = float(random.centre + random.spread * double(drawn[next_]));
        next_ = next_ + 1 == kDrawn ? 0 : next_ + 1;
    }
}

} // namespace tw::caffe
