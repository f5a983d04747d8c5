// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/builder/parts.h"

using namespace tw;
using namespace tw::api;

namespace tw::api {

using nvinfer1::BuilderFlag;

passes::PrecisionConstraints constraintsOf(BuilderConfigObject const& c)
{
    using passes::PrecisionConstraints;
    if (c.has(BuilderFlag::kOBEY_PRECISION_CONSTRAINTS))
        return PrecisionConstraints::kObey;
    // kSTRICT_TYPES is the old name of this flag and two that have nothing to do with precision.
    return c.has(BuilderFlag::kPREFER_PRECISION_CONSTRAINTS) || c.has(BuilderFlag::kSTRICT_TYPES)
               ? PrecisionConstraints::kPrefer
               : PrecisionConstraints::kIgnore;
}

namespace {

// Layers whose output type is what they compute, not how.
bool isConversion(LayerState const& l)
{
    using nvinfer1::LayerType;
    // A range says what integers stand for, in place of the layer.
    bool const isRounding = l.type == LayerType::kIDENTITY || l.type == LayerType::kSCALE;
    return l.type == LayerType::kFILL ||
           (isRounding && !(l.outputTypes[0] == nvinfer1::DataType::kINT8 && l.outputs[0]->rangeMin));
}

// By its precision, or where it has none by the type of an output.
bool asksFor(LayerState const& l, nvinfer1::DataType t)
{
    if (l.precision)
        return l.precision == t;
    return !isConversion(l) && std::ranges::any_of(l.outputTypes, [&](auto const& type) { return type == t; });
}

} // namespace

Result<void> checkPrecisions(NetworkObject const& n, BuilderConfigObject const& c, bool onGpu, Reporter& log)
{
    using nvinfer1::DataType;
    using passes::PrecisionConstraints;
    bool const half = c.has(BuilderFlag::kFP16), int8 = c.has(BuilderFlag::kINT8);
    PrecisionConstraints const constraints = constraintsOf(c);
    if (half && !onGpu) {
        auto const asking =
            constraints == PrecisionConstraints::kIgnore
                ? 0
                : std::ranges::count_if(n.layers, [](auto const& l) { return asksFor(*l, DataType::kHALF); });
        if (asking > 0)
            log.warning(
                "FP16: this device computes in FP32. For {} layers that ask for FP16 what they read and make is "
                "rounded to it, which takes more time, not less",
                asking);
        else
            log.warning("FP16: this device computes in {}; weights of products of few rows may be kept in FP16",
                        int8 ? "INT8 and FP32" : "FP32");
    }
    for (auto const& t : n.inputs) {
        if (t->type != nvinfer1::DataType::kINT8)
            continue;
        if (!c.has(BuilderFlag::kINT8))
            log.warning("network input '{}' is INT8, but BuilderFlag::kINT8 is not set", t->name);
        if (!t->rangeMin && !(int8 && c.int8Calibrator))
            log.warning("network input '{}' is INT8 without a dynamic range: ITensor::setDynamicRange() or a "
                        "calibrator says what its numbers stand for",
                        t->name);
    }
    // A layer's precision is a wish; only the flags of the constraints make it more.
    if (constraints == PrecisionConstraints::kIgnore)
        return {};
    for (auto const& l : n.layers) {
        bool const asksHalf = asksFor(*l, DataType::kHALF) && !half;
        if (!asksHalf && !(asksFor(*l, DataType::kINT8) && !int8))
            continue;
        std::string const what = "layer '" + l->name + "' asks for " + (asksHalf ? "f16" : "i8") +
                                 ", which BuilderFlag::" + (asksHalf ? "kFP16" : "kINT8") + " does not permit";
        if (constraints == PrecisionConstraints::kObey)
            return unsupported(what + "; set that flag");
        log.warning("{}: it runs in FP32", what);
    }
    return {};
}

} // namespace tw::api
