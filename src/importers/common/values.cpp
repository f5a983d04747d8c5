// SPDX-License-Identifier: Apache-2.0
#include "importers/common/values.h"

#include <algorithm>

#include "base/tensor.h"

namespace tw::importers {

using nvonnxparser::ErrorCode;

namespace {

// Models decide how many elements a constant has; the importer knows how many it needs.
void checkElement(Constant const& c, int64_t i)
{
    if (i < 0 || i >= c.count)
        throw ImportError{ErrorCode::kINVALID_NODE,
                          fmt::format("{} has {} elements; element {} is needed",
                                      c.name.empty() ? std::string("a computed constant") : "constant '" + c.name + "'",
                                      c.count, i),
                          SourceLocation::current()};
}

// Numbers of both enumerations of types are the same.
TensorRef elementsOf(Constant const& c)
{
    return {tw::DataType(c.type), {}, const_cast<void*>(c.values)};
}

} // namespace

Constant const& Later::values() const
{
    if (!kept_)
        kept_ = std::make_shared<Constant const>(made());
    return *kept_;
}

int64_t Constant::intAt(int64_t i) const
{
    double const v = floatAt(i);
    // Conversion of a float outside int64 would be undefined.
    return v >= 9.2e18 ? INT64_MAX : v <= -9.2e18 ? INT64_MIN : v != v ? 0 : int64_t(v);
}

double Constant::floatAt(int64_t i) const
{
    checkElement(*this, i);
    return elementsOf(*this).get(i);
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

Dims unitDims(int rank)
{
    Dims d{rank, {}};
    std::fill_n(d.d, rank, 1);
    return d;
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
        s += fmt::format("{}{}", i ? ", " : "", dims.d[i]);
    return s + "]";
}

char const* typeName(DataType type)
{
    constexpr char const* kNames[] = {"FLOAT", "HALF", "INT8", "INT32", "BOOL", "UINT8"}; // by number
    return size_t(type) < std::size(kNames) ? kNames[size_t(type)] : "unknown type";
}

bool isFloating(DataType type)
{
    return tw::isFloating(tw::DataType(type));
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
    return tw::sizeOf(tw::DataType(type));
}

} // namespace tw::importers
