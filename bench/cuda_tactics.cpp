// SPDX-License-Identifier: Apache-2.0
// usage: bench_cuda_tactics [--filter TEXT] [--tactic TACTIC] [--without TACTIC] [--config NUMBERS] [--json FILE]
// Every CUDA tactic (those whose name holds one TACTIC and not the other; one config, such as 4,2), on problems of real
// networks' sizes: microseconds by events, and the share of the GPU's copy bandwidth (read and write of the same bytes,
// measured here) or operations a second. Status 77: there is no GPU.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "cuda_row.h"
#include "device/cuda/target.h"
#include "interp/interp.h"
#include "ops/activation/op.h"
#include "ops/attention/op.h"
#include "ops/concatenation/op.h"
#include "ops/convert_format.h"
#include "ops/convolution/op.h"
#include "ops/elementwise/op.h"
#include "ops/fused_convolution/op.h"
#include "ops/fused_matrix_multiply/op.h"
#include "ops/gather/op.h"
#include "ops/layer_norm/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/pointwise/op.h"
#include "ops/pooling/op.h"
#include "ops/reduce/op.h"
#include "ops/reformat/op.h"
#include "ops/registry.h"
#include "ops/shuffle/op.h"
#include "ops/softmax/op.h"
#include "ops/unary/op.h"
#include "support/cuda_libraries.h"
#include "tune/device_run.h"

