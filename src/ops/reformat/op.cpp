// SPDX-License-Identifier: Apache-2.0
#include "ops/reformat/op.h"

#include "ops/cases.h"
#include "ops/registry.h"

namespace tw::ops::reformat {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    ctx.output(0, ctx.type(0), ctx.shape(0));
    return {};
}

// The channels of a single pixel lie in the same order in both formats; channels-last has more room behind them.
std::vector<ir::Alias> aliases(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    Extents const& e = in[0].dims;
    bool const view = in[0].format == out[0].format ||
                      (in[0].format == Format::kChannelsLast && e[0] == 1 && e.volume(2, e.rank) == 1);
    return view ? std::vector<ir::Alias>{ir::Alias{true, 0, 0}} : std::vector<ir::Alias>();
}

void cases(CaseList& list)
{
    list.add("by_hand", Attrs(), {f32({1, 2, 2}, {1, 2, 3, 4})}, {{1, 2, 3, 4}});
    for (int t = 0; t < kDataTypeCount; ++t)
        list.add(nameOf(DataType(t)), Attrs(), {input(DataType(t), {2, 19, 3, 7})});
    list.add("one_channel", Attrs(), {f32({3, 1, 5, 4})});
    list.add("vector_of_channels", Attrs(), {f32({2, 256, 1, 1})});
    list.add("wide", Attrs(), {f32({1, 33, 17, 31})});
    for (int64_t c : {1, 7, 8, 9, 15, 16, 17, 40, 70})
        list.add("channels_" + std::to_string(c), Attrs(), {f32({2, c, 9, 8 + c % 5})});
    list.add("pixel", Attrs(), {f32({1, 21, 1, 1})});
    list.add("3d", Attrs(), {f32({2, 16, 3, 2, 5})});
    list.add("matrix", Attrs(), {f32({4, 9})});
    list.add("empty", Attrs(), {f32({2, 0, 3, 3})});
}

} // namespace

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
    };
    return kDef;
}

} // namespace tw::ops::reformat
