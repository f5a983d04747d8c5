// SPDX-License-Identifier: Apache-2.0
// Random networks, profiles and orders of calls against engines that are built anew for each shape.
#include <algorithm>
#include <cstdlib>
#include <random>

#include "engine/engines.h"

using namespace tw::test;

namespace {

constexpr int kWidth = 8; // of the last dimension, which is never dynamic
constexpr int kLeast = 3; // rows that some of the networks need
constexpr int kMost = 12; // and that some take

// Sizes of one run: a [n,l,8], b [n or 1,l,8], and the shape tensor's values.
struct Sizes
{
    int32_t n = 1, l = 1;
    Shape corner; // of the output
};

// The same network for a seed, whatever the shapes: static ones for a run, or dynamic ones (-1).
struct Program
{
    explicit Program(uint32_t s) : seed(s)
    {
        Random r(seed);
        isBatchShared = r.flip();
        hasNames = r.flip();
        isBatchDynamic = r.upTo(3) != 0;
        isLengthDynamic = !isBatchDynamic || r.flip();
        hasCorner = r.upTo(2) == 0;
        needsRows = r.upTo(2) == 0;
        hasTable = r.upTo(2) == 0;
        n = r.between(1, 4);
        l = r.between(kLeast, 9);
        for (float w : ramp(kWidth * kWidth, -30))
            weights.push_back(w / 64);
    }
    uint32_t seed;
    bool isBatchShared, hasNames, isBatchDynamic, isLengthDynamic, hasCorner, needsRows, hasTable;
    int n, l; // of what is not dynamic
    bool takes(int rows) const { return (!needsRows || rows >= kLeast) && (!hasTable || rows <= kMost); }
    std::vector<float> weights, table = ramp(kMost * kWidth, -20);
    int32_t ones[2] = {1, kWidth};

