// SPDX-License-Identifier: Apache-2.0
// Makes a fully connected layer of a convolution whose window is all of the image:
//   conv(x [N.., C, r, s], w [K, C, r, s], bias [K]) -> [N.., K, 1, 1]        ->  matmul(x, w, bias), connected
// Programs write products that way to have them in INT8, of tokens [S, B, C, 1, 1] for one; kernels of convolutions want
// images, and one dimension in front of them. Expects Form::kCanonical. Stands before fuse_activation and in front of
// quantize_ranges, which take both kinds alike. Leaves alone: padding, dilations, groups; few rows with
// four dimensions, as in gates of images, for which what follows convolutions was made.
#include <algorithm>

#include "ops/convolution/op.h"
#include "ops/matrix_multiply/op.h"
#include "passes/list.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// Whether N of [N, C, H, W] may be more than a batch of images.
bool hasManyRows(ir::Graph const& g, ir::Shape const& x)
{
    constexpr int64_t kMany = 64;
    return x[0].range(g.symbols).hi >= kMany;
}

bool isWhole(ir::Graph const& g, ir::Node const& conv)
{
    auto const& a = conv.attrsAs<ops::convolution::Attrs>();
    ir::Shape const &x = conv.inputs[0]->shape, &w = conv.inputs[1]->shape, &y = conv.outputs[0]->shape;
    if (w.size() != 4 || x.size() < 4 || a.groups != 1 || (x.size() == 4 && !hasManyRows(g, x)))
        return false;
    for (size_t i = 0; i < 2; ++i) {
        ir::Dim const &size = x[x.size() - 2 + i], &window = w[2 + i];
        if (!size.isConst() || !window.isConst() || size.value() != window.value() || a.dilations[i] != 1 ||
            !y[y.size() - 2 + i].is(1))
            return false;
    }
    return std::ranges::all_of(a.prePadding, [](int64_t p) { return p == 0; }) &&
           std::ranges::all_of(a.postPadding, [](int64_t p) { return p == 0; }) &&
           a.paddingMode == ops::PaddingMode::kExplicitRoundDown;
}

Result<bool> rewrite(ir::Graph& g, ir::Node& conv)
{
    if (!isWhole(g, conv))
        return false;
    TW_ASSIGN(ir::Node * product,
              g.addNode(ops::matrix_multiply::def(), ops::matrix_multiply::Attrs::fullyConnected().clone(), conv.inputs,
                        conv.name, {}, g.positionOf(&conv)));
    takePlaceOf(*product, conv);
    product->outputs[0]->name = conv.outputs[0]->name;
    g.replaceAllUses(conv.outputs[0], product->outputs[0]);
    g.eraseNode(&conv);
    return true;
}

} // namespace

Result<bool> convolutionToMatmul(ir::Graph& g, PassContext const&)
{
    return rewriteEach(g, ops::convolution::isBareForward, [&](ir::Node& n) { return rewrite(g, n); });
}

} // namespace tw::passes
