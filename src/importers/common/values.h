// SPDX-License-Identifier: Apache-2.0
// What importers of models share: the values that nodes exchange, numbers of shapes, and errors. Types are those of nvinfer1.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "NvInfer.h"
#include "NvOnnxParser.h"
#include "base/lists.h"

namespace tw::importers {

using nvinfer1::DataType;
using nvinfer1::Dims;
using nvinfer1::ITensor;

// std::source_location, which clang 14 does not have.
struct SourceLocation
{
    char const* file = "";
    char const* function = "";
    int line = 0;
    static constexpr SourceLocation current(char const* file = __builtin_FILE(),
                                            char const* function = __builtin_FUNCTION(), int line = __builtin_LINE())
    {
        return {file, function, line};
    }
};

struct ImportError
{
    nvonnxparser::ErrorCode code;
    std::string message;
    SourceLocation where;
};
[[noreturn]] inline void fail(nvonnxparser::ErrorCode code, std::string message,
                              SourceLocation where = SourceLocation::current())
{
    throw ImportError{code, std::move(message), where};
}

// The integers that a value has in the model, where the API's type for them is another: INT32, or what onnx/integers.h
// says of quantized tensors. INT64 is INT32 whatever is done with it, and no kind of its own.
enum class Integers : uint8_t
{
    kOfType, // as the tensor's type says
    kInt2,
    kUint2,
    kInt4,
    kUint4,
    kInt8,
    kUint8,
    kInt16,
    kUint16,
    kUint32,
    kUint64
};

struct Computed;

// Integers of an initializer as the model has them: row-major, those of fewer than 8 bits several in a byte, the lower ones
// first.
struct FewBits
{
    uint8_t const* bytes = nullptr; // null: there are none
    int bits = 8;
    bool isSigned = false;

    int at(int64_t i) const
    {
        int64_t const inByte = 8 / bits;
        int const sign = isSigned ? 1 << (bits - 1) : 0;
        return ((bytes[i / inByte] >> (i % inByte * bits) & ((1 << bits) - 1)) ^ sign) - sign;
    }
};

struct QuantizedMatrix;
struct Constant;

// How a constant's values are made when a node reads them that does not take it as it is. Weights of few bits would need four
// bytes for each.
struct Later
{
    std::function<Constant()> made;
    FewBits integers;                              // that the values are
    std::shared_ptr<QuantizedMatrix const> matrix; // or: what they are computed of; may be null

    Constant const& values() const; // made once, however many nodes read them

private:
    mutable std::shared_ptr<Constant const> kept_;
};

// A value known at import: an initializer, a Constant node or the result of folding. `values` lives as long as the
// parser.
struct Constant
{
    DataType type = DataType::kFLOAT; // never kUINT8
    Dims dims{0, {}};
    void const* values = nullptr;
    int64_t count = 1;
    std::string name; // of the initializer; empty for computed ones
    Integers integers = Integers::kOfType;
    // How it is computed of initializers that a refit may replace: asTensor() gives layers that compute it. Null: it is as it
    // stands.
    std::shared_ptr<Computed> computed;
    // Not null: `values` is null, and nodes get this constant as it is alone where they ask for it (ModelImporter::find()).
    std::shared_ptr<Later const> later;

    nvinfer1::Weights weights() const { return {type, count ? values : nullptr, count}; }
    int64_t intAt(int64_t i) const;  // any type; an import error where there is no element i
    double floatAt(int64_t i) const; // likewise
    std::vector<int64_t> ints() const;
    std::vector<float> floats() const;
};

// An input or output of a node: nothing (an optional input left out), a tensor of the network, a constant, a sequence of such
// values, or an optional value that is not there.
class Value
{
public:
    Value() = default;
    Value(ITensor& tensor) : tensor_(&tensor) {}
    Value(ITensor* tensor) : tensor_(tensor) {}
    Value(ITensor& tensor, Integers integers) : tensor_(&tensor), integers_(integers) {}
    Value(Constant constant) : constant_(std::move(constant)), isConstant_(true) {}
    static Value sequence(std::vector<Value> values)
    {
        Value v;
        v.sequence_ = std::make_shared<std::vector<Value> const>(std::move(values));
        return v;
    }
    static Value missing()
    {
        Value v;
        v.isMissing_ = true;
        return v;
    }

    bool isNull() const { return !tensor_ && !isConstant_ && !sequence_ && !isMissing_; }
    bool isTensor() const { return tensor_ != nullptr; }
    bool isConstant() const { return isConstant_; }
    bool isSequence() const { return sequence_ != nullptr; }
    bool isMissing() const { return isMissing_; } // an optional value
    bool isOneTensor() const { return isTensor() || isConstant(); }
    std::vector<Value> const& elements() const { return *sequence_; }
    ITensor& tensor() const { return *tensor_; }
    Constant const& constant() const { return constant_; }

    Dims dims() const { return tensor_ ? tensor_->getDimensions() : constant_.dims; }
    int rank() const { return dims().nbDims; }
    DataType type() const { return tensor_ ? tensor_->getType() : constant_.type; }
    Integers integers() const { return isConstant_ ? constant_.integers : integers_; }

private:
    ITensor* tensor_ = nullptr;
    Constant constant_;
    std::shared_ptr<std::vector<Value> const> sequence_;
    bool isConstant_ = false, isMissing_ = false;
    Integers integers_ = Integers::kOfType;
};

// Numbers scale (q - zero) of a matrix of constants q that are integers of 2, 4 or 8 bits.
struct QuantizedMatrix
{
    Value q, scale, zero; // zero: null for 0
    int axis = -1;        // of q, along which scales differ; -1: there is one
    int64_t block = 1;    // indices along the axis that share one
    bool inBlocks = false;
    bool isTransposed = false; // the numbers are those of q with both dimensions exchanged
};

// How a constant was computed of others, which a refit may replace.
struct Computed
{
    std::vector<Value> inputs;
    std::function<ITensor*()>
        layers; // adds layers that compute it, once outside of loops and conditionals; null: it stands as it is
};

// One number of a shape: known now, or a network tensor of type kINT32 and shape [1]. Sums, products and so on of them
// are computed at once when both sides are known and become layers otherwise (ImportContext::add, mul, ...).
struct Size
{
    Size(int64_t v = 0) : value(v) {}
    explicit Size(ITensor& t) : value(-1), tensor(&t) {}
    bool known() const { return tensor == nullptr; }
    int64_t value;
    ITensor* tensor = nullptr;
};
using Sizes = std::vector<Size>;

// ---- shapes
Dims unitDims(int rank);                           // each 1
Dims makeDims(std::vector<int64_t> const& values); // at most 8 entries, each within int32: checked by the caller
std::vector<int64_t> toVector(Dims const& dims);
int64_t volume(Dims const& dims); // -1 when a dimension is unknown
bool isStatic(Dims const& dims);
std::string describe(Dims const& dims);
char const* typeName(DataType type);
bool isFloating(DataType type); // kFLOAT or kHALF
int64_t sizeOf(DataType type);  // bytes of an element

// axis list 0..rank-1
std::vector<int> allAxes(int rank);

} // namespace tw::importers
