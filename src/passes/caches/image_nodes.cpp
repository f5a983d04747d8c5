// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "ops/attention_guard/op.h"
#include "ops/cache_update/op.h"
#include "ops/concatenation/op.h"
#include "ops/cumulative_sum/op.h"
#include "ops/elementwise/op.h"
#include "ops/fill/op.h"
#include "ops/gather/op.h"
#include "ops/identity/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/reduce/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "passes/caches/image_graph.h"
#include "tactic/registry.h"

namespace tw::passes {

bool Images::isProductOfRows(ir::Node const& n) const
{
    using ops::matrix_multiply::MatrixOperation;
    auto const& a = n.attrsAs<ops::matrix_multiply::Attrs>();
    ir::Shape const& x = n.inputs[0]->shape;
    if (n.inputs.size() != 2 || isLong(n.inputs[1]) || x.size() < 2 || a.connected || a.a == MatrixOperation::kVector)
        return false;
    return !names(x[x.size() - (a.a == MatrixOperation::kTranspose ? 2 : 1)], symbol_);
}

Result<void> Images::checkRows(ir::Node const& n)
{
    for (Value const* v : n.outputs)
        for (Dim const& d : v->shape)
            if (names(d, symbol_) && !(d == past_) && !(d == past_ + added_))
                return notUnderstood(fmt::format("it makes {} out of the length of the caches", str(v->shape)));
    if (std::ranges::none_of(n.inputs, [&](Value const* v) { return isLong(v); }))
        return {};
    bool isKnown = n.op->isElementwise || n.op->readsDimsOnly;
    for (ir::OpDef const* op :
         {&ops::elementwise::def(), &ops::select::def(), &ops::unary::def(), &ops::identity::def(),
          &ops::activation::def(), &ops::shuffle::def(), &ops::slice::def(), &ops::fill::def(),
          &ops::concatenation::def(), &ops::reduce::def(), &ops::cache_update::def()})
        isKnown = isKnown || n.op == op;
    if (n.op == &ops::cumulative_sum::def())
        isKnown = !n.attrsAs<ops::cumulative_sum::Attrs>().reverse;
    if (n.op == &ops::gather::def()) { // of a table by what is long; rows of what is long are others
        isKnown = !isLong(n.inputs[0]);
    }
    if (n.op == &ops::matrix_multiply::def())
        isKnown = isProductOfRows(n);
    if (!isKnown)
        return notUnderstood("it reads all rows of the caches, or what is as long as these");
    return {};
}

Result<void> Images::sum(ir::Node const& n)
{
    auto const& a = n.attrsAs<ops::reduce::Attrs>();
    Value* x = made_.at(n.inputs[0]);
    for (int d = 0; d < x->rank(); ++d) {
        if (!a.has(d) || !names(n.inputs[0]->shape[size_t(d)], symbol_))
            continue;
        if (a.kind != ops::reduce::Kind::kSum || !a.isBare() || d == 0 || !(x->shape[0] == batch_) ||
            images_.contains(n.inputs[0]) || (x->type != DataType::kInt32 && !isFloating(x->type)))
            return notUnderstood("of what is as long as the caches only sums are taken");
        TW_ASSIGN(Value * places, range(integers({int32_t(capacity_)})));
        Shape along(x->shape.size(), 1), ends(x->shape.size(), 1);
        along[size_t(d)] = capacity_;
        ends[0] = batch_;
        TW_SET(places, reshape(places, along));
        TW_ASSIGN(Value * last, reshape(ends_, ends));
        TW_ASSIGN(Value * is, elementwise(Operation::kLess, places, last));
        TW_SET(is, add(ops::identity::def(), ops::identity::Attrs(x->type), {is}));
        TW_SET(x, elementwise(Operation::kProd, x, is));
    }
    TW_ASSIGN(ir::Node * m, copied(n, {x}, nullptr));
    made_[n.outputs[0]] = m->outputs[0];
    return {};
}

Result<void> Images::rowsFrom(ir::Node const& n)
{
    auto const& a = n.attrsAs<ops::slice::Attrs>();
    Value const* const old = n.inputs[0];
    auto const starts = partsOfSlice(n, 1, a.start), sizes = partsOfSlice(n, 2, a.size),
               strides = partsOfSlice(n, 3, a.stride);
    if (!starts || !sizes || !strides || a.mode != ops::slice::Mode::kStrict || images_.contains(old))
        return notUnderstood("it takes rows from the length of the caches on");
    int axis = -1;
    for (size_t d = 0; d < starts->size(); ++d)
        if (names((*starts)[d], symbol_)) {
            if (axis >= 0 || !(*strides)[d].is(1))
                return notUnderstood("it takes rows from the length of the caches on");
            axis = int(d);
        }
    Value* x = made_.at(old);
    Dim const end = (*starts)[size_t(axis)] + n.outputs[0]->shape[size_t(axis)];
    if (Dim const& length = x->shape[size_t(axis)];
        length.isConst() && end == past_ + added_ && length.value() < capacity_)
        return invalidArgument("layer '{}' reads row {} of '{}', which has {}: the model is for no more", n.name,
                               capacity_ - 1, old->name, length.value());
    TW_TRY(copy(n)); // for its shape
    Value* const shaped = made_.at(n.outputs[0]);
    ops::slice::Attrs rest = a;
    bool isWhole = true;
    rest.start.clear(), rest.size.clear(), rest.stride.clear();
    for (size_t d = 0; d < starts->size(); ++d) {
        Dim const& size = shaped->shape[d];
        bool const isAll = int(d) == axis || ((*starts)[d].is(0) && size == x->shape[d]);
        if (!isAll && (!(*starts)[d].isConst() || !size.isConst() || !(*strides)[d].isConst()))
            return notUnderstood("it takes rows from the length of the caches on, and a part of another dimension");
        rest.start.push_back(isAll ? 0 : (*starts)[d].value());
        rest.size.push_back(isAll ? ops::slice::kWhole : size.value());
        rest.stride.push_back(isAll ? 1 : (*strides)[d].value());
        isWhole = isWhole && isAll;
    }
    if (!isWhole)
        TW_SET(x, add(ops::slice::def(), rest, {x}));
    TW_ASSIGN(Value * first, dataOf(n.inputs[1])); // [B, rank]
    TW_SET(first, partOf(first, 1, axis, 1));
    TW_ASSIGN(Value * dims, dimsOf(shaped));
    TW_SET(dims, partOf(dims, 0, axis, 1));
    TW_ASSIGN(Value * rows, range(dims));
    TW_SET(rows, reshape(rows, {1, shaped->shape[size_t(axis)]}));
    TW_SET(rows, elementwise(Operation::kSum, rows, first)); // [B, n]
    ops::gather::Attrs g;
    g.axis = axis;
    if (!x->isConstant() && axis > 0 && x->shape[0] == batch_) {
        g.elementWiseDims = 1;
        TW_SET(made_[n.outputs[0]], add(ops::gather::def(), g, {x, rows}));
        return {};
    }
    TW_ASSIGN(Value * y, add(ops::gather::def(), g, {x, rows})); // [.., B, n, ..]
    TW_SET(images_[n.outputs[0]], inFront(y, axis));
    return {};
}

Made Images::inFront(Value* v, int axis)
{
    if (axis == 0)
        return v;
    std::vector<int64_t> order{axis};
    for (int d = 0; d < v->rank(); ++d)
        if (d != axis)
            order.push_back(d);
    return transpose(v, order);
}

Result<void> Images::rowsBehind(ir::Node const& n, std::vector<Value*>& inputs)
{
    int const axis = int(n.attrsAs<ops::concatenation::Attrs>().axis);
    if (n.inputs.size() != 2 || !(n.inputs[0]->shape[size_t(axis)] == past_) ||
        !(n.inputs[1]->shape[size_t(axis)] == added_))
        return notUnderstood("it joins what is as long as the caches with something else than what is for new rows");
    bool const hasBatch = axis > 0 && n.outputs[0]->shape[0] == batch_ && !inputs[0] && !inputs[1];
    std::array<Value*, 2> parts;
    for (size_t i : {0, 1}) {
        Value* v = inputs[i] ? inputs[i] : made_.at(n.inputs[i]);
        bool const isBare = !inputs[i] && !hasBatch;
        if (isBare)
            TW_SET(v, reshape(v, behind(1, v->shape)));
        ops::slice::Attrs a;
        a.mode = i == 0 ? ops::slice::Mode::kFill : ops::slice::Mode::kStrict;
        a.start.assign(v->shape.size(), 0);
        a.stride.assign(v->shape.size(), 1);
        std::vector<Value*> size;
        TW_ASSIGN(Value * dims, dimsOf(v));
        int const at = axis + !hasBatch;
        for (int d = 0; d < v->rank(); ++d) {
            TW_ASSIGN(Value * one, partOf(dims, 0, d, 1));
            if (i == 0 && d == at)
                one = integers({int32_t(capacity_)});
            size.push_back(one);
        }
        if (isBare) {
            a.stride[0] = 0;
            TW_ASSIGN(Value * all, dimsOf(lengths_));
            size[0] = all;
        }
        TW_ASSIGN(Value * sizes, joined(size));
        TW_SET(parts[i], add(ops::slice::def(), a, {v, nullptr, sizes}));
    }
    ops::cache_update::Attrs a;
    a.axis = axis + !hasBatch;
    TW_ASSIGN(Value * y, add(ops::cache_update::def(), a, {parts[0], parts[1], lengths_}));
    TW_TRY(copy(n));
    (hasBatch ? made_ : images_)[n.outputs[0]] = y;
    return {};
}

Result<void> Images::alongImages(ir::Node const& n, std::vector<Value*> inputs)
{
    bool hasBatch = false;
    for (size_t i = 0; i < inputs.size(); ++i)
        hasBatch = hasBatch || (!inputs[i] && n.inputs[i] && n.inputs[i]->rank() > 0 &&
                                n.inputs[i]->shape[0] == batch_ && !n.inputs[i]->isConstant());
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (!n.inputs[i])
            continue;
        Value* const v = made_.at(n.inputs[i]);
        if (hasBatch && inputs[i])
            TW_SET(inputs[i], inPlace(inputs[i], v->shape));
        else if (hasBatch)
            inputs[i] = v;
        else if (!inputs[i])
            TW_SET(inputs[i], reshape(v, behind(1, v->shape)));
    }
    TW_ASSIGN(ir::Node * m, copied(n, inputs, nullptr));
    (hasBatch ? made_ : images_)[n.outputs[0]] = m->outputs[0];
    return {};
}

