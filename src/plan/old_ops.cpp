// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>

#include "plan/old.h"
#include "tactic/registry.h"

namespace tw::plan {

namespace {

// Numbers as the ops' attributes have them today.
constexpr int kProductB = 2, kProductConnected = 7, kConvolutionTransposed = 10, kLoopCarried = 1;

struct OldOp
{
    std::string_view name, now;
    int added = 0;        // to the numbers of its attributes
    int ones[2] = {0, 0}; // attributes that are 1, by number; 0: none
};
constexpr OldOp kOps[] = {
    {"fused_convolution", "convolution"},
    {"deconvolution", "convolution", 0, {kConvolutionTransposed}},
    {"fused_deconvolution", "convolution", 0, {kConvolutionTransposed}},
    {"fully_connected", "matrix_multiply", 0, {kProductB, kProductConnected}},
    {"fused_fully_connected", "matrix_multiply", 2, {kProductB, kProductConnected}},
    {"fused_matrix_multiply", "matrix_multiply"},
    {"normalized_product", "matrix_multiply"},
};

// Whole names, then beginnings; the first that fits. What they became has changed since: ops::todaysName().
struct OldTactic
{
    std::string_view name, now;
};
constexpr OldTactic kTactics[] = {
    {"normalized_product_f16_wgmma_cuda", "matrix_multiply_f16_norm_wgmma_cuda"},
    {"normalized_product_f16_apart_cuda", "matrix_multiply_f16_norm_apart_cuda"},
    {"normalized_product_plain", "matrix_multiply_plain"}, // _cuda too
    {"fused_matrix_multiply_", "matrix_multiply_"},
    {"fused_fully_connected_", "matrix_multiply_"},
    {"fully_connected_", "matrix_multiply_"},
    {"fused_convolution_", "convolution_"},
    {"fused_deconvolution_f16_wgmma_sm90a", "convolution_f16_transposed_wgmma_sm90a"},
    {"fused_deconvolution_tf32_mma_sm80", "convolution_tf32_transposed_mma_sm80"},
    {"fused_deconvolution_f32_tile_sm80", "convolution_f32_transposed_tile_sm80"},
    {"fused_deconvolution_", "convolution_"},
    {"deconvolution_f16_wgmma_sm90a", "convolution_f16_transposed_wgmma_sm90a"},
    {"deconvolution_tf32_mma_sm80", "convolution_tf32_transposed_mma_sm80"},
    {"deconvolution_f32_tile_sm80", "convolution_f32_transposed_tile_sm80"},
    {"deconvolution_", "convolution_"},
};

// As Tactic::id() was when those plans were written.
uint64_t oldTacticId(std::string const& name, int version)
{
    OldHasher h;
    h.text(name);
    h.number(uint64_t(version));
    return h.value();
}

// Until 1.6 a condition alone ended loops: there is no count among the inputs.
void renewLoop(std::string& op, std::vector<ir::FieldValue> const& fields, std::vector<ir::Value*>& inputs)
{
    op = "loop";
    for (ir::FieldValue const& f : fields)
        if (f.number == kLoopCarried && f.integers.size() == 1 && f.integers[0] >= 0 &&
            f.integers[0] <= int64_t(inputs.size()))
            inputs.insert(inputs.begin() + f.integers[0], nullptr);
}

} // namespace

void renewNode(std::string& op, std::vector<ir::FieldValue>& fields, std::vector<ir::Value*>& inputs)
{
    if (op == "while_loop")
        return renewLoop(op, fields, inputs);
    auto const old = std::ranges::find_if(kOps, [&](OldOp const& o) { return o.name == op; });
    if (old == std::end(kOps))
        return;
    op = old->now;
    for (ir::FieldValue& f : fields)
        f.number += old->added;
    for (int number : old->ones)
        if (number != 0)
            fields.push_back({number, std::to_string(number), ir::FieldValue::Kind::kInteger, {1}, {}, {}});
}

void renewTactic(uint64_t& id, std::string& name, int version)
{
    // The names changed within minor 6.
    if (id != oldTacticId(name, version) && id != ops::tacticId(name, version))
        return;
    auto const old = std::ranges::find_if(kTactics, [&](OldTactic const& t) { return name.starts_with(t.name); });
    if (old != std::end(kTactics))
        name = std::string(old->now) + name.substr(old->name.size());
    name = ops::todaysName(name);
    id = ops::tacticId(name, version);
}

} // namespace tw::plan
