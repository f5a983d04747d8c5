// SPDX-License-Identifier: Apache-2.0
#include "api/standard_plugins/standard_plugin.h"
#include "ops/voxels/op.h"
#include "tactic/registry.h"

namespace tw::api {

namespace {

ops::voxels::Attrs attrsOf(PluginFields const& f)
{
    ops::voxels::Attrs a;
    a.maxPoints = f.integer("max_num_points_per_voxel");
    a.maxVoxels = f.integer("max_voxels");
    a.features = f.integer("voxel_feature_num");
    std::vector<double> const range = f.numbers("point_cloud_range");
    a.least.assign(range.begin(), range.begin() + 3);
    a.most.assign(range.begin() + 3, range.end());
    a.size = f.numbers("voxel_size");
    return a;
}

std::string check(PluginFields const& f)
{
    if (f.numbers("point_cloud_range").size() != 6 || f.numbers("voxel_size").size() != 3)
        return "point_cloud_range needs six numbers, voxel_size three";
    return f.integer("max_num_points_per_voxel") > 0 && f.integer("max_voxels") > 0 &&
                   f.integer("voxel_feature_num") > 0
               ? ""
               : "max_num_points_per_voxel, max_voxels and voxel_feature_num must be above 0";
}

} // namespace

void registerPlugins_voxels(StandardPlugins& list)
{
    using enum nvinfer1::PluginFieldType;
    list.push_back({.name = "VoxelGeneratorPlugin",
                    .version = "1",
                    .fields = {{"max_num_points_per_voxel", kINT32},
                               {"max_voxels", kINT32},
                               {"point_cloud_range", kFLOAT32, kMay, kAny},
                               {"voxel_feature_num", kINT32},
                               {"voxel_size", kFLOAT32, kMay, kAny}},
                    .types = {"fi>fii"},
                    .lower =
                        [](PluginLowering& p) {
                            ir::Node const* const n = p.node(ops::voxels::def(), attrsOf(p.fields), {p.in(0), p.in(1)});
                            p.outputs = n->outputs;
                        },
                    .check = check,
                    .checksTypes = false});
}

} // namespace tw::api
