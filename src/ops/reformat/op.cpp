// SPDX-License-Identifier: Apache-2.0
#include "ops/reformat/op.h"

#include "tactic/cases.h"
#include "tactic/registry.h"

namespace tw::ops::reformat {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    ctx.output(0, ctx.type(0), ctx.shape(0));
    return {};
}

// The channels of a single pixel lie in the same order in linear formats and those by pixels, which may have more room
// behind them.
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

[[gnu::cold]] void cases(CaseList& list)
{
    list.add("by_hand", Attrs(), {f32({1, 2, 2}, {1, 2, 3, 4})}, {{1, 2, 3, 4}});
    for (int t = 0; t < kDataTypeCount; ++t)
        list.add(nameOf(DataType(t)), Attrs(), {input(DataType(t), {2, 19, 3, 7})});
    list.add("one_channel", Attrs(), {f32({3, 1, 5, 4})});
    list.add("vector_of_channels", Attrs(), {f32({2, 256, 1, 1})});
    list.add("wide", Attrs(), {f32({1, 33, 17, 31})});
    for (int64_t c : {1, 7, 8, 9, 15, 16, 17, 40, 70})
        list.add("channels_" + std::to_string(c), Attrs(), {f32({2, c, 9, 8 + c % 5})});
    for (int64_t c : {3, 8, 30, 72})
        for (int64_t w : {7, 10, 12, 16})
            list.add("half_" + std::to_string(c) + "_" + std::to_string(w), Attrs(),
                     {input(DataType::kHalf, {3, c, 5, w})});
    list.add("half_several_tiles", Attrs(), {input(DataType::kHalf, {2, 75, 20, 31})});
    list.add("half_rows_of_16_bytes", Attrs(), {input(DataType::kHalf, {2, 72, 20, 24})});
    for (DataType t : {DataType::kHalf, DataType::kFloat, DataType::kInt8})
        list.add(std::string("odd_planes_") + nameOf(t), Attrs(), {input(t, {2, 150, 21, 23})});
    list.add("half_whole_planes", Attrs(), {input(DataType::kHalf, {2, 200, 14, 14})});
    list.add("pixel", Attrs(), {f32({1, 21, 1, 1})});
    list.add("3d", Attrs(), {f32({2, 16, 3, 2, 5})});
    list.add("matrix", Attrs(), {f32({4, 9})});
    list.add("empty", Attrs(), {f32({2, 0, 3, 3})});
}

} // namespace

std::vector<Formats> formatPairs(Problem const& problem)
{
    std::vector<Formats> list{linearFormats(problem)};
    int const rank = problem.inputs[0].dims.rank;
    auto isWorking = [](Format f) { return f == Format::kLinear || f == Format::kChannelsLast || f == Format::kHWC8; };
    for (Format from : kFormats)
        for (Format to : kFormats) {
            bool const isLinear = from == Format::kLinear || to == Format::kLinear;
            if ((from != Format::kLinear || to != Format::kLinear) && fitsRank(from, rank) && fitsRank(to, rank) &&
                (isWorking(from) || isWorking(to)) && (isLinear || channelAxis(from, rank) == channelAxis(to, rank)))
                list.push_back(Formats{{from}, {to}});
        }
    return list;
}

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "reformat",
        .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<Attrs>()); },
        .infer = infer,
        .reference = reference,
        .cases = cases,
        .cpuTactics = cpuTactics,
        .cudaTactics = cudaTactics,
        .aliases = aliases,
        .convertsFormat = true,
    };
    return kDef;
}

} // namespace tw::ops::reformat
