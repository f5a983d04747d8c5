// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/element.h"
#include "ops/attention/op.h"
#include "ops/attention/tactics.h"
#include "tactic/tactic.h"

namespace tw::ops::attention {

namespace {

template <class T>
T const* at(TensorRef const& x, Strides const& p, int64_t b, int64_t h, int64_t row)
{
    return x.as<T>() + p.offset + b * p.batch + h * p.head + row * p.row;
}

// To a multiple of `step`, as a quantize and a dequantize do; 0: as it is.
float rounded(float x, double step)
{
    if (step == 0)
        return x;
    return x != x ? 0 : float(step) * std::clamp(std::nearbyintf(x / float(step)), -128.0F, 127.0F);
}

// `t`: one row of scores.
template <class T, class Key>
void attend(Attrs const& a, Geometry const& g, RunArgs& args, float* t)
{
    TensorRef const &y = args.outputs[0], none{};
    TensorRef const& mask = g.maskInput > 0 ? args.inputs[size_t(g.maskInput)] : none;
    TensorRef const& keep = g.keepInput > 0 ? args.inputs[size_t(g.keepInput)] : none;
    auto const* const sinks = elementsOf<T>(args.inputs, g.sinksInput);
    auto const* const slopes = elementsOf<float>(args.inputs, g.slopesInput);
    auto const* const lengths = elementsOf<int32_t>(args.inputs, g.lengthsInput);
    Table const table = tableOf(g, args.inputs);
    float const step = a.integers ? *args.inputs[size_t(a.scaleInput(args.inputs.size()))].as<float>() : 1;
    auto scaleOf = [&](int input, int64_t h) { // of keys, of values
        return a.scales ? elementsOf<float>(args.inputs, g.scalesInput + input)[h / a.headsPerKey] : 1.0F;
    };
    auto rowOf = [&](int64_t b, int64_t h, int64_t i, Keys const& keys) {
        T const* q = at<T>(args.inputs[0], g.q, b, h, i);
        float const sink = sinks ? loadElement(sinks[h]) : -std::numeric_limits<float>::infinity();
        float highest = sink;
        for (int64_t j = keys.from; j < keys.to; ++j) {
            Key const* k = at<Key>(args.inputs[1], g.k, table.image(b, j), h / a.headsPerKey, table.row(j));
            float s = 0;
            for (int64_t d = 0; d < a.size; ++d)
                s += loadElement(q[d]) * loadElement(k[d]);
            s = rounded(s * scaleOf(0, h) * float(a.scale), a.scoreStep);
            if (a.softcap > 0)
                s = float(a.softcap) * std::tanh(s / float(a.softcap));
            if (keep.data && (*(at<uint8_t>(keep, g.keep, b, h, i) + j) != 0) == a.keepInverted)
                s = float(a.fill);
            if (mask.data)
                s += loadElement(at<T>(mask, g.mask, b, h, i)[j]);
            if (slopes)
                s += slopes[h] * float(j - keys.position);
            t[j] = s = rounded(s, a.sumStep);
            highest = std::max(highest, s); // passes over NaN: the sum finds it
        }
        double sum = sinks ? double(std::exp(sink - highest)) : 0;
        for (int64_t j = keys.from; j < keys.to; ++j)
            sum += double(t[j] = std::exp(t[j] - highest));
        if (a.weightStep > 0) {
            for (int64_t j = keys.from; j < keys.to; ++j)
                t[j] = rounded(float(double(t[j]) / sum), a.weightStep);
            sum = 1;
        }
        int64_t const first = b * g.y.batch + i * g.y.row + h * g.y.head;
        for (int64_t d = 0; d < a.valueSize; ++d) {
            double s = 0;
            for (int64_t j = keys.from; j < keys.to; ++j)
                s += double(t[j] * loadElement(at<Key>(args.inputs[2], g.v, table.image(b, j), h / a.headsPerKey,
                                                       table.row(j))[d]));
            T stored;
            storeElement(stored, keys.from < keys.to ? s / sum * double(scaleOf(1, h)) : 0);
            if (a.integers)
                storeElement(y.as<int8_t>()[first + d], loadElement(stored) / step);
            else
                y.as<T>()[first + d] = stored;
        }
    };
    for (int64_t b = 0; b < g.batch; ++b)
        for (int64_t h = 0; h < a.heads; ++h) {
            auto rows = [&](int64_t begin, int64_t end, int64_t from, int64_t to) {
                for (int64_t i = begin; i < end; ++i)
                    rowOf(b, h, i, keysOf(a, from, to, g.rows, i));
            };
            if (g.beginsInput < 0)
                rows(0, g.rows, 0, lengthOf(lengths, b, g.columns));
            else
                forEachSegment(args.inputs[size_t(g.beginsInput)], g.rows,
                               [&](int64_t from, int64_t to) { rows(from, to, from, to); });
        }
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    Geometry const g = geometryOf(a, args.inputs);
    auto* t = static_cast<float*>(args.workspace);
    withFloat(args.inputs[0].type, [&](auto element) {
        withReal(args.inputs[1].type, [&](auto key) { attend<decltype(element), decltype(key)>(a, g, args, t); });
    });
    return {};
}

int64_t workspace(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    return geometryOf(node.attrsAs<Attrs>(), in).columns * int64_t(sizeof(float));
}

constexpr PlainTactic kPlain{"attention_any_plain_cpu", 1, run, workspace};
constexpr CpuTactic kAvx512{"attention_f32_jit_avx512", 3, kernels::jit::Isa::kAvx512, kJit};
constexpr CpuTactic kAvx2{"attention_f32_jit_avx2", 3, kernels::jit::Isa::kAvx2, kJit};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512, kAvx2, kPlain>;

} // namespace tw::ops::attention
