// SPDX-License-Identifier: Apache-2.0
// Convolutions, deconvolutions and pools of random windows, strides, paddings and padding modes: sizes by the formulas of
// the API, numbers by plain loops.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "engine/engines.h"

using namespace tw::test;

namespace {

enum class Kind
{
    kConvolution,
    kDeconvolution,
    kPool
};

int floorDiv(int a, int b)
{
    return int(std::floor(double(a) / b));
}
int ceilDiv(int a, int b)
{
    return -floorDiv(-a, b);
}

// One axis of a window over an image.
struct Axis
{
    int in, window, stride, dilation, before, after;
    int out = 0;
    bool isDefined = true; // by the formulas, without a negative padding

    int reach() const { return 1 + dilation * (window - 1); }
    void resolve(Kind kind, PaddingMode mode)
    {
        bool const isDeconvolution = kind == Kind::kDeconvolution;
        if (mode == PaddingMode::kSAME_UPPER || mode == PaddingMode::kSAME_LOWER) {
            int const total =
                isDeconvolution ? std::max(reach() - stride, 0) : floorDiv(in - 1, stride) * stride + reach() - in;
            out = isDeconvolution ? std::min(in * stride, (in - 1) * stride + reach()) : ceilDiv(in, stride);
            isDefined = total >= 0;
            before = mode == PaddingMode::kSAME_UPPER ? total / 2 : total - total / 2;
            after = total - before;
            return;
        }
        bool const isCaffe = mode == PaddingMode::kCAFFE_ROUND_DOWN || mode == PaddingMode::kCAFFE_ROUND_UP;
        bool const up = mode == PaddingMode::kEXPLICIT_ROUND_UP || mode == PaddingMode::kCAFFE_ROUND_UP;
        if (isDeconvolution) {
            out = (in - 1) * stride + reach() - before - after;
            return;
        }
        int const whole = isCaffe && kind == Kind::kConvolution ? in + 2 * before : in + before + after;
        out = (up ? ceilDiv(whole - reach(), stride) : floorDiv(whole - reach(), stride)) + 1;
        if (isCaffe && kind == Kind::kPool && (out - 1) * stride >= in + before)
            --out;
    }
};

struct Problem
{
    explicit Problem(uint32_t seed)
    {
        Random r(seed * 7919 + 17);
        kind = static_cast<Kind>(r.between(0, 2));
        mode = static_cast<PaddingMode>(r.between(0, 5));
        bool const isCaffe = mode == PaddingMode::kCAFFE_ROUND_DOWN || mode == PaddingMode::kCAFFE_ROUND_UP;
        for (int d = r.between(2, 3); d > 0; --d) {
            int const window = r.between(1, 4);
            // A pool's padding is narrower than its window: no window without an element.
            int const most = kind == Kind::kPool ? (window - 1) / 2 : 2;
            Axis a{r.between(3, 9),    window,
                   r.between(1, 3),    kind == Kind::kPool ? 1 : r.between(1, 2),
                   r.between(0, most), r.between(0, most)};
            if (isCaffe)
                a.after = a.before;
            axes.push_back(a);
        }
        groups = kind == Kind::kPool ? 1 : r.between(1, 2);
        channels = groups * r.between(1, 5);
        maps = kind == Kind::kPool ? channels : groups * r.between(1, 5);
        if (r.between(0, 2) == 0)
            leading = {2, r.between(1, 2)};
        else
            leading = {r.between(1, 3)};
        pool = static_cast<PoolingType>(r.between(0, 2));
        isExclusive = r.flip();
        hasBias = r.flip();
        for (Axis& a : axes)
            a.resolve(kind, mode);
        auto fill = [&](std::vector<float>& v, int64_t count) {
            for (int64_t i = 0; i < count; ++i)
                v.push_back(float(r.between(-8, 8)) / 4);
        };
        int64_t in = channels, window = 1;
        for (int n : leading)
            in *= n;
        for (Axis const& a : axes) {
            in *= a.in;
            window *= a.window;
        }
        fill(x, in);
        fill(w, int64_t(channels) * maps / groups * window);
        fill(bias, maps);
    }
    bool isDefined() const
    {
        return std::all_of(axes.begin(), axes.end(), [&](Axis const& a) {
            // Rounding up can put the last window of a pool behind all elements, which no rule gives a value.
            bool const isEmpty = kind == Kind::kPool && (a.out - 1) * a.stride - a.before >= a.in;
            return a.isDefined && !isEmpty && a.out > 0 && a.in + a.before + a.after >= a.reach();
        });
    }
    Shape shape(bool ofOutput) const
    {
        Shape s(leading.begin(), leading.end());
        s.push_back(ofOutput ? maps : channels);
        for (Axis const& a : axes)
            s.push_back(ofOutput ? a.out : a.in);
        return s;
    }
    // Calls f(x's or y's place, w's place) for every pair that a window joins; places are within one channel.
    template <class F>
    void forEachPair(F const& f) const
    {
        std::vector<int> outer, window;
        for (Axis const& a : axes) {
            outer.push_back(kind == Kind::kDeconvolution ? a.in : a.out);
            window.push_back(a.window);
        }
        auto count = [](std::vector<int> const& v) {
            int64_t n = 1;
            for (int d : v)
                n *= d;
            return n;
        };
        for (int64_t o = 0; o < count(outer); ++o)
            for (int64_t k = 0; k < count(window); ++k) {
                int64_t restO = o, restK = k, place = 0, step = 1;
                bool inside = true, padded = true;
                for (size_t d = axes.size(); d-- > 0;) {
                    Axis const& a = axes[d];
                    int const at = int(restO % outer[d]) * a.stride + int(restK % window[d]) * a.dilation - a.before;
                    int const extent = kind == Kind::kDeconvolution ? a.out : a.in;
                    inside = inside && at >= 0 && at < extent;
                    padded = padded && at < extent + a.after;
                    place += at * step;
                    step *= extent;
                    restO /= outer[d];
                    restK /= window[d];
                }
                f(o, k, inside ? place : -1, padded);
            }
    }
    std::vector<double> expected() const
    {
        int64_t inPlane = 1, outPlane = 1, window = 1, batch = 1;
        for (Axis const& a : axes) {
            inPlane *= a.in;
            outPlane *= a.out;
            window *= a.window;
        }
        for (int n : leading)
            batch *= n;
        std::vector<double> y(size_t(batch * maps * outPlane), 0);
        int const perIn = channels / groups, perOut = maps / groups;
        for (int64_t n = 0; n < batch; ++n) {
            for (int64_t m = 0; m < maps; ++m) {
                double* const to = &y[size_t((n * maps + m) * outPlane)];
                float const* const from = &x[size_t(n * channels * inPlane)];
                if (kind == Kind::kPool) {
                    std::vector<double> most(size_t(outPlane), -std::numeric_limits<double>::infinity());
                    std::vector<int> count(size_t(outPlane), 0);
                    forEachPair([&](int64_t o, int64_t, int64_t place, bool padded) {
                        count[size_t(o)] += isExclusive ? place >= 0 : padded;
                        if (place < 0)
                            return;
                        double const v = from[m * inPlane + place];
                        to[o] += v;
                        most[size_t(o)] = std::max(most[size_t(o)], v);
                    });
                    for (int64_t o = 0; o < outPlane; ++o) {
                        double const average = to[o] / count[size_t(o)];
                        to[o] = pool == PoolingType::kMAX       ? most[size_t(o)]
                                : pool == PoolingType::kAVERAGE ? average
                                                                : 0.75 * most[size_t(o)] + 0.25 * average;
                    }
                    continue;
                }
                if (hasBias)
                    std::fill(to, to + outPlane, bias[size_t(m)]);
                for (int64_t i = 0; i < perIn; ++i) {
                    int64_t const c = m / perOut * perIn + i;
                    // Convolution [m, c/g, window], deconvolution [c, m/g, window].
                    int64_t const row = kind == Kind::kConvolution ? m * perIn + i : c * perOut + m % perOut;
                    forEachPair([&](int64_t o, int64_t k, int64_t place, bool) {
                        if (place < 0)
                            return;
                        double const factor = w[size_t(row * window + k)];
                        if (kind == Kind::kConvolution)
                            to[o] += factor * from[c * inPlane + place];
                        else
                            to[place] += factor * from[c * inPlane + o];
                    });
                }
            }
        }
        return y;
    }
    Dims dimsOf(int Axis::*member) const
    {
        Shape s;
        for (Axis const& a : axes)
            s.push_back(a.*member);
        return dims(s);
    }
    template <class Layer>
    ILayer* windowed(Layer* l, Axis const* given) const
    {
        Shape before, after;
        for (size_t d = 0; d < axes.size(); ++d) {
            before.push_back(given[d].before);
            after.push_back(given[d].after);
        }
        l->setStrideNd(dimsOf(&Axis::stride));
        l->setPrePadding(dims(before));
        l->setPostPadding(dims(after));
        l->setPaddingMode(mode);
        return l;
    }
    ILayer* add(INetworkDefinition& n, ITensor& x) const
    {
        // Modes that compute the padding pay no attention to what is set.
        bool const isSame = mode == PaddingMode::kSAME_UPPER || mode == PaddingMode::kSAME_LOWER;
        std::vector<Axis> given = axes;
        for (Axis& a : given)
            if (isSame)
                a.before = a.after = kind == Kind::kPool ? 0 : 1;
        Weights const filter{DataType::kFLOAT, w.data(), int64_t(w.size())};
        Weights const added{DataType::kFLOAT, hasBias ? bias.data() : nullptr, hasBias ? maps : 0};
        if (kind == Kind::kPool) {
            IPoolingLayer* l = n.addPoolingNd(x, pool, dimsOf(&Axis::window));
            l->setAverageCountExcludesPadding(isExclusive);
            l->setBlendFactor(0.25F);
            return windowed(l, given.data());
        }
        if (kind == Kind::kConvolution) {
            IConvolutionLayer* l = n.addConvolutionNd(x, maps, dimsOf(&Axis::window), filter, added);
            l->setDilationNd(dimsOf(&Axis::dilation));
            l->setNbGroups(groups);
            return windowed(l, given.data());
        }
        IDeconvolutionLayer* l = n.addDeconvolutionNd(x, maps, dimsOf(&Axis::window), filter, added);
        l->setDilationNd(dimsOf(&Axis::dilation));
        l->setNbGroups(groups);
        return windowed(l, given.data());
    }
    std::string str() const
    {
        std::string s = "kind " + std::to_string(int(kind)) + ", mode " + std::to_string(int(mode)) + ", pool " +
                        std::to_string(int(pool)) + (isExclusive ? " exclusive" : "") + ", groups " +
                        std::to_string(groups) + ", channels " + std::to_string(channels) + ", maps " +
                        std::to_string(maps);
        for (Axis const& a : axes)
            s += "; in " + std::to_string(a.in) + " window " + std::to_string(a.window) + " stride " +
                 std::to_string(a.stride) + " dilation " + std::to_string(a.dilation) + " padding " +
                 std::to_string(a.before) + "," + std::to_string(a.after) + " out " + std::to_string(a.out);
        return s;
    }

