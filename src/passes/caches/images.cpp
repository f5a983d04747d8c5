// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/lists.h"
#include "ir/op_def.h"
#include "ir/shape_values.h"
#include "ops/attention/op.h"
#include "ops/attention_guard/op.h"
#include "ops/cache_update/op.h"
#include "ops/concatenation/op.h"
#include "ops/elementwise/op.h"
#include "ops/fill/op.h"
#include "ops/gather/op.h"
#include "ops/identity/op.h"
#include "ops/reduce/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "passes/caches/fixed_caches.h"
#include "passes/caches/image_graph.h"
#include "passes/fuse_nodes.h"
#include "tactic/registry.h"

namespace tw::passes {

bool names(Dim const& d, std::string const& symbol)
{
    std::vector<std::string> all;
    d.collectSymbols(all);
    return contains(all, symbol);
}

Shape behind(Dim const& lead, Shape const& shape)
{
    Shape s{lead};
    s.insert(s.end(), shape.begin(), shape.end());
    return s;
}

std::optional<std::vector<Dim>> partsOfSlice(ir::Node const& slice, size_t input, std::vector<int64_t> const& attribute)
{
    if (input < slice.inputs.size() && slice.inputs[input])
        return slice.inputs[input]->content;
    return std::vector<Dim>(attribute.begin(), attribute.end());
}

Result<std::unique_ptr<ir::Graph>> Images::make()
{
    CacheJoin const& first = joins_[0];
    Dim const rows = first.past->shape[size_t(first.axis)];
    past_ = rows;
    std::vector<std::string> symbol;
    rows.collectSymbols(symbol);
    symbol_ = symbol.at(0);
    added_ = first.rows();
    batch_ = first.past->shape[0];
    for (CacheJoin const& j : joins_)
        if (!(j.past->shape[0] == batch_))
            return unsupported("cache '{}' has {} sequences, '{}' has {}; they must be as many", first.past->name,
                               batch_.str(), j.past->name, j.past->shape[0].str());
    to_ = std::make_unique<ir::Graph>();
    to_->name = from_.name;
    to_->symbols = from_.symbols;
    to_->symbols.erase(symbol_);
    TW_TRY(addInputs());
    for (auto const& v : from_.values())
        if (v->isConstant()) {
            Value* const c = to_->addConstant(v->name, v->type, ir::extentsOf(v->shape), v->constant);
            c->content = v->content;
            made_[v.get()] = c;
        }
    TW_TRY(addLengths());
    for (auto const& n : from_.nodes)
        TW_TRY(convert(*n));
    for (Value* v : from_.outputs)
        TW_TRY(addOutput(v));
    return std::move(to_);
}

Made Images::add(ir::OpDef const& op, ir::AttrsBase const& attrs, std::vector<Value*> inputs)
{
    std::string const name = now_ ? now_->name + ".of_images" : kCacheLengths;
    TW_ASSIGN(ir::Node * n, to_->addNode(op, attrs.clone(), std::move(inputs), name));
    if (now_) {
        n->layers = now_->layers;
        n->device = now_->device;
    }
    return n->outputs[0];
}

Made Images::elementwise(Operation o, Value* a, Value* b)
{
    return add(ops::elementwise::def(), ops::elementwise::Attrs(o), {a, b});
}

Value* Images::integers(std::vector<int32_t> const& x, Extents const& dims)
{
    Value* const v =
        to_->addConstant(fmt::format("{}.{}", kCacheLengths, to_->values().size()), DataType::kInt32, dims, x.data());
    if (x.size() <= size_t(ir::kMaxContent))
        v->content.emplace(x.begin(), x.end());
    return v;
}

Made Images::reshape(Value* v, Shape const& shape)
{
    if (v->shape == shape)
        return v;
    TW_ASSIGN(Value * y, addReshape(*to_, v, shape, -1));
    if (y)
        return y;
    TW_ASSIGN(Value * dims, dimsOf(v));
    std::vector<Value*> parts;
    for (Dim const& d : shape) {
        auto const at = std::ranges::find(v->shape, d);
        if (!d.isConst() && at == v->shape.end() && !(d == batch_))
            return unsupported("no reshape of '{}' from {} gives {}", v->name, str(v->shape), str(shape));
        Value* part = nullptr;
        if (d.isConst())
            part = integers({int32_t(d.value())});
        else if (at == v->shape.end())
            TW_SET(part, dimsOf(lengths_));
        else
            TW_SET(part, partOf(dims, 0, at - v->shape.begin(), 1));
        parts.push_back(part);
    }
    TW_SET(dims, joined(parts));
    ops::shuffle::Attrs a;
    a.zeroIsPlaceholder = false;
    return add(ops::shuffle::def(), a, {v, dims});
}

Made Images::transpose(Value* v, std::vector<int64_t> const& permutation)
{
    ops::shuffle::Attrs a;
    a.firstTranspose = permutation;
    return add(ops::shuffle::def(), a, {v});
}

Made Images::dimsOf(Value* v)
{
    return add(ops::shape::def(), ir::NoAttrs(), {v});
}
Made Images::partOf(Value* v, int axis, int64_t begin, int64_t count)
{
    return add(ops::slice::def(), ops::slice::partOf(v->shape, axis, begin, count), {v});
}

Made Images::joined(std::vector<Value*> parts)
{
    return add(ops::concatenation::def(), ops::concatenation::Attrs(0), std::move(parts));
}

Made Images::range(Value* count)
{
    ops::fill::Attrs a;
    int32_t const zero = 0;
    return add(ops::fill::def(), a, {count, to_->addConstant("zero", DataType::kInt32, {}, &zero), integers({1})});
}

CacheJoin const* Images::joinOf(Value const* past) const
{
    auto const j = std::ranges::find(joins_, past, &CacheJoin::past);
    return j == joins_.end() ? nullptr : &*j;
}

bool Images::isLong(Value const* v) const
{
    return v && std::ranges::any_of(v->shape, [&](Dim const& d) { return names(d, symbol_); });
}

Result<void> Images::addInputs()
{
    for (Value* v : from_.inputs) {
        if (v->name == kCacheLengths)
            return invalidArgument("the network has an input '{}' already", kCacheLengths);
        Shape shape = v->shape;
        CacheJoin const* const join = joinOf(v);
        for (size_t d = 0; d < shape.size(); ++d) {
            bool const isRows = shape[d] == past_ + added_ || (join && int(d) == join->axis);
            if (names(shape[d], symbol_) && !isRows)
                return unsupported("dimension {} of input '{}', {}, depends on the length of the caches, {}, and is "
                                   "neither that nor the "
                                   "length with the {} new rows",
                                   d, v->name, shape[d].str(), past_.str(), added_.str());
            if (isRows)
                shape[d] = capacity_;
        }
        if (join && blockCount_ > 0)
            shape = {blockCount_, shape[1], ops::cache_update::kPageRows, shape[3]};
        Value* const w = to_->addInput(v->name, v->type, shape);
        w->host = v->host;
        w->content = v->content;
        made_[v] = w;
    }
    lengths_ = to_->addInput(kCacheLengths, DataType::kInt32, {batch_});
    return blockCount_ > 0 ? addPages() : Result<void>();
}

Result<void> Images::addLengths()
{
    if (added_.isConst()) {
        addedRows_ = integers({int32_t(added_.value())});
    } else {
        Value* source = nullptr;
        size_t axis = 0;
        for (Value* v : from_.inputs)
            for (size_t d = 0; d < v->shape.size() && !source; ++d)
                if (v->shape[d] == added_)
                    source = made_.at(v), axis = d;
        if (!source)
            return unsupported("the {} new rows of '{}' are no dimension of an input", added_.str(),
                               joins_[0].past->name);
        TW_ASSIGN(Value * dims, dimsOf(source));
        TW_SET(addedRows_, partOf(dims, 0, int64_t(axis), 1));
    }
    TW_ASSIGN(Value * full, elementwise(Operation::kSub, integers({int32_t(capacity_)}), addedRows_));
    TW_SET(shift_, elementwise(Operation::kSub, lengths_, full));
    TW_SET(ends_, elementwise(Operation::kSum, lengths_, addedRows_));
    return {};
}

Result<void> Images::addOutput(Value* v)
{
    bool const isPresent = std::ranges::any_of(joins_, [&](CacheJoin const& j) { return j.present == v; });
    if (images_.contains(v) || (isLong(v) && !isPresent) || dependsOnLength(v))
        return unsupported("output '{}' ({}) depends on the length of the caches, and is no cache", v->name,
                           str(v->shape));
    Value* const w = made_.at(v);
    w->name = v->name;
    w->host = v->host;
    to_->outputs.push_back(w);
    return {};
}

bool Images::dependsOnLength(Value const* v) const
{
    return v && v->content && std::ranges::any_of(*v->content, [&](Dim const& d) { return names(d, symbol_); });
}

Error Images::notUnderstood(std::string const& what) const
{
    std::string readers;
    for (CacheJoin const& j : joins_)
        readers += (readers.empty() ? "'" : ", '") + j.past->name + "'";
    return unsupported("layer '{}' ({}): {}; so the caches ({}) cannot have a fixed capacity", now_->name,
                       now_->op->name, what, readers.size() > 100 ? readers.substr(0, 100) + ".." : readers);
}

Made Images::dataOf(Value const* v)
{
    if (v->type != DataType::kInt32)
        return notUnderstood(fmt::format("'{}' depends on the length of the caches and is no INT32", v->name));
    std::vector<int32_t> factors;
    for (Dim const& d : *v->content) {
        int64_t const factor = factorOf(d);
        if (factor == INT64_MAX)
            return notUnderstood(
                fmt::format("'{}' is {}, which is not linear in the length of the caches", v->name, d.str()));
        factors.push_back(int32_t(factor));
    }
    Extents dims = ir::extentsOf(v->shape), all{1};
    for (int64_t d : dims)
        all.push(d);
    TW_ASSIGN(Value * shift, reshape(shift_, behind(batch_, Shape(v->shape.size(), 1))));
    TW_ASSIGN(Value * moved, elementwise(Operation::kProd, shift, integers(factors, all)));
    TW_ASSIGN(Value * known, reshape(made_.at(v), behind(1, v->shape)));
    return elementwise(Operation::kSum, known, moved);
}

int64_t Images::factorOf(Dim const& d) const
{
    for (int64_t c : {0, 1, -1, 2, -2})
        if (!names(d - Dim(c) * past_, symbol_))
            return c;
    return INT64_MAX;
}

Result<ir::Node*> Images::copied(ir::Node const& n, std::vector<Value*> inputs, std::unique_ptr<ir::Graph> body)
{
    std::vector<std::unique_ptr<ir::Graph>> regions;
    for (auto const& r : n.regions)
        regions.push_back(r->clone());
    TW_ASSIGN(ir::Node * m, to_->addNode(*n.op, n.attrs->clone(), std::move(inputs), n.name, std::move(regions), -1,
                                         std::move(body)));
    takePlaceOf(*m, n);
    for (size_t i = 0; i < n.outputs.size(); ++i) {
        m->outputs[i]->name = n.outputs[i]->name;
        m->outputs[i]->host = n.outputs[i]->host;
    }
    return m;
}

Result<void> Images::copy(ir::Node const& n)
{
    std::unique_ptr<ir::Graph> body = n.body ? n.body->clone() : nullptr;
    if (body)
        body->symbols.erase(symbol_);
    TW_ASSIGN(ir::Node * m,
              copied(n, mapped<Value*>(n.inputs, [&](Value const* v) { return madeOf(v); }), std::move(body)));
    for (size_t i = 0; i < n.outputs.size(); ++i)
        made_[n.outputs[i]] = m->outputs[i];
    return {};
}

Made Images::imagesOf(ir::Node const& n, size_t i)
{
    Value const* const v = n.inputs[i];
    if (!v)
        return static_cast<Value*>(nullptr);
    if (auto const it = images_.find(v); it != images_.end())
        return it->second;
    if (!dependsOnLength(v) || n.op->readsDimsOnly || ir::isShapeInput(n, i) || n.outputs[0]->content)
        return static_cast<Value*>(nullptr);
    return dataOf(v);
}

Made Images::inPlace(Value* v, Shape const& shape)
{
    if (batch_.is(1))
        return reshape(v, shape);
    if (shape.empty() || !shape[0].is(1))
        return notUnderstood(
            fmt::format("'{}' differs from sequence to sequence and has no dimension for them", v->name));
    Shape wanted = shape;
    wanted[0] = batch_;
    return reshape(v, wanted);
}

Result<void> Images::convert(ir::Node const& n)
{
    now_ = &n;
    for (CacheJoin const& j : joins_) {
        if (j.first == &n && j.first != j.last) { // a copy that is longer: the cache is as long as it will ever be
            made_[n.outputs[0]] = made_.at(j.past);
            blocks_.insert(n.outputs[0]);
            return {};
        }
        if (j.last == &n && j.first == j.last)
            return update(j);
        if (j.last == &n && pages_)
            return updateBlocks(j);
    }
    if (n.op == &ops::shape::def())
        if (CacheJoin const* const j = joinOf(n.inputs[0]))
            return dimensions(*j);
    if (pages_) {
        TW_ASSIGN(bool const isDone, readsBlocks(n));
        if (isDone)
            return {};
    }
    for (Value const* v : n.inputs)
        if (joinOf(v) && !n.op->readsDimsOnly)
            return notUnderstood(fmt::format("it reads the cache '{}' beside what puts new rows behind it", v->name));
    if (n.op == &ops::attention::def() && (isLong(n.inputs[1]) || isLong(n.inputs[2])))
        return attention(n);
    if (n.op == &ops::attention_guard::def() && isLong(n.inputs[1]))
        return guard(n);
    TW_TRY(checkRows(n));
    if (n.op == &ops::slice::def() && dependsOnLength(hasInput(n, 1) ? n.inputs[1] : nullptr) && !n.outputs[0]->content)
        return rowsFrom(n);
    if (n.op == &ops::reduce::def() && isLong(n.inputs[0]))
        return sum(n);
    std::vector<Value*> inputs(n.inputs.size(), nullptr);
    bool isOfImages = false;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
        TW_SET(inputs[i], imagesOf(n, i));
        isOfImages = isOfImages || inputs[i];
    }
    bool const isJoin = n.op == &ops::concatenation::def() && isLong(n.outputs[0]) && !n.outputs[0]->content &&
                        names(n.outputs[0]->shape[size_t(n.attrsAs<ops::concatenation::Attrs>().axis)], symbol_);
    if (!isOfImages && !isJoin)
        return copy(n);
    if (isJoin)
        return rowsBehind(n, inputs);
    TW_TRY(copy(n)); // for its shape; nobody reads it
    Value* const shaped = made_.at(n.outputs[0]);
    if (n.outputs.size() != 1 || !n.regions.empty())
        return notUnderstood("it reads what differs from sequence to sequence");
    bool const isPlain = n.op == &ops::elementwise::def() || n.op == &ops::select::def() ||
                         n.op == &ops::unary::def() || n.op == &ops::identity::def() || n.op == &ops::activation::def();
    Value* y = nullptr;
    if (isPlain)
        return alongImages(n, inputs);
    if (n.op == &ops::shuffle::def())
        TW_SET(y, moved(n, inputs[0], shaped));
    else if (n.op == &ops::slice::def())
        return sliced(n, inputs[0], shaped);
    else if (n.op == &ops::fill::def())
        TW_SET(y, ranges(n, inputs));
    else if (n.op == &ops::gather::def())
        TW_SET(y, gathered(n, inputs));
    else
        return asBatch(n, inputs, shaped);
    images_[n.outputs[0]] = y;
    return {};
}

