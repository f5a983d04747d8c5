// SPDX-License-Identifier: Apache-2.0
#include "cuda_row.h"
#include "ops/activation/op.h"
#include "ops/attention/op.h"
#include "ops/convolution/op.h"
#include "ops/matrix_multiply/op.h"
#include "tactic/registry.h"

namespace tw::bench {

std::vector<Row> productRows()
{
    using namespace ops;
    constexpr DataType h = DataType::kHalf, f = DataType::kFloat;
    std::vector<Row> list;
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
    attend("attention_1024_b1_d36", 1, 1024, 4, false, h, 36); // MobileViT's heads
    attend("attention_1024_b1_d36_f32", 1, 1024, 4, false, f, 36);
    attend("attention_1024_b1_d160", 1, 1024, 8, false, h, 160);
    attend("attention_1024_b1_d256", 1, 1024, 8, false, h, 256);
    // One token of decoders: queries beside caches of keys and values, heads first.
    struct Decoder
    {
        char const* name;
        int64_t batch, keys, heads, keyHeads, size;
    };
    constexpr Decoder kDecoders[] = {
        {"decode_gpt2_256_b1", 1, 256, 12, 12, 64},          {"decode_gpt2_1024_b1", 1, 1024, 12, 12, 64},
        {"decode_llama_256_b1", 1, 256, 32, 4, 64},          {"decode_llama_2048_b1", 1, 2048, 32, 4, 64},
        {"decode_llama_16384_b1", 1, 16384, 32, 4, 64},      {"decode_qwen_1024_b1", 1, 1024, 14, 2, 64},
        {"decode_llama_2048_b64", 64, 2048, 32, 4, 64},      {"decode_gpt2_1024_b64", 64, 1024, 12, 12, 64},
        {"decode_llama3_8192_b1_d128", 1, 8192, 32, 8, 128}, {"decode_llama3_2048_b32_d128", 32, 2048, 32, 8, 128},
    };
    // lengths: by chance; pages: the same in blocks of 16 keys in any order.
    auto decode = [&](Decoder const& d, char const* kind, bool lengths, bool pages) {
        Extents const keys{d.batch, d.keyHeads, d.keys, d.size}, blocks{d.batch * d.keys / 16, d.keyHeads, 16, d.size};
        std::vector<std::pair<DataType, Extents>> inputs{{h, {d.batch, 1, d.heads * d.size}}};
        inputs.insert(inputs.end(), 2, {h, pages ? blocks : keys});
        if (lengths)
            inputs.push_back({DataType::kInt32, {d.batch}});
        if (pages)
            inputs.push_back({DataType::kInt32, {d.batch, d.keys / 16}});
        list.push_back({d.name + std::string(kind), attention::def(), with<attention::Attrs>([=](auto& a) {
                            a.heads = d.heads;
                            a.headsPerKey = d.heads / d.keyHeads;
                            a.size = a.valueSize = a.q.headStride = d.size;
                            a.scale = 0.125;
                            a.causal = true;
                            a.lengths = lengths;
                            a.pages = pages;
                        }),
                        inputs});
    };
    for (Decoder const& d : kDecoders) {
        decode(d, "", false, false);
        if (d.batch == 1)
            continue;
        decode(d, "_lengths", true, false);
        decode(d, "_pages", true, true);
    }
    // Transposed convolutions of a generator, convolutions of a video network.
    auto transposed = [&](char const* name, DataType type, int64_t batch, int64_t c, int64_t side, int64_t k) {
        auto a = convolution::Attrs::plain(2, true);
        a.strides = {2, 2};
        a.prePadding = a.postPadding = {1, 1};
        list.push_back({name,
                        convolution::def(),
                        a.clone(),
                        {{type, {batch, c, side, side}}, {type, {c, k, 4, 4}}},
                        2.0 * double(batch * side * side * c * k) * 16});
        list.back().constants = 1;
    };
    transposed("deconv_4x4_s2_512x4_f16", h, 16, 512, 4, 256);
    transposed("deconv_4x4_s2_256x8_f16", h, 16, 256, 8, 128);
    transposed("deconv_4x4_s2_128x16_f16", h, 16, 128, 16, 64);
    transposed("deconv_4x4_s2_64x32_to_3_f16", h, 16, 64, 32, 3);
    transposed("deconv_4x4_s2_256x8_f32", f, 16, 256, 8, 128);
    auto volume = [&](char const* name, DataType type, int64_t c, int64_t depth, int64_t side, int64_t k) {
        auto a = convolution::Attrs::plain(3);
        a.prePadding = a.postPadding = {1, 1, 1};
        list.push_back({name,
                        convolution::def(),
                        a.clone(),
                        {{type, {1, c, depth, side, side}}, {type, {k, c, 3, 3, 3}}},
                        2.0 * double(depth * side * side * c * k) * 27});
        list.back().constants = 1;
    };
    volume("conv3d_64_16x56_f16", h, 64, 16, 56, 64);
    volume("conv3d_128_8x28_f16", h, 128, 8, 28, 128);
    volume("conv3d_512_2x7_f16", h, 512, 2, 7, 512);
    volume("conv3d_64_16x56_f32", f, 64, 16, 56, 64);
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
                convolution::def(),
                std::make_unique<convolution::Attrs>(a, activation::Kind::kRelu),
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
        {"product_1x2304x768", 1, 2304, 768, false, h},
        {"product_1x768x768r", 1, 768, 768, true, h},
        {"product_1x3072x768", 1, 3072, 768, false, h},
        {"product_1x768x3072r", 1, 768, 3072, true, h},
        {"product_1x50257x768", 1, 50257, 768, false, h},
        {"product_1x2560x2048", 1, 2560, 2048, false, h},
        {"product_1x11264x2048", 1, 11264, 2048, false, h},
        {"product_1x2048x5632r", 1, 2048, 5632, true, h},
        {"product_1x32000x2048", 1, 32000, 2048, false, h},
        {"product_8x2304x768", 8, 2304, 768, false, h},
        {"product_8x11264x2048", 8, 11264, 2048, false, h},
        {"product_1x1000x2048", 1, 1000, 2048, false, h},
        {"product_256x1000x2048", 256, 1000, 2048, false, h},
        {"product_8192", 8192, 8192, 8192, false, h},
        {"product_128x3072x768_f32", 128, 3072, 768, false, f},
        {"product_4096x3072x768_f32", 4096, 3072, 768, false, f},
        {"product_256x1000x2048_f32", 256, 1000, 2048, false, f},
    };
    for (Product const& p : kProducts) {
        Row row{p.name,
                matrix_multiply::def(),
                std::make_unique<matrix_multiply::Attrs>(),
                {{p.type, {p.m, p.k}}, {p.type, {p.k, p.n}}, {p.type, {p.n}}},
                2.0 * double(p.m * p.n * p.k),
                2};
        if (p.residual) {
            row.inputs.push_back({p.type, {p.m, p.n}});
            row.behind = 1;
        }
        list.push_back(std::move(row));
    }
    // A token of decoders (GPT-2, Qwen2.5-0.5B, TinyLlama): products by themselves, and with the norm in front of them. n: of
    // both halves where they are gated.
    struct Step
    {
        char const* size;
        int64_t m, n, k;
        matrix_multiply::FirstNorm norm;
        bool gated;
    };
    using enum matrix_multiply::FirstNorm;
    static constexpr Step kSteps[] = {
        {"1x2304x768", 1, 2304, 768, kLayer, false},   {"1x3072x768", 1, 3072, 768, kLayer, false},
        {"1x1152x896", 1, 1152, 896, kRms, false},     {"1x9728x896", 1, 9728, 896, kRms, true},
        {"1x2560x2048", 1, 2560, 2048, kRms, false},   {"1x11264x2048", 1, 11264, 2048, kRms, true},
        {"16x2304x768", 16, 2304, 768, kLayer, false}, {"8x11264x2048", 8, 11264, 2048, kRms, true}};
    for (Step const& s : kSteps)
        for (bool normed : {false, true}) {
            matrix_multiply::Attrs a;
            a.gated = s.gated;
            a.firstNorm = normed ? s.norm : kNone;
            a.epilogue.activation = s.gated ? FusedActivation(FusedKind::kSwish) : FusedActivation();
            list.push_back({std::string("step_") + s.size + (normed ? "_of_norm" : ""),
                            matrix_multiply::def(),
                            a.clone(),
                            {{h, {s.m, s.k}}, {h, {s.k, s.n}}, {h, {s.n}}},
                            2.0 * double(s.m * s.n * s.k),
                            2});
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
                        matrix_multiply::def(),
                        std::make_unique<matrix_multiply::Attrs>(matrix_multiply::MatrixOperation::kNone,
                                                                 matrix_multiply::MatrixOperation::kNone, gelu),
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
    return list;
}

} // namespace tw::bench
