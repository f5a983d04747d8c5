// SPDX-License-Identifier: Apache-2.0
#include "onnx/weights.h"

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onnx/integers.h"
#include "tw_onnx.pb.h"

namespace tw::onnx {

using nvonnxparser::ErrorCode;
using tw_onnx::TensorProto;

namespace {

constexpr int64_t kMaxElements = std::numeric_limits<int32_t>::max(); // the API's limit for one tensor

// Closes the descriptor in every case.
struct File
{
    int fd = -1;
    ~File()
    {
        if (fd >= 0)
            ::close(fd);
    }
};

std::string realPath(std::string const& path)
{
    std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
    return resolved ? std::string(resolved.get()) : std::string();
}

bool hasParentStep(std::string const& path)
{
    for (size_t at = 0; at <= path.size();) {
        size_t const end = std::min(path.find('/', at), path.size());
        if (path.compare(at, end - at, "..") == 0)
            return true;
        at = end + 1;
    }
    return false;
}

struct ElementType
{
    char const* name;
    int64_t sizeBits = 0; // 0: it cannot be imported
    DataType type{};      // that it becomes
    Integers integers = Integers::kOfType;
    bool isStored = false; // of initializers alone: layers do not round to it
};
// By the numbers of TensorProto. FP32 has all numbers of the smaller floating types, INT32 those of the small integers.
constexpr ElementType kElementTypes[] = {
    {"UNDEFINED"},
    {"FLOAT", 32, DataType::kFLOAT},
    {"UINT8", 8, DataType::kUINT8, Integers::kUint8},
    {"INT8", 8, DataType::kINT8},
    {"UINT16", 16, DataType::kINT32, Integers::kUint16},
    {"INT16", 16, DataType::kINT32, Integers::kInt16},
    {"INT32", 32, DataType::kINT32},
    {"INT64", 64, DataType::kINT32},
    {"STRING"},
    {"BOOL", 8, DataType::kBOOL},
    {"FLOAT16", 16, DataType::kHALF},
    {"DOUBLE", 64, DataType::kFLOAT},
    {"UINT32", 32, DataType::kINT32, Integers::kUint32},
    {"UINT64", 64, DataType::kINT32, Integers::kUint64},
    {"COMPLEX64"},
    {"COMPLEX128"},
    {"BFLOAT16", 16, DataType::kFLOAT},
    {"FLOAT8E4M3FN", 8, DataType::kFLOAT, Integers::kOfType, true},
    {"FLOAT8E4M3FNUZ", 8, DataType::kFLOAT, Integers::kOfType, true},
    {"FLOAT8E5M2", 8, DataType::kFLOAT, Integers::kOfType, true},
    {"FLOAT8E5M2FNUZ", 8, DataType::kFLOAT, Integers::kOfType, true},
    {"UINT4", 4, DataType::kINT32, Integers::kUint4},
    {"INT4", 4, DataType::kINT32, Integers::kInt4},
    {"FLOAT4E2M1", 4, DataType::kFLOAT, Integers::kOfType, true},
    {"FLOAT8E8M0", 8, DataType::kFLOAT, Integers::kOfType, true},
    {"UINT2", 2, DataType::kINT32, Integers::kUint2},
    {"INT2", 2, DataType::kINT32, Integers::kInt2},
};

ElementType const* elementType(int onnxType)
{
    return onnxType >= 0 && onnxType < int(std::size(kElementTypes)) ? &kElementTypes[onnxType] : nullptr;
}

int64_t sizeBytes(int onnxType, int64_t count)
{
    return (count * elementType(onnxType)->sizeBits + 7) / 8;
}

template <class T>
T load(char const* at)
{
    T v;
    std::memcpy(&v, at, sizeof(T));
    return v;
}

// UINT32 and UINT64 are in one field.
bool isInUint64s(int onnxType)
{
    return onnxType == TensorProto::UINT32 || onnxType == TensorProto::UINT64;
}

// Numbers of few bits: a sign, an exponent and a mantissa. Which of them are no numbers differs.
struct SmallFloat
{
    enum class Special
    {
        kNone,
        kIeee,      // the largest exponent: infinities and NaN
        kLastIsNan, // NaN is all ones behind the sign, there is no infinity
        kMinusZero  // NaN stands where -0 would
    };
    int exponentBits, mantissaBits, bias;
    Special special;

