// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

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

namespace {

int64_t capacityOf(ir::Graph const& graph, passes::FixedCache const& cache)
{
    auto const v = std::ranges::find(graph.inputs, cache.past, &ir::Value::name);
    return (*v)->shape[size_t(cache.axis)].value();
}

} // namespace

Result<void> fixProfile(plan::Profile& profile, ir::Graph const& graph, std::vector<passes::FixedCache> const& caches)
{
    for (ir::Value const* v : graph.inputs) {
        plan::ProfileRange& r = profile.inputs[v->name];
        for (int d = 0; r.hasShape && d < v->rank(); ++d)
            if (ir::Dim const& size = v->shape[size_t(d)]; size.isConst())
                for (Extents* e : {&r.min, &r.opt, &r.max})
                    (*e)[d] = size.value();
    }
    int64_t const capacity = capacityOf(graph, caches[0]);
    for (ir::Value const* v : graph.inputs)
        for (int d = 0; d < v->rank(); ++d) {
            plan::ProfileRange const& r = profile.inputs[v->name];
            if (r.hasShape && v->shape[size_t(d)] == caches[0].added && !caches[0].added.isConst() &&
                r.max[d] > capacity)
                return invalidArgument("input '{}' may have {} new rows in a profile, the caches have room for {}",
                                       v->name, r.max[d], capacity);
        }
    plan::ProfileRange const& past = profile.inputs[caches.at(0).past];
    plan::ProfileRange& lengths = profile.inputs[passes::kCacheLengths];
    lengths.hasShape = past.hasShape;
    if (past.hasShape) {
        lengths.min = {past.min[0]};
        lengths.opt = {past.opt[0]};
        lengths.max = {past.max[0]};
    }
    return {};
}

} // namespace tw::api
