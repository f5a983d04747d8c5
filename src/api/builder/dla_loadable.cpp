// SPDX-License-Identifier: Apache-2.0
#include "api/builder/dla.h"
#include "base/round.h"
#include "dla/loadable.h"

namespace tw::api {

namespace {

dla::LoadableTensor describe(plan::IoTensor const& io, ir::Value const& v)
{
    dla::LoadableTensor t;
    t.name = io.name;
    t.isInput = io.isInput;
    t.type = static_cast<int32_t>(v.type);
    bool const isLayout = io.dlaLayout != dla::Layout::kNone;
    t.format = isLayout ? static_cast<int32_t>(io.dlaLayout) : static_cast<int32_t>(v.format);
    Extents const dims = isLayout ? io.dlaDims : ir::extentsOf(v.shape);
    int const rank = dims.rank;
    int64_t const bytes = sizeOf(v.type);
    t.n = dims.volume(0, rank - 3);
    t.c = dims[rank - 3];
    t.h = dims[rank - 2];
    t.w = dims[rank - 1];
    if (isLayout) {
        Extents const memory = ir::extentsOf(v.shape), strides = dla::stridesOf(io.dlaLayout, memory);
        t.sizeBytes = memory.volume() * bytes;
        t.strideBytes = {strides[rank - 1] * bytes, strides[rank - 2] * bytes, strides[rank - 3] * bytes,
                         t.sizeBytes / t.n};
    } else {
        int64_t const vector = vectorOf(v.format) * bytes;
        t.sizeBytes = storageCount(v.format, v.type, dims) * bytes;
        t.strideBytes = {vector, t.w * vector, t.h * t.w * vector, t.sizeBytes / t.n};
    }
    return t;
}

} // namespace

Result<std::string> toLoadable(plan::Contents const& contents, std::string const& plan)
{
    dla::Loadable loadable{contents.dlaModel, {}, plan};
    for (bool isInput : {true, false})
        for (plan::IoTensor const& io : contents.io) {
            if (io.isInput != isInput)
                continue;
            auto const& list = isInput ? contents.graph->inputs : contents.graph->outputs;
            for (ir::Value const* v : list) {
                if (v->name != io.name)
                    continue;
                if (v->rank() < 3 || !isStatic(v->shape))
                    return unsupported(
                        "tensor '{}' with shape {}: tensors of loadables have channels, height and width, "
                        "and no wildcard",
                        v->name, str(v->shape));
                loadable.tensors.push_back(describe(io, *v));
            }
        }
    return dla::pack(loadable);
}

} // namespace tw::api
