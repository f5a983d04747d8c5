// SPDX-License-Identifier: Apache-2.0
// Images are shared out to the workers. Of each cell the workspace has its voxel.
#include <algorithm>

#include "ops/voxels/op.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::voxels {

namespace {

class Image
{
public:
    Image(Attrs const& a, Grid const& grid, RunArgs& args, int64_t n)
        : a_(a), grid_(grid), m_(args.inputs[0].dims[1]), c_(args.inputs[0].dims[2]),
          taking_(std::clamp<int64_t>(args.inputs[1].as<int32_t>()[n], 0, m_)),
          points_(args.inputs[0].as<float>() + n * m_ * c_),
          voxels_(args.outputs[0].as<float>() + n * a.maxVoxels * a.maxPoints * a.features),
          coordinates_(args.outputs[1].as<int32_t>() + n * a.maxVoxels * 4),
          slots_(static_cast<int32_t*>(args.workspace) + n * (grid.count() + a.maxVoxels)),
          sizes_(slots_ + grid.count())
    {}

    int32_t run() const
    {
        std::fill_n(voxels_, a_.maxVoxels * a_.maxPoints * a_.features, 0.0F);
        std::fill_n(coordinates_, a_.maxVoxels * 4, 0);
        std::fill_n(slots_, grid_.count(), -1);
        std::fill_n(sizes_, a_.maxVoxels, 0);
        int32_t count = 0;
        for (int64_t i = 0; i < taking_; ++i) {
            int64_t cell[3];
            float const* const point = points_ + i * c_;
            if (!grid_.find(point, cell))
                continue;
            int32_t& slot = slots_[grid_.at(cell)];
            if (slot < 0 && count < a_.maxVoxels) {
                slot = count++;
                for (int d = 0; d < 3; ++d)
                    coordinates_[slot * 4 + 3 - d] = int32_t(cell[d]);
            }
            if (slot >= 0 && sizes_[slot] < a_.maxPoints)
                std::copy_n(point, std::min(c_, a_.features), placeOf(slot, sizes_[slot]++));
        }
        for (int32_t v = 0; v < count && a_.features > c_; ++v)
            addFeatures(v);
        return count;
    }

private:
    float* placeOf(int64_t voxel, int64_t p) const { return voxels_ + (voxel * a_.maxPoints + p) * a_.features; }
    void addFeatures(int64_t v) const
    {
        int32_t const size = sizes_[v];
        for (int d = 0; d < 3; ++d) {
            float sum = 0;
            for (int32_t p = 0; p < size; ++p)
                sum += placeOf(v, p)[d];
            float const mean = sum / float(size), centre = grid_.centre(d, coordinates_[v * 4 + 3 - d]);
            for (int32_t p = 0; p < size; ++p) {
                float* const point = placeOf(v, p);
                if (c_ + d < a_.features)
                    point[c_ + d] = point[d] - mean;
                if (c_ + 3 + d < a_.features)
                    point[c_ + 3 + d] = point[d] - centre;
            }
        }
    }

    Attrs const& a_;
    Grid const& grid_;
    int64_t const m_, c_, taking_;
    float const* const points_;
    float* const voxels_;
    int32_t *const coordinates_, *const slots_, *const sizes_;
};

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    Grid const grid(a);
    auto* const counts = args.outputs[2].as<int32_t>();
    args.workers->run(args.inputs[0].dims[0], [&](int64_t n, int) { counts[n] = Image(a, grid, args, n).run(); });
    return {};
}

int64_t workspace(ir::Node const& node, std::span<TensorRef const> inputs, std::span<TensorRef const>)
{
    auto const& a = node.attrsAs<Attrs>();
    return inputs[0].dims[0] * (Grid(a).count() + a.maxVoxels) * int64_t(sizeof(int32_t));
}

constexpr PlainTactic kPlain{"voxels_f32_plain_cpu", 1, run, workspace};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kPlain>;

} // namespace tw::ops::voxels
