// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/builder/parts.h"
#include "api/report.h"
#include "ops/cache_update/op.h"

namespace tw::api {

Result<std::vector<passes::FixedCache>> fixCaches(plan::Contents& contents, BuilderConfigObject const& c,
                                                  passes::CacheSizes const& sizes, passes::PassSettings const& settings,
                                                  Reporter& log)
{
    int64_t const capacity = sizes.capacity;
    if (c.has(nvinfer1::BuilderFlag::kREFIT))
        return unsupported(
            "BuilderFlag::kREFIT: caches of a fixed capacity (TENSORWRIGHT_KV_CAPACITY={}) are not refittable",
            capacity);
    if (c.int8Calibrator)
        return unsupported(
            "a calibrator's batches are for caches that get longer, not for a capacity (TENSORWRIGHT_KV_CAPACITY={})",
            capacity);
    TW_ASSIGN(auto const caches, passes::fixCaches(contents.graph, sizes, {settings, log}));
    for (passes::FixedCache const& k : caches)
        log.verbose("cache '{}' -> '{}': {} rows, of which '{}' says how many there are", k.past, k.present, capacity,
                    passes::kCacheLengths);
    if (sizes.blocks > 0)
        log.verbose("caches are {} blocks of {} rows, of which '{}' says whose they are", sizes.blocks,
                    ops::cache_update::kPageRows, passes::kCachePages);
    return caches;
}

namespace {

ir::Value const* inputOf(ir::Graph const& graph, std::string const& name)
{
    auto const v = std::ranges::find(graph.inputs, name, &ir::Value::name);
    return v == graph.inputs.end() ? nullptr : *v;
}

int64_t capacityOf(ir::Graph const& graph, passes::FixedCache const& cache)
{
    if (ir::Value const* const pages = inputOf(graph, passes::kCachePages))
        return pages->shape[1].value() * ops::cache_update::kPageRows;
    return inputOf(graph, cache.past)->shape[size_t(cache.axis)].value();
}

// An input that the network does not have: of the sequences that `of` is of.
void setBatches(plan::ProfileRange& range, plan::ProfileRange const& of, ir::Value const& v)
{
    range.hasShape = of.hasShape;
    for (auto const e : {&plan::ProfileRange::min, &plan::ProfileRange::opt, &plan::ProfileRange::max})
        if (of.hasShape) {
            range.*e = {(of.*e)[0]};
            for (int d = 1; d < v.rank(); ++d)
                (range.*e).push(v.shape[size_t(d)].value());
        }
}

} // namespace

Result<void> fixProfile(plan::Profile& profile, ir::Graph const& graph, std::vector<passes::FixedCache> const& caches)
{
    // In pages the dimension of sequences is gone from caches.
    plan::ProfileRange const past = profile.inputs[caches.at(0).past];
    for (char const* name : {passes::kCacheLengths, passes::kCachePages})
        if (ir::Value const* const v = inputOf(graph, name))
            setBatches(profile.inputs[name], past, *v);
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
    return {};
}

} // namespace tw::api
