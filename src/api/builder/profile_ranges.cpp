// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/builder/parts.h"

namespace tw::api {

namespace {

Extents toExtents(nvinfer1::Dims const& d)
{
    Extents e;
    for (int i = 0; i < d.nbDims; ++i)
        e.push(d.d[i]);
    return e;
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
    std::string const where = "optimization profile " + std::to_string(index);
    if (auto valid = p.validate(); !valid.ok())
        return std::move(valid).error().in(where);
    auto warnOfUnknown = [&](auto const& settings) {
        for (auto const& setting : settings) {
            std::string const& name = setting.first;
            if (std::none_of(n.inputs.begin(), n.inputs.end(), [&](auto const& t) { return t->name == name; }))
                n.reporter.warning(where + ": '" + name +
                                   "' is no input of the network; what is set for it is ignored");
        }
    };
    warnOfUnknown(p.shapes);
    warnOfUnknown(p.values);
    plan::Profile out;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
        TensorObject const* const t = n.inputs[i].get();
        bool const dynamic = std::any_of(t->dims.d, t->dims.d + t->dims.nbDims, [](int32_t d) { return d < 0; });
        plan::ProfileRange r;
        auto const shape = p.shapes.find(t->name);
        bool const given = shape != p.shapes.end() && std::all_of(shape->second.at.begin(), shape->second.at.end(),
                                                                  [](auto const& d) { return d.has_value(); });
        if (dynamic && !given)
            return invalidArgument(where + ": input '" + t->name + "' with shape " + str(t->dims) +
                                   " is dynamic; set its minimum, optimum and maximum dimensions");
        if (given) {
            for (int s = 0; s < 3; ++s) {
                nvinfer1::Dims const& d = *shape->second.at[size_t(s)];
                bool fits = d.nbDims == t->dims.nbDims;
                for (int axis = 0; fits && axis < d.nbDims; ++axis)
                    fits = t->dims.d[axis] < 0 || t->dims.d[axis] == d.d[axis];
                if (!fits)
                    return invalidArgument(where + ": dimensions " + str(d) + " do not fit input '" + t->name +
                                           "' with shape " + str(t->dims));
            }
            r.min = toExtents(*shape->second.at[0]);
            r.opt = toExtents(*shape->second.at[1]);
            r.max = toExtents(*shape->second.at[2]);
            r.hasShape = true;
        }
        auto const values = p.values.find(t->name);
        bool const hasValues =
            values != p.values.end() && std::all_of(values->second.at.begin(), values->second.at.end(),
                                                    [](auto const& v) { return v.has_value(); });
        if (graph.inputs[i]->host) {
            if (!hasValues)
                return invalidArgument(
                    where + ": input '" + t->name +
                    "' is a shape tensor; set its minimum, optimum and maximum values with setShapeValues()");
            int64_t count = 1;
            for (int axis = 0; axis < t->dims.nbDims; ++axis)
                count *= t->dims.d[axis];
            if (count != int64_t(values->second.at[0]->size()))
                return invalidArgument(where + ": shape tensor '" + t->name + "' has " + std::to_string(count) +
                                       " elements, " + std::to_string(values->second.at[0]->size()) +
                                       " values are set");
            r.minValues = *values->second.at[0];
            r.optValues = *values->second.at[1];
            r.maxValues = *values->second.at[2];
        }
        out.inputs[t->name] = std::move(r);
    }
    return out;
}

} // namespace tw::api
