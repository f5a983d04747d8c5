// SPDX-License-Identifier: Apache-2.0
// Points of a cloud in the cells of a grid, as PointPillars has them. Of each image the first counts[n] points take part;
// a point (x, y, z, ...) with least <= it < most lies in the cell floor((it - least) / size), in FP32. Cells become voxels in
// the order of their first points, up to maxVoxels; each keeps its first maxPoints points.
//   inputs: 0 points f32 [N, M, C], C >= 3   1 counts i32 [N]
//   outputs: 0 voxels f32 [N, maxVoxels, maxPoints, features]: of each point its C values; then less the mean x, y, z of its
//   voxel; then less the centre of the cell in x, y, z; as many of these as there are features. Zeros elsewhere
//            1 coordinates i32 [N, maxVoxels, 4]: 0, z, y, x of the cell; zeros where there is no voxel
//            2 how many voxels there are, i32 [N]
#pragma once

#include "ir/attrs.h"
#include "ir/op_def.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::voxels {

struct Attrs : ir::AttrsOf<Attrs>
{
    int64_t maxPoints = 1, maxVoxels = 1, features = 1;
    std::vector<double> least, most, size; // x, y, z; they hold floats

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "max_points", maxPoints);
        v.field(2, "max_voxels", maxVoxels);
        v.field(3, "features", features);
        v.field(4, "least", least);
        v.field(5, "most", most);
        v.field(6, "size", size);
    }
};

// The grid in FP32.
struct Grid
{
    float least[3], most[3], size[3];
    int64_t cells[3];

    explicit Grid(Attrs const& a);
    // x, y, z of the cell of a point; false: it is in none.
    bool find(float const* point, int64_t (&cell)[3]) const;
    float centre(int axis, int64_t cell) const { return least[axis] + (float(cell) + 0.5F) * size[axis]; }
    int64_t count() const { return cells[0] * cells[1] * cells[2]; }
    int64_t at(int64_t const (&cell)[3]) const { return (cell[2] * cells[1] + cell[1]) * cells[0] + cell[0]; }
};

inline constexpr int64_t kMostCells = int64_t(1) << 28;

} // namespace tw::ops::voxels
