// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include <algorithm>
#include <cmath>

#include "ops/layer_norm/op.h"

namespace tw::ops::layer_norm {

namespace {

// The set that an element is in, and its number in gamma and beta.
struct Place
{
    int64_t set = 0, weight = 0;
};

Place placeOf(Attrs const& a, Counter const& c)
{
    Place p;
    for (int i = 0; i < c.at.rank; ++i) {
        if (!a.isNormalized(i))
            p.set = p.set * c.extents[i] + c.at[i];
        else if (i == a.channel)
            p.set = p.set * a.groups + c.at[i] / (c.extents[i] / a.groups);
        if (a.channel < 0 && a.isNormalized(i))
            p.weight = p.weight * c.extents[i] + c.at[i];
    }
    if (a.channel >= 0)
        p.weight = c.at[int(a.channel)];
    return p;
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const& x = ctx.in(0);
    Tensor floats(x.type, a.keepsFloats() ? Extents{0} : x.dims);
    TensorRef const y = a.keepsFloats() ? ctx.out() : floats.ref();
    int64_t sets = a.groups, n = 1;
    for (int i = 0; i < x.dims.rank; ++i)
        (a.isNormalized(i) ? n : sets) *= x.dims[i];
    n /= a.groups;
    if (x.count() == 0)
        return {};
    std::vector<double> mean(size_t(sets), 0.0), variance(size_t(sets), 0.0);
    std::vector<Place> places;
    Counter c(x.dims);
    do
        places.push_back(placeOf(a, c));
    while (c.next());
    auto each = [&](auto const& f) {
        for (int64_t i = 0; i < x.count(); ++i)
            f(i, places[size_t(i)]);
    };
    if (!a.rms)
        each([&](int64_t i, Place p) { mean[size_t(p.set)] += x.get(i) / double(n); });
    each([&](int64_t i, Place p) {
        double const d = x.get(i) - mean[size_t(p.set)];
        variance[size_t(p.set)] += d * d / double(n);
    });
    each([&](int64_t i, Place p) {
        double const gamma = a.hasGamma ? ctx.in(a.gammaInput()).get(p.weight) : 1;
        double const beta = a.hasBeta ? ctx.in(a.betaInput()).get(p.weight) : 0;
        double const deviation = std::sqrt(variance[size_t(p.set)] + a.epsilon);
        y.set(i, (x.get(i) - mean[size_t(p.set)]) / deviation * gamma + beta);
    });
    TW_TRY(activateReference(a.activation, y));
    for (int64_t i = 0; a.integers && i < x.count(); ++i) {
        float const steps = float(y.get(i)) / float(ctx.in(a.scaleInput()).get(0));
        ctx.out(a.integersOutput()).set(i, steps == steps ? std::clamp(std::nearbyint(steps), -128.0F, 127.0F) : 0);
    }
    return {};
}

} // namespace tw::ops::layer_norm
