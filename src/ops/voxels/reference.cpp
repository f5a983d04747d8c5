// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "ops/voxels/op.h"

namespace tw::ops::voxels {

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &points = ctx.in(0), &voxels = ctx.out(0), &coordinates = ctx.out(1);
    Grid const grid(a);
    int64_t const m = points.dims[1], c = points.dims[2];
    for (int64_t i = 0; i < voxels.count(); ++i)
        voxels.set(i, 0);
    for (int64_t i = 0; i < coordinates.count(); ++i)
        coordinates.set(i, 0);
    for (int64_t n = 0; n < points.dims[0]; ++n) {
        std::map<int64_t, int64_t> slots; // by cell
        std::vector<std::vector<int64_t>> members;
        std::vector<std::array<int64_t, 3>> cells;
        int64_t const taking = std::clamp<int64_t>(ctx.in(1).getInt(n), 0, m);
        for (int64_t i = 0; i < taking; ++i) {
            float const at[3] = {float(points.get((n * m + i) * c)), float(points.get((n * m + i) * c + 1)),
                                 float(points.get((n * m + i) * c + 2))};
            int64_t cell[3];
            if (!grid.find(at, cell))
                continue;
            auto const [it, isNew] = slots.try_emplace(grid.at(cell), int64_t(members.size()));
            if (isNew) {
                members.emplace_back();
                cells.push_back({cell[0], cell[1], cell[2]});
            }
            if (int64_t(members[size_t(it->second)].size()) < a.maxPoints)
                members[size_t(it->second)].push_back(i);
        }
        int64_t const count = std::min(int64_t(members.size()), a.maxVoxels);
        ctx.out(2).set(n, double(count));
        for (int64_t v = 0; v < count; ++v) {
            auto const& list = members[size_t(v)];
            double mean[3] = {};
            for (int64_t i : list)
                for (int d = 0; d < 3; ++d)
                    mean[d] += points.get((n * m + i) * c + d) / double(list.size());
            for (int d = 0; d < 3; ++d)
                coordinates.set((n * a.maxVoxels + v) * 4 + 3 - d, double(cells[size_t(v)][size_t(d)]));
            for (size_t p = 0; p < list.size(); ++p)
                for (int64_t f = 0; f < std::min(a.features, c + 6); ++f) {
                    int const d = int(f < c ? f : (f - c) % 3);
                    double value = points.get((n * m + list[p]) * c + d);
                    if (f >= c)
                        value -= f < c + 3 ? mean[d] : double(grid.centre(d, cells[size_t(v)][size_t(d)]));
                    voxels.set(((n * a.maxVoxels + v) * a.maxPoints + int64_t(p)) * a.features + f, value);
                }
        }
    }
    return {};
}

} // namespace tw::ops::voxels
