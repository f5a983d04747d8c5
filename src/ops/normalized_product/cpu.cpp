// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "families/elementwise/activate.h"
#include "families/gemm/plain_gemm.h"
#include "ops/normalized_product/op.h"
#include "tactic/blocks.h"

namespace tw::ops::normalized_product {

namespace {

// A row of floats, in a type that is not float rounded once.
Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& attrs = node.attrsAs<Attrs>();
    TensorRef const& y = args.outputs[0];
    int64_t const n = y.dims.rank > 0 ? y.dims[y.dims.rank - 1] : 0;
    multiplyPlain(attrs, args.inputs[kA], args.inputs[kB], y, args.workspace);
    auto* const x = static_cast<float*>(args.workspace);
    for (int64_t at = 0; at < y.count(); at += n) {
        for (int64_t j = 0; j < n; ++j)
            x[j] = float(y.get(at + j) + args.inputs[kBias].get(j) + args.inputs[kResidual].get(at + j));
        if (attrs.activation.any())
            activate(attrs.activation, x, x, n);
        double mean = 0, variance = 0;
        for (int64_t j = 0; j < n; ++j)
            mean += double(x[j]) / double(n);
        for (int64_t j = 0; j < n; ++j)
            variance += (x[j] - mean) * (x[j] - mean) / double(n);
        double const deviation = std::sqrt(variance + attrs.epsilon);
        for (int64_t j = 0; j < n; ++j)
            y.set(at + j, (x[j] - mean) / deviation * args.inputs[kGamma].get(j) + args.inputs[kBeta].get(j));
    }
    return {};
}

int64_t workspace(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    Extents const& y = out[0].dims;
    int64_t const row = y.rank > 0 ? y[y.rank - 1] * int64_t(sizeof(float)) : 0;
    return std::max(row, multiplyPlainWorkspaceBytes(node.attrsAs<Attrs>(), in[0], in[1]));
}

constexpr PlainTactic kPlain{"normalized_product_plain", 1, run, workspace};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::normalized_product
