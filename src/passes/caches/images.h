// SPDX-License-Identifier: Apache-2.0
// A graph whose caches get longer, made one whose caches have a capacity N: what was one length for all is one of each image of a batch.
// Shapes are those of a run of the old graph with P = N - s rows in the caches, so that old and new rows are N together; nothing else of
// shape arithmetic changes. Elements that shapes decide (ranges that begin at P, rows of a table from P on) are computed of kv_lengths, with
// a dimension more in front, [B, ..], until something that has a batch takes them in. What a dimension of rows holds behind the rows
// that there are is nobody's business: attention has lengths, and sums over it leave it out.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/caches/fixed_caches.h"

namespace tw::passes {

struct CacheJoin
{
    ir::Value *past, *present; // an input, an output
    ir::Node *first,
        *last; // what reads the cache, and what makes the output, perhaps by identities: the same node, or slice and cache_update
    int axis; // of rows

    // Of the new rows.
    ir::Value* update() const { return last->inputs[1]; }
    ir::Dim const& rows() const { return update()->shape[size_t(axis)]; }
};

Result<void> withImages(std::unique_ptr<ir::Graph>& g, std::vector<CacheJoin> const& joins, CacheSizes const& sizes);

} // namespace tw::passes
