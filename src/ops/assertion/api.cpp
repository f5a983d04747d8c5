// SPDX-License-Identifier: Apache-2.0
#include "api/network/setter.h"
#include "ops/assertion/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct AssertionLayer final : LayerObject<nvinfer1::IAssertionLayer>
{
    std::string message;

    int outputCount() const override { return 0; }
    Result<void> lower(LowerContext& ctx) override
    {
        if (ctx.implicitBatch())
            return error("assertions need an explicit batch network: there are no shape tensors in others");
        TW_TRY(ctx.add(ops::assertion::def(), ops::assertion::Attrs(message), {ctx.in(0)}));
        return {};
    }
};

Result<std::string> checked(char const* message)
{
    if (!message)
        return invalidArgument("assertion: the message is a null pointer");
    return std::string(message);
}

TW_OBJECT(nvinfer1::IAssertionLayer, AssertionLayer)

} // namespace

namespace nvinfer1 {

IAssertionLayer* INetworkDefinition::addAssertion(ITensor& condition, char const* message) noexcept
{
    return addLayer<AssertionLayer>(*this, LayerType::kASSERTION, "Assertion", {&condition},
                                    [&](AssertionLayer& l) -> Result<void> {
                                        TW_ASSIGN(l.message, checked(message));
                                        return {};
                                    });
}

void IAssertionLayer::setMessage(char const* message) noexcept
{
    change(objectOf(*this), [&](AssertionLayer& l) -> Result<void> {
        TW_ASSIGN(l.message, checked(message));
        return {};
    });
}
TW_GETTER(IAssertionLayer, char const*, getMessage, self.message.c_str())

} // namespace nvinfer1
