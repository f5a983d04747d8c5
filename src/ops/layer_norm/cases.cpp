// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <algorithm>
#include <cmath>

#include "cases/draw.h"
#include "ops/layer_norm/op.h"

namespace tw::ops::layer_norm {

namespace {

struct Form
{
    int64_t axis = 1, kept = 0, channel = -1, groups = 1;
    bool rms = false, hasGamma = true, hasBeta = true;
    FusedActivation f = {};
    double epsilon = 1e-5;
    int64_t integers = 0;

    Attrs attrs() const
    {
        Attrs a;
        a.axis = axis;
        a.kept = kept;
        a.channel = channel;
        a.groups = groups;
        a.rms = rms;
        a.hasGamma = hasGamma;
        a.hasBeta = hasBeta;
        a.activation = f;
        a.epsilon = epsilon;
        a.integers = integers;
        return a;
    }
};

// Of gamma and beta for x.
int64_t numbersFor(Attrs const& a, Extents const& x)
{
    int64_t n = a.channel >= 0 ? x[int(a.channel)] : 1;
    for (int i = 0; a.channel < 0 && i < x.rank; ++i)
        n *= a.isNormalized(i) ? x[i] : 1;
    return n;
}

// ---- Norms over other sets than the last dimensions.

// Gamma and beta, where the attributes ask for them.
void addFor(CaseList& list, std::string const& name, Attrs const& a, DataType type, Extents const& x)
{
    std::vector<CaseInput> in{input(type, x)};
    for (int i = 1; i < a.inputCount(); ++i)
        in.push_back(constant(type, {numbersFor(a, x)}));
    int64_t elements = 1;
    for (int i = 0; i < x.rank; ++i)
        elements *= a.isNormalized(i) ? x[i] : 1;
    // A set of one element is its own mean: beta is what is left.
    list.add(name, a, std::move(in)).isConstant = elements == 1 && !a.rms;
}

Form group(int64_t groups, FusedActivation const& f = {})
{
    return {.channel = 1, .groups = groups, .f = f};
}
// Over the channels of NCHW, one set for each pixel.
Form channelsFirst(int rank = 4)
{
    return {.kept = ((int64_t(1) << rank) - 1) & ~int64_t(3)};
}
// Over the pixels of NHWC, by groups of channels or for each channel.
Form byPixel(int64_t groups, int last = 3)
{
    return {.kept = groups > 0 ? 0 : int64_t(1) << last, .channel = last, .groups = groups > 0 ? groups : 1};
}

void byHand(CaseList& list)
{
    DataType const t = DataType::kFloat;
    double const root = std::sqrt(0.5);
    auto add = [&](char const* name, Form f, CaseInput const& x, std::vector<double> const& gamma,
                   std::vector<double> const& beta, std::vector<double> const& y) {
        f.epsilon = 0;
        f.hasBeta = !beta.empty();
        std::vector<CaseInput> in{x, constant(t, {int64_t(gamma.size())}, gamma)};
        if (f.hasBeta)
            in.push_back(constant(t, {int64_t(beta.size())}, beta));
        list.add(name, f.attrs(), std::move(in), {y});
    };
    // 1, 7: mean of squares 25
    add("rms_by_hand", {.rms = true}, f32({2, 2}, {1, 7, 7, -1}), {5, 10}, {}, {1, 14, 7, -2});
    // Two groups of two channels of two pixels: 0 4 2 2 has the variance 2, 1 1 1 1 none.
    add("group_by_hand", group(2), f32({1, 4, 2}, {0, 4, 2, 2, 3, -1, 1, 1}), {1, 2, 3, 4}, {0, 1, 0, 1},
        {-2 * root, 2 * root, 1, 1, 6 * root, -6 * root, 1, 1});
    add("channels_first_by_hand", channelsFirst(3), f32({1, 2, 2}, {1, 5, 3, 1}), {1, 2}, {0, 1}, {-1, 1, 3, -1});
    add("instance_by_hand", {.axis = 2, .channel = 1, .f = activation::Kind::kRelu}, f32({1, 2, 2}, {1, 3, 5, 1}),
        {1, 2}, {0.5, 0}, {0, 1.5, 2, 0});
    // As group_by_hand, with channels last.
    add("pixels_by_hand", byPixel(2, 2), f32({1, 2, 4}, {0, 2, 3, 1, 4, 2, -1, 1}), {1, 2, 3, 4}, {0, 1, 0, 1},
        {-2 * root, 1, 6 * root, 1, 2 * root, 1, -6 * root, 1});
}

void ofType(CaseList& list, DataType t)
{
    std::string const type = nameOf(t);
    auto add = [&](std::string const& name, Form const& f, Extents const& x) {
        addFor(list, type + name, f.attrs(), t, x);
    };
    Form const rms{.rms = true, .hasBeta = false}, instance{.axis = 2, .channel = 1};
    for (int64_t n : {1, 8, 63, 256, 1024, 2048, 5120})
        add(fmt::format("_rms_{}", n), rms, {n == 1024 ? 70 : 3, n});
    add("_rms_beta_gelu", {.axis = 2, .rms = true, .f = FusedActivation(FusedKind::kGeluTanh)}, {2, 3, 40});
    FusedActivation const swish(FusedKind::kSwish);
    add("_group_32", group(32, swish), {2, 320, 8, 8});
    add("_group_of_3", group(4, activation::Kind::kRelu), {2, 12, 7, 5});
    add("_group_long", group(2, swish), {1, 20, 40, 41});
    add("_group_one", group(1), {2, 24, 9, 9});
    add("_group_line", group(5), {3, 10, 77});
    add("_group_no_pixels", group(4), {5, 32});
    add("_group_volume", group(3), {1, 6, 3, 4, 5});
    add("_group_bare", {.channel = 1, .groups = 8, .hasGamma = false, .hasBeta = false}, {2, 64, 6, 6});
    add("_all_bare", {.hasGamma = false, .hasBeta = false}, {2, 24, 37});
    add("_all_bare_image", {.hasGamma = false, .hasBeta = false}, {2, 19, 9, 11});
    add("_instance_bare", {.axis = 2, .hasGamma = false, .hasBeta = false}, {2, 21, 9, 9});
    add("_instance", instance, {2, 5, 9, 9});
    add("_instance_32", instance, {1, 32, 32, 32});
    add("_instance_frames", {.axis = 3, .channel = 1}, {2, 3, 4, 50});
    add("_instance_rms", {.axis = 2, .channel = 1, .rms = true, .hasBeta = false}, {2, 5, 7, 7});
    for (int64_t c : {1, 3, 96, 130, 768, 1100, 2100})
        add(fmt::format("_channels_first_{}", c), channelsFirst(), {c == 96 ? 2 : 1, c, 7, c < 100 ? 17 : 8});
    add("_channels_first_gelu", {.kept = 4, .f = FusedActivation(FusedKind::kGeluErf)}, {2, 24, 257});
    add("_channels_first_rms", {.kept = 12, .rms = true}, {1, 33, 5, 5});
    add("_channels_first_bare", {.kept = 12, .hasGamma = false, .hasBeta = false}, {1, 40, 6, 6});
    add("_pixels_32", byPixel(32), {2, 8, 8, 320});
    add("_pixels_3", byPixel(3), {1, 5, 7, 18});
    add("_pixels_one", byPixel(1), {2, 5, 7, 12});
    add("_pixels_line", byPixel(4, 2), {2, 300, 64});
    add("_pixels_instance", byPixel(0), {2, 9, 11, 24});
    add("_pixels_instance_odd", byPixel(0), {1, 40, 40, 3});
    // More pixels than a block holds in registers, in several forms; the last one's groups straddle vectors.
    add("_pixels_cluster_instance", instance, {2, 20, 65, 66});
    add("_pixels_cluster_group", group(4, swish), {1, 48, 70, 31});
    add("_pixels_cluster_ten", group(8), {2, 80, 37, 20});
    add("_pixels_cluster_last", byPixel(2), {1, 61, 50, 32});
    // Batch and pixels: neither rows nor columns of a matrix.
    add("_batch", {.axis = 0, .kept = 2, .channel = 1}, {3, 5, 4, 6});
    // Gamma and beta over two dimensions with another between them.
    add("_between", {.kept = 4}, {2, 3, 5, 4});
    // A number for each channel, which is not the first normalized dimension.
    add("_scaled_inside", {.channel = 2}, {2, 3, 10, 6});
    add("_no_images", group(2), {0, 4, 3, 3});
    add("_no_pixels", channelsFirst(), {2, 4, 0, 3});
}

} // namespace

void cases(CaseList& list)
{
    auto add = [&](std::string const& name, int64_t axis, double epsilon, DataType t, Extents const& e) {
        int64_t const n = e.volume(int(axis), e.rank);
        list.add(name, Form{.axis = axis, .epsilon = epsilon}.attrs(),
                 {input(t, e), constant(t, {n}), constant(t, {n})});
    };
    // (1 3 1 -1): mean 1, variance 2, so that the divisor is 2
    list.add("by_hand", Form{.epsilon = 2}.attrs(),
             {f32({2, 4}, {1, 3, 1, -1, 0, 0, 0, 0}), constant(DataType::kFloat, {4}, {1, 1, 2, 2}),
              constant(DataType::kFloat, {4}, {0, 1, 0, 1})},
             {{0, 2, 0, -1, 0, 1, 0, 1}});
    for (int64_t n : {1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 129, 768, 1000})
        add(fmt::format("row_{}", n), 1, n == 1 ? 0.5 : 1e-5, DataType::kFloat, {3, n});
    for (int parts = 0; parts < 3; ++parts) {
        std::vector<CaseInput> in{f32({3, 37})};
        if (parts > 0)
            in.push_back(constant(DataType::kFloat, {37}));
        list.add(fmt::format("parts_{}", parts), Form{.hasGamma = bool(parts & 1), .hasBeta = bool(parts & 2)}.attrs(),
                 std::move(in));
    }
    add("two_axes", 1, 1e-3, DataType::kFloat, {3, 5, 7});
    add("all", 0, 1e-3, DataType::kFloat, {3, 4});
    add("many_rows", 2, 1e-12, DataType::kFloat, {2, 33, 40});
    add("half", 2, 1e-3, DataType::kHalf, {2, 3, 40});
    for (int64_t n : {8, 250, 768, 1024, 3000})
        add(fmt::format("half_{}", n), 1, 1e-5, DataType::kHalf, {n == 768 ? 37 : 2, n});
    add("row_2100", 1, 1e-5, DataType::kFloat, {2, 2100});
    add("row_9000", 1, 1e-5, DataType::kFloat, {2, 9000});
    // Rows in chunks: below, at and above one, a tail that is no whole pack.
    for (DataType type : {DataType::kFloat, DataType::kHalf})
        for (int64_t n : {2048, 4096, 4099, 8192, 20000, 40960})
            add(fmt::format("{}_long_{}", nameOf(type), n), 1, 1e-5, type, {3, n});
    // As a group norm: no gamma, no beta.
    list.add("groups", Form{.axis = 2, .hasGamma = false, .hasBeta = false}.attrs(),
             {input(DataType::kHalf, {2, 8, 10, 32, 32})});
    for (int64_t integers : {1, 2})
        for (DataType t : {DataType::kFloat, DataType::kHalf})
            for (int64_t n : {1, 8, 37, 768, 1024, 5000}) {
                Attrs const to = Form{.hasBeta = n != 37, .integers = integers}.attrs();
                std::vector<CaseInput> in{input(t, {n == 768 ? 37 : 3, n}), constant(t, {n})};
                if (to.hasBeta)
                    in.push_back(constant(t, {n}));
                in.push_back(constant(DataType::kFloat, n == 8 ? Extents{} : Extents{1}));
                list.add(fmt::format("integers_{}_{}_{}", integers, nameOf(t), n), to, std::move(in));
            }
    // With sets that are not contiguous.
    list.add("integers_planes", Form{.kept = 4, .hasGamma = false, .hasBeta = false, .integers = 2}.attrs(),
             {f32({2, 6, 5}), constant(DataType::kFloat, {1})});
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
    a.hasGamma = d.chance(80);
    a.hasBeta = d.chance(80);
    if (d.chance(50))
        a.activation = activationOf(d);
    std::vector<CaseInput> in{input(t, x)};
    for (bool has : {a.hasGamma, a.hasBeta})
        if (has)
            in.push_back(constant(t, {numbersFor(a, x)}));
    list.add(name, a, in);
}

} // namespace tw::ops::layer_norm
