// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/element.h"
#include "base/round.h"
#include "ops/nbit_product/op.h"
#include "ops/nbit_product/tactics.h"
#include "tactic/cpu_tactic.h"

namespace tw::ops::nbit_product {

namespace {

using kernels::jit::Factors;
using kernels::jit::Isa;

// Columns are shared out to so many at once, each with a row of w as floats.
constexpr int64_t kSlots = 16;

int64_t workspace(ir::Node const& node, std::span<TensorRef const>, std::span<TensorRef const>)
{
    return kSlots * roundUp(node.attrsAs<Attrs>().k * int64_t(sizeof(float)), 64);
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    auto const given = [&](size_t i) { return i < args.inputs.size() && args.inputs[i].data; };
    TensorRef const &x = args.inputs[kX], &scales = args.inputs[kScales], &y = args.outputs[0];
    int64_t const n = scales.dims[0], rows = n == 0 ? 0 : y.count() / n;
    int32_t const* const groups = given(kGroups) ? args.inputs[kGroups].as<int32_t>() : nullptr;
    args.workers->run(kSlots, [&](int64_t slot, int) {
        float* const w = static_cast<float*>(args.workspace) + slot * roundUp(a.k * int64_t(sizeof(float)), 64) / 4;
        for (int64_t j = slot; j < n; j += kSlots) {
            for (int64_t p = 0; p < a.k; ++p) {
                int64_t const at = j * a.blocks() + a.group(groups, p);
                double const zero = given(kZeros) ? args.inputs[kZeros].get(at) : a.middle();
                w[p] = float(scales.get(at) * (a.quantized(args.inputs[kWeights].as<int32_t>(), j, p) - zero));
            }
            for (int64_t i = 0; i < rows; ++i) {
                double sum = given(kBias) ? args.inputs[kBias].get(j) : 0;
                withFloat(x.type, [&](auto element) {
                    auto const* const row = x.as<decltype(element)>() + i * a.k;
                    for (int64_t p = 0; p < a.k; ++p)
                        sum += double(loadElement(row[p])) * double(w[p]);
                });
                y.set(i * n + j, sum);
            }
        }
    });
    return {};
}

constexpr PlainTactic kPlain{"nbit_product_any_plain_cpu", 1, run, workspace};
constexpr CpuTactic kAvx512Vnni{"nbit_product_any_limbs_vnni_avx512", 2, Isa::kAvx512, kLimbs, Factors::kByteDots};
constexpr CpuTactic kAvxVnni{"nbit_product_any_limbs_vnni_avx2", 2, Isa::kAvx2, kLimbs, Factors::kByteDots};
constexpr CpuTactic kAvx512{"nbit_product_any_limbs_avx512", 3, Isa::kAvx512, kLimbs, Factors::kBytePairs};
constexpr CpuTactic kAvx2{"nbit_product_any_limbs_avx2", 3, Isa::kAvx2, kLimbs, Factors::kBytePairs};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512Vnni, kAvxVnni, kAvx512, kAvx2, kPlain>;

} // namespace tw::ops::nbit_product
