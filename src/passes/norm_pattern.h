// SPDX-License-Identifier: Apache-2.0
// The nodes that exporters write for a norm, from the square root of the variance on; what fuse_layer_norm.cpp lists.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "ops/layer_norm/op.h"

namespace tw::recipe {
class Recipes;
}

namespace tw::passes {

// The sets of a norm, and the dimensions that gamma and beta have numbers for, as masks of dimensions; and the same seen
// through a reshape: PyTorch joins channels of a group and pixels to normalize them, Keras cuts channels into two dimensions.
struct NormSets
{
    int64_t normalized = 0; // bit i: dimension i
    int64_t weighted = 0;   // of gamma and beta; of dimensions of size 1 at most one
    int64_t groups = 1;     // the normalized dimension `channel` is cut into so many
    int channel = -1;
};

// For x of the shape `outer`, where `sets` are those of a reshaped x; null: no attributes say it.
std::optional<NormSets> throughReshape(NormSets const& sets, ir::Shape const& outer, ir::Shape const& inner);
// The attributes for x of this shape, epsilon and what is optional left as they are; false: there are none.
bool setAttributes(ops::layer_norm::Attrs& a, NormSets const& sets, ir::Shape const& x);

// The conversion between f16 and f32.
bool isCast(ir::Node const* n, DataType from, DataType to);
// A square root.
bool isRoot(ir::Node const& n);

class NormPattern
{
public:
    NormPattern(ir::Graph& g, recipe::Recipes const* refit) : g_(g), refit_(refit) {}

    std::vector<ir::Node*> nodes;
    ir::Value* x = nullptr;
    ir::Value *gamma = nullptr, *beta = nullptr; // constants, null: none
    ops::layer_norm::Attrs attrs;

    // `root` is a square root.
    bool from(ir::Node* root);

private:
    bool isMean(ir::Node const* n);
    bool variance(ir::Node* root);
    bool ofDifference(ir::Node* average, ir::Node* square);
    bool ofSquares(ir::Node* difference);
    bool isDifference(ir::Value* v);
    ir::Node* inverse(ir::Node* root) const;
    bool byDifference(ir::Node* root);
    bool byFactor(ir::Node* root);
    bool takesWeights(ir::Value const& v, int64_t& mask) const;
    bool takeWeight(ir::Node*& n, bool sum);
    void takeWeights(ir::Node*& n);
    void takeCast(ir::Node*& n);
    void throughReshapes(ir::Node*& n);
    void takeActivation(ir::Node* n);

    ir::Graph& g_;
    recipe::Recipes const* refit_;
    bool centered_ = true;
    NormSets sets_;
    ir::Node* mean_ = nullptr;
};

} // namespace tw::passes
