// SPDX-License-Identifier: Apache-2.0
// Random networks of loops and conditionals in one another, against a direct evaluation of the same programs.
#include <algorithm>
#include <random>

#include "api/control_flow.h"

namespace tw::test {

namespace {

using Vector = std::vector<double>; // all values are [kWidth], integers in [-kMost, kMost]
constexpr int kWidth = 2;
constexpr double kMost = 100;
constexpr int kRows = 3; // of the matrix that loops iterate over

struct Block;
struct Statement
{
    enum Kind
    {
        kSum,
        kDifference,
        kLarger,
        kIf,   // args[0] decides
        kLoop, // args: initial values; how often: `count`, or as long as a number below it is under args' sum
    } kind = kSum;
    std::vector<size_t> args; // numbers of values in scope
    int count = 0;
    bool isWhile = false, reversed = false;
    bool entersByInput[2] = {true, true}; // of branches: through input layers
    std::vector<Block> blocks;            // then and else, or the body
};
// Values of the block: those around it, those it is given, one or more for each statement.
struct Block
{
    std::vector<Statement> statements;
    std::vector<size_t> results;
};

// ---- programs

struct Generator
{
    std::mt19937 random;
    int budget = 30; // statements

    int from(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }
    size_t pick(size_t count) { return size_t(from(0, int(count) - 1)); }

    Block block(size_t inScope, size_t results, int depth)
    {
        Block b;
        for (int n = from(1, 4); n > 0 && budget > 0; --n, --budget) {
            int const kind = from(0, 5);
            Statement s;
            if (depth < 3 && kind >= 4)
                s = kind == 4 ? conditional(inScope, depth) : loop(inScope, depth);
            else
                s.kind = Statement::Kind(kind % 3), s.args = {pick(inScope), pick(inScope)};
            inScope += valuesOf(s);
            b.statements.push_back(std::move(s));
        }
        for (size_t i = 0; i < results; ++i)
            b.results.push_back(from(0, 2) ? inScope - 1 - pick(std::min<size_t>(inScope, 3)) : pick(inScope));
        return b;
    }
    Statement conditional(size_t inScope, int depth)
    {
        Statement s;
        s.kind = Statement::kIf;
        s.args = {pick(inScope)};
        s.count = from(1, 2);
        for (bool& enters : s.entersByInput) {
            enters = from(0, 3) > 0;
            s.blocks.push_back(block(inScope, size_t(s.count), depth + 1));
        }
        return s;
    }
    Statement loop(size_t inScope, int depth)
    {
        Statement s;
        s.kind = Statement::kLoop;
        s.count = from(0, kRows);
        s.isWhile = from(0, 2) == 0;
        s.reversed = from(0, 1);
        for (int n = from(1, 2); n > 0; --n)
            s.args.push_back(pick(inScope));
        // In the body: carried values, a row; it gives the next values and one to stack.
        s.blocks.push_back(block(inScope + s.args.size() + 1, s.args.size() + 1, depth + 1));
        return s;
    }
    static size_t valuesOf(Statement const& s)
    {
        return s.kind == Statement::kIf ? size_t(s.count) : s.kind == Statement::kLoop ? s.args.size() + 1 : 1;
    }
};

// ---- direct evaluation

Vector clipped(Vector v)
{
    for (double& x : v)
        x = std::clamp(x, -kMost, kMost);
    return v;
}
Vector combine(Statement::Kind kind, Vector const& a, Vector const& b)
{
    Vector v;
    for (size_t i = 0; i < a.size(); ++i)
        v.push_back(kind == Statement::kSum      ? a[i] + b[i]
                    : kind == Statement::kLarger ? std::max(a[i], b[i])
                                                 : a[i] - b[i]);
    return clipped(v);
}
double total(Vector const& v)
{
    double t = 0;
    for (double x : v)
        t += x;
    return t;
}

std::vector<Vector> evaluate(Block const& b, std::vector<Vector> scope, std::vector<Vector> const& rows)
{
    for (Statement const& s : b.statements) {
        if (s.kind == Statement::kIf) {
            for (Vector& v : evaluate(s.blocks[total(scope[s.args[0]]) < 0 ? 0 : 1], scope, rows))
                scope.push_back(v);
        } else if (s.kind == Statement::kLoop) {
            std::vector<Vector> carried;
            for (size_t a : s.args)
                carried.push_back(scope[a]);
            Vector stacked(kWidth, 0.0);
            for (int i = 0; i < s.count && (!s.isWhile || total(carried[0]) < 50); ++i) {
                std::vector<Vector> inner = scope;
                inner.insert(inner.end(), carried.begin(), carried.end());
                inner.push_back(rows[size_t(s.reversed ? kRows - 1 - i : i)]);
                carried = evaluate(s.blocks[0], inner, rows);
                for (size_t k = 0; k < kWidth; ++k) // the first counts once, the second twice, ...
                    stacked[k] += (i + 1) * carried.back()[k];
                carried.pop_back();
            }
            scope.insert(scope.end(), carried.begin(), carried.end());
            scope.push_back(clipped(stacked));
        } else {
            scope.push_back(combine(s.kind, scope[s.args[0]], scope[s.args[1]]));
        }
    }
    std::vector<Vector> out;
    for (size_t r : b.results)
        out.push_back(scope[r]);
    return out;
}

// ---- the same as a network

struct Emitter
{
    ControlFlow& t;
    ITensor* rows;

    ITensor* clip(ITensor* x)
    {
        auto* l = t.net.addActivation(*x, ActivationType::kCLIP);
        l->setAlpha(float(-kMost));
        l->setBeta(float(kMost));
        return l->getOutput(0);
    }
    ITensor* totalOf(ITensor* x) { return t.net.addReduce(*x, ReduceOperation::kSUM, 1, false)->getOutput(0); }