    float number(unsigned bits) const
    {
        int const mantissa = int(bits & ((1u << mantissaBits) - 1));
        int const largest = (1 << exponentBits) - 1, exponent = int(bits >> mantissaBits) & largest;
        bool const isNegative = bits >> (exponentBits + mantissaBits) & 1;
        constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
        bool const isLast = exponent == largest && mantissa == (1 << mantissaBits) - 1;
        if ((special == Special::kLastIsNan && isLast) ||
            (special == Special::kMinusZero && isNegative && exponent == 0 && mantissa == 0))
            return kNan;
        float magnitude = exponent == 0
                              ? std::ldexp(float(mantissa), 1 - bias - mantissaBits)
                              : std::ldexp(float((1 << mantissaBits) + mantissa), exponent - bias - mantissaBits);
        if (special == Special::kIeee && exponent == largest)
            magnitude = mantissa ? kNan : std::numeric_limits<float>::infinity();
        return isNegative ? -magnitude : magnitude;
    }
};

// Of types that are stored alone. `bits` of no more than the type has.
float smallNumber(int onnxType, unsigned bits)
{
    using Special = SmallFloat::Special;
    constexpr int kE4m3fn = 17, kE4m3fnuz = 18, kE5m2 = 19, kE5m2fnuz = 20, kE2m1 = 23;
    switch (onnxType) {
    case kE4m3fn:
        return SmallFloat{4, 3, 7, Special::kLastIsNan}.number(bits);
    case kE4m3fnuz:
        return SmallFloat{4, 3, 8, Special::kMinusZero}.number(bits);
    case kE5m2:
        return SmallFloat{5, 2, 15, Special::kIeee}.number(bits);
    case kE5m2fnuz:
        return SmallFloat{5, 2, 16, Special::kMinusZero}.number(bits);
    case kE2m1:
        return SmallFloat{2, 1, 1, Special::kNone}.number(bits);
    default: // FLOAT8E8M0: a power of two
        return bits == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, int(bits) - 127);
    }
}

} // namespace

bool dataTypeOf(int onnxType, DataType& type)
{
    ElementType const* const e = elementType(onnxType);
    if (!e || e->sizeBits == 0 || e->isStored)
        return false;
    type = e->type;
    return true;
}

Integers integersOf(int onnxType)
{
    ElementType const* const e = elementType(onnxType);
    return e ? e->integers : Integers::kOfType;
}

std::optional<DataType> floatingType(int64_t onnxType, DataType absent)
{
    switch (onnxType) {
    case 0:
        return absent;
    case TensorProto::FLOAT16:
        return DataType::kHALF;
    case TensorProto::FLOAT:
    case TensorProto::DOUBLE:
    case TensorProto::BFLOAT16:
        return DataType::kFLOAT;
    default:
        return std::nullopt;
    }
}

std::string onnxTypeName(int onnxType)
{
    ElementType const* const e = elementType(onnxType);
    return e ? e->name : fmt::format("type {}", onnxType);
}

