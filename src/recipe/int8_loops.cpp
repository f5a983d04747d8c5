// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/quantize/op.h"
#include "ops/reduce/op.h"
#include "ops/unary/op.h"
#include "recipe/loops.h"

namespace tw::recipe {

namespace {

template <class F>
Tensor applied(TensorRef const& x, F const& f)
{
    Tensor out(x.type, x.dims);
    auto* const y = static_cast<float*>(out.data());
    float const* const from = x.as<float>();
    for (int64_t i = 0, count = y ? out.count() : 0; i < count; ++i)
        y[i] = f(from[i]);
    return out;
}

// Half to even, of numbers up to 2^22: the sum has no bits behind the point.
float roundedSmall(float v)
{
    constexpr float kShift = 12582912; // 1.5 x 2^23
    return (v + kShift) - kShift;
}

} // namespace

Tensor unaryLoop(ir::Node const& node, std::vector<TensorRef> const& in)
{
    using enum ops::unary::Operation;
    if (!isFullFloat(in[0].type) || node.outputs[0]->type != in[0].type)
        return {};
    switch (node.attrsAs<ops::unary::Attrs>().operation) {
    case kAbs:
        return applied(in[0], [](float v) { return std::fabs(v); });
    case kFloor:
        return applied(in[0], [](float v) { return std::floor(v); });
    case kCeil:
        return applied(in[0], [](float v) { return std::ceil(v); });
    default:
        return {};
    }
}

Tensor reduceLoop(ir::Node const& node, std::vector<TensorRef> const& in)
{
    auto const& a = node.attrsAs<ops::reduce::Attrs>();
    TensorRef const& x = in[0];
    Extents kept = x.dims;
    for (int d = 0; d < x.dims.rank; ++d)
        if (a.has(d))
            kept[d] = 1;
    Rows r;
    if (!isFullFloat(x.type) || node.outputs[0]->type != x.type || a.kind != ops::reduce::Kind::kMax ||
        a.before != ops::reduce::Before::kNothing || a.after != ops::reduce::After::kNothing ||
        !findRows(x.dims, kept, r))
        return {};
    Tensor out(x.type, ir::extentsOf(node.outputs[0]->shape));
    auto* const y = static_cast<float*>(out.data());
    if (!y)
        return {};
    std::fill_n(y, r.count, -std::numeric_limits<float>::infinity());
    float const* from = x.as<float>();
    for (int64_t o = 0; o < r.outer; ++o)
        for (int64_t k = 0; k < r.count; ++k, from += r.inner) {
            float most = y[k];
            for (int64_t i = 0; i < r.inner; ++i)
                most = from[i] > most || from[i] != from[i] ? from[i] : most; // NaN stays
            y[k] = most;
        }
    return out;
}

Tensor quantizeLoop(ir::Node const& node, std::vector<TensorRef> const& in)
{
    TensorRef const &x = in[0], &scale = in[1];
    int const axis = node.attrsAs<ops::quantize::Attrs>().axis;
    if (!isFullFloat(x.type) || !isFullFloat(scale.type) || !isQuantized(node.outputs[0]->type))
        return {};
    Tensor out(DataType::kInt8, x.dims);
    auto* const y = static_cast<int8_t*>(out.data());
    int64_t const count = axis < 0 ? 1 : x.dims[axis],
                  inner = axis < 0 ? x.dims.volume() : x.dims.volume(axis + 1, x.dims.rank);
    int64_t const runs = y && inner > 0 ? out.count() / inner : 0;
    for (int64_t run = 0; run < runs; ++run) {
        float const step = scale.as<float>()[run % count];
        float const* const from = x.as<float>() + run * inner;
        for (int64_t i = 0; i < inner; ++i) {
            float const q = from[i] / step;
            y[run * inner + i] = q != q ? int8_t(0) : int8_t(roundedSmall(std::clamp(q, -128.f, 127.f)));
        }
    }
    return out;
}

} // namespace tw::recipe
