// SPDX-License-Identifier: Apache-2.0
// Rows that a scatter writes into a cache, as exporters of static caches spell it: of tuples, between transposes that bring the rows to the
// front and back (index_put, slice_scatter of torch.export), or of elements along the axis of rows (index_copy of TorchScript).
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace tw::passes {

struct WrittenRows
{
    ir::Node* scatter = nullptr;
    std::vector<ir::Node*> back; // transposes of its result; empty: the result is the cache
    ir::Value *cache = nullptr, *update = nullptr;
    ir::Value* updateMoved = nullptr; // the update with rows in front, where nobody has it otherwise
    ir::Value* places = nullptr;      // of the rows, as many elements as there are
    int axis = 0;                     // of rows, 1 or more
    std::vector<int64_t> order;       // of the transpose in front; empty: there is none

    ir::Value* result() const { return back.empty() ? scatter->outputs[0] : back[0]->outputs[0]; }
};

std::optional<WrittenRows> writtenRows(ir::Graph const& g, ir::Node& n);

// Where rows begin whose places count up by one: a value of one element; null: nobody knows that they do.
ir::Value* beginOf(ir::Value* places);

// The update as the cache lies; a transpose is added where there is none.
Result<ir::Value*> asTheCache(ir::Graph& g, WrittenRows const& rows);
// `made` in the place of the scatter and of what moves its result. False: two outputs are one cache, and `made` is gone.
Result<bool> takePlace(ir::Graph& g, WrittenRows const& rows, ir::Node& made);

// cache_update(cache, update, index) in the place of the scatter and of what moves its result. False: nothing was changed.
Result<bool> toUpdate(ir::Graph& g, WrittenRows const& rows, ir::Value* index, bool circular);

// The same of tuples, as a scatter of elements of the cache as it lies.
Result<bool> toElements(ir::Graph& g, WrittenRows const& rows);

} // namespace tw::passes
