// SPDX-License-Identifier: Apache-2.0
#include "ops/reformat/op.h"

#include "base/format.h"
#include "ir/signs.h"
#include "tactic/layer_facts.h"
#include "tactic/registry.h"

namespace tw::ops::reformat {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    ctx.output(0, ctx.type(0), ctx.shape(0));
    return {};
}

// The channels of a single pixel lie in the same order in linear formats and those by pixels, which may have more room
// after them.
std::vector<ir::Alias> aliases(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    auto isDense = [](TensorRef const& t) {
        return t.format == Format::kLinear ||
               (isByPixel(t.format) && t.pixelStride() == t.dims[channelAxis(t.format, t.dims.rank)]);
    };
    bool view = in[0].format == out[0].format;
    Format const packed = in[0].format != Format::kLinear ? in[0].format : out[0].format;
    if (!view && (isByPixel(in[0].format) || in[0].format == Format::kLinear) &&
        (isByPixel(out[0].format) || out[0].format == Format::kLinear)) {
        Extents const& e = in[0].dims;
        int const axis = channelAxis(packed, e.rank);
        bool const isOne = e.volume(axis + 1, e.rank) == 1;
        view = isOne &&
               ((isDense(in[0]) && isDense(out[0])) || (e.volume(0, axis) == 1 && out[0].format == Format::kLinear));
    }
    return view ? std::vector<ir::Alias>{ir::Alias{true, 0, 0}} : std::vector<ir::Alias>();
}

} // namespace

std::vector<Formats> formatPairs(Problem const& problem)
{
    std::vector<Formats> list{linearFormats(problem)};
    int const rank = problem.inputs[0].dims.rank;
    Format const pixels = pixelVectorsOf(problem.inputs[0].type);
    auto isWorking = [&](Format f) {
        return f == Format::kLinear || f == Format::kChannelsLast || f == Format::kHWC8 || f == pixels;
    };
    for (Format from : kFormats)
        for (Format to : kFormats) {
            bool const isLinear = from == Format::kLinear || to == Format::kLinear;
            if ((from != Format::kLinear || to != Format::kLinear) && fitsRank(from, rank) && fitsRank(to, rank) &&
                (isWorking(from) || isWorking(to)) && (isLinear || channelAxis(from, rank) == channelAxis(to, rank)))
                list.push_back(Formats{{from}, {to}});
        }
    return list;
}

namespace {

void inspect(LayerFacts& facts)
{
    facts.kind("Reformat");
    facts.add("Origin", "REFORMAT");
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "reformat",
    TW_OP_PARTS(Attrs),
    .isNonNegative = ir::ofFirstInput,
    .inspect = inspect,
    .aliases = aliases,
    .convertsFormat = true,
};

} // namespace tw::ops::reformat