namespace {

using namespace tw;

using bench::Row;
using bench::with;

std::vector<Row> rows()
{
    using namespace ops;
    constexpr DataType h = DataType::kHalf, f = DataType::kFloat, i32 = DataType::kInt32;
    std::vector<Row> list;
    auto relu = [] { return std::make_unique<activation::Attrs>(activation::Kind::kRelu); };
    auto sum = [] { return std::make_unique<elementwise::Attrs>(elementwise::Operation::kSum); };
    auto softmaxOf = [](int64_t axis) { return with<softmax::Attrs>([=](auto& a) { a.axis = axis; }); };
    auto transpose = [](std::vector<int64_t> p) {
        return with<shuffle::Attrs>([=](auto& a) { a.firstTranspose = p; });
    };
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
                            a.steps = {int64_t(kernels::jit::PointwiseCode::kActivation), 0, 0, int64_t(kind)};
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
    list.push_back({"nchw_to_nhwc_f16", shuffle::def(), transpose({0, 2, 3, 1}), {{h, {128, 256, 56, 56}}}});
    list.push_back({"nhwc_to_nchw_f32", shuffle::def(), transpose({0, 3, 1, 2}), {{f, {128, 56, 56, 256}}}});
    list.push_back({"heads_f16", shuffle::def(), transpose({0, 2, 1, 3}), {{h, {256, 384, 16, 64}}}});
    list.push_back({"concat_f16",
                    concatenation::def(),
                    std::make_unique<concatenation::Attrs>(1),
                    {{h, {128, 256, 56, 56}}, {h, {128, 64, 56, 56}}}});
    list.push_back(
        {"embedding_f16", gather::def(), std::make_unique<gather::Attrs>(), {{h, {30522, 768}}, {i32, {256, 384}}}});
    for (auto const& [name, tokens, width] :
         {std::tuple{"layer_norm_128x768", 128, 768}, std::tuple{"layer_norm_384x1024", 384, 1024},
          std::tuple{"layer_norm_4096x768", 4096, 768}, std::tuple{"layer_norm_12288x1024", 12288, 1024}})
        list.push_back({name,
                        layer_norm::def(),
                        with<layer_norm::Attrs>([](auto& a) { a.axis = 1; }),
                        {{h, {tokens, width}}, {h, {width}}, {h, {width}}},
                        0,
                        2});
    // Queries, keys and values in one tensor; perhaps a mask of keys.
    auto attend = [&](char const* name, int64_t batch, int64_t tokens, int64_t heads, bool mask,
                      DataType type = DataType::kHalf, int64_t size = 64) {
        int64_t const width = heads * size;
        Extents const packed{batch, tokens, 3 * width};
        list.push_back({name,
                        attention::def(),
                        with<attention::Attrs>([=](auto& a) {
                            a.heads = heads;
                            a.size = a.valueSize = a.q.headStride = a.k.headStride = a.v.headStride = size;
                            a.k.offset = width;
                            a.v.offset = 2 * width;
                            a.scale = 0.125;
                        }),
                        {{type, packed}, {type, packed}, {type, packed}},
                        4.0 * double(batch * tokens * tokens * width)});
        if (mask)
            list.back().inputs.push_back({type, {batch, 1, 1, tokens}});
    };
    attend("attention_128_b1", 1, 128, 12, false);
    attend("attention_128_b1_mask", 1, 128, 12, true);
    attend("attention_197_b1", 1, 197, 12, false);
    attend("attention_384_b1_mask", 1, 384, 16, true);
    attend("attention_128_b32_mask", 32, 128, 12, true);
    attend("attention_384_b32_mask", 32, 384, 16, true);
    attend("attention_197_b64", 64, 197, 12, false);
    attend("attention_2048_b4", 4, 2048, 16, false);
    attend("attention_4096_b1", 1, 4096, 16, false);
    attend("attention_4096_b1_d128", 1, 4096, 16, false, h, 128);
    attend("attention_128_b1_mask_f32", 1, 128, 12, true, f);
    attend("attention_197_b1_f32", 1, 197, 12, false, f);
    attend("attention_384_b32_mask_f32", 32, 384, 16, true, f);
    attend("attention_2048_b4_f32", 4, 2048, 16, false, f);
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
    auto conv = convolution::Attrs::plain(2);
    conv.prePadding = conv.postPadding = {1, 1};
    list.push_back({"conv_3x3_64_f16",
                    convolution::def(),
                    conv.clone(),
                    {{h, {32, 64, 56, 56}}, {h, {64, 64, 3, 3}}},
                    2.0 * 32 * 56 * 56 * 64 * 64 * 9});
    // Layers of networks, by batch.
    struct Layer
    {
        char const* name;
        int64_t n, c, hw, k, window, stride;
        bool residual, depthwise;
    };
    static constexpr Layer kLayers[] = {
        {"layer_stem_b1", 1, 3, 224, 64, 7, 2, false, false},
        {"layer_stem_b256", 256, 3, 224, 64, 7, 2, false, false},
        {"layer_56_64_64_3_b1", 1, 64, 56, 64, 3, 1, false, false},
        {"layer_56_64_64_3_b32", 32, 64, 56, 64, 3, 1, false, false},
        {"layer_56_64_64_3_b256", 256, 64, 56, 64, 3, 1, false, false},
        {"layer_56_64_256_1r_b1", 1, 64, 56, 256, 1, 1, true, false},
        {"layer_56_64_256_1r_b256", 256, 64, 56, 256, 1, 1, true, false},
        {"layer_14_256_256_3_b1", 1, 256, 14, 256, 3, 1, false, false},
        {"layer_14_256_256_3_b256", 256, 256, 14, 256, 3, 1, false, false},
        {"layer_7_512_2048_1r_b1", 1, 512, 7, 2048, 1, 1, true, false},
        {"layer_depthwise_112_b1", 1, 32, 112, 32, 3, 1, false, true},
        {"layer_depthwise_112_b128", 128, 96, 112, 96, 3, 1, false, true},
        {"layer_depthwise_s2_b128", 128, 96, 112, 96, 3, 2, false, true},
        {"layer_depthwise_5_b128", 128, 240, 28, 240, 5, 1, false, true},
        {"layer_depthwise_14_b128", 128, 480, 14, 480, 3, 1, false, true},
        {"layer_depthwise_7x7_b64", 64, 96, 56, 96, 7, 1, false, true},
    };
    auto layer = [&](Layer const& l, std::string name, DataType t) {
        auto a = convolution::Attrs::plain(2);
        int64_t const out = (l.hw - 1) / l.stride + 1;
        a.strides = {l.stride, l.stride};
        a.prePadding = a.postPadding = {l.window / 2, l.window / 2};
        a.groups = l.depthwise ? l.c : 1;
        Row row{name,
                fused_convolution::def(),
                std::make_unique<fused_convolution::Attrs>(a, activation::Kind::kRelu),
                {{t, {l.n, l.c, l.hw, l.hw}}, {t, {l.k, l.c / a.groups, l.window, l.window}}, {t, {l.k}}},
                l.depthwise ? 0 : 2.0 * double(l.n * out * out * l.k * l.c * l.window * l.window),
                2};
        if (l.residual) {
            row.inputs.push_back({t, {l.n, l.k, out, out}});
            row.behind = 1;
        }
        list.push_back(std::move(row));
    };
    for (Layer const& l : kLayers)
        layer(l, l.name, h);
    for (Layer const& l : kLayers)
        layer(l, l.name + std::string("_f32"), f);
    auto reformats = [] { return std::make_unique<reformat::Attrs>(); };
    list.push_back({"reformat_56_f16", reformat::def(), reformats(), {{h, {128, 256, 56, 56}}}});
    list.push_back({"reformat_14_f16", reformat::def(), reformats(), {{h, {256, 1024, 14, 14}}}});
    list.push_back({"reformat_7_f16", reformat::def(), reformats(), {{h, {256, 2048, 7, 7}}}});
    list.push_back({"average_pool_b1_f16", reduce::def(), reduceOf(reduce::Kind::kAvg, 12), {{h, {1, 2048, 7, 7}}}});
    list.push_back(
        {"average_pool_112_b1_f16", reduce::def(), reduceOf(reduce::Kind::kAvg, 12), {{h, {1, 32, 112, 112}}}});
    list.push_back({"conv_3x3_64_f32",
                    convolution::def(),
                    conv.clone(),
                    {{f, {32, 64, 56, 56}}, {f, {64, 64, 3, 3}}},
                    2.0 * 32 * 56 * 56 * 64 * 64 * 9});
    // Products of transformers (bias, here and there a residual), classifiers, large squares.
    struct Product
    {
        char const* name;
        int64_t m, n, k;
        bool residual;
        DataType type;
    };
    static constexpr Product kProducts[] = {
        {"product_128x2304x768", 128, 2304, 768, false, h},
        {"product_128x768x768r", 128, 768, 768, true, h},
        {"product_128x3072x768", 128, 3072, 768, false, h},
        {"product_128x768x3072r", 128, 768, 3072, true, h},
        {"product_384x4096x1024", 384, 4096, 1024, false, h},
        {"product_384x1024x4096r", 384, 1024, 4096, true, h},
        {"product_4096x2304x768", 4096, 2304, 768, false, h},
        {"product_4096x768x3072r", 4096, 768, 3072, true, h},
        {"product_12288x3072x1024", 12288, 3072, 1024, false, h},
        {"product_12288x1024x1024r", 12288, 1024, 1024, true, h},
        {"product_12288x4096x1024", 12288, 4096, 1024, false, h},
        {"product_12288x1024x4096r", 12288, 1024, 4096, true, h},
        {"product_12608x3072x768", 12608, 3072, 768, false, h},
        {"product_1x1000x2048", 1, 1000, 2048, false, h},
        {"product_256x1000x2048", 256, 1000, 2048, false, h},
        {"product_8192", 8192, 8192, 8192, false, h},
        {"product_128x3072x768_f32", 128, 3072, 768, false, f},
        {"product_4096x3072x768_f32", 4096, 3072, 768, false, f},
        {"product_256x1000x2048_f32", 256, 1000, 2048, false, f},
    };
    for (Product const& p : kProducts) {
        Row row{p.name,
                fused_matrix_multiply::def(),
                std::make_unique<fused_matrix_multiply::Attrs>(),
                {{p.type, {p.m, p.k}}, {p.type, {p.k, p.n}}, {p.type, {p.n}}},
                2.0 * double(p.m * p.n * p.k),
                2};
        if (p.residual) {
            row.inputs.push_back({p.type, {p.m, p.n}});
            row.behind = 1;
        }
        list.push_back(std::move(row));
    }
    list.push_back({"product_batch_384x128x128x64",
                    matrix_multiply::def(),
                    std::make_unique<matrix_multiply::Attrs>(),
                    {{h, {384, 128, 64}}, {h, {384, 64, 128}}},
                    2.0 * 384 * 128 * 128 * 64});
    list.push_back({"matmul_4096_f16",
                    matrix_multiply::def(),
                    std::make_unique<matrix_multiply::Attrs>(),
                    {{h, {4096, 4096}}, {h, {4096, 4096}}},
                    2.0 * 4096 * 4096 * 4096});
    // Rows of odd lengths, then of 4 bytes.
    list.push_back({"matmul_1023x1021x1019_f16",
                    matrix_multiply::def(),
                    std::make_unique<matrix_multiply::Attrs>(),
                    {{h, {1023, 1019}}, {h, {1019, 1021}}},
                    2.0 * 1023 * 1021 * 1019});
    list.push_back({"matmul_4096x4094x4094_f16",
                    matrix_multiply::def(),
                    std::make_unique<matrix_multiply::Attrs>(),
                    {{h, {4096, 4094}}, {h, {4094, 4094}}},
                    2.0 * 4096 * 4094 * 4094});
    list.push_back({"matmul_4096_f32",
                    matrix_multiply::def(),
                    std::make_unique<matrix_multiply::Attrs>(),
                    {{f, {4096, 4096}}, {f, {4096, 4096}}},
                    2.0 * 4096 * 4096 * 4096});
    // Products of transformers in FP32, x [m, k] w [k, n] with bias; GELU where they widen, else a residual.
    auto linear = [&](char const* name, int64_t m, int64_t n, int64_t k) {
        FusedActivation const gelu(n > k ? FusedActivation(FusedKind::kGeluErf) : FusedActivation());
        list.push_back({name,
                        fused_matrix_multiply::def(),
                        std::make_unique<fused_matrix_multiply::Attrs>(matrix_multiply::Attrs(), gelu),
                        {{f, {m, k}}, {f, {k, n}}, {f, {n}}},
                        2.0 * double(m * n * k),
                        2});
        if (n <= k) {
            list.back().inputs.push_back({f, {m, n}});
            list.back().behind = 1;
        }
    };
    linear("linear_1x1000x768_f32", 1, 1000, 768);
    linear("linear_128x768x768_f32", 128, 768, 768);
    linear("linear_128x2304x768_f32", 128, 2304, 768);
    linear("linear_128x3072x768_f32", 128, 3072, 768);
    linear("linear_128x768x3072_f32", 128, 768, 3072);
    linear("linear_4096x768x3072_f32", 4096, 768, 3072);
    linear("linear_4096x3072x768_f32", 4096, 3072, 768);
    linear("linear_4096x4096x4096_f32", 4096, 4096, 4096);
    for (Row& row : bench::movingRows())
        list.push_back(std::move(row));
    return list;
}

// Bytes a second that a copy in GPU memory moves, read and written.
Result<double> copyRate(std::shared_ptr<cuda::Device const> device)
{
    constexpr int64_t kBytes = int64_t(1) << 30;
    constexpr int kRuns = 10;
    TW_ASSIGN(cuda::Buffer from, cuda::Buffer::allocate(device, kBytes));
    TW_ASSIGN(cuda::Buffer to, cuda::Buffer::allocate(device, kBytes));
    TW_ASSIGN(auto timer, cuda::Timer::create(device));
    cuda::Current const current(*device);
    double best = 1e30;
    for (int r = 0; r < 4; ++r) {
        TW_TRY(timer->begin(nullptr));
        for (int i = 0; i < kRuns; ++i)
            TW_CUDA(device->driver(), cuMemcpyDtoDAsync(cuda::addressOf(to.data()), cuda::addressOf(from.data()),
                                                        size_t(kBytes), nullptr));
        TW_TRY(timer->end(nullptr));
        TW_ASSIGN(double const ms, timer->milliseconds());
        best = std::min(best, ms / kRuns);
    }
    return 2.0 * double(kBytes) / (best * 1e-3);
}

// Other formats are for networks' inputs and outputs.
bool isTimed(Format f)
{
    return f == Format::kLinear || f == Format::kHWC8;
}

std::string textOf(ops::Config const& config)
{
    std::string text;
    for (int64_t number : config)
        text += (text.empty() ? "" : ",") + std::to_string(number);
    return text;
}

int skip(Error const& e)
{
    std::printf("skipped: %s\n", e.message.c_str());
    return 77;
}

} // namespace

