// SPDX-License-Identifier: Apache-2.0
// Makes one node of a convolution of one element and the depthwise convolution that reads its result.
//   before: z = f(conv1x1(x, w1, b1)), y = g(depthwise(z, w2, b2))    after: y = expanded_depthwise(x, w1, b1, w2, b2)
// For CPUs with emitted kernels, where z takes more than two L2: its rows are then used before they leave L2. Tensors
// of
// 4.6 times L2 gained 8 to 12 %, of 1.8 times lost 3 to 9 % (Zen 4, 1 MiB of L2, an L3 at 98 GB/s). Speculative: what
// it is on another machine, whole engines with and without it show.
// Expects Form::kFused: convolutions have their activations. Stands after the other fusions. Leaves alone: results
// that others read too, residual sums, other types than f32, nodes whose wishes of the user differ.
#include "ops/convolution/op.h"
#include "ops/expanded_depthwise/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// A 2-D convolution in f32 with bias and known shapes, with an activation at most.
bool isConvolution(ir::Node const* n)
{
    if (!n || n->op != &ops::convolution::def() || n->attrsAs<ops::convolution::Attrs>().transposed ||
        n->inputs.size() != 3 || n->device.byUser)
        return false;
    for (ir::Value const* v : n->inputs)
        if (!v || !isFullFloat(v->type))
            return false;
    for (ir::Value const* v : {n->inputs[0], n->outputs[0]}) {
        if (v->rank() != 4)
            return false;
        for (int i = 1; i < 4; ++i)
            if (!v->shape[size_t(i)].isConst())
                return false;
    }
    return n->inputs[1]->isConstant() && n->inputs[2]->isConstant();
}

ops::FusedActivation fusedActivationOf(ir::Node const& n)
{
    return n.attrsAs<ops::convolution::Attrs>().epilogue.activation;
}

bool isExpansion(ir::Node const* n)
{
    if (!isConvolution(n))
        return false;
    auto const& a = n->attrsAs<ops::convolution::Attrs>();
    if (!n->inputs[1]->shape[2].is(1) || !n->inputs[1]->shape[3].is(1))
        return false;
    bool plain = a.groups == 1;
    for (size_t i = 0; i < 2; ++i)
        plain = plain && a.strides[i] == 1 && n->inputs[0]->shape[2 + i] == n->outputs[0]->shape[2 + i] &&
                a.prePadding[i] == 0;
    return plain;
}

bool isDepthwise(ir::Node const* n)
{
    if (!isConvolution(n))
        return false;
    ir::Shape const &x = n->inputs[0]->shape, &w = n->inputs[1]->shape;
    return x[1].is(n->attrsAs<ops::convolution::Attrs>().groups) && w[0] == x[1] && w[1].is(1);
}

constexpr int64_t kLeastOfL2 = 2;

int64_t pixelsBytes(ir::Value const& v)
{
    return v.shape[1].value() * v.shape[2].value() * v.shape[3].value() * int64_t(sizeof(float));
}

} // namespace

Result<bool> fuseExpandedDepthwise(ir::Graph& g, PassContext const& ctx)
{
    TargetInfo::Cpu const* const cpu = ctx.target.cpu();
    if (!cpu || cpu->isa < TargetInfo::Isa::kAvx2)
        return false;
    auto const isReader = [](ir::Node const& n) { return isDepthwise(&n); };
    return rewriteEach(g, isReader, [&](ir::Node& depthwise) -> Result<bool> {
        ir::Node* const expansion = onlyProducer(g, depthwise.inputs[0]);
        if (!isExpansion(expansion) || pixelsBytes(*depthwise.inputs[0]) <= kLeastOfL2 * cpu->l2Bytes ||
            !canFuse(g, {expansion, &depthwise}))
            return false;
        auto const& e = *expansion;
        std::vector<FusedInput> inputs;
        for (ir::Value* v : {e.inputs[0], e.inputs[1], e.inputs[2], depthwise.inputs[1], depthwise.inputs[2]})
            inputs.push_back({v, v});
        auto attrs = std::make_unique<ops::expanded_depthwise::Attrs>(
            depthwise.attrsAs<ops::convolution::Attrs>(), fusedActivationOf(e), fusedActivationOf(depthwise));
        std::string const name = e.name + " + " + depthwise.name;
        TW_ASSIGN(ir::Node * fused,
                  fuseNodes(g, {expansion, &depthwise}, ops::expanded_depthwise::def(), std::move(attrs), inputs));
        if (fused)
            ctx.log.info("fused {}", name);
        return fused != nullptr;
    });
}

} // namespace tw::passes
