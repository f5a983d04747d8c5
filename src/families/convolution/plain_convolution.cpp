// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/element.h"
#include "base/round.h"
#include "families/convolution/tactics.h"
#include "families/elementwise/epilogue.h"

namespace tw::ops {

namespace {

// Positions i of [0, n) with 0 <= i * stride + shift < other.
struct Span
{
    int64_t begin, end;
};
Span validPositions(int64_t n, int64_t other, int64_t stride, int64_t shift)
{
    int64_t const begin = shift >= 0 ? 0 : divideUp(-shift, stride);
    int64_t const end = other - shift <= 0 ? 0 : divideUp(other - shift, stride);
    return Span{std::min(begin, n), std::clamp<int64_t>(end, 0, n)};
}

// What stands before and after the sums of floats.
template <class T>
struct FloatEnd
{
    using Sum = float;
    T const *bias, *residual;
    FusedActivation const& f;
    T* y;

    float begin(int64_t k) const { return bias ? loadElement(bias[k]) : 0.0f; }
    // Of a plane of channel k, which lies `at` elements into y and residual.
    void store(float* plane, int64_t count, int64_t at, int64_t /*k*/) const
    {
        if (residual)
            for (int64_t i = 0; i < count; ++i)
                plane[i] += loadElement(residual[at + i]);
        if (f.any())
            activate(f, plane, plane, count);
        for (int64_t i = 0; i < count; ++i)
            storeElement(y[at + i], plane[i]);
    }
};

struct EndOfIntegers
{
    using Sum = int32_t;
    IntegerEnd end;

    int32_t begin(int64_t) const { return 0; }
    void store(int32_t const* plane, int64_t count, int64_t at, int64_t k) const { end.store(plane, count, at, k, 0); }
};

// Factors as they are summed.
template <class Sum, class T>
Sum load(T v)
{
    if constexpr (std::is_same_v<Sum, int32_t>)
        return v;
    else
        return loadElement(v);
}

// One output plane at a time in an accumulator of out[0] * out[1] * out[2] elements. Positions i run over outputs, which
// take the inputs i * stride + shift; of a transposed convolution over inputs, which go to such outputs. The innermost loop
// runs over a row of them with one weight, so that it vectorizes for stride 1.
template <class T, class End, bool transposed>
void convolveAll(convolution::Geometry const& g, T const* x, T const* w, End const& end, typename End::Sum* plane)
{
    using Sum = typename End::Sum;
    int64_t const groupC = g.c / g.groups, groupK = g.k / g.groups;
    int64_t const inPlane = g.in[0] * g.in[1] * g.in[2], outPlane = g.out[0] * g.out[1] * g.out[2];
    int64_t const window = g.window[0] * g.window[1] * g.window[2], stride = g.stride[2];
    int64_t const *n = transposed ? g.in : g.out, *other = transposed ? g.out : g.in;
    auto shiftOf = [&](int axis, int64_t f) { return f * g.dilation[axis] - g.before[axis]; };
    auto spanOf = [&](int axis, int64_t f) {
        return validPositions(n[axis], other[axis], g.stride[axis], shiftOf(axis, f));
    };
    for (int64_t nk = 0; nk < g.batch * g.k; ++nk) {
        int64_t const k = nk % g.k, firstC = k / groupK * groupC;
        std::fill(plane, plane + outPlane, end.begin(k));
        for (int64_t c = 0; c < groupC; ++c) {
            T const* const xPlane = x + (nk / g.k * g.c + firstC + c) * inPlane;
            T const* weights = w + (transposed ? (firstC + c) * groupK + k % groupK : k * groupC + c) * window;
            for (int64_t f0 = 0; f0 < g.window[0]; ++f0)
                for (int64_t f1 = 0; f1 < g.window[1]; ++f1)
                    for (int64_t f2 = 0; f2 < g.window[2]; ++f2) {
                        Sum const weight = load<Sum>(*weights++);
                        Span const s0 = spanOf(0, f0), s1 = spanOf(1, f1), s2 = spanOf(2, f2);
                        for (int64_t i0 = s0.begin; i0 < s0.end; ++i0)
                            for (int64_t i1 = s1.begin; i1 < s1.end; ++i1) {
                                int64_t const row = (i0 * n[1] + i1) * n[2];
                                int64_t const otherRow = ((i0 * g.stride[0] + shiftOf(0, f0)) * other[1] +
                                                          i1 * g.stride[1] + shiftOf(1, f1)) *
                                                             other[2] +
                                                         shiftOf(2, f2);
                                T const* const from = xPlane + (transposed ? row : otherRow);
                                Sum* const to = plane + (transposed ? otherRow : row);
                                if (stride == 1)
                                    for (int64_t i2 = s2.begin; i2 < s2.end; ++i2)
                                        to[i2] += weight * load<Sum>(from[i2]);
                                else
                                    for (int64_t i2 = s2.begin; i2 < s2.end; ++i2)
                                        to[transposed ? i2 * stride : i2] +=
                                            weight * load<Sum>(from[transposed ? i2 : i2 * stride]);
                            }
                    }
        }
        end.store(plane, outPlane, nk * outPlane, k);
    }
}

} // namespace

int64_t convolvePlainWorkspaceBytes(TensorRef const& w, TensorRef const& y)
{
    int const windowRank = w.dims.rank - 2;
    return y.dims.volume(y.dims.rank - windowRank, y.dims.rank) * int64_t(sizeof(float));
}

namespace {

template <class T, class End>
void convolve(WindowKind kind, convolution::Geometry const& g, TensorRef const& x, TensorRef const& w, End const& end,
              void* plane)
{
    auto const one = kind == WindowKind::kDeconvolution ? convolveAll<T, End, true> : convolveAll<T, End, false>;
    one(g, x.as<T>(), w.as<T>(), end, static_cast<typename End::Sum*>(plane));
}

template <class T>
FloatEnd<T> endOf(TensorRef const& b, TensorRef const& residual, FusedActivation const& f, TensorRef const& y)
{
    return {b.as<T>(), residual.as<T>(), f, y.as<T>()};
}

} // namespace

void convolvePlain(WindowKind kind, KernelWindowAttrs const& a, TensorRef const& x, TensorRef const& w,
                   TensorRef const& b, TensorRef const& residual, FusedActivation const& f, TensorRef const& y,
                   void* workspace)
{
    convolution::Geometry const g = geometryOf(kind, a, x.dims, w.dims, y.dims);
    withFloat(x.type, [&](auto element) {
        using T = decltype(element);
        convolve<T>(kind, g, x, w, endOf<T>(b, residual, f, y), workspace);
    });
}

void convolveIntegersPlain(convolution::Attrs const& a, std::span<TensorRef const> in, TensorRef const& y,
                           void* workspace)
{
    convolution::Geometry const g = convolution::geometryOf(a, in[0].dims, in[1].dims, y.dims);
    convolve<int8_t>(a.kind(), g, in[0], in[1], EndOfIntegers{IntegerEnd(a.epilogue, in, y)}, workspace);
}

} // namespace tw::ops
