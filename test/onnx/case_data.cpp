// SPDX-License-Identifier: Apache-2.0
#include "case_data.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace tw::test {

using nvinfer1::DataType;
using tw_onnx::TensorProto;

namespace {

double halfToDouble(uint16_t h)
{
    int const exponent = h >> 10 & 31, fraction = h & 1023;
    double const magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                             : exponent     ? std::ldexp(1024 + fraction, exponent - 25)
                                            : std::ldexp(fraction, -24);
    return h & 0x8000 ? -magnitude : magnitude;
}

template <class T>
T load(char const* at)
{
    T v;
    std::memcpy(&v, at, sizeof(T));
    return v;
}

template <class T>
void append(std::vector<unsigned char>& bytes, T v)
{
    auto const* p = reinterpret_cast<unsigned char const*>(&v);
    bytes.insert(bytes.end(), p, p + sizeof(T));
}

} // namespace

size_t sizeOf(DataType type)
{
    switch (type) {
    case DataType::kFLOAT:
    case DataType::kINT32:
        return 4;
    case DataType::kHALF:
        return 2;
    default:
        return 1;
    }
}

std::string typeName(DataType type)
{
    static char const* const kNames[]{"FLOAT", "HALF", "INT8", "INT32", "BOOL", "UINT8"};
    return kNames[int(type)];
}

std::string str(std::vector<int64_t> const& dims)
{
    std::string s = "[";
    for (size_t i = 0; i < dims.size(); ++i)
        s += (i ? "," : "") + std::to_string(dims[i]);
    return s + "]";
}

nvinfer1::Dims toDims(std::vector<int64_t> const& dims)
{
    if (dims.size() > nvinfer1::Dims::MAX_DIMS)
        throw std::runtime_error("recorded tensor of rank " + std::to_string(dims.size()));
    nvinfer1::Dims d{int32_t(dims.size()), {}};
    std::copy(dims.begin(), dims.end(), d.d);
    return d;
}

int64_t volume(std::vector<int64_t> const& dims)
{
    int64_t v = 1;
    for (int64_t d : dims)
        v *= d;
    return v;
}