Made Images::moved(ir::Node const& n, Value* x, Value* shaped)
{
    auto const& a = n.attrsAs<ops::shuffle::Attrs>();
    auto further = [](std::vector<int64_t> const& p) {
        std::vector<int64_t> q{0};
        for (int64_t d : p)
            q.push_back(d + 1);
        return q;
    };
    if (!x)
        return notUnderstood("its shape differs from sequence to sequence");
    if (!a.firstTranspose.empty())
        TW_SET(x, transpose(x, further(a.firstTranspose)));
    Shape const before = a.secondTranspose.empty() ? shaped->shape : ir::unpermuted(shaped->shape, a.secondTranspose);
    TW_SET(x, reshape(x, behind(batch_, before)));
    if (!a.secondTranspose.empty())
        TW_SET(x, transpose(x, further(a.secondTranspose)));
    return x;
}

Result<void> Images::sliced(ir::Node const& n, Value* x, Value* shaped)
{
    auto const& a = n.attrsAs<ops::slice::Attrs>();
    auto const starts = partsOfSlice(n, 1, a.start), strides = partsOfSlice(n, 3, a.stride);
    if (!x || !starts || !strides || hasInput(n, 4))
        return notUnderstood("what it takes differs from sequence to sequence");
    Shape const& old = made_.at(n.inputs[0])->shape;
    bool const isRepeated = !old.empty() && old[0].is(1) && shaped->shape[0] == batch_ && !batch_.is(1);
    ops::slice::Attrs b;
    b.mode = a.mode;
    for (size_t d = 0; d < starts->size(); ++d) {
        if (!(*starts)[d].isConst() || !(*strides)[d].isConst())
            return notUnderstood("what it takes differs from sequence to sequence");
        b.start.push_back((*starts)[d].value());
        b.stride.push_back((*strides)[d].value());
    }
    TW_ASSIGN(Value * size, dimsOf(shaped));
    if (isRepeated) {
        b.stride[0] = 1;
        TW_SET(x, inPlace(x, old));
        TW_SET(made_[n.outputs[0]], add(ops::slice::def(), b, {x, nullptr, size}));
        return {};
    }
    b.start.insert(b.start.begin(), 0);
    b.stride.insert(b.stride.begin(), 1);
    TW_ASSIGN(Value * all, dimsOf(lengths_));
    TW_ASSIGN(Value * sizes, joined({all, size}));
    TW_SET(images_[n.outputs[0]], add(ops::slice::def(), b, {x, nullptr, sizes}));
    return {};
}

