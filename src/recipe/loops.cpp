// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/element.h"
#include "ops/concatenation/op.h"
#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::recipe {

namespace {

// `narrow` stretched over `wide`: element k of it stands for `inner` neighbours, `outer` times.
struct Rows
{
    int64_t outer = 1, count = 1, inner = 1;
};

bool findRows(Extents const& wide, Extents const& narrow, Rows& r)
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
    r = {wide.volume(0, first), narrow.volume(), wide.volume(last, wide.rank)};
    return true;
}

template <class F>
void forRows(Rows const& r, float const* wide, float const* narrow, float* out, F const& f)
{
    int64_t at = 0;
    for (int64_t o = 0; o < r.outer; ++o) {
        if (r.inner == 1) {
            for (int64_t k = 0; k < r.count; ++k)
                out[at + k] = f(wide[at + k], narrow[k]);
            at += r.count;
            continue;
        }
        for (int64_t k = 0; k < r.count; ++k, at += r.inner) {
            float const b = narrow[k];
            for (int64_t i = at; i < at + r.inner; ++i)
                out[i] = f(wide[i], b);
        }
    }
}

Tensor elementwise(ir::Node const& n, std::vector<TensorRef> const& in)
{
    using enum ops::elementwise::Operation;
    auto const op = n.attrsAs<ops::elementwise::Attrs>().operation;
    Extents const dims = ir::extentsOf(n.outputs[0]->shape);
    bool const first = in[0].dims == dims;
    TensorRef const &wide = in[first ? 0 : 1], &narrow = in[first ? 1 : 0];
    Rows r;
    if (!isFullFloat(wide.type) || !isFullFloat(narrow.type) || !(wide.dims == dims) || !findRows(dims, narrow.dims, r))
        return {};
    auto run = [&](auto const& f) {
        Tensor out(DataType::kFloat, dims);
        if (out.data() && out.count() > 0)
            forRows(r, wide.as<float>(), narrow.as<float>(), out.ref().as<float>(), f);
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
    auto const* x = in[0].as<float>();
    withNarrow(type, [&](auto element) {
        auto* y = static_cast<decltype(element)*>(out.data());
        for (int64_t i = 0, count = y ? out.count() : 0; i < count; ++i)
            storeElement(y[i], x[i]);
    });
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

// Elements of `out` in order; input dimension d moves `strides[d]` elements, from `from` on.
template <class T>
void copyStrided(T const* from, Extents const& dims, Extents const& strides, T* to)
{
    int const rank = dims.rank;
    if (rank == 0) {
        *to = *from;
        return;
    }
    std::vector<int64_t> at(size_t(rank), 0);
    int64_t const inner = dims[rank - 1], step = strides[rank - 1], rows = inner ? dims.volume() / inner : 0;
    int64_t base = 0;
    for (int64_t r = 0; r < rows; ++r) {
        if (step == 1)
            std::memcpy(to, from + base, size_t(inner) * sizeof(T));
        else
            for (int64_t i = 0; i < inner; ++i)
                to[i] = from[base + i * step];
        to += inner;
        for (int d = rank - 2; d >= 0; --d) {
            base += strides[d];
            if (++at[size_t(d)] < dims[d])
                break;
            base -= at[size_t(d)] * strides[d];
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

// Transposed once, before or after its dimensions change, or not at all.
Tensor shuffle(ir::Node const& n, std::vector<TensorRef> const& in)
{
    auto const& a = n.attrsAs<ops::shuffle::Attrs>();
    Extents const dims = ir::extentsOf(n.outputs[0]->shape);
    if (!a.firstTranspose.empty() && !a.secondTranspose.empty())
        return {};
    auto const& order = a.firstTranspose.empty() ? a.secondTranspose : a.firstTranspose;
    // Before the transpose: the input, or what it is reshaped to.
    Extents const before = a.secondTranspose.empty() ? in[0].dims : ops::shuffle::unpermuted(dims, order);
    Extents const strides = stridesOf(before);
    Extents to, permutedStrides;
    for (int d = 0; d < before.rank; ++d) {
        int const from = order.empty() ? d : int(order[size_t(d)]);
        permutedStrides.push(strides[from]);
        to.push(before[from]);
    }
    return copied(in[0], to, permutedStrides, 0, dims);
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
    return {};
}

} // namespace tw::recipe
