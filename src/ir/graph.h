// SPDX-License-Identifier: Apache-2.0
// The graph: nodes and values in SSA form. Nodes stand in execution order; a value is a graph input, a constant, or the
// output of one node. A region (of `if`, `while`) and a fused node's body are graphs of their own whose inputs are
// bound, in order, to the node's inputs: captures are explicit, nothing refers across a region's border.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/blob.h"
#include "base/format.h"
#include "base/lists.h"
#include "base/result.h"
#include "base/types.h"
#include "ir/attrs.h"
#include "ir/dim.h"

namespace tw::ir {

class Graph;
struct Node;
struct OpDef;

enum class WeightsRole : int32_t // same numbers as nvinfer1::WeightsRole
{
    kKernel = 0,
    kBias = 1,
    kShift = 2,
    kScale = 3,
    kConstant = 4,
    kAny = 5,
};

// Constant contents with where they came from (refit finds them by it).
struct Constant
{
    BlobPtr data;
    std::string layer;
    WeightsRole role = WeightsRole::kConstant;
    std::string weightsName; // the ONNX initializer's name, or empty
};

struct Value
{
    int id = 0;
    std::string name;
    DataType type = DataType::kFloat;
    Shape shape;
    bool host = false; // placed on the host: a shape tensor
    Format format = Format::kLinear;
    std::shared_ptr<Constant const> constant; // set for constants only; shape is static then
    // The elements as expressions, where shape arithmetic knows them (i32 and bool, at most kMaxContent of them).
    std::optional<std::vector<Dim>> content;
    Node* producer = nullptr; // null for inputs and constants
    int producerIndex = 0;

    bool isConstant() const { return constant != nullptr; }
    int rank() const { return int(shape.size()); }
};

inline constexpr int64_t kMaxContent = 64;

// A wish of the user; `byUser` tells it from a default.
template <class T>
struct Requested
{
    T value{};
    bool byUser = false;
    bool operator==(Requested const&) const = default;
};

enum class DeviceKind : int32_t
{
    kDefault = 0,
    kDla = 1,
};
struct DevicePlace
{
    DeviceKind kind = DeviceKind::kDefault;
    int32_t core = -1;
    bool operator==(DevicePlace const&) const = default;
};

struct Node
{
    int id = 0;
    OpDef const* op = nullptr;
    std::unique_ptr<AttrsBase> attrs;
    std::vector<Value*> inputs; // null: optional input that is not given
    std::vector<Value*> outputs;
    std::vector<std::unique_ptr<Graph>> regions;
    // For a fused node: the nodes it replaced. Running the body is the node's reference.
    std::unique_ptr<Graph> body;
    std::string name;                // shown in logs, profiles, inspector: "conv1 + relu1"
    std::vector<std::string> layers; // names of all layers and ONNX nodes it came from
    Requested<DataType> precision;
    std::vector<Requested<DataType>> outputTypes; // one for each output
    Requested<DevicePlace> device;

    template <class A>
    A const& attrsAs() const
    {
        return static_cast<A const&>(*attrs);
    }
    template <class A>
    A& attrsAs()
    {
        return static_cast<A&>(*attrs);
    }
};

// Which passes have run; each form keeps the promises of those before it.
enum class Form : int32_t
{
    kImported,  // as the network was defined
    kCanonical, // no dead nodes, constants folded, shape arithmetic simplified, no identities
    kFused,     // regions to be tuned are single nodes
    kPlaced,    // every value has its place (host or device) and format
    kScheduled, // order is final
};
inline constexpr char const* kFormNames[] = {"imported", "canonical", "fused", "placed", "scheduled"};

class Graph
{
public:
    std::string name;
    Form form = Form::kImported;
    std::vector<Value*> inputs;
    std::vector<Value*> outputs;
    std::vector<std::unique_ptr<Node>> nodes; // execution order
    SymbolTable symbols;                      // a region keeps its own copy of what its shapes name

    Graph() = default;
    Graph(Graph&&) = default;
    Graph& operator=(Graph&&) = default;

    Value* addInput(std::string name, DataType type, Shape shape);
    Value* addConstant(std::string name, DataType type, Extents const& dims, std::shared_ptr<Constant const> c);
    // Copies `bytes` elements: small constants that passes and importers make.
    Value* addConstant(std::string name, DataType type, Extents const& dims, void const* elements);
    // Appends (or inserts before nodes[position]) a node, infers its outputs and makes their values. An optional input
    // is null. On error the graph is unchanged.
    Result<Node*> addNode(OpDef const& op, std::unique_ptr<AttrsBase> attrs, std::vector<Value*> inputs,
                          std::string name, std::vector<std::unique_ptr<Graph>> regions = {}, int position = -1,
                          std::unique_ptr<Graph> body = nullptr);
    // Runs inference of one node again (after its inputs or attributes changed) and updates its output values.
    Result<void> inferNode(Node& node);
    // Every node in order.
    Result<void> inferAll();

    void replaceAllUses(Value* from, Value* to); // in node inputs and graph outputs
    int useCount(Value const* v) const;          // graph outputs count too
    bool isOutput(Value const* v) const;
    int positionOf(Node const* n) const;
    // Removes a node whose outputs nobody uses, and those output values.
    void eraseNode(Node* n);
    // Drops values that are neither inputs, outputs, nor used by any node.
    void eraseUnusedValues();
    // Removes the nodes and values made after a point: what a network under construction needs to take a step back.
    struct Mark
    {
        size_t nodes, values;
    };
    Mark mark() const { return Mark{nodes.size(), values_.size()}; }
    void rollBack(Mark m);

    std::vector<std::unique_ptr<Value>> const& values() const { return values_; }
    std::unique_ptr<Graph> clone() const;
    // Copies `node` (attrs, regions, body, wishes) to the end of this graph with other inputs; outputs get the same
    // types and names.
    Node* cloneNode(Node const& node, std::vector<Value*> inputs);
    Value* newValue(std::string name, DataType type, Shape shape);
    // Appends a node that was put together by hand (text form, plan): its values belong to this graph; verify() tells
    // whether it is sound.
    Node* adoptNode(std::unique_ptr<Node> node);

private:
    std::vector<std::unique_ptr<Value>> values_;
    int nextValueId_ = 0;
    int nextNodeId_ = 0;
};

// Structural checks: order, arity, ownership, types and shapes as inference gives them, form's promises, regions and
// bodies. The error names the node and what is wrong.
Result<void> verify(Graph const& g);

} // namespace tw::ir
