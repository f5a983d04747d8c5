// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <algorithm>
#include <cmath>

#include "cases/draw.h"
#include "ops/layer_norm/op.h"

namespace tw::ops::layer_norm {

namespace {

// ---- Norms over other sets than the last dimensions.

// Gamma and beta, where the attributes ask for them, of the length that they have for x.
void addFor(CaseList& list, std::string const& name, Attrs const& a, DataType type, Extents const& x)
{
    int64_t n = a.channel >= 0 ? x[int(a.channel)] : 1;
    for (int i = 0; a.channel < 0 && i < x.rank; ++i)
        n *= a.isNormalized(i) ? x[i] : 1;
    std::vector<CaseInput> in{input(type, x)};
    for (int i = 1; i < a.inputCount(); ++i)
        in.push_back(constant(type, {n}));
    int64_t elements = 1;
    for (int i = 0; i < x.rank; ++i)
        elements *= a.isNormalized(i) ? x[i] : 1;
    // A set of one element is its own mean: beta is what is left.
    list.add(name, a, std::move(in)).isConstant = elements == 1 && !a.rms;
}

Attrs rms(int64_t axis)
{
    Attrs a;
    a.axis = axis;
    a.rms = true;
    a.hasBeta = false;
    return a;
}
Attrs group(int64_t groups, FusedActivation const& f = {})
{
    Attrs a;
    a.axis = a.channel = 1;
    a.groups = groups;
    a.activation = f;
    return a;
}
// Over the channels of NCHW, one set for each pixel.
Attrs channelsFirst(int rank = 4)
{
    Attrs a;
    a.axis = 1;
    a.kept = ((int64_t(1) << rank) - 1) & ~int64_t(3);
    return a;
}
Attrs instance(int64_t axis = 2)
{
    Attrs a;
    a.axis = axis;
    a.channel = 1;
    return a;
}
// Over the pixels of NHWC, by groups of channels or for each channel.
Attrs byPixel(int64_t groups, int last = 3)
{
    Attrs a;
    a.axis = 1;
    a.channel = last;
    a.groups = groups;
    a.kept = groups > 0 ? 0 : int64_t(1) << last;
    a.groups = groups > 0 ? groups : 1;
    return a;
}

void byHand(CaseList& list)
{
    DataType const t = DataType::kFloat;
    double const root = std::sqrt(0.5);
    Attrs r = rms(1); // 1, 7: mean of squares 25
    r.epsilon = 0;
    list.add("rms_by_hand", r, {f32({2, 2}, {1, 7, 7, -1}), constant(t, {2}, {5, 10})}, {{1, 14, 7, -2}});
    // Two groups of two channels of two pixels: 0 4 2 2 has the variance 2, 1 1 1 1 none.
    Attrs g = group(2);
    g.epsilon = 0;
    list.add(
        "group_by_hand", g,
        {f32({1, 4, 2}, {0, 4, 2, 2, 3, -1, 1, 1}), constant(t, {4}, {1, 2, 3, 4}), constant(t, {4}, {0, 1, 0, 1})},
        {{-2 * root, 2 * root, 1, 1, 6 * root, -6 * root, 1, 1}});
    Attrs c = channelsFirst(3);
    c.epsilon = 0;
    list.add("channels_first_by_hand", c,
             {f32({1, 2, 2}, {1, 5, 3, 1}), constant(t, {2}, {1, 2}), constant(t, {2}, {0, 1})}, {{-1, 1, 3, -1}});
    Attrs i = instance();
    i.epsilon = 0;
    i.activation = activation::Kind::kRelu;
    list.add("instance_by_hand", i,
             {f32({1, 2, 2}, {1, 3, 5, 1}), constant(t, {2}, {1, 2}), constant(t, {2}, {0.5, 0})}, {{0, 1.5, 2, 0}});
    Attrs p = byPixel(2, 2); // as group_by_hand, with channels last
    p.epsilon = 0;
    list.add(
        "pixels_by_hand", p,
        {f32({1, 2, 4}, {0, 2, 3, 1, 4, 2, -1, 1}), constant(t, {4}, {1, 2, 3, 4}), constant(t, {4}, {0, 1, 0, 1})},
        {{-2 * root, 1, 6 * root, 1, 2 * root, 1, -6 * root, 1}});
}

void ofType(CaseList& list, DataType t)
{
    std::string const type = nameOf(t);
    auto add = [&](std::string const& name, Attrs const& a, Extents const& x) { addFor(list, type + name, a, t, x); };
    for (int64_t n : {1, 8, 63, 256, 1024, 2048, 5120})
        add("_rms_" + std::to_string(n), rms(1), {n == 1024 ? 70 : 3, n});
    Attrs both = rms(2);
    both.hasBeta = true;
    both.activation = FusedActivation(FusedKind::kGeluTanh);
    add("_rms_beta_gelu", both, {2, 3, 40});
    FusedActivation const swish(FusedKind::kSwish);
    add("_group_32", group(32, swish), {2, 320, 8, 8});
    add("_group_of_3", group(4, activation::Kind::kRelu), {2, 12, 7, 5});
    add("_group_long", group(2, swish), {1, 20, 40, 41});
    add("_group_one", group(1), {2, 24, 9, 9});
    add("_group_line", group(5), {3, 10, 77});
    add("_group_no_pixels", group(4), {5, 32});
    add("_group_volume", group(3), {1, 6, 3, 4, 5});
    Attrs bare = group(8);
    bare.hasGamma = bare.hasBeta = false;
    add("_group_bare", bare, {2, 64, 6, 6});
    add("_instance", instance(), {2, 5, 9, 9});
    add("_instance_32", instance(), {1, 32, 32, 32});
    add("_instance_frames", instance(3), {2, 3, 4, 50});
    Attrs rooted = instance();
    rooted.rms = true;
    rooted.hasBeta = false;
    add("_instance_rms", rooted, {2, 5, 7, 7});
    for (int64_t c : {1, 3, 96, 130, 768, 1100, 2100})
        add("_channels_first_" + std::to_string(c), channelsFirst(), {c == 96 ? 2 : 1, c, 7, c < 100 ? 17 : 8});
    Attrs wide = channelsFirst(3);
    wide.activation = FusedActivation(FusedKind::kGeluErf);
    add("_channels_first_gelu", wide, {2, 24, 257});
    Attrs first = channelsFirst();
    first.rms = true;
    add("_channels_first_rms", first, {1, 33, 5, 5});
    Attrs none = channelsFirst();
    none.hasGamma = none.hasBeta = false;
    add("_channels_first_bare", none, {1, 40, 6, 6});
    add("_pixels_32", byPixel(32), {2, 8, 8, 320});
    add("_pixels_3", byPixel(3), {1, 5, 7, 18});
    add("_pixels_one", byPixel(1), {2, 5, 7, 12});
    add("_pixels_line", byPixel(4, 2), {2, 300, 64});
    add("_pixels_instance", byPixel(0), {2, 9, 11, 24});
    add("_pixels_instance_odd", byPixel(0), {1, 40, 40, 3});
    Attrs apart; // batch and pixels: neither rows nor columns of a matrix
    apart.axis = 0;
    apart.kept = 2;
    apart.channel = 1;
    add("_batch", apart, {3, 5, 4, 6});
    Attrs between; // gamma and beta over two dimensions with another between them
    between.axis = 1;
    between.kept = 4;
    add("_between", between, {2, 3, 5, 4});
    Attrs scaled; // a number for each channel, which is not the first normalized dimension
    scaled.axis = 1;
    scaled.channel = 2;
    add("_scaled_inside", scaled, {2, 3, 10, 6});
    add("_no_images", group(2), {0, 4, 3, 3});
    add("_no_pixels", channelsFirst(), {2, 4, 0, 3});
}

} // namespace

void cases(CaseList& list)
{
    auto add = [&](std::string const& name, int64_t axis, double epsilon, DataType t, Extents const& e) {
        Attrs a;
        a.axis = axis;
        a.epsilon = epsilon;
        int64_t const n = e.volume(int(axis), e.rank);
        list.add(name, a, {input(t, e), constant(t, {n}), constant(t, {n})});
    };
    Attrs a;
    a.axis = 1;
    a.epsilon = 2; // (1 3 1 -1): mean 1, variance 2, so that the divisor is 2
    list.add("by_hand", a,
             {f32({2, 4}, {1, 3, 1, -1, 0, 0, 0, 0}), constant(DataType::kFloat, {4}, {1, 1, 2, 2}),
              constant(DataType::kFloat, {4}, {0, 1, 0, 1})},
             {{0, 2, 0, -1, 0, 1, 0, 1}});
    for (int64_t n : {1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 129, 768, 1000})
        add("row_" + std::to_string(n), 1, n == 1 ? 0.5 : 1e-5, DataType::kFloat, {3, n});
    for (int parts = 0; parts < 3; ++parts) {
        Attrs some;
        some.axis = 1;
        some.hasGamma = parts & 1;
        some.hasBeta = parts & 2;
        std::vector<CaseInput> in{f32({3, 37})};
        if (parts > 0)
            in.push_back(constant(DataType::kFloat, {37}));
        list.add("parts_" + std::to_string(parts), some, std::move(in));
    }
    add("two_axes", 1, 1e-3, DataType::kFloat, {3, 5, 7});
    add("all", 0, 1e-3, DataType::kFloat, {3, 4});
    add("many_rows", 2, 1e-12, DataType::kFloat, {2, 33, 40});
    add("half", 2, 1e-3, DataType::kHalf, {2, 3, 40});
    for (int64_t n : {8, 250, 768, 1024, 3000})
        add("half_" + std::to_string(n), 1, 1e-5, DataType::kHalf, {n == 768 ? 37 : 2, n});
    add("row_2100", 1, 1e-5, DataType::kFloat, {2, 2100});
    add("row_9000", 1, 1e-5, DataType::kFloat, {2, 9000});
    // Rows in chunks: below, at and above one, a tail that is no whole pack.
    for (DataType type : {DataType::kFloat, DataType::kHalf})
        for (int64_t n : {2048, 4096, 4099, 8192, 20000, 40960})
            add(std::string(nameOf(type)) + "_long_" + std::to_string(n), 1, 1e-5, type, {3, n});
    Attrs groups; // as a group norm: no gamma, no beta
    groups.axis = 2;
    groups.hasGamma = groups.hasBeta = false;
    list.add("groups", groups, {input(DataType::kHalf, {2, 8, 10, 32, 32})});
    for (int64_t integers : {1, 2})
        for (DataType t : {DataType::kFloat, DataType::kHalf})
            for (int64_t n : {1, 8, 37, 768, 1024, 5000}) {
                Attrs to;
                to.axis = 1;
                to.hasBeta = n != 37;
                to.integers = integers;
                std::vector<CaseInput> in{input(t, {n == 768 ? 37 : 3, n}), constant(t, {n})};
                if (to.hasBeta)
                    in.push_back(constant(t, {n}));
                in.push_back(constant(DataType::kFloat, n == 8 ? Extents{} : Extents{1}));
                list.add("integers_" + std::to_string(integers) + "_" + nameOf(t) + "_" + std::to_string(n), to,
                         std::move(in));
            }
    Attrs planes; // with sets that are not contiguous
    planes.axis = 1;
    planes.kept = 4;
    planes.integers = 2;
    planes.hasGamma = planes.hasBeta = false;
    list.add("integers_planes", planes, {f32({2, 6, 5}), constant(DataType::kFloat, {1})});
    add("no_rows", 1, 1e-5, DataType::kFloat, {0, 4});
    add("no_columns", 1, 1e-5, DataType::kFloat, {4, 0});
    byHand(list);
    ofType(list, DataType::kFloat);
    ofType(list, DataType::kHalf);
}

// Any set of dimensions; often those of a layer, group or instance norm.
void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Attrs a;
    Extents x = d.extents(int(d.from(2, 4)), d.chance(80) ? 24 : 60);
    int const last = x.rank - 1;
    DataType const t = d.type();
    a.axis = d.from(1, last);
    a.rms = d.chance(25);
    if (d.chance(50))
        a.kept = d.from(0, (1 << x.rank) - 1) & ~((2 << a.axis) - 1);
    if (d.chance(60)) {
        a.channel = d.chance(50) ? std::min(1, last) : last;
        if (d.chance(60) && a.isNormalized(int(a.channel))) {
            a.groups = d.from(1, 8);
            x[int(a.channel)] = a.groups * d.from(1, 12);
        }
    }
    int64_t n = a.channel >= 0 ? x[int(a.channel)] : 1;
    for (int i = 0; a.channel < 0 && i < x.rank; ++i)
        n *= a.isNormalized(i) ? x[i] : 1;
    a.hasGamma = d.chance(80);
    a.hasBeta = d.chance(80);
    if (d.chance(50))
        a.activation = activationOf(d);
    std::vector<CaseInput> in{input(t, x)};
    for (bool has : {a.hasGamma, a.hasBeta})
        if (has)
            in.push_back(constant(t, {n}));
    list.add(name, a, in);
}

} // namespace tw::ops::layer_norm
