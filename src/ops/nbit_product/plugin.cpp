// SPDX-License-Identifier: Apache-2.0
// MatMulNBits: products by weights of few bits, of the name that ONNX Runtime's operator has. A plugin of our own.
#include "api/standard_plugins/standard_plugin.h"
#include "ops/nbit_product/op.h"
#include "tactic/registry.h"

namespace tw::ops::nbit_product {

namespace {

using api::PluginLowering;

// x, weights, scales, then what the fields say there is, in the order of the fields.
void lower(PluginLowering& p)
{
    Attrs a;
    a.k = p.fields.integer("K");
    a.bits = p.fields.integer("bits");
    a.block = p.fields.integer("block_size");
    constexpr int64_t kEightBits = 4; // of ONNX Runtime's levels the one that rounds x
    int64_t const level = p.fields.integer("accuracy_level");
    p.check(level >= 0 && level <= kEightBits, fmt::format("accuracy_level is {} (allowed: 0..{})", level, kEightBits));
    a.roundsX = level == kEightBits;
    PluginLowering::Values in{p.in(0), p.in(1), p.in(2)};
    size_t next = in.size();
    auto const given = [&](char const* field) { return p.fields.flag(field) ? p.in(next++) : nullptr; };
    ir::Value *const zeros = given("zero_points"), *const groups = given("g_idx"), *const bias = given("bias");
    p.check(next == p.inputs.size(),
            fmt::format("there are {} inputs; the fields zero_points, g_idx and bias say {}", p.inputs.size(), next));
    in.push_back(zeros ? p.cast(zeros, in[kScales]->type) : nullptr);
    in.push_back(bias ? p.cast(bias, in[kX]->type) : nullptr);
    in.push_back(groups);
    p.outputs = p.node(def(), a, std::move(in))->outputs;
}

} // namespace

} // namespace tw::ops::nbit_product

namespace tw::api {

void registerPlugins_nbit_product(StandardPlugins& list)
{
    using enum nvinfer1::PluginFieldType;
    list.push_back({.name = "MatMulNBits",
                    .version = "1",
                    .fields = {{"K", kINT32, kMust},
                               {"bits", kINT32, kMay, kOne, 4},
                               {"block_size", kINT32, kMust},
                               {"zero_points", kINT32},
                               {"g_idx", kINT32},
                               {"bias", kINT32},
                               {"accuracy_level", kINT32}},
                    .types = {"Ti..?.?.?>T"},
                    .lower = ops::nbit_product::lower});
}

} // namespace tw::api
