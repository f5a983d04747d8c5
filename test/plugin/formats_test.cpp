// SPDX-License-Identifier: Apache-2.0
// Standard plugins whose tensors are INT8, or lie with their channels in vectors: what they say that they take, and
// enqueue() by the program beside the same plugin on linear FP32 tensors.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "NvInferPlugin.h"
#include "api/client.h"

namespace tw::test::formats {

namespace {

using namespace nvinfer1;

using enum TensorFormat;
using Half = _Float16;

struct Destroy
{
    void operator()(IPluginV2* p) const { p->destroy(); }
};
using PluginPtr = std::unique_ptr<IPluginV2, Destroy>;

// Numbers of one tensor in row-major order, and how they lie.
struct Numbers
{
    PluginTensorDesc desc;
    std::vector<float> values;

    int64_t count() const
    {
        int64_t n = 1;
        for (int32_t d = 0; d < desc.dims.nbDims; ++d)
            n *= desc.dims.d[d];
        return n;
    }
};

struct Layout
{
    int64_t outer = 1, channels = 1, inner = 1;
    int64_t vector = 1;
    bool isLast = false; // channels behind all other dimensions

    explicit Layout(PluginTensorDesc const& d)
    {
        int const spatial = d.format == kDHWC8 || d.format == kCDHW32 ? 3 : 2;
        int const axis = d.format == kLINEAR ? 0 : d.dims.nbDims - spatial - 1;
        for (int i = 0; i < d.dims.nbDims; ++i)
            (i < axis ? outer : i == axis ? channels : inner) *= d.dims.d[i];
        vector = d.format == kHWC8 || d.format == kDHWC8     ? 8
                 : d.format == kCHW4                         ? 4
                 : d.format == kCHW32 || d.format == kCDHW32 ? 32
                                                             : 1;
        isLast = d.format == kHWC8 || d.format == kDHWC8 || d.format == kHWC;
    }
    int64_t vectors() const { return (channels + vector - 1) / vector; }
    int64_t elements() const { return outer * vectors() * vector * inner; }
    int64_t offset(int64_t i) const // of element i in row-major order
    {
        int64_t const s = i % inner, c = i / inner % channels, o = i / inner / channels;
        return isLast ? (o * inner + s) * vectors() * vector + c
                      : ((o * vectors() + c / vector) * inner + s) * vector + c % vector;
    }
};

size_t sizeOf(DataType t)
{
    return t == DataType::kINT8 ? 1 : t == DataType::kHALF ? 2 : 4;
}

std::vector<char> packed(Numbers const& n)
{
    Layout const l(n.desc);
    std::vector<char> bytes(size_t(l.elements()) * sizeOf(n.desc.type));
    for (int64_t i = 0; i < n.count() && !n.values.empty(); ++i) {
        char* const at = bytes.data() + size_t(l.offset(i)) * sizeOf(n.desc.type);
        float const v = n.values[size_t(i)];
        if (n.desc.type == DataType::kINT8)
            *at = char(std::clamp(std::nearbyint(v / n.desc.scale), -128.0F, 127.0F));
        else if (n.desc.type == DataType::kHALF)
            *reinterpret_cast<Half*>(at) = Half(v);
        else if (n.desc.type == DataType::kINT32)
            *reinterpret_cast<int32_t*>(at) = int32_t(v);
        else
            *reinterpret_cast<float*>(at) = v;
    }
    return bytes;
}

std::vector<float> unpacked(PluginTensorDesc const& d, std::vector<char> const& bytes)
{
    Layout const l(d);
    std::vector<float> values(size_t(l.outer * l.channels * l.inner));
    for (size_t i = 0; i < values.size(); ++i) {
        char const* const at = bytes.data() + size_t(l.offset(int64_t(i))) * sizeOf(d.type);
        values[i] = d.type == DataType::kINT8    ? float(static_cast<signed char>(*at)) * d.scale
                    : d.type == DataType::kHALF  ? float(*reinterpret_cast<Half const*>(at))
                    : d.type == DataType::kINT32 ? float(*reinterpret_cast<int32_t const*>(at))
                                                 : *reinterpret_cast<float const*>(at);
    }
    return values;
}

struct Formats : testing::Test
{
    Formats() { EXPECT_TRUE(initLibNvInferPlugins(&logger, "")); }
    ~Formats() override { initLibNvInferPlugins(nullptr, ""); }

