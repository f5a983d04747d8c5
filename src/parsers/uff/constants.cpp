// SPDX-License-Identifier: Apache-2.0
#include "parsers/uff/constants.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tw_uff.pb.h"

namespace tw::uff {

namespace {

struct TypeRow
{
    ElementType number;
    char const* name;
    DataType held;
};
constexpr TypeRow kElementTypes[] = {
    {kInt8, "INT8", DataType::kINT8},        {kInt16, "INT16", DataType::kINT32},
    {kInt32, "INT32", DataType::kINT32},     {kInt64, "INT64", DataType::kINT32},
    {kFloat16, "FLOAT16", DataType::kFLOAT}, {kFloat32, "FLOAT32", DataType::kFLOAT},
};

// In a type that layers hold.
template <class T>
Constant widened(UffNode const& n, char const* bytes, Dims const& dims)
{
    Constant c = n.newConstant(DataType::kINT32, dims);
    for (int64_t i = 0; i < c.count; ++i) {
        T v;
        std::memcpy(&v, bytes + i * int64_t(sizeof v), sizeof v);
        ImportContext::store(c, i, double(v));
    }
    return c;
}

} // namespace

void importConst(UffNode& n)
{
    int64_t const number = n.attrInt("dtype", 0);
    auto const* const type = std::ranges::find(kElementTypes, number, &TypeRow::number);
    if (type == std::end(kElementTypes))
        n.fail(fmt::format("element type 0x{:x} cannot be imported; INT8 to INT64, FLOAT16 and FLOAT32 can", number));
    std::vector<int64_t> const shape = n.requireInts("shape");
    if (shape.size() > size_t(Dims::MAX_DIMS))
        n.fail(fmt::format("the shape has {} dimensions, above the highest rank of the API, 8", shape.size()));
    for (int64_t d : shape)
        if (d < 0 || d > INT32_MAX)
            n.invalid(fmt::format("the shape holds {}; the dimensions of a Const are known", d));
    Constant c;
    c.type = type->held;
    c.dims = makeDims(shape);
    c.count = volume(c.dims);
    constexpr int64_t kBitsOfAByte = 8, kBits = 0xffff;
    int64_t const elementBytes = (type->number & kBits) / kBitsOfAByte;
    tw_uff::Data const* const values = n.field("values");
    std::string const none;
    if (values && !values->has_blob())
        n.invalid("field 'values' must be bytes");
    std::string const& blob = values ? values->blob() : none;
    if (c.count > INT32_MAX)
        n.fail(fmt::format("a constant of shape {} is too large for the API (2^31 - 1 elements)", describe(c.dims)));
    if (blob.empty() && c.count > 0) { // of what no layer reads, converters leave the values out
        Tensor t;
        t.missing = fmt::format("Const '{}' of shape {} has no values", shown(n.name()), describe(c.dims));
        return n.give(t);
    }
    if (int64_t(blob.size()) != c.count * elementBytes)
        n.invalid(fmt::format("the values are {} bytes; shape {} of {} needs {}", blob.size(), describe(c.dims),
                              type->name, c.count * elementBytes));
    c.values = blob.data();
    switch (type->number) {
    case kInt16:
        c = widened<int16_t>(n, blob.data(), c.dims);
        break;
    case kInt64:
        c = widened<int64_t>(n, blob.data(), c.dims);
        break;
    case kFloat16:
        c.type = DataType::kHALF;
        c = n.converted(c, DataType::kFLOAT);
        break;
    default: // as it lies in the file
        break;
    }
    n.give(Value(c));
}

std::vector<int64_t> stepsOf(Dims const& dims)
{
    std::vector<int64_t> steps(size_t(std::max(dims.nbDims, 0)));
    int64_t step = 1;
    for (int i = dims.nbDims - 1; i >= 0; --i) {
        steps[size_t(i)] = step;
        if (__builtin_mul_overflow(step, int64_t(dims.d[i]), &step))
            step = 0; // there are no elements
    }
    return steps;
}

Constant picked(UffNode const& n, Constant const& c, Dims const& dims, std::vector<int64_t> const& steps, int64_t first)
{
    Constant y = n.newConstant(c.type, dims);
    int64_t const size = sizeOf(c.type);
    auto* to = static_cast<char*>(const_cast<void*>(y.values));
    std::vector<int32_t> at(steps.size(), 0);
    int64_t from = first;
    for (int64_t i = 0; i < y.count; ++i, to += size) {
        std::memcpy(to, static_cast<char const*>(c.values) + from * size, size_t(size));
        for (int a = dims.nbDims - 1; a >= 0; --a) {
            from += steps[size_t(a)];
            if (++at[size_t(a)] < dims.d[a])
                break;
            from -= steps[size_t(a)] * dims.d[a];
            at[size_t(a)] = 0;
        }
    }
    return y;
}

Constant joined(UffNode const& n, std::vector<Constant> const& parts, int axis)
{
    Dims dims = parts[0].dims;
    int64_t along = 0;
    for (Constant const& part : parts) {
        bool fits = part.dims.nbDims == dims.nbDims && part.type == parts[0].type;
        for (int i = 0; fits && i < dims.nbDims; ++i)
            fits = i == axis || part.dims.d[i] == dims.d[i];
        if (!fits)
            n.invalid(fmt::format("constants of shapes {} and {} cannot be joined along axis {}", describe(dims),
                                  describe(part.dims), axis));
        along += part.dims.d[axis];
    }
    if (along > INT32_MAX)
        n.invalid(fmt::format("the joined constants have {} elements along axis {}", along, axis));
    dims.d[axis] = int32_t(along);
    Constant y = n.newConstant(parts[0].type, dims);
    if (y.count == 0)
        return y;
    int64_t const inner = stepsOf(dims)[size_t(axis)] * sizeOf(y.type);
    int64_t outer = 1;
    for (int i = 0; i < axis; ++i)
        outer *= dims.d[i];
    auto* to = static_cast<char*>(const_cast<void*>(y.values));
    for (int64_t o = 0; o < outer; ++o)
        for (Constant const& part : parts)
            if (int64_t const bytes = part.dims.d[axis] * inner) {
                std::memcpy(to, static_cast<char const*>(part.values) + o * bytes, size_t(bytes));
                to += bytes;
            }
    return y;
}

namespace {

// Steps through c for positions of `dims`, of which it has the last axes or 1s.
std::vector<int64_t> broadcastSteps(Constant const& c, Dims const& dims)
{
    std::vector<int64_t> const own = stepsOf(c.dims);
    std::vector<int64_t> steps(size_t(dims.nbDims), 0);
    int const shift = dims.nbDims - c.dims.nbDims;
    for (int i = 0; i < c.dims.nbDims; ++i)
        steps[size_t(i + shift)] = c.dims.d[i] == 1 ? 0 : own[size_t(i)];
    return steps;
}

double binary(UffNode const& n, std::string const& f, double a, double b, bool isWhole)
{
    if (f == "add")
        return a + b;
    if (f == "sub")
        return a - b;
    if (f == "mul")
        return a * b;
    if (f == "div" && isWhole && b == 0)
        n.invalid("integer constants are divided by zero");
    if (f == "div")
        return isWhole ? std::trunc(a / b) : a / b;
    if (f == "min")
        return std::min(a, b);
    if (f == "max")
        return std::max(a, b);
    if (f == "pow")
        return std::pow(a, b);
    n.fail("Unsupported binary op " + f);
}

} // namespace

Constant computedBinary(UffNode const& n, std::string const& function)
{
    Constant const &a = n.constantOf(0, "input"), &b = n.constantOf(1, "input");
    Dims dims{std::max(a.dims.nbDims, b.dims.nbDims), {}};
    for (int i = 1; i <= dims.nbDims; ++i) {
        int const da = i <= a.dims.nbDims ? a.dims.d[a.dims.nbDims - i] : 1;
        int const db = i <= b.dims.nbDims ? b.dims.d[b.dims.nbDims - i] : 1;
        if (da != db && da != 1 && db != 1)
            n.invalid(
                fmt::format("constants of shapes {} and {} cannot be broadcast", describe(a.dims), describe(b.dims)));
        dims.d[dims.nbDims - i] = da == 1 ? db : da;
    }
    Constant const left = picked(n, a, dims, broadcastSteps(a, dims), 0);
    Constant const right = picked(n, b, dims, broadcastSteps(b, dims), 0);
    bool const isWhole = !isFloating(a.type) && !isFloating(b.type);
    Constant y = n.newConstant(isWhole ? DataType::kINT32 : DataType::kFLOAT, dims);
    for (int64_t i = 0; i < y.count; ++i)
        ImportContext::store(y, i, binary(n, function, left.floatAt(i), right.floatAt(i), isWhole));
    return y;
}

Constant computedUnary(UffNode const& n, std::string const& function)
{
    using Function = double (*)(double);
    struct Row
    {
        char const* name;
        Function function;
    };
    static constexpr Row kRows[] = {
        {"neg", [](double v) { return -v; }},
        {"abs", [](double v) { return std::fabs(v); }},
        {"sqrt", [](double v) { return std::sqrt(v); }},
        {"rsqrt", [](double v) { return 1 / std::sqrt(v); }},
        {"square", [](double v) { return v * v; }},
        {"exp", [](double v) { return std::exp(v); }},
        {"log", [](double v) { return std::log(v); }},
        {"ceil", [](double v) { return std::ceil(v); }},
        {"floor", [](double v) { return std::floor(v); }},
    };
    Constant const& x = n.constantOf(0, "input");
    auto const* const row = std::ranges::find_if(kRows, [&](Row const& r) { return function == r.name; });
    if (row == std::end(kRows))
        n.fail("Unsupported unary op " + function + " with constant input");
    Constant y = n.newConstant(x.type, x.dims);
    for (int64_t i = 0; i < y.count; ++i)
        ImportContext::store(y, i, row->function(x.floatAt(i)));
    return y;
}

Constant computedReduce(UffNode const& n, std::string const& function, std::vector<int> const& axes, bool keepDims)
{
    Constant const& x = n.constantOf(0, "input");
    if (x.count == 0)
        n.invalid(fmt::format("a constant of shape {} has nothing to reduce", describe(x.dims)));
    Dims full = x.dims, dims{0, {}};
    for (int i = 0; i < x.dims.nbDims; ++i) {
        bool const goes = contains(axes, i);
        full.d[i] = goes ? 1 : full.d[i];
        if (!goes || keepDims)
            dims.d[dims.nbDims++] = full.d[i];
    }
    Constant y = n.newConstant(x.type, full);
    std::vector<double> results(size_t(y.count), function == "prod"  ? 1.0
                                                 : function == "min" ? std::numeric_limits<double>::infinity()
                                                 : function == "max" ? -std::numeric_limits<double>::infinity()
                                                                     : 0.0);
    std::vector<int64_t> const own = stepsOf(x.dims), to = broadcastSteps(y, x.dims);
    for (int64_t i = 0; i < x.count; ++i) {
        int64_t at = 0;
        for (size_t a = 0; a < own.size(); ++a)
            at += i / own[a] % x.dims.d[a] * to[a];
        double const v = x.floatAt(i);
        double& r = results[size_t(at)];
        r = function == "prod"  ? r * v
            : function == "min" ? std::min(r, v)
            : function == "max" ? std::max(r, v)
                                : r + v;
    }
    double const count = function == "mean" ? double(x.count) / double(y.count) : 1.0;
    for (int64_t i = 0; i < y.count; ++i)
        ImportContext::store(y, i, results[size_t(i)] / count);
    return n.reshaped(y, dims);
}

} // namespace tw::uff