    std::vector<ITensor*> emit(Block const& b, std::vector<ITensor*> scope)
    {
        for (Statement const& s : b.statements) {
            std::vector<ITensor*> const made = s.kind == Statement::kIf     ? emitIf(s, scope)
                                               : s.kind == Statement::kLoop ? emitLoop(s, scope)
                                                                            : emitPlain(s, scope);
            scope.insert(scope.end(), made.begin(), made.end());
        }
        std::vector<ITensor*> out;
        for (size_t r : b.results)
            out.push_back(scope[r]);
        return out;
    }
    std::vector<ITensor*> emitPlain(Statement const& s, std::vector<ITensor*> const& scope)
    {
        ElementWiseOperation const ops[] = {ElementWiseOperation::kSUM, ElementWiseOperation::kSUB,
                                            ElementWiseOperation::kMAX};
        return {clip(t.op(ops[s.kind], scope[s.args[0]], scope[s.args[1]]))};
    }
    std::vector<ITensor*> emitIf(Statement const& s, std::vector<ITensor*> const& scope)
    {
        IIfConditional* made = t.net.addIfConditional();
        made->setCondition(*t.less(totalOf(scope[s.args[0]]), t.floats({}, {0})));
        std::vector<ITensor*> results[2];
        for (size_t branch = 0; branch < 2; ++branch) {
            std::vector<ITensor*> inner = scope;
            if (s.entersByInput[branch])
                for (ITensor*& x : inner)
                    x = made->addInput(*x)->getOutput(0);
            results[branch] = emit(s.blocks[branch], inner);
        }
        std::vector<ITensor*> out;
        for (size_t i = 0; i < results[0].size(); ++i)
            out.push_back(made->addOutput(*results[0][i], *results[1][i])->getOutput(0));
        return out;
    }
    std::vector<ITensor*> emitLoop(Statement const& s, std::vector<ITensor*> const& scope)
    {
        ILoop* loop = t.counted(t.integer(s.count));
        std::vector<ITensor*> inner = scope;
        std::vector<IRecurrenceLayer*> carried;
        for (size_t a : s.args) {
            carried.push_back(loop->addRecurrence(*scope[a]));
            inner.push_back(carried.back()->getOutput(0));
        }
        if (s.isWhile)
            loop->addTripLimit(*t.less(totalOf(carried[0]->getOutput(0)), t.floats({}, {50})), TripLimit::kWHILE);
        inner.push_back(loop->addIterator(*rows, 0, s.reversed)->getOutput(0));
        auto const next = emit(s.blocks[0], inner);
        std::vector<ITensor*> out;
        for (size_t i = 0; i < carried.size(); ++i) {
            carried[i]->setInput(1, *next[i]);
            out.push_back(t.last(loop, carried[i]->getOutput(0)));
        }
        ITensor* stacked = t.stack(loop, next.back(), t.integer(kRows), LoopOutput::kCONCATENATE, 1); // [kWidth, kRows]
        std::vector<float> weights;
        for (int k = 0; k < kWidth * kRows; ++k)
            weights.push_back(float(k % kRows + 1));
        ITensor* weighted = t.product(stacked, t.floats({kWidth, kRows}, weights));
        out.push_back(clip(t.net.addReduce(*weighted, ReduceOperation::kSUM, 2, false)->getOutput(0)));
        return out;
    }
};

} // namespace

using RandomNests = ControlFlow;

TEST_F(RandomNests, GiveWhatTheProgramGives)
{
    unsigned const seed = std::random_device()();
    constexpr int kNetworks = 60, kEngines = 8; // the first of them as engines, too
    for (int n = 0; n < kNetworks && !HasFailure(); ++n) {
        SCOPED_TRACE("seed " + std::to_string(seed) + ", network " + std::to_string(n));
        struct Here : ControlFlow
        {
            void TestBody() override {}
        } t;
        Generator g{std::mt19937(seed + unsigned(n))};
        Block const program = g.block(2, 3, 0);
        ITensor *x = t.input("x", {kWidth}), *y = t.input("y", {kWidth}), *rows = t.input("rows", {kRows, kWidth});
        auto const out = Emitter{t, rows}.emit(program, {x, y});
        for (size_t i = 0; i < out.size(); ++i) { // outputs may be inputs, or one another
            ITensor* copy = t.net.addIdentity(*out[i])->getOutput(0);
            t.output(copy, ("z" + std::to_string(i)).c_str());
        }
        for (int run = 0; run < 3; ++run) {
            auto draw = [&] { return double(g.from(-9, 9)); };
            Vector vx{draw(), draw()}, vy{draw(), draw()};
            std::vector<Vector> matrix;
            Numbers in{{kRows, kWidth}, {}};
            for (int r = 0; r < kRows; ++r) {
                matrix.push_back({draw(), draw()});
                in.values.insert(in.values.end(), matrix.back().begin(), matrix.back().end());
            }
            // -0 and 0 are one number.
            std::vector<Numbers> expected;
            for (Vector const& v : evaluate(program, {vx, vy}, matrix))
                expected.push_back({{kWidth}, v});
            std::vector<Numbers> const inputs{{{kWidth}, vx}, {{kWidth}, vy}, in};
            EXPECT_EQ(t.interpret(inputs), expected) << t.problem;
            if (n >= kEngines)
                continue;
            if (!t.engine_)
                t.engine_ = t.build();
            EXPECT_EQ(t.execute(t.engine_.get(), inputs), expected) << t.errors();
        }
    }
}

} // namespace tw::test
