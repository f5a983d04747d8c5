// SPDX-License-Identifier: Apache-2.0
#include "api/network/setter.h"
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

    void set(nvinfer1::Dims& field, size_t input, nvinfer1::Dims const& d, int32_t least, char const* what)
    {
        change(*this, [&](SliceLayer&) -> Result<void> {
            TW_TRY(checkDims(d, least, where(what)));
            if (hasInput(input))
                inputs[input] = nullptr;
            field = d;
            return {};
        });
    }

    // Implicit batch: the whole batch is kept, whose size is a tensor.
    Result<ir::Value*> batchedSize(LowerContext& ctx, ir::Value* x)
    {
        TW_ASSIGN(ir::Value * shape, ctx.value(ops::shape::def(), ir::NoAttrs(), {x}, "shape"));
        ops::slice::Attrs first;
        first.start = {0};
        first.size = first.stride = {1};
        TW_ASSIGN(ir::Value * batch, ctx.value(ops::slice::def(), std::move(first), {shape}, "batch"));
        ir::Value* rest = ctx.graph().addConstant(name + ".size", tw::DataType::kInt32, {size.nbDims}, size.d);
        return ctx.value(ops::concatenation::def(), ops::concatenation::Attrs(), {batch, rest}, "size");
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
        return ctx.lowerTo(ops::slice::def(), std::move(a), std::move(in));
    }
};

TW_OBJECT(nvinfer1::ISliceLayer, SliceLayer)

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

TW_SETTER(ISliceLayer, Dims, setStart, self.set(self.start, 1, value, INT32_MIN, "start"))
TW_GETTER(ISliceLayer, Dims, getStart, self.start)
TW_SETTER(ISliceLayer, Dims, setSize, self.set(self.size, 2, value, 0, "size"))
TW_GETTER(ISliceLayer, Dims, getSize, self.size)
TW_SETTER(ISliceLayer, Dims, setStride, self.set(self.stride, 3, value, INT32_MIN, "stride"))
TW_GETTER(ISliceLayer, Dims, getStride, self.stride)
TW_PROPERTY(ISliceLayer, SliceMode, setMode, getMode, mode, checkEnum(value, "slice mode"))

} // namespace nvinfer1
