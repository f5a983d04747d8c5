// SPDX-License-Identifier: Apache-2.0
#include "ops/recurrence/cuda_products.h"

#include <algorithm>

#include "families/elementwise/cuda_epilogue.h"
#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/launch.h"

namespace tw::ops::recurrence {

namespace {

namespace half = cuda::gemm_mma;
namespace single = cuda::gemm_f32;

bool hasWeights(Problem const& p)
{
    return p.inputs.size() > size_t(kW) && p.inputs[kW].present;
}
int64_t columnsOf(Sizes const& s)
{
    return s.directions * s.gates * s.hidden;
}

// The product [m, inputs] [columns, inputs]^T, whose m varies from run to run.
half::Spec halfBase(Problem const& p, Sizes const& s)
{
    half::Spec spec;
    spec.bias = false;
    spec.bAlongK = true;
    spec.clusters = p.target.cuda->capability >= 90;
    spec.vectorA = spec.vectorB = half::vectorOf(2, s.inputs);
    spec.aligned = columnsOf(s) % 8 == 0;
    spec.constantB = p.inputs[kW].constant != nullptr;
    return spec;
}
std::optional<half::Spec> halfProduct(Problem const& p)
{
    Sizes const s = sizesOf(p.node->attrsAs<Attrs>(), p.inputs[kX].dims);
    half::Shape shape;
    shape.m = std::max<int64_t>(1, s.steps * s.batch);
    shape.n = columnsOf(s);
    shape.k = s.inputs;
    for (half::Spec const& spec :
         half::candidates(halfBase(p, s), shape, p.target.cuda->multiprocessors, p.target.cuda->capability, 64))
        if ((spec.clusters || spec.split == 1) && !half::unsupported(spec, shape) &&
            spec.sharedBytes() <= cuda::sharedLimitOf(p.target.cuda->capability))
            return spec;
    return std::nullopt;
}
std::optional<single::Spec> singleProduct(Problem const& p)
{
    Sizes const s = sizesOf(p.node->attrsAs<Attrs>(), p.inputs[kX].dims);
    single::Spec base;
    base.epilogue = exactEpilogue({}, false);
    base.bAlongK = true;
    base.packsA = base.packsB = s.inputs % 4 == 0;
    base.packsY = columnsOf(s) % 4 == 0;
    base.constantB = p.inputs[kW].constant != nullptr;
    for (single::Spec const& spec :
         single::candidates(base, std::max<int64_t>(1, s.steps * s.batch), columnsOf(s), s.inputs, 1,
                            p.target.cuda->multiprocessors, p.target.cuda->capability >= 90, 64))
        if (!single::unsupported(spec) && spec.sharedBytes() <= cuda::sharedLimitOf(p.target.cuda->capability))
            return spec;
    return std::nullopt;
}
bool isHalf(Problem const& p)
{
    return isNarrowFloat(p.inputs[kX].type);
}

} // namespace

Support InputProducts::supports(Problem const& p)
{
    Sizes const most = sizesOf(p.node->attrsAs<Attrs>(), p.inputs[kX].maxDims);
    if (isWide(p) || most.steps * most.batch * columnsOf(most) > INT32_MAX / 2)
        return Support::no("takes fewer than 2^30 gates of all steps");
    if (!hasWeights(p))
        return Support::yes();
    if (!p.node->inputs[kX]->shape.back().isConst() || most.inputs < 1)
        return Support::no("takes rows of x whose size is known and not 0");
    return (isHalf(p) ? halfProduct(p).has_value() : singleProduct(p).has_value())
               ? Support::yes()
               : Support::no("there is no product for the sizes of x and its weights");
}

InputProducts::InputProducts(Problem const& p)
{
    if (hasWeights(p) && isHalf(p))
        half_ = halfProduct(p);
    else if (hasWeights(p))
        single_ = singleProduct(p);
}

void InputProducts::addTo(CudaSource& source) const
{
    if (half_) {
        source.text += half::source(*half_);
        source.names.push_back(half::kKernel);
        source.sharedBytes = std::max(source.sharedBytes, half_->sharedBytes());
    } else if (single_) {
        source.text += single::source(*single_);
        source.names.push_back(single::kKernel);
        source.sharedBytes = std::max(source.sharedBytes, single_->sharedBytes());
    }
}

int64_t InputProducts::bytes(Sizes const& s) const
{
    return s.steps * s.batch * columnsOf(s) * (half_ ? 2 : single_ ? 4 : 0);
}

void InputProducts::describe(PersistentParams& p, Sizes const& s, void* place) const
{
    bool const given = half_ || single_;
    p.products = given ? place : p.x;
    p.productStep = given ? s.xStep / s.inputs * columnsOf(s) : s.xStep;
    p.productRow = given ? s.xRow / s.inputs * columnsOf(s) : s.xRow;
    p.productDir = given ? s.gates * s.hidden : 0;
    p.productGate = given ? s.hidden : 0;
}

Result<void> InputProducts::run(CudaLaunch const& launch, Sizes const& s, PersistentParams const& p) const
{
    int64_t const m = s.steps * s.batch;
    if (m == 0)
        return {};
    if (half_) {
        half::Shape shape;
        shape.m = m;
        shape.n = columnsOf(s);
        shape.k = s.inputs;
        half::Launch l = half::launch(*half_, shape);
        l.args.a = p.x;
        l.args.b = p.w;
        l.args.y = const_cast<void*>(p.products);
        return launch.withGeometry(kKernel, l.geometry, {&l.args});
    }
    if (!single_)
        return {};
    single::Params q;
    q.a = static_cast<float const*>(p.x);
    q.b = static_cast<float const*>(p.w);
    q.y = static_cast<float*>(const_cast<void*>(p.products));
    q.m = m;
    q.n = columnsOf(s);
    q.k = q.lda = q.ldb = s.inputs;
    cuda::LaunchGeometry const g = single::launch(*single_, q, 1);
    return launch.withGeometry(kKernel, g, {&q});
}

} // namespace tw::ops::recurrence
