// SPDX-License-Identifier: Apache-2.0
// Cases of convolutions with residuals and activations.
#include "cases/programs.h"
#include "ops/convolution/cases.h"
#include "ops/convolution/op.h"

namespace tw::ops::convolution {

void epilogueCases(CaseList& list)
{
    using activation::Kind;
    auto add = [&](std::string const& name, Attrs a, std::vector<CaseInput> in,
                   std::vector<std::vector<double>> expected = {}) {
        list.add("epilogue_" + name, std::move(a), std::move(in), std::move(expected));
    };
    Attrs const plain = Attrs::plain(2), padded = evenly(1, 1).attrs(2),
                grouped = Form{.strides = {2, 1}, .groups = 2}.attrs(2);
    auto weights = [](Extents const& e, std::vector<double> v = {}) {
        return constant(DataType::kFloat, e, std::move(v));
    };
    // The sums of the windows are -2 and 4.
    add("relu_by_hand", Attrs(plain, Kind::kRelu),
        {f32({1, 1, 2, 3}, {1, -2, 3, 0, -1, 4}), weights({1, 1, 2, 2}, {1, 1, 1, 1})}, {{0, 4}});
    add("residual_by_hand", Attrs(plain, Kind::kRelu),
        {f32({1, 1, 2, 3}, {1, -2, 3, 0, -1, 4}), weights({1, 1, 2, 2}, {1, 1, 1, 1}), weights({1}, {1}),
         f32({1, 1, 1, 2}, {2, -7})},
        {{1, 0}});
    for (int k = FusedActivation::kNone; k < kFusedKindCount; ++k) {
        FusedActivation const f(FusedKind(k), 0.3F, 1.25F);
        add(fmt::format("kind{}", k + 1), Attrs(padded, f), {f32({2, 3, 7, 9}), weights({4, 3, 3, 3}), weights({4})});
    }
    add("groups", Attrs(grouped, {Kind::kClip, 0, 6}), {f32({1, 4, 6, 5}), weights({6, 2, 3, 3}), weights({6})});
    add("residual", Attrs(padded, Kind::kRelu),
        {f32({2, 3, 5, 5}), weights({4, 3, 3, 3}), weights({4}), f32({2, 4, 5, 5})});
    add("residual_40x17", Attrs(padded, Kind::kTanh),
        {f32({2, 40, 9, 6}), weights({17, 40, 3, 3}), weights({17}), f32({2, 17, 9, 6})});
    add("residual_no_bias", Attrs(padded, Kind::kLeakyRelu),
        {f32({2, 3, 5, 5}), weights({4, 3, 3, 3}), absent(), f32({2, 4, 5, 5})});
    // Emitted kernels: each end of the sum, in blocks of channels of every size, with tails.
    Attrs const eight = evenly(1, 1, 1, 4).attrs(2), depthwise = evenly(1, 1, 1, 50).attrs(2),
                spread = evenly(2, 1, 1, 50).attrs(2);
    for (int kind : {int(FusedActivation::kNone), int(Kind::kRelu), int(Kind::kTanh), kFusedKindCount - 4}) {
        FusedActivation f;
        f.kind = kind;
        std::string const name = fmt::format("kind{}", kind + 1);
        add("1x1_residual_" + name, Attrs(plain, f),
            {f32({2, 24, 5, 9}), weights({70, 24, 1, 1}), weights({70}), f32({2, 70, 5, 9})});
        add("3x3_residual_" + name, Attrs(padded, f),
            {f32({1, 17, 4, 15}), weights({40, 17, 3, 3}), absent(), f32({1, 40, 4, 15})});
        add("few_filters_residual_" + name, Attrs(padded, f),
            {f32({2, 24, 5, 27}), weights({3, 24, 3, 3}), weights({3}), f32({2, 3, 5, 27})});
        add("groups_residual_" + name, Attrs(eight, f),
            {f32({1, 20, 4, 15}), weights({28, 5, 3, 3}), weights({28}), f32({1, 28, 4, 15})});
        add("depthwise_residual_" + name, Attrs(depthwise, f),
            {f32({2, 50, 6, 17}), weights({50, 1, 3, 3}), weights({50}), f32({2, 50, 6, 17})});
        add("depthwise_volume_residual_" + name, Attrs(evenly(1, 1, 1, 50).attrs(3), f),
            {f32({2, 50, 3, 6, 7}), weights({50, 1, 3, 3, 3}), weights({50}), f32({2, 50, 3, 6, 7})});
        add("depthwise_stride2_" + name, Attrs(spread, f),
            {f32({1, 50, 8, 29}), weights({50, 1, 3, 3}), weights({50})});
    }
    add("3d", Attrs(Attrs::plain(3), Kind::kRelu), {f32({1, 2, 4, 5, 6}), weights({3, 2, 2, 3, 3})});
    add("empty", Attrs(plain, Kind::kRelu), {f32({0, 2, 4, 4}), weights({3, 2, 3, 3})});
    for (bool residual : {false, true}) {
        std::vector<CaseInput> in{input(DataType::kHalf, {1, 3, 6, 7}), constant(DataType::kHalf, {5, 3, 3, 3}),
                                  constant(DataType::kHalf, {5})};
        if (residual)
            in.push_back(input(DataType::kHalf, {1, 5, 6, 7}));
        add(residual ? "half_residual" : "half", Attrs(padded, Kind::kSigmoid), std::move(in));
    }
    // FP16 and FP32 by the tensor cores: residual and activation after whole vectors of channels and tails.
    auto image = [&](char const* name, Attrs const& a, FusedActivation const& f, Extents x, Extents w,
                     Extents residual) {
        for (DataType t : {DataType::kHalf, DataType::kFloat}) {
            std::vector<CaseInput> in{input(t, x), constant(t, w), constant(t, {w[0]})};
            if (residual.rank > 0)
                in.push_back(input(t, residual));
            add(wordOf(t) + "_" + name, Attrs(a, f), std::move(in));
        }
    };
    Attrs const first = evenly(2, 3).attrs(2), alone = evenly(1, 1, 1, 136).attrs(2);
    image("1x1_relu", plain, Kind::kRelu, {2, 64, 7, 9}, {136, 64, 1, 1}, {});
    image("1x1_residual", plain, Kind::kRelu, {2, 64, 7, 9}, {136, 64, 1, 1}, {2, 136, 7, 9});
    image("1x1_residual_few_rows", plain, Kind::kTanh, {1, 128, 5, 6}, {64, 128, 1, 1}, {1, 64, 5, 6});
    image("1x1_residual_tails", plain, FusedActivation(FusedKind::kSwish), {2, 20, 7, 9}, {37, 20, 1, 1},
          {2, 37, 7, 9});
    image("3x3_residual", padded, Kind::kRelu, {2, 40, 9, 11}, {96, 40, 3, 3}, {2, 96, 9, 11});
    image("3x3_clip", padded, {Kind::kClip, 0, 6}, {2, 40, 9, 11}, {96, 40, 3, 3}, {});
    image("3x3_none_residual", padded, {}, {1, 24, 6, 5}, {21, 24, 3, 3}, {1, 21, 6, 5});
    image("groups_residual", grouped, FusedActivation(FusedKind::kHardSwish, 0.2f, 0.5f), {1, 16, 6, 5}, {12, 8, 3, 3},
          {1, 12, 2, 3});
    image("groups_whole_residual", grouped, Kind::kSigmoid, {1, 16, 6, 5}, {32, 8, 3, 3}, {1, 32, 2, 3});
    image("depthwise_tiles_residual", alone, Kind::kThresholdedRelu, {8, 136, 17, 49}, {136, 1, 3, 3},
          {8, 136, 17, 49});
    image("7x7_first", first, Kind::kRelu, {2, 3, 32, 48}, {64, 3, 7, 7}, {});
    image("7x7_first_residual", first, Kind::kRelu, {1, 3, 32, 48}, {24, 3, 7, 7}, {1, 24, 16, 24});
    image("depthwise_residual", depthwise, FusedActivation(FusedKind::kGeluErf), {2, 50, 6, 17}, {50, 1, 3, 3},
          {2, 50, 6, 17});
    image("depthwise_swish", spread, FusedActivation(FusedKind::kSwish), {1, 50, 8, 29}, {50, 1, 3, 3}, {});
    for (DataType type : {DataType::kHalf, DataType::kFloat})
        add(wordOf(type) + "_3d_residual", Attrs(Attrs::plain(3), Kind::kRelu),
            {input(type, {2, 24, 4, 5, 6}), constant(type, {40, 24, 2, 3, 3}), constant(type, {40}),
             input(type, {2, 40, 3, 3, 4})});
}

// Expressions behind each kind of kernel.
void programCases(CaseList& list)
{
    struct Layer
    {
        char const* name;
        Form window;
        Extents x, w, y;
        bool transposed = false;
    };
    Layer const layers[] = {{"1x1", {}, {2, 40, 7, 9}, {37, 40, 1, 1}, {2, 37, 7, 9}},
                            {"3x3", {.pad = {1}}, {1, 32, 12, 14}, {48, 32, 3, 3}, {1, 48, 12, 14}},
                            {"depthwise", {.pad = {1}, .groups = 50}, {1, 50, 9, 17}, {50, 1, 3, 3}, {1, 50, 9, 17}},
                            {"groups", {.groups = 2}, {1, 16, 6, 5}, {12, 8, 3, 3}, {1, 12, 4, 3}},
                            {"3d", {}, {1, 8, 4, 5, 6}, {12, 8, 2, 3, 3}, {1, 12, 3, 3, 4}},
                            {"transposed", {.strides = {2}}, {1, 16, 5, 6}, {16, 24, 2, 2}, {1, 24, 10, 12}, true}};
    int turn = 0; // a third of them in FP16
    for (Layer const& l : layers)
        for (EpilogueProgram const& program : epiloguePrograms())
            for (DataType t : {DataType::kFloat, DataType::kHalf}) {
                if (isNarrowFloat(t) && turn++ % 3 != 0)
                    continue;
                Attrs a = l.window.attrs(l.w.rank - 2, l.transposed);
                program.setTo(a.epilogue);
                std::vector<CaseInput> in{input(t, l.x), constant(t, l.w), constant(t, {l.y[1]})};
                if (program.residual)
                    in.push_back(input(t, l.y));
                list.add(std::string("steps_") + wordOf(t) + "_" + l.name + "_" + program.name, a, in);
            }
}

} // namespace tw::ops::convolution
