// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/convolution/op.h"
#include "ops/tactic.h"

namespace tw::ops::convolution {

namespace {

float load(float v)
{
    return v;
}
float load(uint16_t v)
{
    return halfToFloat(v);
}
void store(float& to, float v)
{
    to = v;
}
void store(uint16_t& to, float v)
{
    to = floatToHalf(v);
}

// First output o >= 0 with o * stride + shift >= 0, and one past the last with o * stride + shift < in.
struct Span
{
    int64_t begin, end;
};
Span validOutputs(int64_t out, int64_t in, int64_t stride, int64_t shift)
{
    int64_t const begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    int64_t const end = in - shift <= 0 ? 0 : (in - shift + stride - 1) / stride;
    return Span{std::min(begin, out), std::clamp<int64_t>(end, 0, out)};
}

// One output plane at a time in a float accumulator of out[0] * out[1] * out[2] elements; the innermost loop runs over
// a row of outputs with one weight, so that it vectorizes for stride 1.
template <class T>
void convolve(Geometry const& g, T const* x, T const* w, T const* b, T* y, float* plane)
{
    int64_t const groupC = g.c / g.groups, groupK = g.k / g.groups;
    int64_t const inPlane = g.in[0] * g.in[1] * g.in[2], outPlane = g.out[0] * g.out[1] * g.out[2];
    int64_t const window = g.window[0] * g.window[1] * g.window[2];
    for (int64_t n = 0; n < g.batch; ++n) {
        for (int64_t k = 0; k < g.k; ++k) {
            std::fill(plane, plane + outPlane, b ? load(b[k]) : 0.0f);
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
                            float const weight = load(wPlane[(f0 * g.window[1] + f1) * g.window[2] + f2]);
                            for (int64_t o0 = s0.begin; o0 < s0.end; ++o0)
                                for (int64_t o1 = s1.begin; o1 < s1.end; ++o1) {
                                    T const* xRow =
                                        xPlane +
                                        ((o0 * g.stride[0] + shift0) * g.in[1] + o1 * g.stride[1] + shift1) * g.in[2] +
                                        shift2;
                                    float* row = plane + (o0 * g.out[1] + o1) * g.out[2];
                                    if (g.stride[2] == 1)
                                        for (int64_t o2 = s2.begin; o2 < s2.end; ++o2)
                                            row[o2] += weight * load(xRow[o2]);
                                    else
                                        for (int64_t o2 = s2.begin; o2 < s2.end; ++o2)
                                            row[o2] += weight * load(xRow[o2 * g.stride[2]]);
                                }
                        }
                    }
                }
            }
            T* out = y + (n * g.k + k) * outPlane;
            for (int64_t i = 0; i < outPlane; ++i)
                store(out[i], plane[i]);
        }
    }
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &w = args.inputs[1], &y = args.outputs[0];
    TensorRef const b = args.inputs.size() > 2 ? args.inputs[2] : TensorRef{};
    Geometry const g = geometryOf(node.attrsAs<Attrs>(), x.dims, w.dims, y.dims);
    auto* plane = static_cast<float*>(args.workspace);
    if (x.type == DataType::kFloat)
        convolve(g, x.as<float>(), w.as<float>(), b.as<float>(), y.as<float>(), plane);
    else
        convolve(g, x.as<uint16_t>(), w.as<uint16_t>(), b.as<uint16_t>(), y.as<uint16_t>(), plane);
    return {};
}

int64_t workspace(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    int const windowRank = in[1].dims.rank - 2; // one output plane
    return out[0].dims.volume(out[0].dims.rank - windowRank, out[0].dims.rank) * int64_t(sizeof(float));
}

constexpr PlainTactic kPlain{"convolution_plain", 1, run, workspace};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::convolution