std::string_view WeightReader::readExternal(TensorProto const& tensor, std::string const& what)
{
    std::string location;
    int64_t offset = 0, length = -1;
    for (auto const& entry : tensor.external_data()) {
        auto number = [&]() -> int64_t {
            char* end = nullptr;
            errno = 0;
            long long const v = std::strtoll(entry.value().c_str(), &end, 10);
            if (errno || entry.value().empty() || *end || v < 0)
                fail(ErrorCode::kINVALID_VALUE,
                     what + ": external " + entry.key() + " '" + entry.value() + "' is not a count of bytes");
            return v;
        };
        if (entry.key() == "location")
            location = entry.value();
        else if (entry.key() == "offset")
            offset = number();
        else if (entry.key() == "length")
            length = number() == 0 ? -1 : number(); // some writers' way to leave it out
    }
    if (location.empty() || location.find('\0') != std::string::npos)
        fail(ErrorCode::kINVALID_VALUE, what + ": external data without a location");
    if (location[0] == '/' || hasParentStep(location))
        fail(ErrorCode::kINVALID_VALUE,
             what + ": external data '" + location +
                 "' points outside the model's folder; allowed are relative paths without '..'");
    if (modelPath_.empty())
        fail(ErrorCode::kINVALID_VALUE, what + ": the weights are in file '" + location +
                                            "', but the model's own path is not known; pass it as model_path");
    size_t const slash = modelPath_.rfind('/');
    std::string const folder = realPath(slash == std::string::npos ? "." : modelPath_.substr(0, slash + 1));
    std::string const path = folder.empty() ? std::string() : realPath(folder + "/" + location);
    if (path.empty())
        fail(ErrorCode::kINVALID_VALUE, what + ": external data file '" + location + "' is not in the model's folder");
    // Links are followed only to places below the model's folder.
    if (path.compare(0, folder.size(), folder) != 0 || (folder != "/" && path[folder.size()] != '/'))
        fail(ErrorCode::kINVALID_VALUE,
             what + ": external data '" + location + "' is a link that leads out of the model's folder");
    std::string_view const file = mapped(path, what + ": external data '" + location + "'");
    auto const fileSize = int64_t(file.size());
    if (offset > fileSize || (length >= 0 && length > fileSize - offset))
        fail(ErrorCode::kINVALID_VALUE,
             fmt::format("{}: external data '{}' has {} bytes, but offset {} and length {} are asked for", what,
                         location, fileSize, offset, length));
    int64_t count = 1;
    for (int64_t d : tensor.dims())
        count *= d; // read() has checked the product
    int64_t const wanted = sizeBytes(tensor.data_type(), count);
    if (length < 0 ? fileSize - offset < wanted : length != wanted)
        fail(ErrorCode::kINVALID_VALUE, fmt::format("{}: external data '{}' gives {} bytes for {}", what, location,
                                                    length < 0 ? fileSize - offset : length, wanted));
    return file.substr(size_t(offset), size_t(wanted));
}

std::string_view WeightReader::mapped(std::string const& path, std::string const& what)
{
    if (auto const it = files_.find(path); it != files_.end())
        return it->second;
    File const file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)}; // a pipe must not block
    struct stat info
    {};
    if (file.fd < 0 || ::fstat(file.fd, &info) != 0 || !S_ISREG(info.st_mode))
        fail(ErrorCode::kINVALID_VALUE, what + " cannot be read as a file");
    static constexpr char kNothing[1]{};
    if (info.st_size == 0)
        return files_[path] = std::string_view(kNothing, 0);
    auto const size = size_t(info.st_size);
    void* const data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (data == MAP_FAILED)
        fail(ErrorCode::kMEM_ALLOC_FAILED,
             fmt::format("{} of {} bytes cannot be mapped into memory: {}", what, size, std::strerror(errno)));
    memory_.keep(std::shared_ptr<void const>(data, [size](void const* p) { ::munmap(const_cast<void*>(p), size); }));
    return files_[path] = std::string_view(static_cast<char const*>(data), size);
}

// The elements in their ONNX type, little endian. Empty view with data() == nullptr: they are in the typed fields.
std::string_view WeightReader::bytesOf(TensorProto const& tensor, std::string const& what)
{
    if (tensor.data_location() == TensorProto::EXTERNAL)
        return readExternal(tensor, what);
    if (tensor.has_raw_data())
        return tensor.raw_data();
    return {};
}

Constant WeightReader::read(TensorProto const& tensor, std::string const& what)
{
    std::string_view bytes;
    Constant const c = described(tensor, what, bytes);
    return withValues(c, tensor, what, bytes);
}

Constant WeightReader::readLater(TensorProto const& tensor, std::string const& what)
{
    std::string_view bytes;
    Constant c = described(tensor, what, bytes);
    IntegerRange const range = rangeOf(c.integers);
    if (!bytes.data() || c.integers == Integers::kOfType || range.bits > 8)
        return withValues(std::move(c), tensor, what, bytes);
    auto later = std::make_shared<Later>();
    later->integers = {reinterpret_cast<uint8_t const*>(bytes.data()), range.bits, range.lowest < 0};
    later->made = [this, c, &tensor, what, bytes] { return withValues(c, tensor, what, bytes); };
    c.later = std::move(later);
    return c;
}

