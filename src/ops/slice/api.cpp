// SPDX-License-Identifier: Apache-2.0
#include "api/network.h"
#include "ops/concatenation/op.h"
#include "ops/shape/op.h"
#include "ops/slice/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct SliceLayer final : LayerObject<nvinfer1::ISliceLayer>
{
    nvinfer1::Dims start{}, size{}, stride{};
    nvinfer1::SliceMode mode = nvinfer1::SliceMode::kSTRICT_BOUNDS;

    int maxInputs() const override { return 5; } // data, start, size, stride, fill
    Result<void> onSetInput(int index, TensorObject&) override
    {
        nvinfer1::Dims* const field[] = {nullptr, &start, &size, &stride, nullptr};
        if (field[index])
            *field[index] = nvinfer1::Dims{-1, {}}; // the tensor takes the place of the value
        return {};
    }
    bool hasInput(size_t i) const { return i < inputs.size() && inputs[i]; }

    Result<void> set(nvinfer1::Dims& field, size_t input, nvinfer1::Dims const& d, int32_t least, char const* what)
    {
        TW_TRY(checkDims(d, least, "layer '" + name + "': " + what));
        changed();
        if (hasInput(input))
            inputs[input] = nullptr;
        field = d;
        return {};
    }

    // Implicit batch: the whole batch is kept, whose size is a tensor.
    Result<ir::Value*> batchedSize(LowerContext& ctx, ir::Value* x)
    {
        TW_ASSIGN(ir::Node * shape, ctx.add(ops::shape::def(), ir::NoAttrs(), {x}, "shape"));
        ops::slice::Attrs first;
        first.start = {0};
        first.size = first.stride = {1};
        TW_ASSIGN(ir::Node * batch, ctx.add(ops::slice::def(), std::move(first), {shape->outputs[0]}, "batch"));
        ir::Value* rest = ctx.graph().addConstant(name + ".size", tw::DataType::kInt32, {size.nbDims}, size.d);
        TW_ASSIGN(ir::Node * joined,
                  ctx.add(ops::concatenation::def(), ops::concatenation::Attrs(), {batch->outputs[0], rest}, "size"));
        return joined->outputs[0];
    }

    Result<void> lower(LowerContext& ctx) override
    {
        ops::slice::Attrs a;
        a.mode = static_cast<ops::slice::Mode>(mode);
        std::vector<ir::Value*> in{ctx.in(0), ctx.in(1), ctx.in(2), ctx.in(3), ctx.in(4)};
        auto attribute = [&](nvinfer1::Dims const& d, int64_t batch) {
            std::vector<int64_t> v = toVector(d);
            if (ctx.implicitBatch())
                v.insert(v.begin(), batch);
            return v;
        };
        if (!in[1])
            a.start = attribute(start, 0);
        if (!in[3])
            a.stride = attribute(stride, 1);
        if (!in[2] && ctx.implicitBatch()) {
            TW_ASSIGN(in[2], batchedSize(ctx, in[0]));
        } else if (!in[2]) {
            a.size = toVector(size);
        }
        TW_ASSIGN(ir::Node * node, ctx.add(ops::slice::def(), std::move(a), std::move(in)));
        ctx.output(0, node->outputs[0]);
        return {};
    }
};

SliceLayer& self(nvinfer1::ISliceLayer* l)
{
    return static_cast<SliceLayer&>(*l);
}
SliceLayer const& self(nvinfer1::ISliceLayer const* l)
{
    return static_cast<SliceLayer const&>(*l);
}

} // namespace

namespace nvinfer1 {

ISliceLayer* INetworkDefinition::addSlice(ITensor& input, Dims start, Dims size, Dims stride) noexcept
{
    return addLayer<SliceLayer>(*this, LayerType::kSLICE, "Slice", {&input}, [&](SliceLayer& l) -> Result<void> {
        TW_TRY(checkDims(start, INT32_MIN, "addSlice: start"));
        TW_TRY(checkDims(size, INT32_MIN, "addSlice: size")); // negative ones are placeholders until an input is set
        TW_TRY(checkDims(stride, INT32_MIN, "addSlice: stride"));
        l.start = start;
        l.size = size;
        l.stride = stride;
        return {};
    });
}

void ISliceLayer::setStart(Dims start) noexcept
{
    guardedVoid(self(this).reporter(), [&] { return self(this).set(self(this).start, 1, start, INT32_MIN, "start"); });
}
Dims ISliceLayer::getStart() const noexcept
{
    return self(this).start;
}
void ISliceLayer::setSize(Dims size) noexcept
{
    guardedVoid(self(this).reporter(), [&] { return self(this).set(self(this).size, 2, size, 0, "size"); });
}
Dims ISliceLayer::getSize() const noexcept
{
    return self(this).size;
}
void ISliceLayer::setStride(Dims stride) noexcept
{
    guardedVoid(self(this).reporter(),
                [&] { return self(this).set(self(this).stride, 3, stride, INT32_MIN, "stride"); });
}
Dims ISliceLayer::getStride() const noexcept
{
    return self(this).stride;
}
void ISliceLayer::setMode(SliceMode mode) noexcept
{
    guardedVoid(self(this).reporter(), [&]() -> Result<void> {
        int const number = static_cast<int>(mode);
        if (number < 0 || number >= EnumMax<SampleMode>())
            return self(this).error("slice mode " + std::to_string(number) + " does not exist");
        self(this).mode = mode;
        self(this).changed();
        return {};
    });
}
SliceMode ISliceLayer::getMode() const noexcept
{
    return self(this).mode;
}

} // namespace nvinfer1
