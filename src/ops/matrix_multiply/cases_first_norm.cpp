// SPDX-License-Identifier: Apache-2.0
// Cases of products whose rows of a are normalized first.
#include "ops/matrix_multiply/cases.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops::matrix_multiply {

namespace {

using enum MatrixOperation;
using activation::Kind;

Attrs attrsOf(FirstNorm norm, MatrixOperation b, FusedActivation const& f = {}, double epsilon = 1e-5)
{
    Attrs a(kNone, b, f);
    a.firstNorm = norm;
    a.firstEpsilon = epsilon;
    return a;
}

// Rows of what networks add up over many layers: numbers around `center`, of which every 97th is a hundred times as large.
std::vector<double> residualStream(int64_t count, double center)
{
    std::vector<double> v;
    for (int64_t i = 0; i < count; ++i)
        v.push_back((i % 97 == 5 ? 1200 : 1) * (double(i * 37 % 101) / 50 - 1) + center);
    return v;
}

void byHand(CaseList& list)
{
    auto add = [&](std::string const& name, Attrs const& a, std::vector<CaseInput> in, std::vector<double> expected) {
        list.add("first_norm_" + name, a, std::move(in), {std::move(expected)});
    };
    // [1 3 1 -1]: mean 1, variance 2, squares 3. Two columns: the second number, and the sum of all.
    CaseInput const x = f32({1, 4}, {1, 3, 1, -1}), b = constant(DataType::kFloat, {4, 2}, {0, 1, 1, 1, 0, 1, 0, 1}),
                    bias = constant(DataType::kFloat, {2}, {10, 20});
    add("by_hand", attrsOf(FirstNorm::kLayer, kNone, {}, 2), {x, b, bias}, {11, 20});
    add("rms_by_hand", attrsOf(FirstNorm::kRms, kNone, {}, 1), {x, b, bias}, {11.5, 22});
    Attrs gated = attrsOf(FirstNorm::kRms, kNone, Kind::kRelu, 1);
    gated.gated = true;
    add("gated_by_hand", gated, {x, b, bias}, {253});
}

} // namespace

void firstNormCases(CaseList& list)
{
    byHand(list);
    struct Size
    {
        int64_t rows, k, n;
    };
    auto wordOfNorm = [](FirstNorm f) { return f == FirstNorm::kRms ? "rms" : "layer"; };
    int i = 0;
    // Rows before, at and behind eights and the sixteen that a tile normalizes; k and n around steps, tiles and splits.
    for (Size const& s : {Size{1, 8, 8},
                          {1, 768, 2304},
                          {2, 896, 1152},
                          {3, 72, 24},
                          {5, 200, 136},
                          {7, 2048, 264},
                          {8, 520, 1000},
                          {9, 4104, 72},
                          {13, 768, 71},
                          {16, 1024, 512},
                          {17, 128, 64},
                          {70, 264, 200},
                          {4, 7, 5},
                          {2, 1, 9}})
        for (FirstNorm norm : {FirstNorm::kLayer, FirstNorm::kRms})
            for (DataType t : {DataType::kHalf, DataType::kFloat}) {
                if (isFullFloat(t) && s.rows * s.k * s.n > (1 << 20))
                    continue;
                MatrixOperation const opB = ++i % 2 ? kTranspose : kNone;
                Attrs const a = attrsOf(norm, opB, i % 3 ? FusedActivation() : FusedActivation(FusedKind::kGeluErf));
                std::vector<CaseInput> in{input(t, {s.rows, s.k}),
                                          constant(t, opB == kNone ? Extents{s.k, s.n} : Extents{s.n, s.k})};
                if (i % 5 != 4)
                    in.push_back(constant(t, {s.n}));
                else if (i % 7 == 4)
                    in.push_back(absent());
                if (i % 7 == 4)
                    in.push_back(input(t, {s.rows, s.n}));
                list.add(fmt::format("first_norm_{}_{}_{}x{}x{}", wordOf(t), wordOfNorm(norm), s.rows, s.k, s.n), a,
                         in);
            }
    for (FirstNorm norm : {FirstNorm::kLayer, FirstNorm::kRms}) {
        std::string const word = fmt::format("first_norm_half_{}_", wordOfNorm(norm));
        auto add = [&](std::string const& name, Attrs const& a, std::vector<CaseInput> in) {
            list.add(word + name, a, std::move(in));
        };
        constexpr DataType kType = DataType::kHalf;
        auto x = [&](Extents const& e) { return input(kType, e); };
        auto w = [&](Extents const& e) { return constant(kType, e); };
        for (double center : {0., 20.})
            add(center == 0 ? "stream" : "stream_off_zero", attrsOf(norm, kTranspose),
                {input(kType, {6, 768}, residualStream(6 * 768, center)), w({320, 768}), w({320})});
        Attrs gated = attrsOf(norm, kTranspose, FusedActivation(FusedKind::kSwish));
        gated.gated = true;
        add("gated", gated, {x({1, 896}), w({1216, 896})});
        add("gated_bias", gated, {x({5, 200}), w({272, 200}), w({272})});
        add("gated_16_rows", gated, {x({16, 72}), w({144, 72}), w({144})});
        gated.b = kNone;
        add("gated_rows_of_b", gated, {x({3, 520}), w({520, 96}), w({96})});
        add("residual", attrsOf(norm, kNone), {x({9, 136}), w({136, 200}), w({200}), x({9, 200})});
        add("residual_no_bias", attrsOf(norm, kNone, Kind::kRelu), {x({1, 136}), w({136, 33}), absent(), x({1, 33})});
        add("batch_of_rows", attrsOf(norm, kTranspose), {x({2, 1, 3, 64}), w({1, 1, 40, 64}), w({40})});
        add("batch", attrsOf(norm, kNone), {x({3, 2, 64}), w({3, 64, 40})});
        add("not_constant", attrsOf(norm, kNone), {x({2, 64}), x({64, 40})});
        add("vector_b", attrsOf(norm, kVector), {x({3, 72}), w({72})});
        add("long", attrsOf(norm, kTranspose), {x({2, 20480}), w({16, 20480})});
        add("no_rows", attrsOf(norm, kNone), {x({0, 8}), w({8, 16})});
        add("no_inner", attrsOf(norm, kNone), {x({2, 0}), w({0, 6}), w({6})});
    }
}

} // namespace tw::ops::matrix_multiply