    PluginPtr make(char const* name, char const* version, std::vector<PluginField> const& fields)
    {
        PluginFieldCollection const collection{int32_t(fields.size()), fields.data()};
        IPluginCreator* const creator = getPluginRegistry()->getPluginCreator(name, version, "");
        return PluginPtr(creator ? creator->createPlugin("layer", &collection) : nullptr);
    }
    Numbers tensor(std::initializer_list<int32_t> shape, DataType type, TensorFormat format, float scale = 1)
    {
        Numbers n{{dims(shape), type, format, scale}, {}};
        for (int64_t i = 0; i < n.count(); ++i) {
            float const v = std::normal_distribution<float>()(random);
            n.values.push_back(type == DataType::kINT8 ? std::clamp(std::nearbyint(v / scale), -127.0F, 127.0F) * scale
                               : type == DataType::kHALF ? float(Half(v))
                                                         : v);
        }
        return n;
    }
    Numbers integers(std::vector<float> values)
    {
        return {{dims({int32_t(values.size())}), DataType::kINT32, kLINEAR, 1}, std::move(values)};
    }
    Numbers output(std::initializer_list<int32_t> shape, DataType type, TensorFormat format, float scale = 1)
    {
        return {{dims(shape), type, format, scale}, {}};
    }

    static void run(IPluginV2& p, std::vector<Numbers> const& in, std::vector<Numbers>& out)
    {
        std::vector<PluginTensorDesc> descs[2];
        std::vector<std::vector<char>> buffers;
        for (Numbers const& n : in)
            buffers.push_back(packed(n));
        for (Numbers const& n : out)
            buffers.push_back(packed(n));
        std::vector<void const*> from;
        std::vector<void*> to;
        for (size_t i = 0; i < in.size(); ++i)
            descs[0].push_back(in[i].desc), from.push_back(buffers[i].data());
        for (size_t i = 0; i < out.size(); ++i)
            descs[1].push_back(out[i].desc), to.push_back(buffers[in.size() + i].data());
        auto& dynamic = static_cast<IPluginV2DynamicExt&>(p);
        std::vector<DynamicPluginTensorDesc> ranges(in.size() + out.size());
        dynamic.configurePlugin(ranges.data(), int32_t(in.size()), ranges.data(), int32_t(out.size()));
        ASSERT_EQ(dynamic.enqueue(descs[0].data(), descs[1].data(), from.data(), to.data(), nullptr, nullptr), 0);
        for (size_t i = 0; i < out.size(); ++i)
            out[i].values = unpacked(out[i].desc, buffers[in.size() + i]);
    }

    // What the plugin says of these tensors, all of them in turn.
    static bool takes(IPluginV2& p, std::vector<Numbers> const& in, std::vector<Numbers> const& out)
    {
        std::vector<PluginTensorDesc> all;
        for (auto const* list : {&in, &out})
            for (Numbers const& n : *list)
                all.push_back(n.desc);
        auto& dynamic = static_cast<IPluginV2DynamicExt&>(p);
        for (size_t i = 0; i < all.size(); ++i)
            if (!dynamic.supportsFormatCombination(int32_t(i), all.data(), int32_t(in.size()), int32_t(out.size())))
                return false;
        return true;
    }