Result<void> Images::update(CacheJoin const& j)
{
    if (images_.contains(j.update()))
        return notUnderstood("new rows differ from sequence to sequence beside their batch");
    if (Dim const& rows = made_.at(j.update())->shape[size_t(j.axis)]; !(rows == added_))
        return notUnderstood(
            fmt::format("it puts {} new rows behind '{}', others are {}", rows.str(), j.past->name, added_.str()));
    ops::cache_update::Attrs a;
    a.axis = j.axis;
    a.pages = pages_ != nullptr;
    std::vector<Value*> inputs{made_.at(j.past), made_.at(j.update()), lengths_};
    if (pages_)
        inputs.push_back(pages_);
    blocks_.insert(j.last->outputs[0]);
    TW_ASSIGN(ir::Node * m, to_->addNode(ops::cache_update::def(), a.clone(), inputs, j.last->name));
    m->layers = j.last->layers;
    m->device = j.last->device;
    m->outputs[0]->name = j.last->outputs[0]->name;
    made_[j.last->outputs[0]] = m->outputs[0];
    return {};
}

Result<void> Images::dimensions(CacheJoin const& j)
{
    if (pages_) {
        TW_ASSIGN(Value * rows, elementwise(Operation::kSub, integers({int32_t(capacity_)}), addedRows_));
        TW_SET(made_[now_->outputs[0]], dimsOfBlocks(j.past, j.axis, rows));
        return {};
    }
    TW_ASSIGN(Value * dims, dimsOf(made_.at(j.past)));
    std::vector<Value*> parts{integers(std::vector<int32_t>(size_t(j.axis))), addedRows_};
    if (int const rest = j.past->rank() - j.axis - 1; rest > 0)
        parts.push_back(integers(std::vector<int32_t>(size_t(rest))));
    TW_ASSIGN(Value * less, joined(parts));
    TW_SET(made_[now_->outputs[0]], elementwise(Operation::kSub, dims, less));
    return {};
}