    void define(Maker& m, Sizes const* run)
    {
        int const batch = run ? run->n : isBatchDynamic ? -1 : n, length = run ? run->l : isLengthDynamic ? -1 : l;
        ITensor* a = m.input("a", {batch, length, kWidth});
        ITensor* b = m.input("b", {isBatchShared ? 1 : batch, length, kWidth});
        if (hasNames) {
            a->setDimensionName(1, "length");
            b->setDimensionName(1, "length");
        }
        ITensor* x = a;
        Random r(seed + 1);
        for (int left = r.between(2, 6); left > 0; --left)
            x = step(m, r, x, b);
        if (needsRows)
            x = m.add(x, slice(m, x, {0, kLeast - 1, 0}, {1, 1, kWidth}));
        if (hasTable)
            x = m.add(x, rowsOfTable(m, x));
        if (hasCorner) {
            ISliceLayer* s = m.network->addSlice(*x, Dims3(0, 0, 0), Dims3(1, 1, 1), Dims3(1, 1, 1));
            if (run)
                s->setSize(dims(run->corner));
            else
                s->setInput(2, *m.input("s", {3}, DataType::kINT32));
            x = s->getOutput(0);
        }
        m.output(m.relu(x), "y");
    }

private:
    static ITensor* slice(Maker& m, ITensor* x, Shape const& start, Shape const& size)
    {
        return m.network->addSlice(*x, dims(start), dims(size), Dims3(1, 1, 1))->getOutput(0);
    }
    // As many rows of a constant as x has.
    ITensor* rowsOfTable(Maker& m, ITensor* x)
    {
        auto number = [&](int i) {
            return m.network->addConstant(dims({1}), {DataType::kINT32, &ones[i], 1})->getOutput(0);
        };
        ITensor* shape = m.network->addShape(*x)->getOutput(0);
        ITensor* sizes[] = {number(0), m.network->addSlice(*shape, dims({1}), dims({1}), dims({1}))->getOutput(0),
                            number(1)};
        ITensor* all =
            m.network->addConstant(Dims3(1, kMost, kWidth), {DataType::kFLOAT, table.data(), int64_t(table.size())})
                ->getOutput(0);
        ISliceLayer* s = m.network->addSlice(*all, Dims3(0, 0, 0), Dims3(1, 1, 1), Dims3(1, 1, 1));
        s->setInput(2, *m.network->addConcatenation(sizes, 3)->getOutput(0));
        return s->getOutput(0);
    }
    ITensor* step(Maker& m, Random& r, ITensor* x, ITensor* b)
    {
        switch (r.upTo(7)) {
        case 0:
            return m.add(x, b);
        case 1: {
            ISoftMaxLayer* s = m.network->addSoftMax(*x);
            s->setAxes(1U << r.between(0, 2));
            return s->getOutput(0);
        }
        case 2: {
            ITensor* w =
                m.network->addConstant(Dims3(1, kWidth, kWidth), {DataType::kFLOAT, weights.data(), 64})->getOutput(0);
            return m.network->addMatrixMultiply(*x, MatrixOperation::kNONE, *w, MatrixOperation::kNONE)->getOutput(0);
        }
        case 3: { // there and back
            IShuffleLayer* s = m.network->addShuffle(*x);
            s->setReshapeDimensions(dims({0, -1, 2, 4}));
            IShuffleLayer* t = m.network->addShuffle(*m.relu(s->getOutput(0)));
            t->setReshapeDimensions(dims({0, 0, kWidth}));
            return t->getOutput(0);
        }
        case 4:
            return m.add(x, m.network->addReduce(*x, ReduceOperation::kAVG, 1U << r.between(0, 1), true)->getOutput(0));
        case 5: { // turned twice, with something between
            IShuffleLayer* s = m.network->addShuffle(*x);
            s->setFirstTranspose(Permutation{1, 0, 2});
            IShuffleLayer* t = m.network->addShuffle(*m.network->addSoftMax(*s->getOutput(0))->getOutput(0));
            t->setFirstTranspose(Permutation{1, 0, 2});
            return t->getOutput(0);
        }
        case 6: { // the front half of two copies, by a computed size
            ITensor* both[] = {x, m.relu(x)};
            IConcatenationLayer* c = m.network->addConcatenation(both, 2);
            c->setAxis(1);
            ISliceLayer* s = m.network->addSlice(*c->getOutput(0), Dims3(0, 0, 0), Dims3(1, 1, 1), Dims3(1, 2, 1));
            s->setInput(2, *m.network->addShape(*x)->getOutput(0));
            return s->getOutput(0);
        }
        default: {
            IShuffleLayer* flat = m.network->addShuffle(*x);
            flat->setReshapeDimensions(Dims2(-1, kWidth));
            IShuffleLayer* back = m.network->addShuffle(*m.relu(flat->getOutput(0)));
            back->setInput(1, *m.network->addShape(*x)->getOutput(0));
            return m.add(x, back->getOutput(0));
        }
        }
    }
};

// What one profile allows.
struct Allowed
{
    int min[2], opt[2], max[2]; // n, l
    int corner[3] = {1, 1, kWidth};
    int of(int d, bool isBatch) const
    {
        return isBatch ? (d == 0 ? min : d == 1 ? opt : max)[0] : (d == 0 ? min : d == 1 ? opt : max)[1];
    }
};

struct Round
{
    Program program;
    Random r;
    Maker m;
    std::vector<Allowed> profiles;
    std::unique_ptr<ICudaEngine> engine;
    int runs = 0, refusals = 0;

    explicit Round(uint32_t seed) : program(seed), r(seed + 2) {}