    // `tolerance`: besides half a step of integers.
    void check(PluginPtr const& p, std::vector<Numbers> in, std::vector<Numbers> out, float tolerance)
    {
        ASSERT_TRUE(p) << logger.lastError();
        EXPECT_TRUE(takes(*p, in, out)) << p->getPluginType();
        std::vector<Numbers> plain = in, right = out;
        for (auto* list : {&plain, &right})
            for (Numbers& n : *list)
                if (n.desc.type != DataType::kINT32)
                    n.desc.type = DataType::kFLOAT, n.desc.format = kLINEAR, n.desc.scale = 1;
        EXPECT_TRUE(takes(*p, plain, right)) << p->getPluginType();
        run(*p, plain, right);
        run(*p, in, out);
        for (size_t o = 0; o < out.size() && !HasFatalFailure(); ++o) {
            PluginTensorDesc const& d = out[o].desc;
            float const step = d.type == DataType::kINT8 ? d.scale : 0;
            for (size_t i = 0; i < out[o].values.size(); ++i) {
                float wanted = right[o].values[i];
                if (step > 0)
                    wanted = std::clamp(wanted, -128 * step, 127 * step);
                ASSERT_NEAR(out[o].values[i], wanted, 0.51F * step + tolerance * std::max(1.0F, std::abs(wanted)))
                    << p->getPluginType() << ": output " << o << ", element " << i;
            }
        }
        // Not with an output that lies otherwise.
        out[0].desc.format = out[0].desc.format == kCHW32 ? kCHW4 : kCHW32;
        EXPECT_FALSE(takes(*p, in, out)) << p->getPluginType();
    }

