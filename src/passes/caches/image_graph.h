// SPDX-License-Identifier: Apache-2.0
// The graph that images.h is about, while it is made. images.cpp goes through the old one; image_nodes.cpp has what single nodes become.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "ops/attention/op.h"
#include "ops/elementwise/op.h"
#include "passes/caches/images.h"

namespace tw::passes {

using ir::Dim, ir::Shape, ir::Value;
using Operation = ops::elementwise::Operation;
using Made = Result<Value*>;

// Whether a dimension has to do with a symbol.
bool names(Dim const& d, std::string const& symbol);
// [lead] + shape.
Shape behind(Dim const& lead, Shape const& shape);
// Elements of start, size or stride of a slice: of the input, or of the attribute. Null: nobody knows.
std::optional<std::vector<Dim>> partsOfSlice(ir::Node const& slice, size_t input,
                                             std::vector<int64_t> const& attribute);

class Images
{
public:
    Images(ir::Graph const& from, std::vector<CacheJoin> const& joins, CacheSizes const& sizes)
        : from_(from), joins_(joins), capacity_(sizes.capacity), blockCount_(sizes.blocks)
    {}

    Result<std::unique_ptr<ir::Graph>> make();

private:
    ir::Graph const& from_;
    std::vector<CacheJoin> const& joins_;
    int64_t capacity_, blockCount_;
    Dim past_, added_, batch_; // P, s, B
    std::string symbol_;       // of P
    std::unique_ptr<ir::Graph> to_;
    std::map<Value const*, Value*> made_;   // by a value of the old graph
    std::map<Value const*, Value*> images_; // of those that differ from image to image, [B] + the shape that made_ has
    Value *lengths_ = nullptr, *ends_ = nullptr, *shift_ = nullptr; // [B]: L; L + s; L - (N - s)
    Value* pages_ = nullptr;                                        // [B, N / 16]; null: caches are not in blocks
    std::set<Value const*> blocks_;                                 // of the old graph: what is blocks of rows now
    Value* addedRows_ = nullptr;                                    // [1]: s, of shapes
    ir::Node const* now_ = nullptr;                                 // what is converted, for names and origins

    // ---- what is made

    Made add(ir::OpDef const& op, ir::AttrsBase const& attrs, std::vector<Value*> inputs);
    Made elementwise(Operation o, Value* a, Value* b);
    Value* integers(std::vector<int32_t> const& x, Extents const& dims);
    Value* integers(std::vector<int32_t> const& x) { return integers(x, {int64_t(x.size())}); }
    Made reshape(Value* v, Shape const& shape);
    Made transpose(Value* v, std::vector<int64_t> const& permutation);
    Made dimsOf(Value* v);
    Made partOf(Value* v, int axis, int64_t begin, int64_t count);
    Made joined(std::vector<Value*> parts);
    // 0, 1, .. of a count that shapes know, [1].
    Made range(Value* count);

    // ---- inputs and outputs

    CacheJoin const* joinOf(Value const* past) const;
    bool isLong(Value const* v) const;

    Result<void> addInputs();

    Result<void> addLengths();

    Result<void> addOutput(Value* v);

    // ---- elements that shapes decide

    bool dependsOnLength(Value const* v) const;
    Error notUnderstood(std::string const& what) const;
    // [B] + the shape of what the host computes: each element is c P + something without P.
    Made dataOf(Value const* v);
    // INT64_MAX: there is none.
    int64_t factorOf(Dim const& d) const;

    // ---- nodes

    Value* madeOf(Value const* v) const { return v ? made_.at(v) : nullptr; }

    Result<ir::Node*> copied(ir::Node const& n, std::vector<Value*> inputs, std::unique_ptr<ir::Graph> body);
    // As it was, on what stands for its inputs.
    Result<void> copy(ir::Node const& n);

    // An input of the node that differs from image to image, [B, ..]; null: it does not.
    Made imagesOf(ir::Node const& n, size_t i);
    // [B, 1, ..] as [B, ..], which has the place of a batch.
    Made inPlace(Value* v, Shape const& shape);

    Result<void> convert(ir::Node const& n);

    static bool hasInput(ir::Node const& n, size_t i) { return i < n.inputs.size() && n.inputs[i]; }

    // Whether each row of a product is one of a row of its first factor: latents of keys and values, say, times weights.
    bool isProductOfRows(ir::Node const& n) const;
    // Rows are read one by one, and dimensions that have to do with P are P or P + s.
    Result<void> checkRows(ir::Node const& n);

    // The update in place, for a concatenation with the cache.
    Result<void> update(CacheJoin const& j);
    // Of a cache with P = N - s rows.
    Result<void> dimensions(CacheJoin const& j);

    // ---- blocks, in image_blocks.cpp

    Result<void> addPages();
    // The update of a cache that was one of a copy already.
    Result<void> updateBlocks(CacheJoin const& j);
    // [B, .., rows, ..], of what was rows of sequences in the old graph.
    Made dimsOfBlocks(Value const* v, int axis, Value* rows);
    // Whether the node reads blocks, and has been converted.
    Result<bool> readsBlocks(ir::Node const& n);
    // What attention reads beside lengths.
    Result<void> attendToBlocks(ir::Node const& n, ops::attention::Attrs& a, std::vector<Value*>& inputs);

    Result<void> attention(ir::Node const& n);
    // What guards the result of an attention to caches.
    Result<void> guard(ir::Node const& n);

    // A sum leaves out what lies behind the rows that there are.
    Result<void> sum(ir::Node const& n);

    // x[.., P : P + n, ..]: of each image other rows.
    Result<void> rowsFrom(ir::Node const& n);
    // A dimension of batches to the front.
    Made inFront(Value* v, int axis);

    // What is as long as the caches in front of what is for the new rows.
    Result<void> rowsBehind(ir::Node const& n, std::vector<Value*>& inputs);

    // ---- along images: a dimension more in front

    Result<void> alongImages(ir::Node const& n, std::vector<Value*> inputs);
    Made moved(ir::Node const& n, Value* x, Value* shaped);
    // Parts and repetitions; a dimension of 1 that is repeated for each image is those images.
    Result<void> sliced(ir::Node const& n, Value* x, Value* shaped);
    // Ranges that begin somewhere else in each image.
    Made ranges(ir::Node const& n, std::vector<Value*> const& inputs);
    Made gathered(ir::Node const& n, std::vector<Value*> const& inputs);
    // Nodes to which dimension 0 is a batch.
    Result<void> asBatch(ir::Node const& n, std::vector<Value*> inputs, Value* shaped);
};

} // namespace tw::passes