Made Images::ranges(ir::Node const& n, std::vector<Value*> const& inputs)
{
    auto const& a = n.attrsAs<ops::fill::Attrs>();
    Value* const shaped = made_.at(n.outputs[0]);
    if (a.operation != ops::fill::Operation::kLinspace || shaped->rank() != 1 || inputs.size() < 3 || !inputs[1] ||
        inputs[2])
        return notUnderstood("steps of a range differ from sequence to sequence");
    Tensor zero(n.inputs[1]->type, {});
    zero.ref().set(0, 0);
    TW_ASSIGN(Value * steps, add(ops::fill::def(), a,
                                 {madeOf(n.inputs[0]), to_->addConstant("zero", zero.ref().type, {}, zero.data()),
                                  madeOf(n.inputs[2])}));
    TW_SET(steps, reshape(steps, {1, shaped->shape[0]}));
    TW_ASSIGN(Value * first, reshape(inputs[1], {batch_, 1}));
    return elementwise(Operation::kSum, steps, first);
}

Made Images::gathered(ir::Node const& n, std::vector<Value*> const& inputs)
{
    ops::gather::Attrs a = n.attrsAs<ops::gather::Attrs>();
    if (!a.isPlain())
        return notUnderstood("what it gathers differs from sequence to sequence");
    Value *x = inputs[0], *j = inputs[1];
    if (x)
        ++a.axis;
    if (x && j)
        a.elementWiseDims = 1;
    TW_ASSIGN(Value * y, add(ops::gather::def(), a, {x ? x : madeOf(n.inputs[0]), j ? j : madeOf(n.inputs[1])}));
    return x ? y : inFront(y, int(a.axis));
}

