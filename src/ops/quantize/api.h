// SPDX-License-Identifier: Apache-2.0
// What the quantize and the dequantize layer share: a scale and an optional zero point as inputs, both constants, and an
// axis.
#pragma once

#include <cmath>

#include "api/network/setter.h"
#include "tactic/scale_axis.h"

namespace tw::api {

template <class PublicLayer>
struct QuantizationLayer : LayerObject<PublicLayer>
{
    int32_t axis = -1;

    int maxInputs() const override { return 3; } // data, scale, zero point

    static std::string checkAxis(int32_t value)
    {
        return value == -1 ? ""
                           : checkRange(value, 0, nvinfer1::Dims::MAX_DIMS - 1, "axis", ", and -1, one scale for all");
    }

    struct Scale
    {
        ir::Value* value = nullptr; // f32, [] or [n]
        int32_t axis = -1;          // of the op
    };
    // The scale as the op takes it; checks it, and the zero point.
    Result<Scale> scaleOf(LowerContext& ctx)
    {
        TW_TRY(checkZeroPoint(ctx));
        TW_ASSIGN(ir::Value* const v, constantIn(ctx, 1));
        if (!v->isConstant())
            return this->error("the scale '" + this->inputs[1]->name +
                               "' must be a build-time constant (a constant layer)");
        if (!isFloating(v->type))
            return this->error("the scale '" + this->inputs[1]->name + "' is " + nameOf(v->type) +
                               "; it must be f32 or f16");
        Extents const dims = ir::extentsOf(v->shape);
        if (dims.rank - ctx.axisShift() > 1)
            return this->error("the scale '" + this->inputs[1]->name + "' with shape " + dims.str() +
                               " must be a scalar or have one dimension");
        int64_t const count = dims.volume();
        if (count > 1 && axis < 0)
            return this->error(
                "the scale '{}' has {} elements, so setAxis() must say which dimension of '{}' they belong to",
                this->inputs[1]->name, count, this->inputs[0]->name);
        if (count == 0)
            return this->error("the scale '" + this->inputs[1]->name + "' has no elements");
        TensorRef const elements{v->type, dims, const_cast<void*>(v->constant->data->data())};
        for (int64_t i = 0; i < count; ++i)
            if (double const s = elements.get(i); !(s > 0) || !std::isfinite(s))
                return this->error("element {} of the scale '{}' is {}; scales must be positive and finite", i,
                                   this->inputs[1]->name, s);
        Scale out;
        bool const perTensor = count == 1;
        out.axis = perTensor ? -1 : axis + ctx.axisShift();
        Extents const flat = perTensor ? Extents{} : Extents{count};
        if (isFullFloat(v->type)) {
            out.value = dims == flat ? v : ctx.graph().addConstant(v->name, v->type, flat, v->constant);
            return out;
        }
        Tensor floats(DataType::kFloat, flat);
        for (int64_t i = 0; i < count; ++i)
            floats.ref().set(i, elements.get(i));
        auto converted = std::make_shared<ir::Constant>(*v->constant);
        converted->data = Blob::copy(floats.data(), size_t(floats.ref().sizeBytes()));
        out.value = ctx.graph().addConstant(v->name, DataType::kFloat, flat, std::move(converted));
        return out;
    }

private:
    // Input i; in a loop or a branch, where a constant layer's tensor comes in as any other, the constant itself.
    Result<ir::Value*> constantIn(LowerContext& ctx, size_t i)
    {
        ir::Value* const v = ctx.in(int(i));
        LayerState* const maker = v ? this->inputs[i]->producer : nullptr;
        if (!maker || v->isConstant() || maker->type != nvinfer1::LayerType::kCONSTANT)
            return v;
        LowerContext inner(*this->network, *maker, ctx.graph(), {});
        TW_TRY(maker->lower(inner));
        return inner.outputs()[0];
    }
    Result<void> checkZeroPoint(LowerContext& ctx)
    {
        TW_ASSIGN(ir::Value const* const v, constantIn(ctx, 2));
        if (!v)
            return {};
        std::string const what = "the zero point '" + this->inputs[2]->name + "'";
        if (!v->isConstant())
            return this->error(what + " must be a build-time constant (a constant layer)");
        if (v->type == DataType::kUInt8)
            return this->error(what + " is u8; quantization is symmetric, to i8");
        Extents const dims = ir::extentsOf(v->shape);
        TensorRef const elements{v->type, dims, const_cast<void*>(v->constant->data->data())};
        for (int64_t i = 0; i < dims.volume(); ++i)
            if (elements.get(i) != 0)
                return this->error("element {} of {} is {}; zero points must be 0", i, what, elements.get(i));
        TW_ASSIGN(ir::Value const* const s, constantIn(ctx, 1));
        if (s->isConstant() && dims.volume() != 1 && dims.volume() != ir::extentsOf(s->shape).volume())
            return this->error("{} has {} elements, the scale has {}", what, dims.volume(),
                               ir::extentsOf(s->shape).volume());
        return {};
    }
};

} // namespace tw::api
