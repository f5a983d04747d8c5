// SPDX-License-Identifier: Apache-2.0
// What an ONNX importer sees. Each src/ops/<name>/onnx.cpp (and each file of src/onnx/composites) defines
//
//     void tw::onnx::register_<name>(tw::onnx::ImporterMap& map)
//     {
//         map.add("Relu", importRelu);                 // every opset, or
//         map.add("Resize", importUpsample, 7, 9);     // first and last opset of the model that it serves
//     }
//
// The build collects them. An importer reads one node through ImportContext, adds layers to the network and sets the
// node's outputs. Errors are thrown as ImportError (ctx.fail) and never leave the library: the model importer catches
// them for each node and turns them into IParserErrors. Only include/ is used to build the network.
//
// Types are those of nvinfer1: INT64 arrives as kINT32 (clamped), DOUBLE as kFLOAT, UINT8 weights as kINT32.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "NvInfer.h"
#include "NvOnnxParser.h"

namespace tw_onnx {
class AttributeProto;
class GraphProto;
class NodeProto;
} // namespace tw_onnx

namespace tw::onnx {

using nvinfer1::DataType;
using nvinfer1::Dims;
using nvinfer1::ITensor;

class ImportContext;
class ModelImporter;

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

struct Computed;

// A value known at import: an initializer, a Constant node or the result of folding. `values` lives as long as the
// parser.
struct Constant
{
    DataType type = DataType::kFLOAT; // never kUINT8
    Dims dims{0, {}};
    void const* values = nullptr;
    int64_t count = 1;
    std::string name;     // of the initializer; empty for computed ones
    bool isUint8 = false; // in the model: kINT32 here
    // How it is computed of initializers that a refit may replace: asTensor() gives layers that compute it. Null: it is as it
    // stands.
    std::shared_ptr<Computed> computed;

    nvinfer1::Weights weights() const { return {type, count ? values : nullptr, count}; }
    int64_t intAt(int64_t i) const;  // any type; an import error where there is no element i
    double floatAt(int64_t i) const; // likewise
    std::vector<int64_t> ints() const;
    std::vector<float> floats() const;
};

// An input or output of a node: nothing (an optional input left out), a tensor of the network, or a constant.
class Value
{
public:
    Value() = default;
    Value(ITensor& tensor) : tensor_(&tensor) {}
    Value(ITensor* tensor) : tensor_(tensor) {}
    Value(Constant constant) : constant_(std::move(constant)), isConstant_(true) {}

    bool isNull() const { return !tensor_ && !isConstant_; }
    bool isTensor() const { return tensor_ != nullptr; }
    bool isConstant() const { return isConstant_; }
    ITensor& tensor() const { return *tensor_; }
    Constant const& constant() const { return constant_; }

    Dims dims() const { return tensor_ ? tensor_->getDimensions() : constant_.dims; }
    int rank() const { return dims().nbDims; }
    DataType type() const { return tensor_ ? tensor_->getType() : constant_.type; }

private:
    ITensor* tensor_ = nullptr;
    Constant constant_;
    bool isConstant_ = false;
};

// The node whose folding gave a constant.
struct Computed
{
    tw_onnx::NodeProto const* node;
    int nodeIndex;
    std::vector<Value> inputs;
    ITensor* tensor = nullptr; // of the layers that compute it, once these are there, outside of loops and conditionals
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
// -------------------------------------------------------------------------------------------------------------
Dims makeDims(std::vector<int64_t> const& values); // at most 8 entries, each within int32: checked by the caller
std::vector<int64_t> toVector(Dims const& dims);
int64_t volume(Dims const& dims); // -1 when a dimension is unknown
bool isStatic(Dims const& dims);
std::string describe(Dims const& dims);
char const* typeName(DataType type);
bool isFloating(DataType type); // kFLOAT or kHALF

using Importer = void (*)(ImportContext& ctx);

class ImporterMap
{
public:
    struct Entry
    {
        Importer run;
        int firstOpset, lastOpset;
    };
    static constexpr int kNewestOpset = 1 << 30;
    // Importers of the default domain. Several entries for one operator may split the opsets between them; throws
    // std::logic_error when two share one.
    void add(char const* opType, Importer run, int firstOpset = 1, int lastOpset = kNewestOpset);
    Importer find(std::string const& opType, int opset) const; // nullptr when there is none
    bool contains(std::string const& opType) const;

private:
    std::map<std::string, std::vector<Entry>, std::less<>> entries_;
};
void registerAll(ImporterMap& map); // generated by the build

// One node being imported.
class ImportContext
{
public:
    using Where = SourceLocation;
    ImportContext(ModelImporter& model, tw_onnx::NodeProto const& node, int nodeIndex, std::vector<Value> inputs,
                  int opset);

    // ---- the node
    // -------------------------------------------------------------------------------------------------------
    std::string const& name() const { return name_; } // made from the first output when the model gives none
    std::string const& opType() const;
    int opset() const { return opset_; }
    int nodeIndex() const { return nodeIndex_; }
    nvinfer1::INetworkDefinition& network() const;

