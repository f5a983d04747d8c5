// SPDX-License-Identifier: Apache-2.0
#include "api/network/network.h"
#include "ops/select/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct SelectLayer final : LayerObject<nvinfer1::ISelectLayer>
{
    Result<void> lower(LowerContext& ctx) override
    {
        return ctx.lowerTo(ops::select::def(), ops::select::Attrs(), {ctx.in(0), ctx.in(1), ctx.in(2)});
    }
};

} // namespace

namespace nvinfer1 {

ISelectLayer* INetworkDefinition::addSelect(ITensor& condition, ITensor& thenInput, ITensor& elseInput) noexcept
{
    return addLayer<SelectLayer>(*this, LayerType::kSELECT, "Select", {&condition, &thenInput, &elseInput},
                                 [&](SelectLayer& l) -> Result<void> {
                                     if (l.network->implicitBatch)
                                         return invalidState("addSelect: select layers need an explicit batch network");
                                     return {};
                                 });
}

} // namespace nvinfer1
