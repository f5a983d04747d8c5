// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/tactics.h"
#include "ops/deconvolution/op.h"
#include "tactic/element.h"
#include "tactic/tactic.h"

namespace tw::ops::deconvolution {

namespace {

// Inputs i of [0, in) with 0 <= i * stride + shift < out.
struct Span
{
    int64_t begin, end;
};
Span validInputs(int64_t in, int64_t out, int64_t stride, int64_t shift)
{
    int64_t const begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    int64_t const end = out - shift <= 0 ? 0 : (out - shift + stride - 1) / stride;
    return Span{std::min(begin, in), std::clamp<int64_t>(end, 0, in)};
}

// One output plane at a time in a float accumulator of out[0] * out[1] * out[2] elements; the innermost loop spreads a
// row of inputs with one weight, so that it vectorizes for stride 1.
template <class T>
void deconvolve(Geometry const& g, T const* x, T const* w, T const* b, T* y, float* plane)
{
    int64_t const groupC = g.c / g.groups, groupK = g.k / g.groups;
    int64_t const inPlane = g.in[0] * g.in[1] * g.in[2], outPlane = g.out[0] * g.out[1] * g.out[2];
    int64_t const window = g.window[0] * g.window[1] * g.window[2];
    for (int64_t n = 0; n < g.batch; ++n)
        for (int64_t k = 0; k < g.k; ++k) {
            std::fill(plane, plane + outPlane, b ? loadElement(b[k]) : 0.0f);
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
                            float const weight = loadElement(wPlane[(f0 * g.window[1] + f1) * g.window[2] + f2]);
                            for (int64_t i0 = s0.begin; i0 < s0.end; ++i0)
                                for (int64_t i1 = s1.begin; i1 < s1.end; ++i1) {
                                    T const* xRow = xPlane + (i0 * g.in[1] + i1) * g.in[2];
                                    int64_t const row =
                                        ((i0 * g.stride[0] + shift0) * g.out[1] + i1 * g.stride[1] + shift1) *
                                            g.out[2] +
                                        shift2;
                                    if (stride == 1)
                                        for (int64_t i2 = s2.begin; i2 < s2.end; ++i2)
                                            plane[row + i2] += weight * loadElement(xRow[i2]);
                                    else
                                        for (int64_t i2 = s2.begin; i2 < s2.end; ++i2)
                                            plane[row + i2 * stride] += weight * loadElement(xRow[i2]);
                                }
                        }
                    }
                }
            }
            T* out = y + (n * g.k + k) * outPlane;
            for (int64_t i = 0; i < outPlane; ++i)
                storeElement(out[i], plane[i]);
        }
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &w = args.inputs[1], &y = args.outputs[0];
    TensorRef const b = args.inputs.size() > 2 ? args.inputs[2] : TensorRef{};
    Geometry const g = geometryOf(node.attrsAs<Attrs>(), x.dims, w.dims, y.dims);
    auto* plane = static_cast<float*>(args.workspace);
    if (x.type == DataType::kFloat)
        deconvolve(g, x.as<float>(), w.as<float>(), b.as<float>(), y.as<float>(), plane);
    else
        deconvolve(g, x.as<uint16_t>(), w.as<uint16_t>(), b.as<uint16_t>(), y.as<uint16_t>(), plane);
    return {};
}

int64_t workspace(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    int const windowRank = in[1].dims.rank - 2; // one output plane
    return out[0].dims.volume(out[0].dims.rank - windowRank, out[0].dims.rank) * int64_t(sizeof(float));
}

using kernels::jit::Isa;
constexpr DirectTactic kDirectAvx512{"deconvolution_f32_direct_avx512", 1, Isa::kAvx512, DirectTactic::kTransposed,
                                     nullptr};
constexpr DirectTactic kDirectAvx2{"deconvolution_f32_direct_avx2", 1, Isa::kAvx2, DirectTactic::kTransposed, nullptr};
constexpr PlainTactic kPlain{"deconvolution_plain", 1, run, workspace};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kDirectAvx512, &kDirectAvx2, &kPlain};
    return kList;
}

} // namespace tw::ops::deconvolution