    // UNSUPPORTED_NODE: well formed, but it cannot be imported.     INVALID_NODE: not well formed.
    [[noreturn]] void fail(std::string const& why, Where where = Where::current()) const;
    // With the reason that the network gave last.
    [[noreturn]] void refused(std::string const& what, Where where = Where::current()) const;
    [[noreturn]] void invalid(std::string const& why, Where where = Where::current()) const;
    void check(bool condition, std::string const& why, Where where = Where::current()) const;
    void warn(std::string const& message) const; // through the ILogger

    // The node's output is known, but layers are to compute it: of initializers that a refit may replace.
    bool asLayers() const { return asLayers_; }

    // ---- attributes: the default when absent; an attribute of another type is an INVALID_NODE error
    // -----------------------
    bool hasAttr(char const* attr) const;
    int64_t attrInt(char const* attr, int64_t absent, Where where = Where::current()) const;
    float attrFloat(char const* attr, float absent, Where where = Where::current()) const;
    std::string attrString(char const* attr, std::string const& absent, Where where = Where::current()) const;
    std::vector<int64_t> attrInts(char const* attr, std::vector<int64_t> const& absent = {},
                                  Where where = Where::current()) const;
    std::vector<float> attrFloats(char const* attr, std::vector<float> const& absent = {},
                                  Where where = Where::current()) const;
    std::vector<std::string> attrStrings(char const* attr, Where where = Where::current()) const; // none when absent
    Constant attrTensor(char const* attr, Where where = Where::current()) const;                  // required
    int64_t requireInt(char const* attr, Where where = Where::current()) const;                   // error when absent
    std::vector<int64_t> requireInts(char const* attr, Where where = Where::current()) const;

    // ---- inputs and outputs
    // -----------------------------------------------------------------------------------------------
    int nbInputs() const { return int(inputs_.size()); }
    bool hasInput(int i) const { return i < nbInputs() && !inputs_[i].isNull(); }
    Value const& input(int i, Where where = Where::current()) const; // error when left out
    Value optionalInput(int i) const;                                // null when left out
    bool isConstant(int i) const { return hasInput(i) && inputs_[i].isConstant(); }
    ITensor& tensor(int i, Where where = Where::current()); // a constant becomes a constant layer
    // "<input> must be an initializer!" unless the input is a constant.
    Constant const& constant(int i, char const* what, Where where = Where::current()) const;
    std::vector<int64_t> constantInts(int i, char const* what, Where where = Where::current()) const;
    std::vector<float> constantFloats(int i, char const* what, Where where = Where::current()) const;

    int nbOutputs() const;
    bool wantsOutput(int i) const; // the model gives it a name
    std::string outputName(int i) const;
    void setOutput(int i, Value value, Where where = Where::current());
    // A constant that this node computes of its inputs: remembers how, where a refit may replace one of them.
    Constant computed(Constant c);
    std::vector<Value> const& outputs() const { return outputs_; }

    // ---- subgraphs
    // -----------------------------------------------------------------------------------------------------------
    // Of a graph attribute; an INVALID_NODE error when it is missing.
    int nbGraphInputs(char const* attr, Where where = Where::current()) const;
    int nbGraphOutputs(char const* attr, Where where = Where::current()) const;
    // Imports the graph on these inputs and gives its outputs. Names that it does not define are those around it; tensors
    // among them go through `enter` first, each once.
    std::vector<Value> importGraph(char const* attr, std::vector<Value> const& inputs,
                                   std::function<ITensor&(ITensor&)> enter = {}, Where where = Where::current());
    // Its one element as a scalar of rank 0.
    ITensor& asScalar(ITensor& x);

    // ---- network building
    // ------------------------------------------------------------------------------------------------- Every layer
    // goes through here: it is named after the node; nullptr means that the network refused it.
    template <class Layer>
    Layer& added(Layer* layer, Where where = Where::current())
    {
        if (!layer)
            refused("the network refused a layer", where);
        nameLayer(*layer);
        return *layer;
    }
    // The next name for a layer of this node, for one that is added after layers that give its inputs.
    std::string layerName();
    ITensor& out(nvinfer1::ILayer& layer, int i = 0, Where where = Where::current()) const; // checks its dimensions

    // Memory of the parser, zeroed; lives until the parser is destroyed.
    void* allocate(int64_t sizeBytes, Where where = Where::current()) const;
    Constant newConstant(DataType type, Dims const& dims, Where where = Where::current()) const; // zeroed values
    Constant intConstant(std::vector<int64_t> const& values) const;                              // kINT32, 1-D
    Constant intScalar(int64_t value) const;                                                     // kINT32, 0-D
    Constant floatConstant(std::vector<float> const& values, Dims const& dims) const;
    Constant filled(double value, DataType type, Dims const& dims, Where where = Where::current()) const;
    Constant converted(Constant const& c, DataType type, Where where = Where::current()) const;
    static void store(Constant& c, int64_t i, double value); // into a constant of our own; clamped to its type
    Constant reshaped(Constant c, Dims const& dims) const;   // same count

