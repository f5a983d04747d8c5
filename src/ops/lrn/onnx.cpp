// SPDX-License-Identifier: Apache-2.0
// LRN. The layer's channel is the third dimension from the end: other ranks are brought to N, C, D1, D2.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

void importLRN(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    int const rank = x.getDimensions().nbDims;
    ctx.check(rank >= 2, "input of shape " + describe(x.getDimensions()) + " needs batch and channel");
    int64_t const size = ctx.requireInt("size");
    ctx.check(size >= 1 && size <= 15 && size % 2 == 1,
              fmt::format("attribute 'size' is {}, ILRNLayer takes odd windows of 1 to 15", size));
    float const alpha = ctx.attrFloat("alpha", 1e-4f), beta = ctx.attrFloat("beta", 0.75f);
    float const bias = ctx.attrFloat("bias", 1.0f);

    Sizes const sizes = ctx.sizesOf(x);
    ITensor* flat = &x;
    if (rank < 4) {
        flat = &ctx.unsqueeze(x, rank == 2 ? std::vector<int>{2, 3} : std::vector<int>{3});
    } else if (rank > 4) {
        Sizes const inner(sizes.begin() + 2, sizes.end() - 1);
        flat = &ctx.reshape(x, Sizes{sizes[0], sizes[1], ctx.product(inner), sizes.back()});
    }
    ITensor& y = ctx.out(ctx.added(ctx.network().addLRN(*flat, int32_t(size), alpha, beta, bias)));
    if (rank == 4)
        ctx.setOutput(0, y);
    else if (rank > 4)
        ctx.setOutput(0, ctx.reshape(y, sizes));
    else
        ctx.setOutput(0, ctx.squeeze(y, rank == 2 ? std::vector<int>{2, 3} : std::vector<int>{3}));
}

} // namespace

void register_lrn(ImporterMap& map)
{
    map.add("LRN", importLRN);
}

} // namespace tw::onnx
