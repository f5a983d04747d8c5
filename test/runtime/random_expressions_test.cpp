// SPDX-License-Identifier: Apache-2.0
// Random networks of steps that cancel, overflow and underflow, each branch twice with numbers that differ in little:
// all of them build, and compute what the interpreter does as far as rounding lets anybody tell.
// TW_SEED=n runs one seed, TW_SEEDS=n that many from there on.
#include <cmath>
#include <cstdlib>
#include <random>

#include "engine_run.h"
#include "ops/activation/op.h"
#include "ops/elementwise/op.h"
#include "ops/reduce/op.h"
#include "ops/softmax/op.h"
#include "ops/unary/op.h"

namespace tw::test {

namespace {

using Binary = ops::elementwise::Operation;
using Unary = ops::unary::Operation;

class RandomNetwork
{
public:
    GraphMaker m;

    explicit RandomNetwork(uint64_t seed) : random_(seed)
    {
        columns_ = pick({1, 5, 16, 33, 65});
        ir::Value* x = m.input("x", {ir::Dim::symbol("N"), ir::Dim(columns_)});
        int const branches = 1 + int(random_() % 3);
        for (int b = 0; b < branches; ++b) {
            uint64_t const recipe = random_();
            for (double apart : {0.0, 1.0}) { // the same steps, numbers that differ in little
                std::mt19937_64 steps(recipe);
                ir::Value* y = x;
                for (int i = 0, n = 2 + int(recipe % 7); i < n; ++i)
                    y = step(steps, y, x, apart);
                m.output(y, "y" + std::to_string(m.g.outputs.size()));
            }
        }
    }

private:
    int64_t pick(std::initializer_list<int64_t> list) { return list.begin()[random_() % list.size()]; }
    std::string name() { return "n" + std::to_string(count_++); }
    ir::Value* unary(Unary op, ir::Value* x) { return m.add(ops::unary::def(), ops::unary::Attrs(op), {x}, name()); }
    ir::Value* binary(Binary op, ir::Value* x, ir::Value* y)
    {
        return m.add(ops::elementwise::def(), ops::elementwise::Attrs(op), {x, y}, name());
    }
    ir::Value* reduced(ops::reduce::Kind kind, ir::Value* x)
    {
        ops::reduce::Attrs a;
        a.kind = kind;
        a.axes = 1 << 1;
        a.keepDims = true;
        return m.add(ops::reduce::def(), a, {x}, name());
    }
    ir::Value* normalized(ir::Value* x, double epsilon)
    {
        ir::Value* centered = binary(Binary::kSub, x, reduced(ops::reduce::Kind::kAvg, x));
        ir::Value* variance = reduced(ops::reduce::Kind::kAvg, binary(Binary::kProd, centered, centered));
        variance = binary(Binary::kSum, variance, m.constant(name(), {1, 1}, {epsilon}));
        return binary(Binary::kDiv, centered, unary(Unary::kSqrt, variance));
    }
    ir::Value* step(std::mt19937_64& random, ir::Value* y, ir::Value* x, double apart)
    {
        static constexpr double kNumbers[] = {1,    -1,   0.5,   2,       65504,    12582912, 1e-7,
                                              1e-9, 1e30, 1e-30, 43758.5, 16777216, 3.0e38,   0.1};
        double const v = kNumbers[random() % std::size(kNumbers)] * (1 + apart * 3e-7);
        auto number = [&] { return m.constant(name(), {1, 1}, {v}); };
        switch (random() % 16) {
        case 0:
            return unary(Unary::kExp, y);
        case 1:
            return unary(Unary::kLog, binary(Binary::kSum, unary(Unary::kAbs, y), number()));
        case 2:
            return binary(Binary::kSub, binary(Binary::kSum, y, number()), number());
        case 3:
            return binary(Binary::kDiv, unary(Unary::kExp, y), binary(Binary::kSum, unary(Unary::kExp, y), number()));
        case 4:
            return binary(Binary::kProd, y, number());
        case 5:
            return binary(Binary::kDiv, y, number());
        case 6:
            return binary(Binary::kSum, y, x);
        case 7:
            return binary(Binary::kSub, y, x);
        case 8:
            return binary(Binary::kSub, y, unary(Unary::kFloor, y));
        case 9:
            return unary(Unary::kSqrt, unary(Unary::kAbs, y));
        case 10: // layer normalization, as its nodes
            return normalized(y, (random() % 2 ? 1e-7 : 1e-10) * (1 + apart * 0.01));
        case 11:
            return binary(Binary::kDiv, y, reduced(ops::reduce::Kind::kSum, unary(Unary::kExp, y)));
        case 12: {
            ops::softmax::Attrs a;
            a.axis = 1;
            return m.add(ops::softmax::def(), a, {y}, name());
        }
        case 13: {
            ops::activation::Attrs a(ops::activation::Kind::kLeakyRelu);
            a.alpha = float(0.1 * (1 + apart * 3e-7));
            return m.add(ops::activation::def(), a, {y}, name());
        }
        case 14:
            return unary(Unary::kSin, y);
        default:
            return binary(Binary::kProd, y, y);
        }
    }
    std::mt19937_64 random_;
    int64_t columns_ = 1;
    int count_ = 0;
};

// How far each output may be off: some times what it moves by when some of the steps are off by about their last bit.
std::vector<std::vector<double>> sensitivity(ir::Graph const& g, std::vector<TensorRef> const& inputs,
                                             std::vector<Tensor> const& want)
{
    constexpr int kRuns = 24;
    constexpr double kTimes = 20;
    std::vector<std::vector<double>> limits;
    for (Tensor const& t : want)
        limits.emplace_back(size_t(t.count()), 0.0);
    std::mt19937_64 random(3);
    for (int run = 0; run < kRuns; ++run) {
        interp::Options noisy;
        noisy.observe = [&](ir::Value const&, TensorRef const& t) {
            bool const isNoisy = random() % 4 == 0;
            for (int64_t i = 0; isNoisy && i < t.count(); ++i)
                t.as<float>()[i] *= 1 + float(int(random() % 5) - 2) * 0x1p-23F;
        };
        auto const moved = interp::run(g, inputs, noisy);
        EXPECT_TRUE(moved.ok());
        for (size_t o = 0; o < want.size(); ++o)
            for (int64_t i = 0; i < want[o].count(); ++i) {
                double const apart = std::fabs((*moved)[o].ref().get(i) - want[o].ref().get(i));
                limits[o][size_t(i)] = std::isfinite(apart) ? std::max(limits[o][size_t(i)], kTimes * apart) : INFINITY;
            }
    }
    return limits;
}

// Sums of such numbers may overflow in f32; the interpreter's, which are exact, do not.
bool isNearOverflow(ir::Graph const& g, std::vector<TensorRef> const& inputs)
{
    constexpr double kLarge = 1e35;
    bool isNear = false;
    interp::Options watch;
    watch.observe = [&](ir::Value const&, TensorRef const& t) {
        for (int64_t i = 0; i < t.count(); ++i)
            isNear = isNear || (std::isfinite(t.get(i)) && std::fabs(t.get(i)) > kLarge);
    };
    EXPECT_TRUE(interp::run(g, inputs, watch).ok());
    return isNear;
}

void check(uint64_t seed, int64_t& compared)
{
    SCOPED_TRACE("TW_SEED=" + std::to_string(seed));
    RandomNetwork network(seed);
    auto e = makeEngine(network.m, {{{"N", {1, 4, 9}}}});
    ASSERT_TRUE(e.ok()) << e.error().message;
    runtime::Context context(e->engine);
    context.setProfile(0);
    for (int64_t n : {1, 4, 7, 9}) {
        auto inputs = randomInputs(*e->imported, {{"N", n}});
        fillRandom(inputs[0].ref(), ops::Domain{-3, 3, false, false}, seed);
        auto const want = interp::run(*e->imported, refsOf(inputs));
        ASSERT_TRUE(want.ok()) << want.error().message;
        auto const limits = sensitivity(*e->imported, refsOf(inputs), *want);
        bool const mayOverflow = isNearOverflow(*e->imported, refsOf(inputs));
        auto const got = runEngine(context, refsOf(inputs));
        ASSERT_TRUE(got.ok()) << got.error().message;
        int wrong = 0;
        for (size_t o = 0; o < want->size(); ++o) {
            double most = 0;
            for (int64_t i = 0; i < (*want)[o].count(); ++i)
                most =
                    std::isfinite((*want)[o].ref().get(i)) ? std::max(most, std::fabs((*want)[o].ref().get(i))) : most;
            for (int64_t i = 0; i < (*want)[o].count() && wrong < 5; ++i) {
                double const a = got->outputs[o].get(i), b = (*want)[o].ref().get(i);
                // Over- and underflow on the way: a kernel that keeps more than its nodes would may know better.
                if (!std::isfinite(b) || !std::isfinite(limits[o][size_t(i)]) || (mayOverflow && !std::isfinite(a)))
                    continue;
                ++compared;
                bool const isRight = std::fabs(a - b) <= limits[o][size_t(i)] + 1e-4 * most + 1e-35;
                wrong += !isRight;
                EXPECT_TRUE(isRight) << "output " << o << ", N = " << n << ", element " << i << ": got " << a
                                     << ", want " << b << " within " << limits[o][size_t(i)];
            }
        }
    }
}

} // namespace

TEST(RandomExpressions, BuildAndComputeWhatTheirNodesDo)
{
    auto number = [](char const* name, uint64_t otherwise) {
        char const* text = std::getenv(name);
        return text ? std::strtoull(text, nullptr, 10) : otherwise;
    };
    uint64_t const first = number("TW_SEED", 1), count = number("TW_SEEDS", std::getenv("TW_SEED") ? 1 : 40);
    int64_t compared = 0;
    for (uint64_t seed = first; seed < first + count; ++seed)
        check(seed, compared);
    EXPECT_GT(compared, int64_t(count) * 10) << "elements whose value rounding leaves in no doubt";
}

} // namespace tw::test
