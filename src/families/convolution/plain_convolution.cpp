// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/element.h"
#include "base/round.h"
#include "families/convolution/tactics.h"
#include "families/elementwise/epilogue.h"

namespace tw::ops {

namespace {

// First output o >= 0 with o * stride + shift >= 0, and one past the last with o * stride + shift < in.
struct Span
{
    int64_t begin, end;
};
Span validOutputs(int64_t out, int64_t in, int64_t stride, int64_t shift)
{
    int64_t const begin = shift >= 0 ? 0 : divideUp(-shift, stride);
    int64_t const end = in - shift <= 0 ? 0 : divideUp(in - shift, stride);
    return Span{std::min(begin, out), std::clamp<int64_t>(end, 0, out)};
}

// Inputs i of [0, in) with 0 <= i * stride + shift < out.
Span validInputs(int64_t in, int64_t out, int64_t stride, int64_t shift)
{
    int64_t const begin = shift >= 0 ? 0 : divideUp(-shift, stride);
    int64_t const end = out - shift <= 0 ? 0 : divideUp(out - shift, stride);
    return Span{std::min(begin, in), std::clamp<int64_t>(end, 0, in)};
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

// One output plane at a time in an accumulator of out[0] * out[1] * out[2] elements; the innermost loop runs over
// a row of outputs with one weight, so that it vectorizes for stride 1.
template <class T, class End>
void convolveForward(convolution::Geometry const& g, T const* x, T const* w, End const& end, typename End::Sum* plane)
{
    using Sum = typename End::Sum;
    int64_t const groupC = g.c / g.groups, groupK = g.k / g.groups;
    int64_t const inPlane = g.in[0] * g.in[1] * g.in[2], outPlane = g.out[0] * g.out[1] * g.out[2];
    int64_t const window = g.window[0] * g.window[1] * g.window[2];
    for (int64_t n = 0; n < g.batch; ++n) {
        for (int64_t k = 0; k < g.k; ++k) {
            std::fill(plane, plane + outPlane, end.begin(k));
            for (int64_t c = 0; c < groupC; ++c) {
                T const* xPlane = x + (n * g.c + k / groupK * groupC + c) * inPlane;
                T const* wPlane = w + (k * groupC + c) * window;
                for (int64_t f0 = 0; f0 < g.window[0]; ++f0) {
                    int64_t const shift0 = f0 * g.dilation[0] - g.before[0];
                    Span const s0 = validOutputs(g.out[0], g.in[0], g.stride[0], shift0);
                    for (int64_t f1 = 0; f1 < g.window[1]; ++f1) {
                        int64_t const shift1 = f1 * g.dilation[1] - g.before[1];
                        Span const s1 = validOutputs(g.out[1], g.in[1], g.stride[1], shift1);
                        for (int64_t f2 = 0; f2 < g.window[2]; ++f2) {
                            int64_t const shift2 = f2 * g.dilation[2] - g.before[2];
                            Span const s2 = validOutputs(g.out[2], g.in[2], g.stride[2], shift2);
                            Sum const weight = load<Sum>(wPlane[(f0 * g.window[1] + f1) * g.window[2] + f2]);
                            for (int64_t o0 = s0.begin; o0 < s0.end; ++o0)
                                for (int64_t o1 = s1.begin; o1 < s1.end; ++o1) {
                                    T const* xRow =
                                        xPlane +
                                        ((o0 * g.stride[0] + shift0) * g.in[1] + o1 * g.stride[1] + shift1) * g.in[2] +
                                        shift2;
                                    Sum* row = plane + (o0 * g.out[1] + o1) * g.out[2];
                                    if (g.stride[2] == 1)
                                        for (int64_t o2 = s2.begin; o2 < s2.end; ++o2)
                                            row[o2] += weight * load<Sum>(xRow[o2]);
                                    else
                                        for (int64_t o2 = s2.begin; o2 < s2.end; ++o2)
                                            row[o2] += weight * load<Sum>(xRow[o2 * g.stride[2]]);
                                }
                        }
                    }
                }
            }
            end.store(plane, outPlane, (n * g.k + k) * outPlane, k);
        }
    }
}

// One output plane at a time in an accumulator of out[0] * out[1] * out[2] elements; the innermost loop spreads a row of
// inputs with one weight, so that it vectorizes for stride 1.
template <class T, class End>
void convolveTransposed(convolution::Geometry const& g, T const* x, T const* w, End const& end,
                        typename End::Sum* plane)
{
    using Sum = typename End::Sum;
    int64_t const groupC = g.c / g.groups, groupK = g.k / g.groups;
    int64_t const inPlane = g.in[0] * g.in[1] * g.in[2], outPlane = g.out[0] * g.out[1] * g.out[2];
    int64_t const window = g.window[0] * g.window[1] * g.window[2];
    for (int64_t n = 0; n < g.batch; ++n)
        for (int64_t k = 0; k < g.k; ++k) {
            std::fill(plane, plane + outPlane, end.begin(k));
            int64_t const firstC = k / groupK * groupC;
            for (int64_t c = firstC; c < firstC + groupC; ++c) {
                T const* xPlane = x + (n * g.c + c) * inPlane;
                T const* wPlane = w + (c * groupK + k % groupK) * window;
                for (int64_t f0 = 0; f0 < g.window[0]; ++f0) {
                    int64_t const shift0 = f0 * g.dilation[0] - g.before[0];
                    Span const s0 = validInputs(g.in[0], g.out[0], g.stride[0], shift0);
                    for (int64_t f1 = 0; f1 < g.window[1]; ++f1) {
                        int64_t const shift1 = f1 * g.dilation[1] - g.before[1];
                        Span const s1 = validInputs(g.in[1], g.out[1], g.stride[1], shift1);
                        for (int64_t f2 = 0; f2 < g.window[2]; ++f2) {
                            int64_t const stride = g.stride[2], shift2 = f2 * g.dilation[2] - g.before[2];
                            Span const s2 = validInputs(g.in[2], g.out[2], stride, shift2);
                            Sum const weight = load<Sum>(wPlane[(f0 * g.window[1] + f1) * g.window[2] + f2]);
                            for (int64_t i0 = s0.begin; i0 < s0.end; ++i0)
                                for (int64_t i1 = s1.begin; i1 < s1.end; ++i1) {
                                    T const* xRow = xPlane + (i0 * g.in[1] + i1) * g.in[2];
                                    int64_t const row =
                                        ((i0 * g.stride[0] + shift0) * g.out[1] + i1 * g.stride[1] + shift1) *
                                            g.out[2] +
                                        shift2;
                                    if (stride == 1)
                                        for (int64_t i2 = s2.begin; i2 < s2.end; ++i2)
                                            plane[row + i2] += weight * load<Sum>(xRow[i2]);
                                    else
                                        for (int64_t i2 = s2.begin; i2 < s2.end; ++i2)
                                            plane[row + i2 * stride] += weight * load<Sum>(xRow[i2]);
                                }
                        }
                    }
                }
            }
            end.store(plane, outPlane, (n * g.k + k) * outPlane, k);
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
    auto const one = kind == WindowKind::kDeconvolution ? convolveTransposed<T, End> : convolveForward<T, End>;
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
