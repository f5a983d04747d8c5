// SPDX-License-Identifier: Apache-2.0
// One node of a foreign model, as an importer sees it: its attributes, inputs and outputs, and the layers that it adds to the
// network. Where attributes come from is the format's: ONNX's are in onnx/node.h. Errors are thrown as ImportError (ctx.fail).
// Only include/ is used to build the network.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "importers/common/importer_map.h"
#include "importers/common/network.h"
#include "importers/common/values.h"

namespace tw::importers {

using Attribute = std::variant<std::monostate, int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                               std::vector<std::string>, Constant>;

struct DestroyPlugin
{
    void operator()(nvinfer1::IPluginV2* p) const { p->destroy(); }
};
using PluginPtr = std::unique_ptr<nvinfer1::IPluginV2, DestroyPlugin>;

// One node being imported.
class ImportContext
{
public:
    using Where = SourceLocation;
    // name: for its layers; opset: the version of the operators, or of this one where each has its own.
    ImportContext(ImportedNetwork& to, std::string name, std::string opType, int opset, std::vector<Value> inputs,
                  std::vector<std::string> outputNames);
    virtual ~ImportContext() = default;
    ImportContext(ImportContext const&) = delete;
    ImportContext& operator=(ImportContext const&) = delete;

    // ---- the node
    std::string const& name() const { return name_; }
    std::string const& opType() const { return opType_; }
    int opset() const { return opset_; }
    nvinfer1::INetworkDefinition& network() const { return to_.network(); }

    // UNSUPPORTED_NODE: well formed, but it cannot be imported.     INVALID_NODE: not well formed.
    [[noreturn]] void fail(std::string const& why, Where where = Where::current()) const;
    // With the reason that the network gave last.
    [[noreturn]] void refused(std::string const& what, Where where = Where::current()) const;
    [[noreturn]] void invalid(std::string const& why, Where where = Where::current()) const;
    void check(bool condition, std::string const& why, Where where = Where::current()) const;
    void warn(std::string const& message) const; // through the ILogger

    bool takesZeroPoints() const { return to_.takesZeroPoints(); }
    // The node's output is known, but layers are to compute it: of initializers that a refit may replace.
    bool asLayers() const { return asLayers_; }

    // ---- attributes: the default when absent; an attribute of another type is an INVALID_NODE error
    virtual bool hasAttr(char const* attr) const = 0;
    // Nothing when absent; monostate: of a kind that is none of the others.
    virtual std::optional<Attribute> attribute(char const* attr) const = 0;
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
    int nbInputs() const { return int(inputs_.size()); }
    bool hasInput(int i) const { return i >= 0 && i < nbInputs() && !inputs_[i].isNull(); }
    Value const& input(int i, Where where = Where::current()) const; // error when left out
    Value optionalInput(int i) const;                                // null when left out
    // Makes the values of an input that has none yet (Constant::later).
    void withValues(int i);
    // A function that computes a constant of this node's inputs and attributes when the node is gone.
    virtual std::function<Constant()> later(Constant (* /*compute*/)(ImportContext& ctx)) const { return {}; }
    bool isConstant(int i) const { return hasInput(i) && inputs_[i].isConstant(); }
    ITensor& tensor(int i, Where where = Where::current()); // a constant becomes a constant layer
    // "<input> must be an initializer!" unless the input is a constant.
    Constant const& constant(int i, char const* what, Where where = Where::current()) const;
    std::vector<int64_t> constantInts(int i, char const* what, Where where = Where::current()) const;
    std::vector<float> constantFloats(int i, char const* what, Where where = Where::current()) const;

    int nbOutputs() const { return int(outputNames_.size()); }
    bool wantsOutput(int i) const { return i < nbOutputs() && !outputNames_[size_t(i)].empty(); } // it has a name
    std::string outputName(int i) const { return i < nbOutputs() ? outputNames_[size_t(i)] : std::string(); }
    void setOutput(int i, Value value, Where where = Where::current());
    // A constant that this node computes of its inputs: remembers how, where a refit may replace one of them.
    Constant computed(Constant c);
    std::vector<Value> const& outputs() const { return outputs_; }

    // ---- subgraphs
    // Of an attribute that is a graph; an INVALID_NODE error when it is missing.
    virtual int nbGraphInputs(char const* attr, Where where = Where::current()) const { noGraph(attr, where); }
    virtual int nbGraphOutputs(char const* attr, Where where = Where::current()) const { noGraph(attr, where); }
    // It has an operator whose name begins so, also in graphs inside of it.
    virtual bool graphHasOp(char const* /*attr*/, std::string const& /*prefix*/) const { return false; }
    // An output that is one of the graph's inputs with more behind it: of a loop, a value that gets longer with each trip.
    struct Growth
    {
        int64_t axis = 0;
        bool isRead = false; // the input is read for something else, too
    };
    virtual std::optional<Growth> growthOf(char const* /*attr*/, int /*input*/, int /*output*/) const { return {}; }
    // Imports the graph on these inputs and gives its outputs. Names that it does not define are those around it; tensors
    // among them go through `enter` first, each once.
    virtual std::vector<Value> importGraph(char const* attr, std::vector<Value> const& /*inputs*/,
                                           std::function<ITensor&(ITensor&)> /*enter*/ = {},
                                           Where where = Where::current())
    {
        noGraph(attr, where);
    }
    // Its one element as a scalar of rank 0.
    ITensor& asScalar(ITensor& x);

    // ---- network building
    // Every layer goes through here: it is named after the node; nullptr means that the network refused it.
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
    void allowComputed(int64_t moreBytes) const { to_.allowComputed(moreBytes); }                // of constants
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
    ITensor& gather(ITensor& x, ITensor& indices, nvinfer1::GatherMode mode, int axis);
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

protected:
    [[noreturn]] void noGraph(char const* attr, Where where) const
    {
        invalid(fmt::format("attribute '{}' must be a graph", attr), where);
    }
    // Computed::layers of a constant that this node gives; empty: nothing can compute it again.
    virtual std::function<ITensor*()> again() const { return {}; }

    bool asLayers_ = false;
    std::vector<Value> inputs_, outputs_;

private:
    template <class T>
    T typed(char const* attr, T absent, char const* kind, Where where) const;
    void nameLayer(nvinfer1::ILayer& layer);
    Size arithmetic(Size const& a, Size const& b, nvinfer1::ElementWiseOperation op);

    ImportedNetwork& to_;
    std::string name_, opType_;
    int opset_;
    std::vector<std::string> outputNames_;
    std::map<ITensor*, ITensor*> shapes_; // shape layer outputs, so that one tensor's shape is taken once
};

// 0, 1, ... count - 1: kINT32, [count].
ITensor& positions(ImportContext& ctx, Size const& count);

} // namespace tw::importers