// All but the values; `bytes`: as the model has them, null where they lie in fields of numbers.
Constant WeightReader::described(TensorProto const& tensor, std::string const& what, std::string_view& bytes)
{
    int const onnxType = tensor.data_type();
    Constant c;
    c.name = tensor.name();
    ElementType const* const e = elementType(onnxType);
    if (!e || e->sizeBits == 0)
        fail(ErrorCode::kUNSUPPORTED_NODE, what + ": element type " + onnxTypeName(onnxType) + " cannot be imported");
    c.type = e->type;
    c.integers = integersOf(onnxType);
    if (tensor.has_segment())
        fail(ErrorCode::kUNSUPPORTED_GRAPH, what + ": tensors stored in segments cannot be imported");
    if (tensor.dims_size() > Dims::MAX_DIMS)
        fail(ErrorCode::kUNSUPPORTED_GRAPH, fmt::format("{}: rank {} is above the highest rank of the API, {}", what,
                                                        tensor.dims_size(), Dims::MAX_DIMS));
    c.dims.nbDims = tensor.dims_size();
    c.count = 1;
    bool empty = false;
    for (int i = 0; i < tensor.dims_size(); ++i) {
        int64_t const d = tensor.dims(i);
        if (d < 0 || d > kMaxElements)
            fail(ErrorCode::kINVALID_VALUE, fmt::format("{}: dimension {} is {}", what, i, d));
        c.dims.d[i] = int32_t(d);
        empty = empty || d == 0;
        if (d != 0 && !empty) {
            c.count *= d;
            if (c.count > kMaxElements)
                fail(ErrorCode::kUNSUPPORTED_GRAPH, what + ": more than 2^31 - 1 elements");
        }
    }
    if (empty)
        c.count = 0;

    bytes = bytesOf(tensor, what);
    int64_t const typedCount = onnxType == TensorProto::FLOAT    ? tensor.float_data_size()
                               : onnxType == TensorProto::DOUBLE ? tensor.double_data_size()
                               : onnxType == TensorProto::INT64  ? tensor.int64_data_size()
                               : isInUint64s(onnxType)           ? tensor.uint64_data_size()
                                                                 : tensor.int32_data_size();
    int64_t const wanted = e->sizeBits < 8 ? sizeBytes(onnxType, c.count) : c.count; // several in a byte
    if (bytes.data() ? int64_t(bytes.size()) != sizeBytes(onnxType, c.count) : typedCount != wanted)
        fail(ErrorCode::kINVALID_VALUE, fmt::format("{}: shape {} of {} needs {} elements, the data has {}", what,
                                                    describe(c.dims), onnxTypeName(onnxType), c.count,
                                                    bytes.data() ? fmt::format("{} bytes", bytes.size())
                                                                 : fmt::format("{} elements", typedCount)));
    if (c.type == DataType::kUINT8)
        c.type = DataType::kINT32;
    return c;
}

