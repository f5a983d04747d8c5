// SPDX-License-Identifier: Apache-2.0
// Caches in blocks of 16 rows, which have nothing to do with sequences: what reads them otherwise than attention does is refused.
#include <algorithm>

#include "ops/attention_guard/op.h"
#include "ops/cache_update/op.h"
#include "passes/caches/image_graph.h"
#include "passes/caches/pages.h"
#include "tactic/registry.h"

namespace tw::passes {

using ops::cache_update::kPageRows;

Result<void> Images::addPages()
{
    for (CacheJoin const& j : joins_) {
        if (j.axis != 2)
            return unsupported("cache '{}' has rows in front of heads, and cannot be in pages", j.past->name);
        blocks_.insert(j.past);
    }
    TW_SET(pages_, passes::addPages(*to_, batch_, capacity_ / kPageRows));
    return {};
}

Result<void> Images::updateBlocks(CacheJoin const& j)
{
    ir::Node const& n = *j.last;
    ops::cache_update::Attrs a = n.attrsAs<ops::cache_update::Attrs>();
    if (a.circular || images_.contains(n.inputs[1]) || !hasInput(n, 2))
        return notUnderstood("it writes rows in a way that pages do not have");
    TW_ASSIGN(Value * index, imagesOf(n, 2));
    if (index)
        TW_SET(index, inPlace(index, made_.at(n.inputs[2])->shape));
    else
        index = made_.at(n.inputs[2]);
    a.pages = true;
    blocks_.insert(n.outputs[0]);
    TW_ASSIGN(ir::Node * m, to_->addNode(ops::cache_update::def(), a.clone(),
                                         {made_.at(j.past), made_.at(n.inputs[1]), index, pages_}, n.name));
    takePlaceOf(*m, n);
    m->outputs[0]->name = n.outputs[0]->name;
    made_[n.outputs[0]] = m->outputs[0];
    return {};
}

Made Images::dimsOfBlocks(Value const* v, int axis, Value* rows)
{
    TW_ASSIGN(Value * dims, dimsOf(made_.at(v)));
    TW_ASSIGN(Value * batch, dimsOf(lengths_));
    std::vector<Value*> parts{batch};
    for (int d = 1; d < v->rank(); ++d) {
        TW_ASSIGN(Value * own, partOf(dims, 0, d, 1));
        parts.push_back(d == axis ? rows : own);
    }
    return joined(parts);
}

Result<bool> Images::readsBlocks(ir::Node const& n)
{
    auto isBlocks = [&](Value const* v) { return v && blocks_.contains(v); };
    if (std::ranges::none_of(n.inputs, isBlocks))
        return false;
    if (n.op == &ops::shape::def()) {
        TW_SET(made_[n.outputs[0]], dimsOfBlocks(n.inputs[0], 2, integers({int32_t(capacity_)})));
        return true;
    }
    if (n.op == &ops::attention::def() && isBlocks(n.inputs[1]) && isBlocks(n.inputs[2]) &&
        std::ranges::count_if(n.inputs, isBlocks) == 2)
        return false;
    if (n.op == &ops::attention_guard::def() && !isBlocks(n.inputs[0]))
        return false;
    if (!keepsBlocks(n) || !isBlocks(n.inputs[0]) || joinOf(n.inputs[0]))
        return notUnderstood(fmt::format("it reads '{}', whose rows are in pages, otherwise than attention does",
                                         (*std::ranges::find_if(n.inputs, isBlocks))->name));
    blocks_.insert(n.outputs[0]);
    TW_TRY(copy(n));
    return true;
}

Result<void> Images::attendToBlocks(ir::Node const& n, ops::attention::Attrs& a, std::vector<Value*>& inputs)
{
    if (!blocks_.contains(n.inputs[1]) || !blocks_.contains(n.inputs[2]) || a.table)
        return notUnderstood("it attends to something else than caches in pages");
    a.pages = true;
    inputs.insert(inputs.begin() + a.pagesInput(inputs.size() + 1), pages_);
    return {};
}

} // namespace tw::passes
