// SPDX-License-Identifier: Apache-2.0
#include "ops/voxels/op.h"

#include <algorithm>
#include <cmath>

#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::voxels {

Grid::Grid(Attrs const& a)
{
    for (size_t d = 0; d < 3; ++d) {
        least[d] = float(a.least[d]);
        most[d] = float(a.most[d]);
        size[d] = float(a.size[d]);
        cells[d] = int64_t(std::clamp(std::nearbyint((most[d] - least[d]) / size[d]), 1.0F, float(kMostCells)));
    }
}

bool Grid::find(float const* point, int64_t (&cell)[3]) const
{
    for (int d = 0; d < 3; ++d) {
        if (!(point[d] >= least[d] && point[d] < most[d]))
            return false;
        cell[d] = std::min(int64_t(std::floor((point[d] - least[d]) / size[d])), cells[d] - 1);
    }
    return true;
}

namespace {

Result<void> checkAttrs(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    constexpr int64_t kMost = 1 << 24;
    if (a.maxPoints < 1 || a.maxVoxels < 1 || a.features < 1 || a.maxPoints > 1024 || a.maxVoxels > kMost ||
        a.features > 1024)
        return ctx.error("max_points is {} (allowed: 1 to 1024), max_voxels {} (1 to {}), features {} (1 to 1024)",
                         a.maxPoints, a.maxVoxels, kMost, a.features);
    if (a.least.size() != 3 || a.most.size() != 3 || a.size.size() != 3)
        return ctx.error("least, most and size must have three numbers");
    double cells = 1;
    for (size_t d = 0; d < 3; ++d) {
        if (!(a.least[d] < a.most[d] && a.size[d] > 0))
            return ctx.error("the grid goes from {} to {} in cells of {}", a.least[d], a.most[d], a.size[d]);
        cells *= std::max(1.0, (a.most[d] - a.least[d]) / a.size[d]);
    }
    if (!(cells <= double(kMostCells)))
        return ctx.error("the grid has more than {} cells", kMostCells);
    return {};
}

Result<void> infer(ir::InferContext& ctx)
{
    TW_TRY(checkAttrs(ctx));
    auto const& a = ctx.attrs<Attrs>();
    ir::Shape const &points = ctx.shape(0), &counts = ctx.shape(1);
    if (!isFullFloat(ctx.type(0)) || ctx.type(1) != DataType::kInt32 || points.size() != 3 || counts.size() != 1)
        return ctx.error("points " + ctx.describe(0) + " must be f32 [N, M, C] and counts " + ctx.describe(1) +
                         " i32 [N]");
    if (points[0].isConst() && counts[0].isConst() && points[0].value() != counts[0].value())
        return ctx.error("points " + ctx.describe(0) + " and counts " + ctx.describe(1) + " do not agree");
    if (!points[2].isConst() || points[2].value() < 3)
        return ctx.error("points " + ctx.describe(0) + " need three numbers or more, known when the engine is built");
    ctx.output(0, DataType::kFloat, {points[0], a.maxVoxels, a.maxPoints, a.features});
    ctx.output(1, DataType::kInt32, {points[0], a.maxVoxels, 4});
    ctx.output(2, DataType::kInt32, {points[0]});
    return {};
}

void domain(ir::Node const&, int input, Domain& d)
{
    if (input == 0)
        d = Domain{-4, 4};
    else
        d = Domain{0, 60};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "voxels",
    TW_OP_PARTS(Attrs),
    .inputs = {2, 2},
    .domain = domain,
};

} // namespace tw::ops::voxels
