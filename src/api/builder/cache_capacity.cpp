// SPDX-License-Identifier: Apache-2.0
#include "api/builder/parts.h"
#include "api/report.h"

namespace tw::api {

Result<std::vector<passes::FixedCache>> fixCaches(plan::Contents& contents, BuilderConfigObject const& c,
                                                  int64_t capacity, passes::PassSettings const& settings, Reporter& log)
{
    if (c.has(nvinfer1::BuilderFlag::kREFIT))
        return unsupported(
            "BuilderFlag::kREFIT: caches of a fixed capacity (TENSORWRIGHT_KV_CAPACITY={}) are not refittable",
            capacity);
    if (c.int8Calibrator)
        return unsupported(
            "a calibrator's batches are for caches that get longer, not for a capacity (TENSORWRIGHT_KV_CAPACITY={})",
            capacity);
    TW_ASSIGN(auto const caches, passes::fixCaches(contents.graph, capacity, {settings, log}));
    for (passes::FixedCache const& k : caches)
        log.verbose("cache '{}' -> '{}': {} rows, of which '{}' says how many there are", k.past, k.present, capacity,
                    passes::kCacheLengths);
    return caches;
}

void fixProfile(plan::Profile& profile, ir::Graph const& graph, std::vector<passes::FixedCache> const& caches)
{
    for (ir::Value const* v : graph.inputs) {
        plan::ProfileRange& r = profile.inputs[v->name];
        for (int d = 0; r.hasShape && d < v->rank(); ++d)
            if (ir::Dim const& size = v->shape[size_t(d)]; size.isConst())
                for (Extents* e : {&r.min, &r.opt, &r.max})
                    (*e)[d] = size.value();
    }
    plan::ProfileRange const& past = profile.inputs[caches.at(0).past];
    plan::ProfileRange& lengths = profile.inputs[passes::kCacheLengths];
    lengths.hasShape = past.hasShape;
    if (past.hasShape) {
        lengths.min = {past.min[0]};
        lengths.opt = {past.opt[0]};
        lengths.max = {past.max[0]};
    }
}

} // namespace tw::api