Constant WeightReader::withValues(Constant c, TensorProto const& tensor, std::string const& what,
                                  std::string_view bytes)
{
    int const onnxType = tensor.data_type();
    ElementType const* const e = elementType(onnxType);
    auto room = [&](int64_t elementSize) {
        void* p = memory_.allocate(c.count * elementSize);
        if (!p)
            fail(ErrorCode::kMEM_ALLOC_FAILED, fmt::format("{}: no memory for {} elements", what, c.count));
        return p;
    };
    char const* raw = bytes.data();
    // Raw data of odd alignment (a byte string inside the protobuf is aligned, external data is as well) would need a
    // copy.
    auto keepOrCopy = [&](int64_t elementSize) -> void const* {
        if (reinterpret_cast<uintptr_t>(raw) % uint64_t(elementSize) == 0)
            return raw;
        void* p = room(elementSize);
        std::memcpy(p, raw, size_t(c.count * elementSize));
        return p;
    };
    // Elements of the type of element(i).
    auto make = [&](auto element) {
        using T = decltype(element(int64_t(0)));
        auto* p = static_cast<T*>(room(sizeof(T)));
        for (int64_t i = 0; i < c.count; ++i)
            p[i] = element(i);
        c.values = p;
    };
    auto once = [&](bool& flag, char const* message) {
        if (!flag)
            warn_(message);
        flag = true;
    };

    std::string const kBecomeInt32 = " weights of the model become INT32";
    switch (onnxType) {
    case TensorProto::FLOAT:
        c.values = raw ? keepOrCopy(4) : tensor.float_data().data();
        break;
    case TensorProto::INT32:
        c.values = raw ? keepOrCopy(4) : tensor.int32_data().data();
        break;
    case TensorProto::FLOAT16:
        if (raw)
            c.values = keepOrCopy(2);
        else
            make([&](int64_t i) { return uint16_t(tensor.int32_data(int(i))); });
        break;
    case TensorProto::BFLOAT16: // the upper halves of floats
        make([&](int64_t i) {
            uint16_t const bits = raw ? load<uint16_t>(raw + 2 * i) : uint16_t(tensor.int32_data(int(i)));
            return std::bit_cast<float>(uint32_t(bits) << 16);
        });
        break;
    case TensorProto::INT8:
    case TensorProto::BOOL:
        make([&](int64_t i) {
            int const v = raw ? raw[i] : tensor.int32_data(int(i));
            return onnxType == TensorProto::BOOL ? int8_t(v != 0) : int8_t(v);
        });
        break;
    case TensorProto::INT64:
        once(warnedInt64_, "the model has INT64 weights, which become INT32");
        make([&](int64_t i) {
            int64_t const v = raw ? load<int64_t>(raw + 8 * i) : tensor.int64_data(int(i));
            if (v < INT32_MIN || v > INT32_MAX)
                once(warnedClamp_, "INT64 weights outside the range of INT32 are clamped to it");
            return int32_t(std::clamp<int64_t>(v, INT32_MIN, INT32_MAX));
        });
        break;
    case TensorProto::UINT32:
    case TensorProto::UINT64:
        once(warnedUnsigned_, (onnxTypeName(onnxType) + kBecomeInt32).c_str());
        make([&](int64_t i) {
            uint64_t const v = !raw                              ? tensor.uint64_data(int(i))
                               : onnxType == TensorProto::UINT32 ? load<uint32_t>(raw + 4 * i)
                                                                 : load<uint64_t>(raw + 8 * i);
            if (v > uint64_t(INT32_MAX))
                once(warnedClamp_,
                     (onnxTypeName(onnxType) + " weights outside the range of INT32 are clamped to it").c_str());
            return int32_t(std::min<uint64_t>(v, INT32_MAX));
        });
        break;
    case TensorProto::UINT8:
    case TensorProto::UINT16:
    case TensorProto::INT16:
        once(onnxType == TensorProto::UINT8 ? warnedUint8_ : warnedSmall_,
             (onnxTypeName(onnxType) + kBecomeInt32).c_str());
        make([&](int64_t i) {
            int32_t const v = !raw                             ? tensor.int32_data(int(i))
                              : onnxType == TensorProto::UINT8 ? raw[i]
                                                               : load<int16_t>(raw + 2 * i);
            return onnxType == TensorProto::UINT8    ? int32_t(uint8_t(v))
                   : onnxType == TensorProto::UINT16 ? int32_t(uint16_t(v))
                                                     : int32_t(int16_t(v));
        });
        break;
    default: {
        if (e->sizeBits > 8)
            fail(ErrorCode::kINTERNAL_ERROR, what + ": element type without a reader");
        auto const bitsOf = [&, bits = e->sizeBits](int64_t i) { // the lower ones of a byte first
            int64_t const inByte = 8 / bits;
            int const byte = raw ? raw[i / inByte] : tensor.int32_data(int(i / inByte));
            return byte >> (i % inByte * bits) & ((1 << bits) - 1);
        };
        if (e->isStored) {
            make([&](int64_t i) { return smallNumber(onnxType, unsigned(bitsOf(i))); });
            break;
        }
        once(warnedSmall_, (onnxTypeName(onnxType) + kBecomeInt32).c_str());
        make([&, sign = rangeOf(c.integers).lowest < 0 ? 1 << (e->sizeBits - 1) : 0](int64_t i) {
            return int32_t((bitsOf(i) ^ sign) - sign);
        });
        break;
    }
    case TensorProto::DOUBLE:
        once(warnedDouble_, "the model has DOUBLE weights, which become FLOAT");
        make([&](int64_t i) {
            double const v = raw ? load<double>(raw + 8 * i) : tensor.double_data(int(i));
            constexpr double kMax = std::numeric_limits<float>::max();
            return std::isfinite(v) ? float(std::clamp(v, -kMax, kMax)) : float(v);
        });
        break;
    }
    static char const kNothing[8]{};
    if (!c.values)
        c.values = kNothing; // empty tensors
    return c;
}

} // namespace tw::onnx
