// SPDX-License-Identifier: Apache-2.0
// Networks with Q and DQ put together at random, through the whole list of passes for each kind of machine. Scales are
// powers of two and numbers few, those of the input too, so that every sum is exact: not a bit may change.
#include <cmath>
#include <random>

#include "ir/text.h"
#include "ops/activation/op.h"
#include "ops/concatenation/op.h"
#include "ops/convolution/op.h"
#include "ops/elementwise/op.h"
#include "ops/padding/op.h"
#include "ops/pooling/op.h"
#include "ops/slice/op.h"
#include "pass_test.h"
#include "quantized.h"

namespace tw::test {

namespace {

class RandomNetwork
{
public:
    explicit RandomNetwork(uint32_t seed) : random_(seed) {}

    std::unique_ptr<ir::Graph> make()
    {
        values_.push_back(m_.input("x", ir::shapeOf({2, 4, 5, 6})));
        for (int i = 0, count = 4 + pick(14); i < count; ++i)
            values_.push_back(next("n" + std::to_string(i)));
        // What nobody reads.
        int outputs = 0;
        for (ir::Value* v : values_)
            if (v->producer && m_.g.useCount(v) == 0)
                m_.output(v, "y" + std::to_string(outputs++));
        return m_.take();
    }

private:
    int pick(int count) { return int(random_() % uint32_t(count)); }
    double step() { return 0.25 * double(1 << pick(3)); }
    ir::Value* any()
    {
        // The last ones more often.
        int const count = int(values_.size());
        return values_[size_t(std::max(pick(count), pick(count)))];
    }
    static int64_t channels(ir::Value const* v) { return v->shape[1].value(); }
    ir::Value* rounded(ir::Value* v, std::string const& name) { return faked(m_, v, step(), name); }

    ir::Value* next(std::string const& name)
    {
        ir::Value* const x = any();
        switch (pick(9)) {
        case 0:
        case 1:
        case 2:
            return convolution(x, name);
        case 3: {
            using ops::activation::Kind;
            ops::activation::Attrs a(pick(3) ? Kind::kRelu : Kind::kLeakyRelu);
            a.alpha = 0.25;
            return m_.add(ops::activation::def(), a, {x}, name);
        }
        case 4:
            return sum(x, name);
        case 5: {
            ops::pooling::Attrs a;
            a.window = {3, 3};
            a.strides = {1, 1};
            a.prePadding = a.postPadding = {1, 1};
            return m_.add(ops::pooling::def(), a, {x}, name);
        }
        case 6:
            return join(x, name);
        case 7:
            return part(x, name);
        default:
            return rounded(x, name);
        }
    }
    ir::Value* convolution(ir::Value* x, std::string const& name)
    {
        int64_t const window = pick(2) ? 3 : 1, out = 2 * (1 + pick(4)), groups = pick(4) ? 1 : 2;
        if (channels(x) % groups != 0)
            return rounded(x, name);
        ops::convolution::Attrs a = ops::convolution::Attrs::plain(2);
        a.prePadding = a.postPadding = {window / 2, window / 2};
        a.groups = groups;
        ir::Value* const w = weights(m_, {out, channels(x) / groups, window, window}, pick(2) - 1, name + ".w");
        std::vector<ir::Value*> in{rounded(x, name + ".x"), w};
        if (pick(2)) {
            std::vector<double> bias;
            for (int64_t k = 0; k < out; ++k)
                bias.push_back(pick(17) - 8);
            in.push_back(m_.constant(name + ".b", {out}, bias));
        }
        ir::Value* y = m_.add(ops::convolution::def(), a, std::move(in), name);
        return pick(2) ? rounded(y, name + ".y") : y;
    }
    ir::Value* sum(ir::Value* x, std::string const& name)
    {
        ir::Value* const other = any();
        if (!(other->shape == x->shape))
            return rounded(x, name);
        ops::elementwise::Attrs const a(ops::elementwise::Operation::kSum);
        return m_.add(ops::elementwise::def(), a, {pick(2) ? rounded(x, name + ".a") : x, other}, name);
    }
    ir::Value* join(ir::Value* x, std::string const& name)
    {
        ir::Value* const other = any();
        if (channels(x) + channels(other) > 16)
            return part(x, name);
        return m_.add(ops::concatenation::def(), ops::concatenation::Attrs(1), {x, other}, name);
    }
    // The first half of the channels; the second one becomes a value too, mostly in other steps.
    ir::Value* part(ir::Value* x, std::string const& name)
    {
        int64_t const half = channels(x) / 2;
        if (half == 0)
            return x;
        auto slice = [&](int64_t begin, int64_t count, std::string const& of) {
            ops::slice::Attrs a;
            a.start = {0, begin, 0, 0};
            a.size = {2, count, 5, 6};
            a.stride = {1, 1, 1, 1};
            return m_.add(ops::slice::def(), a, {x}, of);
        };
        ir::Value* const second = slice(half, channels(x) - half, name + ".second");
        values_.push_back(pick(4) ? rounded(second, name + ".second.q") : second);
        ir::Value* const first = slice(0, half, name + ".first");
        return pick(4) ? rounded(first, name + ".first.q") : first;
    }

    GraphMaker m_;
    std::vector<ir::Value*> values_;
    std::mt19937 random_;
};

} // namespace

TEST(QuantizedRandom, NoBitChanges)
{
    passes::TargetInfo const avx512{passes::TargetInfo::Cpu{.isa = passes::TargetInfo::Isa::kAvx512}},
        avx2{passes::TargetInfo::Cpu{.isa = passes::TargetInfo::Isa::kAvx2}};
    passes::TargetInfo const targets[] = {kGpu, avx512, avx2};
    int integers = 0;
    for (uint32_t seed = 0; seed < 150; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        auto const g = RandomNetwork(seed).make();
        auto const inputs = randomInputs(*g);
        for (int64_t i = 0; i < inputs[0].ref().count(); ++i)
            inputs[0].ref().set(i, std::nearbyint(inputs[0].ref().get(i) * 16) / 16);
        auto const before = interp::run(*g, refsOf(inputs));
        ASSERT_TRUE(before.ok()) << before.error().message;
        for (passes::TargetInfo const& target : targets) {
            auto const lowered = g->clone();
            NullLog log;
            passes::PassContext ctx{{target}, log};
            ctx.permits = {Permission::kInt8};
            auto const done = passes::run(*lowered, ctx, {.verifyEach = true});
            ASSERT_TRUE(done.ok()) << done.error().message;
            auto const after = interp::run(*lowered, refsOf(inputs));
            ASSERT_TRUE(after.ok()) << after.error().message;
            expectSame(refsOf(*after), *before, 0);
            ASSERT_FALSE(HasFailure()) << ir::print(*lowered);
            for (auto const& n : lowered->nodes)
                integers += n->op == &ops::convolution::def() && n->inputs[0]->type == DataType::kInt8;
        }
        // FP16 beside it: all is legal.
        NullLog log;
        passes::PassContext ctx{{kGpu}, log};
        ctx.permits = {Permission::kHalf, Permission::kInt8};
        auto const done = passes::run(*g, ctx, {.verifyEach = true});
        ASSERT_TRUE(done.ok()) << done.error().message;
    }
    EXPECT_GT(integers, 500);
}

} // namespace tw::test