Result<void> Images::attention(ir::Node const& n)
{
    auto const& a = n.attrsAs<ops::attention::Attrs>();
    if (a.segments || a.integers)
        return notUnderstood("it attends to caches in a way that has no lengths");
    for (size_t i : {1, 2})
        if (!isLong(n.inputs[i]) || images_.contains(n.inputs[i]))
            return notUnderstood("of keys and values only one is as long as the caches");
    std::vector<Value*> inputs;
    int const masksEnd = a.masksEnd(n.inputs.size());
    for (size_t i = 0; i < n.inputs.size(); ++i) {
        if (int(i) == masksEnd && !a.lengths)
            inputs.push_back(ends_);
        TW_ASSIGN(Value * v, imagesOf(n, i));
        if (v)
            TW_SET(v, inPlace(v, made_.at(n.inputs[i])->shape));
        inputs.push_back(v ? v : madeOf(n.inputs[i]));
    }
    if (masksEnd == int(n.inputs.size()) && !a.lengths)
        inputs.push_back(ends_);
    ops::attention::Attrs with = a;
    with.lengths = true;
    if (pages_)
        TW_TRY(attendToBlocks(n, with, inputs));
    TW_ASSIGN(ir::Node * m, to_->addNode(ops::attention::def(), with.clone(), inputs, n.name));
    takePlaceOf(*m, n);
    m->outputs[0]->name = n.outputs[0]->name;
    made_[n.outputs[0]] = m->outputs[0];
    return {};
}

Result<void> withImages(std::unique_ptr<ir::Graph>& g, std::vector<CacheJoin> const& joins, CacheSizes const& sizes)
{
    TW_SET(g, Images(*g, joins, sizes).make());
    return {};
}

} // namespace tw::passes
