// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/builder/parts.h"

namespace tw::api {

namespace {

// Null where not all of them are set.
OptimizationProfileObject::Points const* pointsOf(OptimizationProfileObject::Settings const& settings,
                                                  std::string const& input)
{
    auto const it = settings.find(input);
    bool const isWhole =
        it != settings.end() && std::ranges::all_of(it->second, [](auto const& p) { return p.has_value(); });
    return isWhole ? &it->second : nullptr;
}

} // namespace

InputNames inputsWithValues(std::vector<OptimizationProfileObject const*> const& profiles)
{
    InputNames names;
    for (OptimizationProfileObject const* p : profiles)
        for (auto const& [name, values] : p->values)
            names.insert(name);
    return names;
}

Result<plan::Profile> toProfile(NetworkObject const& n, ir::Graph const& graph, OptimizationProfileObject const& p,
                                size_t index)
{
    std::string const where = fmt::format("optimization profile {}", index);
    if (auto valid = p.validate(); !valid.ok())
        return std::move(valid).error().in(where);
    auto warnOfUnknown = [&](auto const& settings) {
        for (auto const& setting : settings) {
            std::string const& name = setting.first;
            if (std::ranges::none_of(n.inputs, [&](auto const& t) { return t->name == name; }))
                n.reporter.warning("{}: '{}' is no input of the network; what is set for it is ignored", where, name);
        }
    };
    warnOfUnknown(p.shapes);
    warnOfUnknown(p.values);
    plan::Profile out;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
        TensorObject const* const t = n.inputs[i].get();
        bool const dynamic = std::any_of(t->dims.d, t->dims.d + t->dims.nbDims, [](int32_t d) { return d < 0; });
        plan::ProfileRange r;
        auto const* const shape = pointsOf(p.shapes, t->name);
        if (dynamic && !shape && !isStatic(graph.inputs[i]->shape))
            return invalidArgument(
                "{}: input '{}' with shape {} is dynamic; set its minimum, optimum and maximum dimensions", where,
                t->name, str(t->dims));
        Extents* const extents[] = {&r.min, &r.opt, &r.max};
        for (size_t s = 0; shape && s < 3; ++s) {
            for (int32_t d : *(*shape)[s])
                extents[s]->push(d);
            bool fits = extents[s]->rank == t->dims.nbDims;
            for (int axis = 0; fits && axis < t->dims.nbDims; ++axis)
                fits = t->dims.d[axis] < 0 || t->dims.d[axis] == (*extents[s])[axis];
            if (!fits)
                return invalidArgument("{}: dimensions {} do not fit input '{}' with shape {}", where,
                                       str(toPublic(*extents[s])), t->name, str(t->dims));
        }
        r.hasShape = shape != nullptr;
        auto const* const values = pointsOf(p.values, t->name);
        if (graph.inputs[i]->host) {
            if (!values)
                return invalidArgument("{}: input '{}' is a shape tensor; set its minimum, optimum and maximum values "
                                       "with setShapeValues()",
                                       where, t->name);
            int64_t count = 1;
            for (int axis = 0; axis < t->dims.nbDims; ++axis)
                count *= t->dims.d[axis];
            if (count != int64_t((*values)[0]->size()))
                return invalidArgument("{}: shape tensor '{}' has {} elements, {} values are set", where, t->name,
                                       count, (*values)[0]->size());
            r.minValues = *(*values)[0];
            r.optValues = *(*values)[1];
            r.maxValues = *(*values)[2];
        }
        out.inputs[t->name] = std::move(r);
    }
    return out;
}

} // namespace tw::api