std::string readFile(std::string const& path)
{
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw std::runtime_error(path + " cannot be read");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

namespace {

// Fields 3 of an OptionalProto or a SequenceProto, whose schemas the messages here do not have: tensors.
std::vector<std::string> tensorsOf(std::string const& message)
{
    size_t at = 0;
    auto varint = [&] {
        uint64_t v = 0;
        for (int shift = 0; at < message.size() && shift < 64; shift += 7) {
            auto const byte = uint8_t(message[at++]);
            v |= uint64_t(byte & 127) << shift;
            if (byte < 128)
                break;
        }
        return v;
    };
    std::vector<std::string> tensors;
    while (at < message.size()) {
        uint64_t const tag = varint(), v = varint(); // of the kinds of field there are numbers and bytes
        if (tag % 8 != 2)
            continue;
        if (v > message.size() - at)
            break;
        if (tag / 8 == 3)
            tensors.push_back(message.substr(at, v));
        at += v;
    }
    return tensors;
}

Recorded recordedOf(std::string const& bytes, std::string const& path);

} // namespace

Recorded readRecorded(std::string const& path, bool isOptional)
{
    std::string const bytes = readFile(path);
    if (!isOptional)
        return recordedOf(bytes, path);
    std::vector<std::string> const tensors = tensorsOf(bytes);
    if (tensors.empty())
        throw std::runtime_error(path + " has no tensor");
    return recordedOf(tensors[0], path);
}

std::vector<Recorded> readSequence(std::string const& path)
{
    std::vector<Recorded> list;
    for (std::string const& bytes : tensorsOf(readFile(path)))
        list.push_back(recordedOf(bytes, path));
    return list;
}

namespace {

Recorded recordedOf(std::string const& bytes, std::string const& path)
{
    TensorProto t;
    if (!t.ParseFromString(bytes))
        throw std::runtime_error(path + " is not a tensor");
    Recorded r;
    r.onnxType = t.data_type();
    r.dims.assign(t.dims().begin(), t.dims().end());
    int64_t const n = volume(r.dims);
    constexpr int kUint4 = 21, kInt4 = 22, kUint2 = 25, kInt2 = 26; // which the messages here do not know
    int const bits = r.onnxType == kUint4 || r.onnxType == kInt4   ? 4
                     : r.onnxType == kUint2 || r.onnxType == kInt2 ? 2
                                                                   : 0;
    bool const isSigned = r.onnxType == kInt4 || r.onnxType == kInt2;
    bool const raw = t.has_raw_data();
    char const* p = t.raw_data().data();
    auto at = [&](int64_t i) -> double {
        switch (t.data_type()) {
        case TensorProto::FLOAT:
            return raw ? load<float>(p + 4 * i) : t.float_data(int(i));
        case TensorProto::DOUBLE:
            return raw ? load<double>(p + 8 * i) : t.double_data(int(i));
        case TensorProto::FLOAT16:
            return halfToDouble(raw ? load<uint16_t>(p + 2 * i) : uint16_t(t.int32_data(int(i))));
        case TensorProto::INT64:
            return double(raw ? load<int64_t>(p + 8 * i) : t.int64_data(int(i)));
        case TensorProto::INT32:
            return raw ? load<int32_t>(p + 4 * i) : t.int32_data(int(i));
        case TensorProto::INT8:
            return raw ? double(int8_t(p[i])) : t.int32_data(int(i));
        case TensorProto::INT16:
            return raw ? load<int16_t>(p + 2 * i) : t.int32_data(int(i));
        case TensorProto::UINT16:
            return raw ? load<uint16_t>(p + 2 * i) : t.int32_data(int(i));
        case TensorProto::UINT32:
            return raw ? double(load<uint32_t>(p + 4 * i)) : double(t.uint64_data(int(i)));
        case TensorProto::UINT64:
            return raw ? double(load<uint64_t>(p + 8 * i)) : double(t.uint64_data(int(i)));
        case TensorProto::BFLOAT16: // the upper half of a float
            return std::bit_cast<float>(uint32_t(raw ? load<uint16_t>(p + 2 * i) : uint16_t(t.int32_data(int(i))))
                                        << 16);
        case kUint4:
        case kInt4:
        case kUint2:
        case kInt2: {
            int const inByte = 8 / bits;
            int const byte = raw ? uint8_t(p[i / inByte]) : t.int32_data(int(i / inByte));
            int const v = byte >> (i % inByte * bits) & ((1 << bits) - 1);
            return isSigned && v >> (bits - 1) ? v - (1 << bits) : v;
        }
        case TensorProto::UINT8:
        case TensorProto::BOOL:
            return raw ? double(uint8_t(p[i])) : t.int32_data(int(i));
        default:
            throw std::runtime_error("recorded tensor of ONNX type " + std::to_string(t.data_type()));
        }
    };
    switch (t.data_type()) {
    case TensorProto::FLOAT16:
        r.type = DataType::kHALF;
        break;
    case TensorProto::INT8:
        r.type = DataType::kINT8;
        break;
    case TensorProto::UINT8:
        r.type = DataType::kUINT8;
        break;
    case TensorProto::BOOL:
        r.type = DataType::kBOOL;
        break;
    case TensorProto::INT16:
    case TensorProto::UINT16:
    case TensorProto::INT32:
    case TensorProto::UINT32:
    case TensorProto::INT64:
    case TensorProto::UINT64:
    case kUint4:
    case kInt4:
    case kUint2:
    case kInt2:
        r.type = DataType::kINT32;
        break;
    default:
        r.type = DataType::kFLOAT;
        break;
    }
    size_t elementSize = sizeOf(r.type);
    switch (t.data_type()) {
    case TensorProto::INT16:
    case TensorProto::UINT16:
    case TensorProto::BFLOAT16:
        elementSize = 2;
        break;
    case TensorProto::DOUBLE:
    case TensorProto::INT64:
    case TensorProto::UINT64:
        elementSize = 8;
        break;
    default:
        break;
    }
    int64_t const typed =
        t.float_data_size() + t.double_data_size() + t.int64_data_size() + t.uint64_data_size() + t.int32_data_size();
    int64_t const inOne = bits ? 8 / bits : 1;
    size_t const wanted = bits ? size_t((n + inOne - 1) / inOne) : size_t(n) * elementSize;
    if (raw ? t.raw_data().size() != wanted : typed != (n + inOne - 1) / inOne)
        throw std::runtime_error(path + " is no tensor, or has the wrong number of elements");
    for (int64_t i = 0; i < n; ++i) {
        double v = at(i);
        if (r.type == DataType::kINT32)
            v = std::clamp(v, double(INT32_MIN), double(INT32_MAX));
        if (r.type == DataType::kFLOAT)
            v = float(v); // DOUBLE beyond FLOAT is an infinity
        r.values.push_back(v);
        switch (r.type) {
        case DataType::kFLOAT:
            append(r.bytes, float(v));
            break;
        case DataType::kHALF:
            append(r.bytes, raw ? load<uint16_t>(p + 2 * i) : uint16_t(t.int32_data(int(i))));
            break;
        case DataType::kINT32:
            append(r.bytes, int32_t(v));
            break;
        case DataType::kINT8:
            append(r.bytes, int8_t(v));
            break;
        default:
            append(r.bytes, uint8_t(v));
            break;
        }
    }
    return r;
}

} // namespace

void readAs(Recorded& r, int onnxType)
{
    if (onnxType != TensorProto::BFLOAT16 || r.onnxType != TensorProto::UINT16)
        return;
    r.onnxType = onnxType;
    r.type = DataType::kFLOAT;
    r.bytes.clear();
    for (double& v : r.values) {
        float const number = std::bit_cast<float>(uint32_t(v) << 16);
        v = number;
        append(r.bytes, number);
    }
}

std::vector<double> toDoubles(void const* data, DataType type, int64_t count)
{
    std::vector<double> v(static_cast<size_t>(count));
    for (size_t i = 0; i < v.size(); ++i)
        switch (type) {
        case DataType::kFLOAT:
            v[i] = static_cast<float const*>(data)[i];
            break;
        case DataType::kHALF:
            v[i] = halfToDouble(static_cast<uint16_t const*>(data)[i]);
            break;
        case DataType::kINT32:
            v[i] = static_cast<int32_t const*>(data)[i];
            break;
        case DataType::kINT8:
            v[i] = static_cast<int8_t const*>(data)[i];
            break;
        default:
            v[i] = static_cast<uint8_t const*>(data)[i];
            break;
        }
    return v;
}

double toleranceFor(Recorded const& want)
{
    constexpr double kOfCases = 1e-3, kUnits = 2; // ONNX's own; in the last place, where numbers have few digits
    switch (want.onnxType) {
    case TensorProto::FLOAT16:
        return kUnits / 1024;
    case TensorProto::BFLOAT16:
        return kUnits / 128;
    default:
        return want.type == DataType::kFLOAT ? kOfCases : 0;
    }
}

std::string compare(std::vector<double> const& got, std::vector<double> const& want, double tolerance)
{
    if (got.size() != want.size())
        return std::to_string(got.size()) + " elements instead of " + std::to_string(want.size());
    size_t bad = 0, first = 0;
    for (size_t i = 0; i < got.size(); ++i) {
        double const g = got[i], w = want[i];
        bool const ok = g == w || (std::isnan(g) && std::isnan(w)) ||
                        (tolerance > 0 && std::isfinite(w) && std::fabs(g - w) <= 1e-7 + tolerance * std::fabs(w));
        if (!ok && bad++ == 0)
            first = i;
    }
    if (bad == 0)
        return {};
    return std::to_string(bad) + " of " + std::to_string(got.size()) + " elements differ, first at " +
           std::to_string(first) + ": " + std::to_string(got[first]) + " instead of " + std::to_string(want[first]);
}

} // namespace tw::test