    KeepingLogger logger;
    std::mt19937 random{7};
};

constexpr DataType kI8 = DataType::kINT8, kF16 = DataType::kHALF, kF32 = DataType::kFLOAT;

TEST_F(Formats, SumsAndNormsInInt8)
{
    std::vector<float> gamma(40, 1.5F), beta(40, 0.25F);
    std::vector<PluginField> const fields{{"gamma", gamma.data(), PluginFieldType::kFLOAT32, 40},
                                          {"beta", beta.data(), PluginFieldType::kFLOAT32, 40}};
    auto const in = [&] {
        return std::vector{tensor({1, 40, 7, 1}, kI8, kCHW32, 0.03F), tensor({1, 40, 7, 1}, kI8, kCHW32, 0.02F)};
    };
    check(make("CustomSkipLayerNormPluginDynamic", "3", fields), in(), {output({1, 40, 7, 1}, kI8, kCHW32, 0.05F)},
          1e-4F);
    check(make("CustomSkipLayerNormPluginDynamic", "4", fields), in(),
          {output({1, 40, 7, 1}, kI8, kCHW32, 0.05F), output({1, 40, 7, 1}, kI8, kCHW32, 0.04F)}, 1e-4F);
}

TEST_F(Formats, AttentionInInt8)
{
    int32_t const hidden = 32, heads = 2, type = 2, yes = 1;
    std::vector<PluginField> fields{{"hidden_size", &hidden, PluginFieldType::kINT32, 1},
                                    {"num_heads", &heads, PluginFieldType::kINT32, 1}};
    check(make("CustomQKVToContextPluginDynamic", "3", fields),
          {tensor({1, 96, 9, 1}, kI8, kCHW32, 0.03F), integers({0, 4, 9}), integers({0, 0, 0, 0, 0})},
          {output({1, 32, 9, 1}, kI8, kCHW32, 0.02F)}, 1e-4F);
    fields.insert(fields.end(), {{"type_id", &type, PluginFieldType::kINT32, 1},
                                 {"has_mask", &yes, PluginFieldType::kINT32, 1},
                                 {"var_seqlen", &yes, PluginFieldType::kINT32, 1}});
    for (TensorFormat format : {kCHW32, kCHW4})
        check(make("CustomQKVToContextPluginDynamic", "2", fields),
              {tensor({9, 96, 1, 1}, kI8, format, 0.03F), tensor({2, 1}, kF16, kLINEAR), integers({0, 4, 9}),
               integers({0, 0, 0, 0, 0})},
              {output({9, 32, 1, 1}, kI8, format, 0.02F)}, 1e-4F);
}

TEST_F(Formats, Norms)
{
    float const epsilon = 1e-5F;
    std::vector<PluginField> const one{{"epsilon", &epsilon, PluginFieldType::kFLOAT32, 1}};
    check(make("GroupNorm", "1", one),
          {tensor({2, 64, 3, 5}, kF16, kHWC8), tensor({64}, kF32, kLINEAR), tensor({64}, kF32, kLINEAR)},
          {output({2, 64, 3, 5}, kF16, kHWC8)}, 4e-3F);
    for (TensorFormat format : {kCHW4, kCHW32})
        check(make("LayerNorm", "1", one),
              {tensor({2, 5, 6, 7}, kI8, format, 0.03F), tensor({7}, kF16, kLINEAR), tensor({7}, kF16, kLINEAR)},
              {output({2, 5, 6, 7}, kI8, format, 0.05F)}, 2e-3F);
    std::vector<float> const scales(10, 1.5F), bias(10, 0.5F);
    std::vector<PluginField> const fields{{"epsilon", &epsilon, PluginFieldType::kFLOAT32, 1},
                                          {"scales", scales.data(), PluginFieldType::kFLOAT32, 10},
                                          {"bias", bias.data(), PluginFieldType::kFLOAT32, 10}};
    check(make("InstanceNormalization_TRT", "1", fields), {tensor({2, 10, 3, 4, 5}, kF16, kDHWC8)},
          {output({2, 10, 3, 4, 5}, kF16, kDHWC8)}, 4e-3F);
    check(make("InstanceNormalization_TRT", "1", fields), {tensor({2, 10, 3, 4, 5}, kI8, kCDHW32, 0.03F)},
          {output({2, 10, 3, 4, 5}, kI8, kCDHW32, 0.05F)}, 1e-4F);
    PluginPtr const p = make("InstanceNormalization_TRT", "1", fields);
    EXPECT_FALSE(takes(*p, {tensor({2, 10, 3, 4}, kF16, kDHWC8)}, {output({2, 10, 3, 4}, kF16, kDHWC8)}));
}

TEST_F(Formats, Images)
{
    auto const sequence = [&](DataType t) {
        return std::vector{tensor({2, 12, 10}, t, kLINEAR), tensor({10}, t, kLINEAR), tensor({2, 12, 10}, t, kLINEAR),
                           tensor({2, 10, 3, 4}, kF32, kLINEAR)};
    };
    check(make("SeqLen2Spatial", "1", {}), sequence(kF32), {output({2, 10, 3, 4}, kF32, kHWC)}, 1e-5F);
    check(make("SeqLen2Spatial", "1", {}), sequence(kF16), {output({2, 10, 3, 4}, kF16, kHWC8)}, 4e-3F);
    int32_t const shape[2] = {4, 5};
    Numbers places = integers(std::vector<float>(2 * 3 * 4));
    places.desc.dims = dims({2, 3, 4});
    for (size_t i = 0; i < 6; ++i)
        places.values[4 * i + 2] = float(i % 4), places.values[4 * i + 3] = float(i % 5);
    check(make("PillarScatterPlugin", "1", {{"dense_shape", shape, PluginFieldType::kINT32, 2}}),
          {tensor({2, 3, 6}, kF16, kLINEAR), places, integers({3, 2})}, {output({2, 6, 4, 5}, kF16, kHWC8)}, 1e-5F);
}

TEST_F(Formats, PositionsInInt8)
{
    int32_t const span = 4;
    float const factor = 0.5F;
    check(make("DisentangledAttention_TRT", "1",
               {{"span", &span, PluginFieldType::kINT32, 1}, {"factor", &factor, PluginFieldType::kFLOAT32, 1}}),
          {tensor({2, 6, 6}, kI8, kLINEAR, 0.03F), tensor({2, 6, 8}, kI8, kLINEAR, 0.03F),
           tensor({2, 6, 8}, kI8, kLINEAR, 0.03F)},
          {output({2, 6, 6}, kI8, kLINEAR, 0.05F)}, 1e-4F);
}

// Without the batch.
std::vector<Numbers> regions(IPluginV2& p, std::vector<Numbers> const& in, std::vector<Numbers> out)
{
    auto& plugin = static_cast<IPluginV2IOExt&>(p);
    std::vector<PluginTensorDesc> all;
    std::vector<std::vector<char>> buffers;
    for (auto const* list : {&in, static_cast<std::vector<Numbers> const*>(&out)})
        for (Numbers const& n : *list)
            all.push_back(n.desc), buffers.push_back(packed(n));
    for (int32_t i = 0; i < int32_t(all.size()); ++i)
        EXPECT_TRUE(plugin.supportsFormatCombination(i, all.data(), 4, 2)) << i;
    plugin.configurePlugin(all.data(), 4, all.data() + 4, 2);
    void const* const from[] = {buffers[0].data(), buffers[1].data(), buffers[2].data(), buffers[3].data()};
    void* const to[] = {buffers[4].data(), buffers[5].data()};
    EXPECT_EQ(plugin.enqueue(1, from, to, nullptr, nullptr), 0);
    for (size_t o = 0; o < 2; ++o)
        out[o].values = unpacked(out[o].desc, buffers[4 + o]);
    return out;
}

TEST_F(Formats, FeaturesOfRegionsInInt8)
{
    int32_t const pooled = 2, stride = 8, before = 12, kept = 3, one = 1;
    float const threshold = 0.7F, least = 1, scale = 1 / 8.0F, ratio = 1, side = 2;
    PluginPtr const p = make("RPROI_TRT", "1",
                             {{"poolingH", &pooled, PluginFieldType::kINT32, 1},
                              {"poolingW", &pooled, PluginFieldType::kINT32, 1},
                              {"featureStride", &stride, PluginFieldType::kINT32, 1},
                              {"preNmsTop", &before, PluginFieldType::kINT32, 1},
                              {"nmsMaxOut", &kept, PluginFieldType::kINT32, 1},
                              {"anchorsRatioCount", &one, PluginFieldType::kINT32, 1},
                              {"anchorsScaleCount", &one, PluginFieldType::kINT32, 1},
                              {"iouThreshold", &threshold, PluginFieldType::kFLOAT32, 1},
                              {"minBoxSize", &least, PluginFieldType::kFLOAT32, 1},
                              {"spatialScale", &scale, PluginFieldType::kFLOAT32, 1},
                              {"anchorsRatios", &ratio, PluginFieldType::kFLOAT32, 1},
                              {"anchorsScales", &side, PluginFieldType::kFLOAT32, 1}});
    ASSERT_TRUE(p) << logger.lastError();
    std::vector<Numbers> in{tensor({2, 4, 5}, kF32, kLINEAR), tensor({4, 4, 5}, kF32, kLINEAR),
                            tensor({6, 4, 5}, kI8, kLINEAR, 0.03F), tensor({1, 1, 3}, kF32, kLINEAR)};
    in[3].values = {32, 40, 1};
    std::vector<Numbers> plain = in;
    plain[2].desc.type = kF32;
    auto const right = regions(*p, plain, {output({1, 3, 4}, kF32, kLINEAR), output({3, 6, 2, 2}, kF32, kLINEAR)});
    for (TensorFormat format : {kLINEAR, kCHW4, kCHW32}) {
        in[2].desc.format = format;
        auto const got = regions(*p, in, {output({1, 3, 4}, kF32, kLINEAR), output({3, 6, 2, 2}, kI8, format, 0.03F)});
        for (size_t o = 0; o < 2; ++o)
            for (size_t i = 0; i < right[o].values.size(); ++i)
                ASSERT_NEAR(got[o].values[i], right[o].values[i], 1e-4) << o << ", " << i;
    }
}

} // namespace

} // namespace tw::test::formats
