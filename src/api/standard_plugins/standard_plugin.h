// SPDX-License-Identifier: Apache-2.0
// The plugins of libnvinfer_plugin (docs/plugins.md). Each is a row: its fields, what its tensors are, and the ops that it
// stands for. A network that has such a plugin is built of these ops, which are fused, quantized and tuned like those of
// layers; to programs it is a plugin with the interface that it has in 8.5 (objects.cpp). Rows stand in the files of this
// folder, and those of ops that only plugins have in src/ops/<name>/plugin.cpp:
//
//     void tw::api::registerPlugins_<name>(StandardPlugins& list)
//     {
//         list.push_back({.name = "Clip_TRT", .version = "1", ...});
//     }
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "api/standard_plugins/fields.h"
#include "ir/graph.h"
#include "ir/op_def.h"
#include "ops/activation/op.h"
#include "ops/elementwise/op.h"
#include "ops/plugin/op.h"
#include "ops/reduce/op.h"
#include "ops/unary/op.h"

namespace tw::api {

// A plugin while it is turned into nodes. Tensors have the batch as their first dimension, whatever network it is and
// whatever interface the plugin has. Methods throw Failed; a node that the graph refuses is a failure too.
class PluginLowering
{
public:
    using Value = ir::Value;
    using Values = std::vector<Value*>;
    using Binary = ops::elementwise::Operation;
    using Unary = ops::unary::Operation;
    using Function = ops::activation::Kind;
    using Join = ops::reduce::Kind;
    struct Failed
    {
        Error error;
    };
    // Makes a node in the graph.
    using Add = std::function<Result<ir::Node*>(ir::OpDef const& op, std::unique_ptr<ir::AttrsBase> attrs,
                                                std::vector<Value*> inputs, std::string const& part)>;

    PluginLowering(ir::Graph& graph, PluginFields const& fields, Values inputs, std::string layer, Add add)
        : fields(fields), inputs(std::move(inputs)), graph_(graph), layer_(std::move(layer)), add_(std::move(add))
    {}

    PluginFields const& fields;
    Values inputs; // floats of the types that the plugin's rule asks for
    Values outputs;

    [[noreturn]] void fail(std::string const& why) const { throw Failed{invalidArgument(why)}; }
    void check(bool condition, std::string const& why) const
    {
        if (!condition)
            fail(why);
    }
    // Inputs by position, with so many dimensions (-1: any).
    Value* in(size_t i, int rank = -1) const;
    // A dimension that must be known.
    int64_t known(Value const* v, int dimension) const;
    // Numbers that a plugin brings along, and of what sizes there are so many: more of them are refused.
    static constexpr int64_t kMostNumbers = int64_t(1) << 26;
    void checkNumbers(std::initializer_list<int64_t> sizes) const;

    // Nodes. `part` tells those of one layer apart in logs; names need not differ.
    template <class A>
    ir::Node* node(ir::OpDef const& op, A attrs, Values in, std::string const& part = "")
    {
        return added(op, std::make_unique<A>(std::move(attrs)), std::move(in), part);
    }
    template <class A>
    Value* value(ir::OpDef const& op, A attrs, Values in, std::string const& part = "")
    {
        return node(op, std::move(attrs), std::move(in), part)->outputs[0];
    }

    // Constants of numbers, of `like`'s type where there is one.
    Value* constant(std::vector<double> const& values, Extents const& dims, DataType type = DataType::kFloat);
    Value* scalar(double value, Value const* like); // of rank 0's place in arithmetic: all dimensions 1
    Value* weights(nvinfer1::Weights const& w, Extents const& dims, DataType type, ir::WeightsRole role);