    ITensor& asTensor(Value const& value, Where where = Where::current());
    // Gives weights that a layer holds the initializer's name (INetworkDefinition::setWeightsName). asTensor does it
    // itself.
    void nameWeights(Value const& value) const;
    // The same for elements [at, at + part.count) of the initializer.
    void nameWeights(Constant const& whole, int64_t at, nvinfer1::Weights const& part) const;
    // What a layer may hold as weights: a constant as it stands. One that is computed of initializers becomes a tensor.
    Value asWeights(Value const& value);
    // The import stands on the elements of this value: a refit cannot replace what they are computed of.
    void decideBy(Value const& value) const;
    // `value` in a tensor of the given rank whose dimensions are all 1, to be broadcast.
    ITensor& scalar(double value, DataType type, int rank);
    ITensor& scalarLike(double value, ITensor& like)
    {
        return scalar(value, like.getType(), like.getDimensions().nbDims);
    }

    ITensor& cast(ITensor& x, DataType type);                                        // x itself when it has the type
    ITensor& identity(ITensor& x);                                                   // a copy with a name of its own
    ITensor& elementwise(ITensor& a, ITensor& b, nvinfer1::ElementWiseOperation op); // with numpy broadcast
    ITensor& unary(ITensor& x, nvinfer1::UnaryOperation op);
    ITensor& activation(ITensor& x, nvinfer1::ActivationType type, float alpha = 0, float beta = 0);
    ITensor& select(ITensor& condition, ITensor& a, ITensor& b); // with numpy broadcast
    ITensor& reduce(ITensor& x, nvinfer1::ReduceOperation op, std::vector<int> const& axes, bool keepDims);
    ITensor& matmul(ITensor& a, ITensor& b, bool transposeA = false, bool transposeB = false);
    ITensor& concat(std::vector<ITensor*> const& parts, int axis);
    ITensor& transpose(ITensor& x, std::vector<int> const& perm);
    ITensor& reshape(ITensor& x, Dims const& dims); // at most one -1; 0 is a size
    ITensor& reshape(ITensor& x, Sizes const& sizes);
    ITensor& unsqueeze(ITensor& x, std::vector<int> const& axes); // axes of the result, in [0, rank of the result)
    ITensor& squeeze(ITensor& x, std::vector<int> const& axes);
    ITensor& slice(ITensor& x, Sizes const& start, Sizes const& size, Sizes const& stride,
                   nvinfer1::SliceMode mode = nvinfer1::SliceMode::kSTRICT_BOUNDS, ITensor* fill = nullptr);
    ITensor& expand(ITensor& x, Sizes const& sizes); // numpy broadcast to exactly these sizes; dims of x may be 1
    // Ranks made equal by leading 1s.
    void broadcast(ITensor*& a, ITensor*& b);
    void broadcast(std::vector<ITensor*>& tensors);

    // ---- shape arithmetic
    // ---------------------------------------------------------------------------------------------------
    Sizes sizesOf(ITensor& x);                                       // known entries where the dimension is static
    Sizes sizesFrom(Value const& v, Where where = Where::current()); // elements of a 1-D (or 0-D) kINT32 value
    ITensor& asTensor(Sizes const& sizes);                           // 1-D kINT32
    ITensor& asTensor(Size const& size) { return asTensor(Sizes{size}); }
    ITensor& asScalar(Size const& size); // 0-D kINT32
    Size add(Size const& a, Size const& b);
    Size sub(Size const& a, Size const& b);
    Size mul(Size const& a, Size const& b);
    Size floorDiv(Size const& a, Size const& b);
    Size min(Size const& a, Size const& b);
    Size max(Size const& a, Size const& b);
    Size product(Sizes const& sizes);
    static bool allKnown(Sizes const& sizes);

    // Axis in [-rank, rank) made non-negative; INVALID_NODE otherwise.
    int axis(int64_t axis, int rank, char const* what = "axis", Where where = Where::current()) const;
    std::vector<int> axes(std::vector<int64_t> const& axes, int rank, char const* what = "axes",
                          Where where = Where::current()) const; // also refuses repeats

private:
    friend class ModelImporter;
    tw_onnx::AttributeProto const* findAttr(char const* attr) const;
    tw_onnx::GraphProto const& attrGraph(char const* attr, Where where) const;
    void nameLayer(nvinfer1::ILayer& layer);
    Size arithmetic(Size const& a, Size const& b, nvinfer1::ElementWiseOperation op);

    ModelImporter& model_;
    tw_onnx::NodeProto const& node_;
    int nodeIndex_;
    int opset_;
    std::string name_;
    bool asLayers_ = false;
    std::vector<Value> inputs_, outputs_;
    std::map<ITensor*, ITensor*> shapes_; // shape layer outputs, so that one tensor's shape is taken once
};

// axis list 0..rank-1
std::vector<int> allAxes(int rank);

// 0, 1, ... count - 1: kINT32, [count].
ITensor& positions(ImportContext& ctx, Size const& count);

} // namespace tw::onnx