    Kind kind;
    PaddingMode mode;
    PoolingType pool;
    bool isExclusive, hasBias;
    std::vector<Axis> axes;
    int groups, channels, maps;
    std::vector<int> leading;
    std::vector<float> x, w, bias;
};

constexpr uint32_t kProblems = 240;

TEST(WindowRules, RandomOnesAgreeWithTheFormulas)
{
    int done[3][6] = {};
    for (uint32_t seed = 0; seed < kProblems; ++seed) {
        Problem const p(seed);
        if (!p.isDefined())
            continue;
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + p.str());
        Maker m;
        m.config->setFlag(BuilderFlag::kENABLE_TACTIC_HEURISTIC);
        ILayer* l = p.add(*m.network, *m.input("x", p.shape(false)));
        EXPECT_EQ(list(l->getOutput(0)->getDimensions()), p.shape(true)) << m.errors();
        m.output(l->getOutput(0), "y");
        auto const engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        std::vector<double> const want = p.expected();
        std::vector<float> x = p.x, y(want.size() + 1, -777);
        void* bindings[] = {x.data(), y.data()};
        ASSERT_TRUE(contextOf(*engine)->executeV2(bindings)) << m.errors();
        for (size_t i = 0; i < want.size(); ++i)
            ASSERT_NEAR(y[i], want[i], 1e-3) << i;
        EXPECT_EQ(y.back(), -777);
        ++done[int(p.kind)][int(p.mode)];
    }
    for (auto const& kind : done)
        for (int count : kind)
            EXPECT_GE(count, 2) << "problems of each kind and mode";
}

} // namespace
