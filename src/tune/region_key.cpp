// SPDX-License-Identifier: Apache-2.0
#include "tune/region_key.h"

#include "device/cuda/compiler.h"
#include "device/cuda/driver.h"
#include "device/cuda/target.h"
#include "ir/op_def.h"
#include "tactic/cuda_library.h"
#include "tune/candidates.h"

namespace tw::tune {

namespace {

constexpr uint32_t kAllSources = bitOf(ops::Source::kOwn) | bitOf(ops::Source::kCublasLt) | bitOf(ops::Source::kCudnn);

std::string typesAndShapes(std::vector<ops::TensorSpec> const& specs)
{
    std::string s;
    for (auto const& t : specs) {
        for (int64_t i = 0; t.contents.data && i < t.contents.count(); ++i)
            s += std::to_string(t.contents.getInt(i)) + ";";
        s += t.format != Format::kLinear ? std::string(nameOf(t.format)) + ":" : "";
        s += t.present ? std::string(nameOf(t.type)) + t.dims.str() + t.maxDims.str() + (t.constant ? "c" : "") + " "
                       : "- ";
    }
    return s;
}

} // namespace

std::string regionKey(ops::Problem const& problem, std::string const& device)
{
    std::string key = device + "|" + (problem.threads > 1 ? std::to_string(problem.threads) + " threads|" : "") +
                      problem.node->op->name + "|";
    for (auto const& f : ir::fieldsOf(*problem.node->attrs)) {
        key += f.name + "=";
        for (int64_t v : f.integers)
            key += std::to_string(v) + ",";
        for (double v : f.reals)
            key += std::to_string(v) + ",";
        key += f.text + ";";
    }
    return key + "|" + typesAndShapes(problem.inputs) + "|" + typesAndShapes(problem.outputs);
}

std::string cacheKey(ops::Problem const& problem, Options const& options)
{
    bool const isCuda = options.backend == ops::Backend::kCuda;
    uint32_t const libraries = isCuda ? options.sources & ~bitOf(ops::Source::kOwn) & kAllSources : 0;
    std::string key =
        regionKey(problem, options.device) + (options.winograd ? "" : "|no winograd") + (options.tf32 ? "|tf32" : "") +
        (options.workspaceBytes < INT64_MAX ? "|workspace " + std::to_string(options.workspaceBytes) : "") +
        (libraries ? "|libraries " + std::to_string(libraries) : "");
    cuda::Target const* target = isCuda ? options.cuda : nullptr;
    if (!target)
        return key;
    if (target->device)
        key += "|driver " + std::to_string(target->device->driver().version());
    if (auto const compiler = target->compiler->get(); compiler.ok())
        key += "|compiler " + std::to_string((*compiler)->version());
    uint32_t seen = bitOf(ops::Source::kOwn);
    for (ops::Tactic const* t : candidates(*problem.node, options))
        if (!(seen & bitOf(t->source()))) {
            seen |= bitOf(t->source());
            key += "|" + ops::versionOf(t->source(), *target);
        }
    return key;
}

} // namespace tw::tune
