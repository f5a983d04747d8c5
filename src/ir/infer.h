// SPDX-License-Identifier: Apache-2.0
// InferContext: what an op sees when it checks itself and infers its outputs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace tw::ir {

// Type, shape and (where known) elements of one input or output.
struct ValueInfo
{
    DataType type = DataType::kFloat;
    Shape shape;
    std::optional<std::vector<Dim>> content;
    bool present = false;
};

class InferContext
{
public:
    // `concrete`: shapes are numbers (run time); a fresh symbol then stands for a size that only the kernel knows.
    InferContext(Node const& node, std::vector<ValueInfo> inputs, bool concrete)
        : node_(node), inputs_(std::move(inputs)), concrete_(concrete)
    {}

    Node const& node() const { return node_; }
    template <class A>
    A const& attrs() const
    {
        return node_.attrsAs<A>();
    }
    int inputCount() const { return int(inputs_.size()); }
    bool has(int i) const { return i < int(inputs_.size()) && inputs_[i].present; }
    DataType type(int i) const { return inputs_[i].type; }
    Shape const& shape(int i) const { return inputs_[i].shape; }
    int rank(int i) const { return int(inputs_[i].shape.size()); }
    // Elements of an i32 or bool tensor as expressions; null when not known.
    std::vector<Dim> const* content(int i) const
    {
        return has(i) && inputs_[i].content ? &*inputs_[i].content : nullptr;
    }
    bool concrete() const { return concrete_; }
    // Interval of a dimension or element under the ranges of the graph's symbols (of 0..INT64_MAX where they are not
    // known).
    Range range(Dim const& d) const { return d.range(symbols_ ? *symbols_ : SymbolTable{}); }
    void setSymbols(SymbolTable const* symbols) { symbols_ = symbols; }

    // A size bound by this node at run time. Names are stable: "$<node id>.<k>".
    Dim freshSymbol(Range range);

    void output(int i, DataType type, Shape shape);
    // Only for i32 and bool outputs whose element count equals content.size(); more than kMaxContent is dropped.
    void outputContent(int i, std::vector<Dim> content);

    // "softmax 'prob': <what>" with kInvalidArgument.
    Error error(std::string const& what) const;
    template <class... Args>
    Error error(fmt::format_string<Args...> what, Args&&... args) const
    {
        return error(fmt::format(what, std::forward<Args>(args)...));
    }
    // "input 'logits' (f32[2,3])": for messages.
    std::string describe(int i) const;

    std::vector<ValueInfo>& outputs() { return outputs_; }
    SymbolTable const& freshSymbols() const { return fresh_; }

private:
    Node const& node_;
    std::vector<ValueInfo> inputs_;
    std::vector<ValueInfo> outputs_;
    SymbolTable fresh_;
    SymbolTable const* symbols_ = nullptr;
    bool concrete_;
};

ValueInfo infoOf(Value const& v);

// Broadcast of two shapes of equal rank (each dimension equal or 1; a symbolic pair must be provably equal or is taken
// as equal when neither is 1, as the run-time check will confirm). An error text in `why` on mismatch.
std::optional<Shape> broadcast(Shape const& a, Shape const& b, std::string& why);

} // namespace tw::ir
