// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/int8_tactics.h"
#include "families/elementwise/int8_bounds.h"
#include "tactic/cpu_isa.h"

namespace tw::ops {

namespace {

using kernels::jit::Int8Type;

Int8Type int8TypeOf(DataType t)
{
    return t == DataType::kInt8 ? Int8Type::kInt8 : t == DataType::kHalf ? Int8Type::kHalf : Int8Type::kFloat;
}

bool isPresent(Problem const& p, int input)
{
    return size_t(input) < p.inputs.size() && p.inputs[size_t(input)].present;
}

} // namespace

Support supportsInt8Convolution(Problem const& p, kernels::jit::Isa isa, int mostAxes, Weights weights)
{
    if (Support s = supportsIsa(isa); !s.ok)
        return s;
    TensorSpec const &x = p.inputs[0], &w = p.inputs[1], &y = p.outputs[0];
    if (x.type != DataType::kInt8)
        return Support::no(std::string("computes sums of i8, the input is ") + nameOf(x.type));
    int const axes = w.dims.rank - 2;
    if (axes > mostAxes)
        return Support::no("takes windows of up to " + std::to_string(mostAxes) + " dimensions only");
    if (x.dims.rank != 2 + axes)
        return Support::no("takes inputs with one batch dimension only, not " + x.dims.str());
    if (weights == Weights::kConstant && !w.constant)
        return Support::no("the weights are not constant");
    if (x.dims[1] == 0 || y.dims[1] == 0)
        return Support::no("there are no channels");
    // Offsets within an image have 32 bits.
    constexpr int64_t kMaxBytes = int64_t(1) << 30;
    for (TensorSpec const* t : {&x, &y})
        if (t->maxDims[1] > kMaxBytes / 64 ||
            t->maxDims[t->maxDims.rank - 1] >
                kMaxBytes / 4 / pixelStrideOf(Format::kChannelsLast, t->type, t->maxDims[1]))
            return Support::no("a row of " + t->maxDims.str() + " takes more than 1 GiB");
    if (std::string const why = Int8Ends(p, isa).epilogue(false).refusal(); !why.empty())
        return Support::no(why);
    return Support::yes();
}

Int8Ends::Int8Ends(Problem const& p, kernels::jit::Isa isa)
    : type_(int8TypeOf(p.outputs[0].type)), activation_(jitActivation(*p.node)),
      isOneScale_(p.inputs[Epilogue::kScale].dims.volume() == 1), hasBias_(isPresent(p, Epilogue::kBias)),
      hasOutputScale_(isPresent(p, Epilogue::kOutputScale)), hasInnerScale_(isPresent(p, Epilogue::kInnerScale))
{
    if (isPresent(p, Epilogue::kTable))
        table_ = kernels::jit::byteTableOf(thisCpu(), isa);
    Extents const& w = p.inputs[1].dims;
    auto const& a = p.node->attrsAs<convolution::Attrs>();
    int64_t const factors = a.transposed ? w[0] / a.groups * w.volume(2, w.rank) : w.volume(1, w.rank);
    isBounded_ = staysBounded(p, a.epilogue, double(factors));
    if (isPresent(p, Epilogue::kResidual))
        residual_ = int8TypeOf(p.inputs[Epilogue::kResidual].type);
}

kernels::jit::Int8Epilogue Int8Ends::epilogue(bool masked) const
{
    kernels::jit::Int8Epilogue e;
    e.oneScale = isOneScale_;
    e.bias = hasBias_;
    e.residual = residual_;
    e.activation = activation_;
    e.outputScale = hasOutputScale_;
    e.store = type_;
    e.masked = masked;
    e.bounded = isBounded_;
    e.innerScale = hasInnerScale_;
    e.table = table_;
    return e;
}

kernels::jit::Int8Output Int8Ends::output(RunArgs const& args, int64_t first) const
{
    auto number = [&](size_t i) {
        return i < args.inputs.size() && args.inputs[i].data ? *args.inputs[i].as<float>() : 1.0F;
    };
    kernels::jit::Int8Output out;
    out.c = args.outputs[0].as<char>() + first * yBytes();
    out.scale = args.inputs[Epilogue::kScale].as<float>() + (isOneScale_ ? 0 : first);
    if (hasBias_)
        out.bias = args.inputs[Epilogue::kBias].as<float>() + first;
    if (residual_)
        out.residual = args.inputs[Epilogue::kResidual].as<char>() + first * residualBytes();
    out.residualScale = number(Epilogue::kResidualScale);
    out.outputScale = number(Epilogue::kOutputScale);
    out.innerScale = number(Epilogue::kInnerScale);
    if (table_)
        out.table = args.inputs[Epilogue::kTable].as<int8_t>();
    return out;
}

std::vector<int64_t> int8TileVectors(kernels::jit::Isa isa, int64_t vectorsOfGroup)
{
    constexpr int kLeastRows = 3;
    if (vectorsOfGroup == 1)
        return {1};
    std::vector<int64_t> list;
    for (int64_t v : {2, 4, 3})
        if (v <= vectorsOfGroup && kernels::jit::int8MaxRows(isa, dotsOfThisCpu(isa), int(v)) >= kLeastRows)
            list.push_back(v);
    return list;
}

kernels::jit::Dots dotsOfThisCpu(kernels::jit::Isa isa)
{
    return kernels::jit::dotsOf(thisCpu(), isa);
}

} // namespace tw::ops
