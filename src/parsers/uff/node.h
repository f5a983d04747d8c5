// SPDX-License-Identifier: Apache-2.0
// A node of a UFF graph: its fields, its inputs with their layouts, and what it gives.
#pragma once

#include <string>
#include <vector>

#include "importers/common/node.h"
#include "parsers/uff/layout.h"

namespace tw_uff {
class Data;
class Node;
} // namespace tw_uff

namespace tw::uff {

class Model;

// An image for a layer that wants its channels first, and the order of its axes.
struct Image
{
    ITensor& tensor;
    Layout layout;
    std::vector<int> const& order() const { return layout.order; }
};

class UffNode final : public ImportContext
{
public:
    UffNode(Model& model, tw_uff::Node const& node, std::vector<Tensor> inputs);

    tw_uff::Node const& message() const { return node_; }
    Model& model() const { return model_; }

    // ---- fields: looked up in the referenced data where they stand there. Null: there is none.
    tw_uff::Data const* field(std::string const& name) const;
    bool hasAttr(char const* attr) const override { return field(attr) != nullptr; }
    std::optional<Attribute> attribute(char const* attr) const override;
    // A list of integers, or one.
    std::vector<int64_t> integers(char const* name) const;
    std::vector<int64_t> window(char const* name, size_t count, int64_t absent, int64_t least) const;
    std::string requireText(char const* name) const;

    // ---- inputs
    int count() const { return int(in_.size()); }
    bool has(int i) const { return i < count(); }
    Tensor const& in(int i) const; // an error where it is missing
    bool allConstant() const;
    // How the nodes of the graph count its axes, the batch included where it has one.
    // An axis of a constant that stands in field `axis` or in input 1, or a tensor's with the batch counted.
    int64_t axisOf(char const* what) const;
    Constant const& constantOf(int i, char const* what) const; // refuses what is no Const
    std::vector<int64_t> integersOf(int i, char const* what) const;
    Tensor const& held(int i) const; // refuses constants
    Tensor const& tensorOf(int i);   // and takes dimensions of 1 away that the graph does not have
    // In that layout; a constant gets 1s in front of its own dimensions, as for a broadcast, and the type.
    ITensor& beside(int i, Layout const& layout, DataType type);
    // One for all of the node's tensors.
    Layout commonLayout();
    // A list of numbers beside images with channels first that has one for each channel: as C, 1, 1, which is how biases stand.
    void alongChannels(Layout const& layout, Dims const& image);
    ITensor& inOrder(Tensor const& t, std::vector<int> const& order);
    ITensor& inGraphOrder(int i);
    // As it is, for what does not say in which order it takes it: transposed only where the graph does so.
    Tensor asItIs(Tensor const& t);
    // In canonical order, by the node's orders of input i where it has them.
    Image image(int i);
    bool hasOrders() const { return hasAttr("inputs_orders"); }
    std::vector<int> places(int i, int rank) const; // an error where the node's orders do not fit
    // Kernel or matrix in canonical order; `otherwise`: the places of its axes where the node has no orders.
    Constant canonical(int i, char const* what, std::vector<int> const& otherwise);
    // One of the graph's axes of input i, negative ones counted from the end; refuses the batch. Gives the axis of the network's tensor.
    int heldAxis(Tensor const& t, int64_t graphAxis, char const* what) const;

    // ---- outputs
    void give(Value const& value, Layout layout) { out_.push_back({value, std::move(layout), ""}); }
    void give(Value const& value) { out_.push_back(asInGraph(value)); }
    void give(Tensor const& t) { out_.push_back(t); }
    std::vector<Tensor>& given() { return out_; }

    // ---- weights
    // For a layer, in the type that parse() was asked for.
    Constant weights(Constant const& c) const;
    Constant transposed(Constant const& c, std::vector<int> const& order) const; // y's axis i is c's axis order[i]

private:
    std::optional<Attribute> listAttribute(tw_uff::Data const& d) const;

    Model& model_;
    tw_uff::Node const& node_;
    std::vector<Tensor> in_, out_;
};

// Text of a file in a message: no zero bytes, and not longer than a line.
std::string shown(std::string const& text);

} // namespace tw::uff
