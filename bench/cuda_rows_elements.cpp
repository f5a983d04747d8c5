// SPDX-License-Identifier: Apache-2.0
#include "cuda_row.h"
#include "families/elementwise/activate.h"
#include "ops/activation/op.h"
#include "ops/elementwise/op.h"
#include "ops/layer_norm/op.h"
#include "ops/pointwise/op.h"
#include "ops/pooling/op.h"
#include "ops/reduce/op.h"
#include "ops/softmax/op.h"
#include "ops/unary/op.h"
#include "tactic/registry.h"

namespace tw::bench {

std::vector<Row> elementRows()
{
    using namespace ops;
    constexpr DataType h = DataType::kHalf, f = DataType::kFloat;
    std::vector<Row> list;
    auto relu = [] { return std::make_unique<activation::Attrs>(activation::Kind::kRelu); };
    auto sum = [] { return std::make_unique<elementwise::Attrs>(elementwise::Operation::kSum); };
    auto softmaxOf = [](int64_t axis) { return with<softmax::Attrs>([=](auto& a) { a.axis = axis; }); };
    auto reduceOf = [](reduce::Kind k, int64_t axes) {
        return with<reduce::Attrs>([=](auto& a) {
            a.kind = k;
            a.axes = axes;
        });
    };
    list.push_back({"relu_f16", activation::def(), relu(), {{h, {256, 256, 56, 56}}}});
    list.push_back({"relu_f32", activation::def(), relu(), {{f, {128, 256, 56, 56}}}});
    list.push_back(
        {"erf_f16", unary::def(), std::make_unique<unary::Attrs>(unary::Operation::kErf), {{h, {256, 256, 56, 56}}}});
    for (auto const& [name, operation] : {std::pair{"exp", unary::Operation::kExp},
                                          {"log", unary::Operation::kLog},
                                          {"sqrt", unary::Operation::kSqrt},
                                          {"sin", unary::Operation::kSin},
                                          {"tan", unary::Operation::kTan},
                                          {"sinh", unary::Operation::kSinh},
                                          {"asin", unary::Operation::kAsin},
                                          {"atan", unary::Operation::kAtan},
                                          {"asinh", unary::Operation::kAsinh}})
        list.push_back({std::string("unary_") + name + "_f16",
                        unary::def(),
                        std::make_unique<unary::Attrs>(operation),
                        {{h, {64, 256, 56, 56}}}});
    for (auto const& [name, operation] : {std::pair{"exp", unary::Operation::kExp},
                                          {"log", unary::Operation::kLog},
                                          {"sin", unary::Operation::kSin},
                                          {"tan", unary::Operation::kTan},
                                          {"erf", unary::Operation::kErf}})
        list.push_back({std::string("unary_") + name + "_f32",
                        unary::def(),
                        std::make_unique<unary::Attrs>(operation),
                        {{f, {64, 256, 56, 56}}}});
    for (auto const& [name, kind] : {std::pair{"sigmoid", activation::Kind::kSigmoid},
                                     {"tanh", activation::Kind::kTanh},
                                     {"softplus", activation::Kind::kSoftplus}})
        list.push_back({std::string(name) + "_f16",
                        activation::def(),
                        std::make_unique<activation::Attrs>(kind, 1.0F, 1.0F),
                        {{h, {64, 256, 56, 56}}}});
    for (auto const& [name, kind] : {std::pair{"gelu", FusedKind::kGeluErf}, {"swish", FusedKind::kSwish}})
        list.push_back({std::string("cluster_") + name + "_f16",
                        pointwise::def(),
                        with<pointwise::Attrs>([kind = kind](auto& a) {
                            a.steps = {int64_t(StepCode::kActivation), 0, 0, int64_t(kind)};
                            a.parameters = {0, 0};
                            a.inputs = {int64_t(pointwise::InputKind::kBroadcast), 0};
                            a.outputType = DataType::kHalf;
                        }),
                        {{h, {64, 256, 56, 56}}}});
    list.push_back({"sum_f16", elementwise::def(), sum(), {{h, {256, 256, 56, 56}}, {h, {256, 256, 56, 56}}}});
    list.push_back({"sum_channels_f16", elementwise::def(), sum(), {{h, {256, 256, 56, 56}}, {h, {1, 256, 1, 1}}}});
    list.push_back({"sum_row_f16", elementwise::def(), sum(), {{h, {32, 1024, 3072}}, {h, {1, 1, 3072}}}});
    list.push_back({"softmax_128_f16", softmax::def(), softmaxOf(2), {{h, {4096, 128, 128}}}});
    list.push_back({"softmax_384_f16", softmax::def(), softmaxOf(2), {{h, {512, 384, 384}}}});
    list.push_back({"softmax_197_f16", softmax::def(), softmaxOf(1), {{h, {64 * 12 * 197, 197}}}});
    list.push_back({"softmax_1000_f32", softmax::def(), softmaxOf(1), {{f, {32768, 1000}}}});
    list.push_back({"softmax_channels_f32", softmax::def(), softmaxOf(1), {{f, {32, 21, 256, 256}}}});
    list.push_back({"softmax_channels_f16", softmax::def(), softmaxOf(1), {{h, {32, 21, 256, 256}}}});
    list.push_back({"softmax_600_channels_f16", softmax::def(), softmaxOf(1), {{h, {4, 600, 128, 128}}}});
    list.push_back({"softmax_150_channels_f16", softmax::def(), softmaxOf(1), {{h, {8, 150, 256, 256}}}});
    list.push_back({"average_pool_f16", reduce::def(), reduceOf(reduce::Kind::kAvg, 12), {{h, {256, 2048, 7, 7}}}});
    list.push_back({"reduce_rows_f16", reduce::def(), reduceOf(reduce::Kind::kAvg, 4), {{h, {256, 384, 768}}}});
    list.push_back({"reduce_rows_64_f32", reduce::def(), reduceOf(reduce::Kind::kSum, 2), {{f, {1 << 19, 64}}}});
    list.push_back({"reduce_all_f32", reduce::def(), reduceOf(reduce::Kind::kSum, 3), {{f, {4096, 8192}}}});
    list.push_back({"reduce_rows_1023_f16", reduce::def(), reduceOf(reduce::Kind::kSum, 2), {{h, {1 << 16, 1023}}}});
    list.push_back({"reduce_columns_f32", reduce::def(), reduceOf(reduce::Kind::kSum, 1), {{f, {4096, 8192}}}});
    list.push_back({"reduce_columns_f16", reduce::def(), reduceOf(reduce::Kind::kMax, 1), {{h, {8192, 8192}}}});
    list.push_back({"reduce_channels_f32", reduce::def(), reduceOf(reduce::Kind::kAvg, 2), {{f, {32, 256, 3136}}}});
    list.push_back({"reduce_channels_f16", reduce::def(), reduceOf(reduce::Kind::kAvg, 2), {{h, {64, 256, 3136}}}});
    list.push_back({"reduce_7x7_f16", reduce::def(), reduceOf(reduce::Kind::kSum, 2), {{h, {512, 2048, 49}}}});
    list.push_back({"reduce_few_columns_f32", reduce::def(), reduceOf(reduce::Kind::kSum, 1), {{f, {1 << 20, 32}}}});
    list.push_back({"reduce_3_columns_f32", reduce::def(), reduceOf(reduce::Kind::kSum, 1), {{f, {1 << 23, 3}}}});
    list.push_back({"reduce_short_f32", reduce::def(), reduceOf(reduce::Kind::kSum, 2), {{f, {1 << 18, 4, 32}}}});
    for (auto const& [name, tokens, width] :
         {std::tuple{"layer_norm_128x768", 128, 768}, std::tuple{"layer_norm_384x1024", 384, 1024},
          std::tuple{"layer_norm_4096x768", 4096, 768}, std::tuple{"layer_norm_12288x1024", 12288, 1024}})
        list.push_back({name,
                        layer_norm::def(),
                        with<layer_norm::Attrs>([](auto& a) { a.axis = 1; }),
                        {{h, {tokens, width}}, {h, {width}}, {h, {width}}},
                        0,
                        2});
    for (auto const& [name, rows, n] :
         {std::tuple{"group_norm_64x40960", 64, 40960}, std::tuple{"group_norm_32x2560", 32, 2560},
          std::tuple{"group_norm_512x40960", 512, 40960}})
        list.push_back({name,
                        layer_norm::def(),
                        with<layer_norm::Attrs>([](auto& a) {
                            a.axis = 1;
                            a.hasGamma = a.hasBeta = false;
                        }),
                        {{h, {rows, n}}}});
    struct Norm
    {
        char const* name;
        Extents x;
        int64_t axis, kept, channel, groups, weights;
        bool rms;
    };
    for (Norm const& n : {Norm{"rms_norm_256x1024", {256, 1024}, 1, 0, -1, 1, 1024, true},
                          Norm{"rms_norm_8192x4096", {8192, 4096}, 1, 0, -1, 1, 4096, true},
                          Norm{"group_norm_320x64x64", {1, 320, 64, 64}, 1, 0, 1, 32, 320, false},
                          Norm{"group_norm_8x640x32x32", {8, 640, 32, 32}, 1, 0, 1, 32, 640, false},
                          Norm{"group_norm_8x256x128x128", {8, 256, 128, 128}, 1, 0, 1, 32, 256, false},
                          Norm{"group_norm_8x1280x8x8", {8, 1280, 8, 8}, 1, 0, 1, 32, 1280, false},
                          Norm{"instance_norm_8x64x256x256", {8, 64, 256, 256}, 2, 0, 1, 1, 64, false},
                          Norm{"channel_norm_32x96x56x56", {32, 96, 56, 56}, 1, 12, -1, 1, 96, false},
                          Norm{"channel_norm_32x768x7x7", {32, 768, 7, 7}, 1, 12, -1, 1, 768, false},
                          Norm{"group_norm_nhwc_8x64x64x320", {8, 64, 64, 320}, 1, 0, 3, 32, 320, false}})
        for (DataType t : {h, f}) {
            layer_norm::Attrs a;
            a.axis = n.axis;
            a.kept = n.kept;
            a.channel = n.channel;
            a.groups = n.groups;
            a.rms = n.rms;
            a.hasBeta = !n.rms;
            std::vector<std::pair<DataType, Extents>> inputs{{t, n.x}, {t, {n.weights}}};
            if (a.hasBeta)
                inputs.push_back({t, {n.weights}});
            size_t const constants = inputs.size() - 1;
            list.push_back({std::string(n.name) + (t == h ? "_f16" : "_f32"), layer_norm::def(), a.clone(),
                            std::move(inputs), 0, constants});
        }
    auto pool = pooling::Attrs::plain(pooling::Kind::kMax, {3, 3});
    pool.strides = {2, 2};
    pool.prePadding = pool.postPadding = {1, 1};
    list.push_back({"max_pool_f16", pooling::def(), pool.clone(), {{h, {256, 64, 112, 112}}}});
    // Network after network: 3x3 step 2, VGG's 2x2, the 3x3 of Inception's blocks, rows of odd width.
    for (DataType t : {h, f})
        for (auto const& [name, kind] :
             {std::pair{"max_pool", pooling::Kind::kMax}, std::pair{"average_pool", pooling::Kind::kAverage}}) {
            struct Pool
            {
                char const* name;
                int64_t window, step, pad, planes, width;
            };
            for (Pool const& w : {Pool{"3x3_s2", 3, 2, 1, 64, 112}, Pool{"2x2_s2", 2, 2, 0, 64, 112},
                                  Pool{"3x3_s1", 3, 1, 1, 256, 28}, Pool{"3x3_s2_odd", 3, 2, 0, 32, 147}}) {
                auto a = pooling::Attrs::plain(kind, {w.window, w.window});
                a.strides = {w.step, w.step};
                a.prePadding = a.postPadding = {w.pad, w.pad};
                list.push_back({std::string(name) + "_" + w.name + (t == h ? "_f16" : "_f32"),
                                pooling::def(),
                                a.clone(),
                                {{t, {t == h ? 128 : 64, w.planes, w.width, w.width}}}});
            }
        }
    list.push_back({"average_pool_b1_f16", reduce::def(), reduceOf(reduce::Kind::kAvg, 12), {{h, {1, 2048, 7, 7}}}});
    list.push_back(
        {"average_pool_112_b1_f16", reduce::def(), reduceOf(reduce::Kind::kAvg, 12), {{h, {1, 32, 112, 112}}}});
    return list;
}

} // namespace tw::bench