    // With dimensions of 1 put in front of the shorter one.
    Value* binary(Binary op, Value* a, Value* b);
    Value* sum(Value* a, Value* b) { return binary(Binary::kSum, a, b); }
    Value* sub(Value* a, Value* b) { return binary(Binary::kSub, a, b); }
    Value* mul(Value* a, Value* b) { return binary(Binary::kProd, a, b); }
    Value* div(Value* a, Value* b) { return binary(Binary::kDiv, a, b); }
    Value* unary(Unary op, Value* x);
    Value* activation(Function kind, Value* x, float alpha = 0, float beta = 0);
    Value* cast(Value* x, DataType type); // x itself where it has the type
    Value* reduce(Join kind, Value* x, std::vector<int> const& axes, bool keepDims = true);
    Value* softmax(Value* x, int axis);
    Value* select(Value* condition, Value* a, Value* b);
    Value* matmul(Value* a, Value* b, bool transposeA = false, bool transposeB = false);
    Value* gather(Value* data, Value* indices, int axis);
    // Dimensions: 0 stands for that of x at the place, at most one -1 for what is left.
    Value* reshape(Value* x, std::vector<int64_t> const& dims);
    Value* transpose(Value* x, std::vector<int64_t> const& order);
    Value* concat(Values const& parts, int axis);
    // [begin, end) of a dimension that is known.
    Value* part(Value* x, int axis, int64_t begin, int64_t end);
    // (x - mean) / sqrt(variance + epsilon) over these axes.
    Value* normalized(Value* x, std::vector<int> const& axes, double epsilon);
    // Numbers of one dimension laid along `axis` of tensors of that rank.
    Value* along(Value* numbers, int axis, int rank);
    // The dimensions, i32 [rank], and [begin, end) of them.
    Value* shapeOf(Value* x, int begin, int end);
    Value* reshapeLike(Value* x, Value* like);
    // [N, dims...] of `like`'s type, N its first dimension.
    Value* zeros(Value* like, std::vector<int64_t> const& dims);
    // x of shape [1, ...] as often as `like` has images.
    Value* repeated(Value* x, Value* like);
    // Of x and all in front of it along an axis.
    Value* runningSum(Value* x, int axis, bool exclusive = false);
    // 0, 1, 2, ... along an axis of x, of its shape: i32.
    Value* positions(Value* x, int axis);

private:
    // x from its begin on, `step` apart along all dimensions but the first, along which it does not move: [N, rest...].
    Value* spread(Value* x, int64_t step, Value* like, std::vector<int64_t> const& rest);
    ir::Node* added(ir::OpDef const& op, std::unique_ptr<ir::AttrsBase> attrs, Values in, std::string const& part);

    ir::Graph& graph_;
    std::string layer_;
    Add add_;
};

// Types of a plugin's tensors, a letter each: T floating, one type for all of these (FP32, FP16), that of the first; A the same with
// INT32, too; f FP32; h FP16; i INT32; a dot any type. A star behind a letter: any number of such tensors; a question mark: it may be missing. "TTT?>iTTi": inputs,
// then outputs.
struct TypeRule
{
    char const* text;
    // The letter of input or output number i of so many; none: there is no such tensor.
    std::optional<char> input(size_t i, size_t inputs) const;
    std::optional<char> output(size_t i) const;
    size_t leastInputs() const;
    bool takes(size_t inputs) const; // whether there may be so many
};

// What programs may ask for besides linear floats: these tensors have this type and format, the others are as ever.
struct PluginFormats
{
    nvinfer1::DataType type{};
    nvinfer1::PluginFormat format{};
    std::vector<size_t> inputs, outputs;
};

struct StandardPlugin
{
    char const *name, *version;
    ops::plugin::Interface interface = ops::plugin::Interface::kDynamicExt;
    std::vector<FieldSpec> fields;
    TypeRule types{"T>T"};
    void (*lower)(PluginLowering& p) = nullptr;
    // What is wrong with the fields; empty: nothing.
    std::string (*check)(PluginFields const& fields) = nullptr;
    int (*outputs)(PluginFields const& fields) = nullptr;                      // null: as many as `types` has
    char (*outputLetter)(PluginFields const& fields, size_t output) = nullptr; // null: that of `types`
    std::vector<PluginFormats> formats;
    bool checksTypes = true; // of fields
    bool isMade = true;      // by createPlugin(); else by deserializePlugin() alone, and it lists no fields
    uint32_t shared = 0;     // inputs, a bit each, of which enqueue() gets one image whatever the batch is

    bool operator==(StandardPlugin const& o) const { return this == &o; }
    int outputCount(PluginFields const& f) const;
    std::optional<char> output(PluginFields const& f, size_t i) const;
    std::string describe() const { return std::string("plugin '") + name + "' version '" + version + "'"; }
    // Appends the ops to `graph`; gives their outputs.
    Result<std::vector<ir::Value*>> lowered(ir::Graph& graph, PluginFields const& fields,
                                            std::vector<ir::Value*> inputs, std::string const& layer,
                                            PluginLowering::Add const& add) const;
    // Of outputs, for inputs of these types and shapes with the batch in front.
    Result<std::vector<ir::Shape>> shapes(PluginFields const& fields, std::vector<DataType> const& types,
                                          std::vector<ir::Shape> const& inputs) const;
};

using StandardPlugins = std::vector<StandardPlugin>;
StandardPlugins const& standardPlugins();

// A plugin of ours among plugins: what it is and was made with.
struct StandardInstance
{
    StandardPlugin const* plugin = nullptr;
    PluginFields fields;
};
// Null: it is a client's.
std::shared_ptr<StandardInstance const> standardInstanceOf(nvinfer1::IPluginV2 const& plugin);

// Under this namespace the registry finds our creators, which its list leaves out: libnvinfer_plugin registers creators
// of its own that use them.
inline constexpr char kStandardNamespace[] = "tensorwright.standard";
nvinfer1::IPluginCreator* standardCreator(std::string_view name, std::string_view version);

} // namespace tw::api