Result<void> Images::asBatch(ir::Node const& n, std::vector<Value*> inputs, Value* shaped)
{
    bool isKnown = n.op == &ops::rotary::def() || (n.op == &ops::matrix_multiply::def() && shaped->rank() > 2);
    if (n.op == &ops::concatenation::def())
        isKnown = n.attrsAs<ops::concatenation::Attrs>().axis > 0;
    if (!isKnown)
        return notUnderstood("it reads what differs from sequence to sequence");
    for (size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i])
            TW_SET(inputs[i], inPlace(inputs[i], made_.at(n.inputs[i])->shape));
        else
            inputs[i] = madeOf(n.inputs[i]);
    auto const m = copied(n, inputs, nullptr);
    if (!m.ok())
        return notUnderstood("it reads what differs from sequence to sequence");
    Value* const y = (*m)->outputs[0];
    Shape wanted = shaped->shape;
    bool const isBatch = wanted[0] == batch_;
    wanted[0] = batch_;
    if (!(y->shape == wanted))
        return notUnderstood("it reads what differs from sequence to sequence");
    if (isBatch)
        made_[n.outputs[0]] = y;
    else
        TW_SET(images_[n.outputs[0]], reshape(y, behind(batch_, shaped->shape)));
    return {};
}

Result<void> Images::guard(ir::Node const& n)
{
    if (images_.contains(n.inputs[0]) || images_.contains(n.inputs[1]) || n.inputs.size() != 2)
        return notUnderstood("it guards the result of something else than attention to caches");
    ops::attention_guard::Attrs a = n.attrsAs<ops::attention_guard::Attrs>();
    a.lengths = true;
    a.pages = pages_ != nullptr;
    std::vector<Value*> inputs{made_.at(n.inputs[0]), made_.at(n.inputs[1]), ends_};
    if (pages_)
        inputs.push_back(pages_);
    TW_ASSIGN(ir::Node * m, to_->addNode(ops::attention_guard::def(), a.clone(), inputs, n.name));
    takePlaceOf(*m, n);
    m->outputs[0]->name = n.outputs[0]->name;
    made_[n.outputs[0]] = m->outputs[0];
    return {};
}

} // namespace tw::passes
