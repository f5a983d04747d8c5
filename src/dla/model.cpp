// SPDX-License-Identifier: Apache-2.0
#include "dla/model.h"

namespace tw::dla {

Result<Model> modelOf(std::string_view name)
{
    if (name.empty())
        return Model::kNone;
    for (Model model : {Model::kXavier, Model::kOrin})
        if (name == nameOf(model))
            return model;
    return invalidArgument("'{}' is no DLA that there is a model of (allowed: orin, xavier)", name);
}

char const* nameOf(Model model)
{
    return model == Model::kXavier ? "xavier" : model == Model::kOrin ? "orin" : "none";
}

char const* wordsOf(Reason reason)
{
    switch (reason) {
    case Reason::kNotSupported:
        return "not supported on DLA";
    case Reason::kParameters:
        return "parameters out of range";
    case Reason::kBatch:
        return "batch too large";
    case Reason::kCombination:
        return "the combination of layers exceeds the internal state of DLA";
    default:
        return "no DLA on this platform";
    }
}

} // namespace tw::dla