int main(int argc, char** argv)
{
    std::string filter, only, without, json, chosen;
    for (int i = 1; i + 1 < argc; ++i) {
        if (!std::strcmp(argv[i], "--filter"))
            filter = argv[++i];
        else if (!std::strcmp(argv[i], "--tactic"))
            only = argv[++i];
        else if (!std::strcmp(argv[i], "--without"))
            without = argv[++i];
        else if (!std::strcmp(argv[i], "--config"))
            chosen = argv[++i];
        else if (!std::strcmp(argv[i], "--json"))
            json = argv[++i];
    }
    auto driver = cuda::Driver::open();
    if (!driver.ok())
        return skip(driver.error());
    auto device = cuda::Device::open(*driver, 0);
    if (!device.ok())
        return skip(device.error());
    cuda::Target const target =
        cuda::Target::of(*device, std::make_shared<cuda::LazyCompiler>(test::testSearchPath()), test::testLibraries());
    auto rate = copyRate(*device);
    if (!rate.ok())
        return skip(rate.error());
    std::printf("%s: copy %.2f TB/s\n", (*device)->info().fingerprint().c_str(), *rate * 1e-12);
    std::string rowsText;
    int failures = 0;
    for (Row const& row : rows()) {
        if (row.name.find(filter) == std::string::npos)
            continue;
        ir::Graph g;
        std::vector<ir::Value*> values;
        std::vector<Tensor> storage;
        std::vector<TensorRef> inputs;
        for (auto const& [type, dims] : row.inputs) {
            storage.emplace_back(type, dims);
            TensorRef const& t = storage.back().ref();
            // Cheap noise; indices stay small.
            for (int64_t i = 0, v = 12345; i < t.count(); ++i, v = v * 1103515245 + 12345)
                if (type == DataType::kInt32)
                    t.as<int32_t>()[i] = int32_t((v >> 8 & 0xffffff) % 30000);
                else if (sizeOf(type) == 1)
                    t.as<uint8_t>()[i] = uint8_t(v >> 16 & 1);
                else if (type == DataType::kFloat)
                    t.as<float>()[i] = float(v >> 8 & 0xffff) / 65536.0F - 0.5F;
                else
                    t.as<uint16_t>()[i] = uint16_t(0x3000 | (v >> 8 & 0x8fff)); // sizes from 1/8 to 2
            inputs.push_back(t);
            bool const constant = inputs.size() + row.constants + row.behind > row.inputs.size() &&
                                  inputs.size() + row.behind <= row.inputs.size();
            values.push_back(constant ? g.addConstant("w", type, dims, t.data)
                                      : g.addInput("x", type, ir::shapeOf(dims)));
        }
        auto node = g.addNode(row.op, row.attrs->clone(), values, row.name);
        if (!node.ok()) {
            std::printf("FAILED %s: %s\n", row.name.c_str(), node.error().message.c_str());
            ++failures;
            continue;
        }
        ops::Problem problem;
        problem.node = *node;
        problem.cuda = &target;
        double bytes = 0;
        for (TensorRef const& t : inputs) {
            ops::TensorSpec spec;
            spec.type = t.type;
            spec.dims = spec.maxDims = t.dims;
            spec.present = true;
            ir::Value const& v = *values[problem.inputs.size()];
            spec.constant = v.isConstant() ? v.constant->data.get() : nullptr;
            problem.inputs.push_back(spec);
            bytes += double(t.sizeBytes());
        }
        std::vector<TensorRef> outputs;
        for (ir::Value const* v : (*node)->outputs) {
            storage.emplace_back(v->type, ir::extentsOf(v->shape));
            outputs.push_back(storage.back().ref());
            ops::TensorSpec spec;
            spec.type = v->type;
            spec.dims = spec.maxDims = outputs.back().dims;
            spec.present = true;
            problem.outputs.push_back(spec);
            bytes += double(outputs.back().sizeBytes());
        }
        if (row.bytes > 0)
            bytes = row.bytes;
        else if (std::strcmp(row.op.name, "gather") == 0) // only the rows that are taken
            bytes = 2 * double(outputs[0].sizeBytes());
        std::vector<std::pair<ops::Tactic const*, ops::Formats>> ways;
        for (ops::Tactic const* t : row.op.cudaTactics())
            for (ops::Formats const& f : t->formats(problem))
                if (std::all_of(f.inputs.begin(), f.inputs.end(), isTimed) &&
                    std::all_of(f.outputs.begin(), f.outputs.end(), isTimed))
                    ways.emplace_back(t, f);
        for (auto const& [t, formats] : ways) {
            ops::setFormats(problem, formats);
            if (!t->supports(problem).ok || !std::strstr(t->name(), only.c_str()) ||
                (!without.empty() && std::strstr(t->name(), without.c_str())))
                continue;
            std::vector<Tensor> formatted;
            std::vector<TensorRef> in, out;
            auto put = [&](std::vector<TensorRef>& list, TensorRef const& t, Format format) {
                list.push_back(t);
                if (format == t.format)
                    return;
                formatted.emplace_back(t.type, t.dims, format);
                list.back() = formatted.back().ref();
                ops::convertFormat(t, list.back());
            };
            for (size_t i = 0; i < inputs.size(); ++i)
                put(in, inputs[i], formats.inputs[i]);
            for (size_t i = 0; i < outputs.size(); ++i)
                put(out, outputs[i], formats.outputs[i]);
            // Compiled side by side, timed one after the other.
            std::vector<ops::Config> configs = t->configs(problem);
            if (!chosen.empty())
                std::erase_if(configs, [&](ops::Config const& c) { return textOf(c) != chosen; });
            std::vector<std::optional<Result<std::string>>> images(configs.size());
            std::atomic<size_t> next = 0;
            auto compile = [&] {
                for (size_t c = next++; c < configs.size(); c = next++)
                    images[c].emplace(t->build(problem, configs[c]));
            };
            std::vector<std::thread> threads;
            for (unsigned i = 1; i < std::min<size_t>(std::thread::hardware_concurrency(), configs.size()); ++i)
                threads.emplace_back(compile);
            compile();
            for (std::thread& thread : threads)
                thread.join();
            for (size_t c = 0; c < configs.size(); ++c) {
                ops::Config const& config = configs[c];
                auto measure = [&]() -> Result<double> {
                    TW_ASSIGN(auto const tensors, tune::DeviceTensors::create(problem, in, out));
                    TW_ASSIGN(std::string const image, std::move(*images[c]));
                    TW_ASSIGN(auto kernel, t->load(problem, config, image));
                    TW_ASSIGN(auto run, tune::DeviceRun::create(problem, *kernel, tensors));
                    std::vector<double> us;
                    for (int i = 0; i < 5; ++i) {
                        TW_ASSIGN(double const one, run->microseconds());
                        us.push_back(one);
                    }
                    std::nth_element(us.begin(), us.begin() + 2, us.end());
                    return us[2];
                };
                auto us = measure();
                if (!us.ok()) {
                    std::printf("FAILED %s, %s: %s\n", row.name.c_str(), t->name(), us.error().message.c_str());
                    ++failures;
                    continue;
                }
                double const share =
                    row.operations > 0 ? row.operations / (*us * 1e-6) * 1e-12 : bytes / (*us * 1e-6) / *rate * 100;
                std::string const numbers = textOf(config);
                std::printf("%-22s %-32s %-34s %9.2f us %8.1f %s\n", row.name.c_str(), t->name(),
                            (numbers + " " + nameOf(formats.inputs[0]) + ">" + nameOf(formats.outputs[0])).c_str(), *us,
                            share, row.operations > 0 ? "TFLOP/s" : "% of copy");
                std::fflush(stdout);
                rowsText += std::string(rowsText.empty() ? "" : ",") + "\n  {\"row\": \"" + row.name.c_str() +
                            "\", \"tactic\": \"" + t->name() + "\", \"formats\": \"" + nameOf(formats.inputs[0]) + ">" +
                            nameOf(formats.outputs[0]) + "\", \"config\": [" + numbers +
                            "], \"us\": " + std::to_string(*us) + ", \"" +
                            (row.operations > 0 ? "tflops" : "percent_of_copy") + "\": " + std::to_string(share) + "}";
            }
        }
    }
    if (!json.empty())
        if (std::FILE* file = std::fopen(json.c_str(), "w")) {
            std::fprintf(file, "{\"gpu\": \"%s\", \"copy_tb_s\": %f, \"rows\": [%s\n]}\n",
                         (*device)->info().fingerprint().c_str(), *rate * 1e-12, rowsText.c_str());
            std::fclose(file);
        }
    return failures ? 1 : 0;
}
