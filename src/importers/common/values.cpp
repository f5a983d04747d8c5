// SPDX-License-Identifier: Apache-2.0
#include "importers/common/values.h"

#include <algorithm>

#include "base/types.h"

namespace tw::importers {

using nvonnxparser::ErrorCode;

namespace {

// Models decide how many elements a constant has; the importer knows how many it needs.
void checkElement(Constant const& c, int64_t i)
{
    if (i < 0 || i >= c.count)
        throw ImportError{ErrorCode::kINVALID_NODE,
                          (c.name.empty() ? std::string("a computed constant") : "constant '" + c.name + "'") +
                              " has " + std::to_string(c.count) + " elements; element " + std::to_string(i) +
                              " is needed",
                          SourceLocation::current()};
}

} // namespace

int64_t Constant::intAt(int64_t i) const
{
    checkElement(*this, i);
    switch (type) {
    case DataType::kINT32:
        return static_cast<int32_t const*>(values)[i];
    case DataType::kINT8:
        return static_cast<int8_t const*>(values)[i];
    case DataType::kBOOL:
    case DataType::kUINT8:
        return static_cast<uint8_t const*>(values)[i];
    default: {
        // Conversion of a float outside int64 would be undefined.
        double const v = floatAt(i);
        return v >= 9.2e18 ? INT64_MAX : v <= -9.2e18 ? INT64_MIN : v != v ? 0 : int64_t(v);
    }
    }
}

double Constant::floatAt(int64_t i) const
{
    checkElement(*this, i);
    switch (type) {
    case DataType::kFLOAT:
        return static_cast<float const*>(values)[i];
    case DataType::kHALF:
        return halfToFloat(static_cast<uint16_t const*>(values)[i]);
    default:
        return double(intAt(i));
    }
}

std::vector<int64_t> Constant::ints() const
{
    std::vector<int64_t> v(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
        v[i] = intAt(i);
    return v;
}

std::vector<float> Constant::floats() const
{
    std::vector<float> v(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
        v[i] = float(floatAt(i));
    return v;
}

Dims makeDims(std::vector<int64_t> const& values)
{
    Dims d{int32_t(std::min<size_t>(values.size(), Dims::MAX_DIMS)), {}};
    for (int i = 0; i < d.nbDims; ++i)
        d.d[i] = int32_t(values[i]);
    return d;
}

std::vector<int64_t> toVector(Dims const& dims)
{
    return {dims.d, dims.d + std::max(dims.nbDims, 0)};
}

int64_t volume(Dims const& dims)
{
    int64_t v = 1;
    if (!isStatic(dims))
        return -1;
    for (int i = 0; i < dims.nbDims; ++i)
        if (__builtin_mul_overflow(v, int64_t(dims.d[i]), &v))
            return INT64_MAX;
    return v;
}

bool isStatic(Dims const& dims)
{
    return dims.nbDims >= 0 && std::all_of(dims.d, dims.d + dims.nbDims, [](int32_t d) { return d >= 0; });
}

std::string describe(Dims const& dims)
{
    std::string s = "[";
    for (int i = 0; i < dims.nbDims; ++i)
        s += (i ? ", " : "") + std::to_string(dims.d[i]);
    return s + "]";
}

char const* typeName(DataType type)
{
    switch (type) {
    case DataType::kFLOAT:
        return "FLOAT";
    case DataType::kHALF:
        return "HALF";
    case DataType::kINT8:
        return "INT8";
    case DataType::kINT32:
        return "INT32";
    case DataType::kBOOL:
        return "BOOL";
    case DataType::kUINT8:
        return "UINT8";
    }
    return "unknown type";
}

bool isFloating(DataType type)
{
    return type == DataType::kFLOAT || type == DataType::kHALF;
}

std::vector<int> allAxes(int rank)
{
    std::vector<int> v(static_cast<size_t>(std::max(rank, 0)));
    for (int i = 0; i < rank; ++i)
        v[i] = i;
    return v;
}

int64_t sizeOf(DataType type)
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

} // namespace tw::importers