    void choose()
    {
        for (int left = r.between(1, 3); left > 0; --left) {
            Allowed a{};
            for (int d : {0, 1}) {
                bool const isDynamic = d == 0 ? program.isBatchDynamic : program.isLengthDynamic;
                int const fixed = d == 0 ? program.n : program.l;
                int const least = d == 1 && program.needsRows ? kLeast : 1;
                a.opt[d] = isDynamic ? r.between(least, 7) : fixed;
                bool const isFixed = !isDynamic || r.upTo(2) == 0;
                a.min[d] = isFixed ? a.opt[d] : r.flip() ? 1 : r.between(1, a.opt[d]);
                a.max[d] = isFixed ? a.opt[d] : a.opt[d] + r.upTo(r.upTo(3) == 0 ? 60 : 5);
            }
            profiles.push_back(a);
        }
    }
    void build()
    {
        choose();
        program.define(m, nullptr);
        for (Allowed const& a : profiles) {
            auto shape = [&](int which, bool shared) {
                return Shape{shared ? 1 : a.of(which, true), a.of(which, false), kWidth};
            };
            bool const shared = program.isBatchShared;
            std::vector<Maker::Range> values;
            if (program.hasCorner) // kMAX goes beyond what smaller runs have
                values.push_back({"s", {1, 1, 1}, {1, a.opt[1], 4}, {a.max[0], a.max[1], kWidth}});
            m.profile({{"a", shape(0, false), shape(1, false), shape(2, false)},
                       {"b", shape(0, shared), shape(1, shared), shape(2, shared)}},
                      values);
        }
        engine = m.engine();
        ASSERT_TRUE(engine) << m.errors();
        ASSERT_EQ(m.errors(), "");
        int const count = engine->getNbIOTensors();
        for (size_t p = 0; p < profiles.size(); ++p) {
            Allowed const& a = profiles[p];
            auto seen = [&](int d) { return a.min[d] == a.max[d] ? a.min[d] : -1; };
            ASSERT_EQ(list(engine->getBindingDimensions(int(p) * count)), (Shape{seen(0), seen(1), kWidth}));
            Shape const y = list(engine->getBindingDimensions(int(p) * count + count - 1));
            if (!program.hasCorner) {
                ASSERT_EQ(y, (Shape{seen(0), seen(1), kWidth}));
            }
        }
    }
    Sizes sizesOf(Allowed const& a)
    {
        Sizes s{r.between(a.min[0], a.max[0]), r.between(a.min[1], a.max[1]), {}};
        if (r.upTo(3) == 0)
            s.l = r.flip() ? a.min[1] : a.max[1];
        s.corner = {r.between(1, s.n), r.between(1, s.l), r.between(1, kWidth)};
        return s;
    }
    static std::vector<float> numbers(size_t count, uint32_t seed)
    {
        std::mt19937 g(seed);
        std::vector<float> v(count);
        for (float& f : v)
            f = float(int(g() % 2001) - 1000) / 500;
        return v;
    }
    // What a static engine gives; empty when it cannot be built.
    std::vector<float> expected(Sizes const& s, std::vector<float>& a, std::vector<float>& b, Shape& shape)
    {
        Program again(program.seed); // holds the weights while the engine is built
        Maker fresh;
        again.define(fresh, &s);
        auto const e = fresh.engine();
        if (!e)
            return {};
        shape = list(e->getTensorShape("y"));
        std::vector<float> y(size_t(shape[0]) * size_t(shape[1]) * size_t(shape[2]));
        Context c = contextOf(*e);
        void* bindings[] = {a.data(), b.data(), y.data()};
        EXPECT_TRUE(c->executeV2(bindings)) << fresh.errors();
        return y;
    }
    void run(IExecutionContext& c)
    {
        int const p = c.getOptimizationProfile();
        Allowed const& allowed = profiles[size_t(p)];
        bool const isFixed = allowed.min[0] == allowed.max[0] && allowed.min[1] == allowed.max[1];
        Sizes const s = sizesOf(allowed);
        int const batchOfB = program.isBatchShared ? 1 : s.n;
        if (!(isFixed && r.flip())) { // in either order
            bool const first = r.flip();
            for (bool isA : {first, !first})
                ASSERT_TRUE(isA ? c.setInputShape("a", Dims3(s.n, s.l, kWidth))
                                : c.setInputShape("b", Dims3(batchOfB, s.l, kWidth)))
                    << m.errors();
        }
        ASSERT_TRUE(c.allInputDimensionsSpecified());
        std::vector<float> a = numbers(size_t(s.n * s.l * kWidth), 1), b = numbers(size_t(batchOfB * s.l * kWidth), 2);
        Shape shape;
        std::vector<float> const want = expected(s, a, b, shape);
        std::vector<float> y(std::max<size_t>(want.size(), 4096) + 1, -7);
        Shape corner = s.corner;
        bool done = false;
        if (r.flip()) {
            c.setTensorAddress("a", a.data());
            c.setTensorAddress("b", b.data());
            if (program.hasCorner)
                c.setTensorAddress("s", corner.data());
            c.setTensorAddress("y", y.data());
            done = c.enqueueV3(nullptr);
        } else {
            size_t const count = size_t(engine->getNbIOTensors()), base = count * size_t(p);
            std::vector<void*> bindings(count * profiles.size(), nullptr);
            bindings[base] = a.data();
            bindings[base + 1] = b.data();
            bindings[base + count - 1] = y.data();
            if (program.hasCorner) {
                bindings[base + 2] = corner.data();
                c.setTensorAddress("s", nullptr);
                ASSERT_TRUE(c.setInputShapeBinding(int(base) + 2, corner.data())) << m.errors();
            }
            done = c.executeV2(bindings.data());
        }
        if (want.empty()) {
            ASSERT_FALSE(done);
            ASSERT_FALSE(program.takes(s.l)) << m.errors();
            m.takeErrors();
            ++refusals;
            return;
        }
        ASSERT_TRUE(done && program.takes(s.l)) << m.errors();
        ++runs;
        ASSERT_EQ(list(c.getTensorShape("y")), shape);
        for (size_t i = 0; i < want.size(); ++i)
            ASSERT_NEAR(y[i], want[i], 1e-4 * std::max(1.0F, std::abs(want[i]))) << i;
        ASSERT_EQ(y[want.size()], -7);
    }
    void play()
    {
        ASSERT_NO_FATAL_FAILURE(build());
        std::vector<Context> contexts;
        contexts.push_back(contextOf(*engine));
        if (profiles.size() > 1) {
            contexts.push_back(contextOf(*engine));
            if (contexts[1]->getOptimizationProfile() < 0) {
                ASSERT_TRUE(contexts[1]->setOptimizationProfileAsync(1, nullptr)) << m.errors();
            }
        }
        for (int left = 5; left > 0; --left) {
            IExecutionContext& c = *contexts[size_t(r.upTo(int(contexts.size()) - 1))];
            if (profiles.size() > 2 && r.flip()) { // the one that neither has
                for (int p = 0; p < 3; ++p)
                    if (std::none_of(contexts.begin(), contexts.end(),
                                     [&](Context const& other) { return other->getOptimizationProfile() == p; })) {
                        ASSERT_TRUE(c.setOptimizationProfileAsync(p, nullptr)) << m.errors();
                        break;
                    }
            }
            ASSERT_NO_FATAL_FAILURE(run(c));
        }
    }
};

// TW_RANDOM_ROUNDS=<rounds> and TW_RANDOM_SEED=<first seed> look further.
int numberOf(char const* variable, int otherwise)
{
    char const* const text = std::getenv(variable);
    return text ? std::atoi(text) : otherwise;
}

TEST(RandomProfiles, AgreeWithStaticEngines)
{
    int const first = numberOf("TW_RANDOM_SEED", 1), rounds = numberOf("TW_RANDOM_ROUNDS", 25);
    int runs = 0, refusals = 0;
    for (int seed = first; seed < first + rounds; ++seed) {
        Round round{uint32_t(seed)};
        round.play();
        runs += round.runs;
        refusals += round.refusals;
        ASSERT_FALSE(HasFatalFailure()) << "TW_RANDOM_SEED=" << seed << " TW_RANDOM_ROUNDS=1";
    }
    EXPECT_GT(runs, 2 * rounds);
    EXPECT_TRUE(rounds < 25 || refusals > 0);
}

} // namespace
