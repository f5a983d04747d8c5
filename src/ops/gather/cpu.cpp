// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/gather/op.h"
#include "ops/tactic.h"

namespace tw::ops::gather {

namespace {

// Where index i of a dimension of `size` elements points; negative: nowhere.
int64_t resolve(int32_t i, int64_t size)
{
    int64_t const p = i < 0 ? i + size : i;
    return p < size ? p : -1;
}

template <class T>
void copyBlock(T const* x, T* y, int64_t p, int64_t block)
{
    if (p < 0)
        std::fill_n(y, block, T(0));
    else
        std::copy_n(x + p * block, block, y);
}

// y [batch, outer, count, inner] from x [batch or 1, outer, size, inner] and j [batch or 1, count].
template <class T>
void gatherAxis(Attrs const& a, TensorRef const& x, TensorRef const& j, TensorRef const& y)
{
    int const n = int(a.elementWiseDims), axis = int(a.axis);
    int64_t const batch = y.dims.volume(0, n), outer = x.dims.volume(n, axis), size = x.dims[axis];
    int64_t const inner = x.dims.volume(axis + 1, x.dims.rank), count = j.dims.volume(n, j.dims.rank);
    int64_t const xStep = x.dims.volume(0, n) == 1 ? 0 : outer * size * inner;
    int64_t const jStep = j.dims.volume(0, n) == 1 ? 0 : count;
    T* py = y.as<T>();
    for (int64_t b = 0; b < batch; ++b) {
        int32_t const* pj = j.as<int32_t>() + b * jStep;
        for (int64_t o = 0; o < outer; ++o) {
            T const* px = x.as<T>() + b * xStep + o * size * inner;
            if (inner == 1) {
                for (int64_t i = 0; i < count; ++i) {
                    int64_t const p = resolve(pj[i], size);
                    *py++ = p < 0 ? T(0) : px[p];
                }
            } else {
                for (int64_t i = 0; i < count; ++i, py += inner)
                    copyBlock(px, py, resolve(pj[i], size), inner);
            }
        }
    }
}

// One row of y at a time: along the last dimension the source moves by one element, or to the element the index names.
template <class T>
void gatherElements(Attrs const& a, TensorRef const& x, TensorRef const& j, TensorRef const& y)
{
    int const axis = int(a.axis), last = x.dims.rank - 1;
    Extents const strides = stridesOf(x.dims);
    int64_t const size = x.dims[axis], step = strides[axis], n = y.dims[last];
    Extents outer = y.dims;
    outer.rank = last;
    Counter c(outer);
    int32_t const* pj = j.as<int32_t>();
    T* py = y.as<T>();
    do {
        int64_t base = 0;
        for (int d = 0; d < last; ++d)
            base += d == axis ? 0 : c.at[d] * strides[d];
        T const* px = x.as<T>() + base;
        for (int64_t i = 0; i < n; ++i) {
            int64_t const p = resolve(pj[i], size);
            py[i] = p < 0 ? T(0) : px[p * step + (axis == last ? 0 : i)];
        }
        pj += n;
        py += n;
    } while (c.next());
}

// y [batch, count, block] from x [batch, positions, block] and j [batch, count, k].
template <class T>
void gatherNd(Attrs const& a, TensorRef const& x, TensorRef const& j, TensorRef const& y)
{
    int const n = int(a.elementWiseDims), k = int(j.dims[j.dims.rank - 1]);
    int64_t const batch = x.dims.volume(0, n), positions = x.dims.volume(n, n + k);
    int64_t const block = x.dims.volume(n + k, x.dims.rank), count = j.dims.volume(n, j.dims.rank - 1);
    int32_t const* pj = j.as<int32_t>();
    T* py = y.as<T>();
    for (int64_t b = 0; b < batch; ++b) {
        T const* px = x.as<T>() + b * positions * block;
        for (int64_t i = 0; i < count; ++i, pj += k, py += block) {
            int64_t p = 0;
            for (int d = 0; d < k && p >= 0; ++d) {
                int64_t const at = resolve(pj[d], x.dims[n + d]);
                p = at < 0 ? -1 : p * x.dims[n + d] + at;
            }
            copyBlock(px, py, p, block);
        }
    }
}

template <class T>
void gather(Attrs const& a, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &j = args.inputs[1], &y = args.outputs[0];
    switch (a.mode) {
    case Mode::kDefault:
        return gatherAxis<T>(a, x, j, y);
    case Mode::kElement:
        return gatherElements<T>(a, x, j, y);
    case Mode::kNd:
        return gatherNd<T>(a, x, j, y);
    }
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    if (args.outputs[0].count() == 0)
        return {};
    switch (sizeOf(args.inputs[0].type)) {
    case 4:
        gather<uint32_t>(a, args);
        break;
    case 2:
        gather<uint16_t>(a, args);
        break;
    default:
        gather<uint8_t>(a, args);
        break;
    }
    return {};
}

constexpr PlainTactic kPlain{"gather_plain", 1, run};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::gather
