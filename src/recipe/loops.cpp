// SPDX-License-Identifier: Apache-2.0
#include "recipe/loops.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/transpose.h"
#include "ops/concatenation/op.h"
#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "ops/quantize/op.h"
#include "ops/reduce/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "ops/unary/op.h"
#include "recipe/recipes.h"
#include "tactic/blocks.h"
#include "tactic/registry.h"

namespace tw::recipe {

bool findRows(Extents const& wide, Extents const& narrow, Rows& rows)
{
    if (wide.rank != narrow.rank)
        return false;
    int first = 0, last = narrow.rank; // of the dimensions that are not 1
    while (first < last && narrow[first] == 1)
        ++first;
    while (last > first && narrow[last - 1] == 1)
        --last;
    for (int d = first; d < last; ++d)
        if (narrow[d] != wide[d])
            return false;
    rows = {wide.volume(0, first), narrow.volume(), wide.volume(last, wide.rank)};
    return true;
}

namespace {

// Floats of a tensor, all of them.
std::vector<float> floatsOf(TensorRef const& t)
{
    std::vector<float> out(size_t(t.count()));
    float buffer[ops::kBlock];
    for (int64_t i = 0; i < t.count(); i += ops::kBlock) {
        int64_t const n = std::min(ops::kBlock, t.count() - i);
        std::copy_n(ops::loadFloats(t.type, t.data, i, 1, n, buffer), n, out.begin() + i);
    }
    return out;
}

// out = f(wide, narrow), in runs of elements that meet one of `narrow`, or neighbours of it.
template <class F>
void forRows(Rows const& r, TensorRef const& wide, std::vector<float> const& narrow, TensorRef const& out, F const& f)
{
    bool const meetsOne = r.inner > 1;
    int64_t const runs = meetsOne ? r.outer * r.count : r.outer, length = meetsOne ? r.inner : r.count;
    float from[ops::kBlock], to[ops::kBlock];
    for (int64_t run = 0; run < runs; ++run)
        for (int64_t first = 0; first < length; first += ops::kBlock) {
            int64_t const n = std::min(ops::kBlock, length - first), at = run * length + first;
            float const* const x = ops::loadFloats(wide.type, wide.data, at, 1, n, from);
            float* const y = ops::floatsAt(out.type, out.data, at, to);
            if (meetsOne) {
                float const b = narrow[size_t(run % r.count)];
                for (int64_t i = 0; i < n; ++i)
                    y[i] = f(x[i], b);
            } else {
                float const* const b = &narrow[size_t(first)];
                for (int64_t i = 0; i < n; ++i)
                    y[i] = f(x[i], b[i]);
            }
            ops::storeFloats(out.type, out.data, at, n, y);
        }
}

Tensor elementwise(ir::Node const& n, std::vector<TensorRef> const& in)
{
    using enum ops::elementwise::Operation;
    auto const op = n.attrsAs<ops::elementwise::Attrs>().operation;
    Extents const dims = ir::extentsOf(n.outputs[0]->shape);
    DataType const type = n.outputs[0]->type;
    bool const first = in[0].dims == dims;
    TensorRef const &wide = in[first ? 0 : 1], &narrow = in[first ? 1 : 0];
    Rows r;
    if (!isFloating(type) || wide.type != type || narrow.type != type || !(wide.dims == dims) ||
        !findRows(dims, narrow.dims, r))
        return {};
    auto run = [&](auto const& f) {
        Tensor out(type, dims);
        if (out.data() && out.count() > 0)
            forRows(r, wide, floatsOf(narrow), out.ref(), f);
        return out;
    };
    switch (op) {
    case kSum:
        return run([](float a, float b) { return a + b; });
    case kProd:
        return run([](float a, float b) { return a * b; });
    case kSub:
        return first ? run([](float a, float b) { return a - b; }) : run([](float a, float b) { return b - a; });
    case kDiv:
        return first ? run([](float a, float b) { return a / b; }) : run([](float a, float b) { return b / a; });
    case kMax:
    case kMin:
        // Against one number that is neither zero nor NaN, which have more than one form.
        if (narrow.count() != 1 || !(narrow.get(0) < 0 || narrow.get(0) > 0))
            return {};
        return op == kMax ? run([](float a, float b) { return a < b ? b : a; })
                          : run([](float a, float b) { return a > b ? b : a; });
    default:
        return {};
    }
}

Tensor identity(ir::Node const& n, std::vector<TensorRef> const& in)
{
    DataType const type = n.outputs[0]->type;
    if (!isFullFloat(in[0].type) || !isNarrowFloat(type))
        return {};
    Tensor out(type, in[0].dims);
    if (out.data())
        ops::storeFloats(type, out.data(), 0, out.count(), in[0].as<float>());
    return out;
}

Tensor concatenation(ir::Node const& n, std::vector<TensorRef> const& in)
{
    Extents const dims = ir::extentsOf(n.outputs[0]->shape);
    int const axis = n.attrsAs<ops::concatenation::Attrs>().axis;
    if (axis < 0 || axis >= dims.rank)
        return {};
    Tensor out(n.outputs[0]->type, dims);
    auto* to = static_cast<std::byte*>(out.data());
    int64_t const rows = dims.volume(0, axis);
    for (int64_t r = 0; to && r < rows; ++r)
        for (TensorRef const& t : in) {
            size_t const bytes = size_t(t.sizeBytes() / rows);
            std::memcpy(to, static_cast<std::byte const*>(t.data) + size_t(r) * bytes, bytes);
            to += bytes;
        }
    return out;
}

// Elements of `to` in order; its dimension d moves `strides[d]` elements in `from`.
template <class T>
void copyStrided(T const* from, Extents const& dims, Extents const& strides, T* to)
{
    int const rank = dims.rank;
    if (rank == 0) {
        *to = *from;
        return;
    }
    // The last dimension, or what is transposed with it: neighbours in `from` stand in dimension `across`.
    int const last = rank - 1;
    int across = -1;
    for (int d = 0; d < last && strides[last] != 1; ++d)
        if (strides[d] == 1 && dims[d] > 1)
            across = d;
    Extents const pitches = stridesOf(dims);
    std::vector<int64_t> at(size_t(rank), 0);
    int64_t const inner = dims[last], step = strides[last];
    int64_t const runs = inner ? dims.volume() / inner / (across < 0 ? 1 : dims[across]) : 0;
    int64_t base = 0, place = 0;
    for (int64_t r = 0; r < runs; ++r) {
        if (across >= 0)
            transposePlane(from + base, step, to + place, pitches[across], inner, dims[across]);
        else if (step == 1)
            std::memcpy(to + place, from + base, size_t(inner) * sizeof(T));
        else
            for (int64_t i = 0; i < inner; ++i)
                to[place + i] = from[base + i * step];
        for (int d = last - 1; d >= 0; --d) {
            if (d == across)
                continue;
            base += strides[d];
            place += pitches[d];
            if (++at[size_t(d)] < dims[d])
                break;
            base -= at[size_t(d)] * strides[d];
            place -= at[size_t(d)] * pitches[d];
            at[size_t(d)] = 0;
        }
    }
}

// `shape` has as many elements as `dims`.
Tensor copied(TensorRef const& x, Extents const& dims, Extents const& strides, int64_t offset, Extents const& shape)
{
    Tensor out(x.type, shape);
    if (!out.data() || out.count() == 0)
        return out;
    if (sizeOf(x.type) == 4)
        copyStrided(x.as<uint32_t>() + offset, dims, strides, static_cast<uint32_t*>(out.data()));
    else if (sizeOf(x.type) == 2)
        copyStrided(x.as<uint16_t>() + offset, dims, strides, static_cast<uint16_t*>(out.data()));
    else
        copyStrided(x.as<uint8_t>() + offset, dims, strides, static_cast<uint8_t*>(out.data()));
    return out;
}

// In the order of `order`, none where it is empty; then in the dimensions of `shape`.
Tensor transposed(TensorRef const& x, std::vector<int64_t> const& order, Extents const& shape)
{
    Extents const strides = stridesOf(x.dims);
    Extents to, permutedStrides;
    for (int d = 0; d < x.dims.rank; ++d) {
        int const from = order.empty() ? d : int(order[size_t(d)]);
        permutedStrides.push(strides[from]);
        to.push(x.dims[from]);
    }
    return copied(x, to, permutedStrides, 0, shape);
}

Tensor shuffle(ir::Node const& n, std::vector<TensorRef> const& in)
{
    auto const& a = n.attrsAs<ops::shuffle::Attrs>();
    Extents const dims = ir::extentsOf(n.outputs[0]->shape);
    Extents const between = ops::shuffle::unpermuted(dims, a.secondTranspose);
    if (a.secondTranspose.empty())
        return transposed(in[0], a.firstTranspose, dims);
    if (a.firstTranspose.empty()) // only other dimensions
        return transposed({in[0].type, between, in[0].data}, a.secondTranspose, dims);
    Tensor const first = transposed(in[0], a.firstTranspose, between);
    return first.data() ? transposed(first.ref(), a.secondTranspose, dims) : Tensor();
}

Tensor slice(ir::Node const& n, std::vector<TensorRef> const& in)
{
    auto const& a = n.attrsAs<ops::slice::Attrs>();
    Extents const dims = ir::extentsOf(n.outputs[0]->shape);
    if (in.size() != 1 || a.mode != ops::slice::Mode::kStrict || a.start.size() != size_t(dims.rank) ||
        a.stride.size() != size_t(dims.rank))
        return {};
    Extents strides = stridesOf(in[0].dims);
    int64_t offset = 0;
    for (int d = 0; d < dims.rank; ++d) {
        int64_t const first = a.start[size_t(d)], last = first + (dims[d] - 1) * a.stride[size_t(d)];
        if (dims[d] > 0 && (std::min(first, last) < 0 || std::max(first, last) >= in[0].dims[d]))
            return {}; // the reference says what is wrong
        offset += a.start[size_t(d)] * strides[d];
        strides[d] *= a.stride[size_t(d)];
    }
    return copied(in[0], dims, strides, offset, dims);
}

} // namespace

Tensor runLoop(ir::Node const& node, std::vector<TensorRef> const& inputs)
{
    bool const isKnown = node.outputs.size() == 1 && ir::isStatic(node.outputs[0]->shape) &&
                         node.outputs[0]->format == Format::kLinear &&
                         std::ranges::all_of(inputs, [](TensorRef const& t) { return t.data; });
    if (!isKnown)
        return {};
    if (node.op == &ops::elementwise::def())
        return elementwise(node, inputs);
    if (node.op == &ops::identity::def())
        return identity(node, inputs);
    if (node.op == &ops::concatenation::def())
        return concatenation(node, inputs);
    if (node.op == &ops::shuffle::def())
        return shuffle(node, inputs);
    if (node.op == &ops::slice::def())
        return slice(node, inputs);
    if (node.op == &ops::unary::def())
        return unaryLoop(node, inputs);
    if (node.op == &ops::reduce::def())
        return reduceLoop(node, inputs);
    if (node.op == &ops::quantize::def())
        return quantizeLoop(node, inputs);
    return {};
}

} // namespace tw::recipe
