// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>

#include "ops/reduce/op.h"
#include "ops/shuffle/op.h"
#include "pass_test.h"

namespace tw::test {

namespace {

// Random factors of the elements in `e` put together as other dimensions.
std::vector<int64_t> regrouped(std::mt19937& random, Extents const& e)
{
    std::vector<int64_t> dims{1};
    for (int i = 0; i < e.rank; ++i) {
        int64_t left = e[i];
        for (int64_t f : {2, 3, 5})
            while (left % f == 0) {
                left /= f;
                if (random() % 2 && dims.size() < 6)
                    dims.push_back(1);
                dims.back() *= f;
            }
    }
    return dims;
}

} // namespace

// Any transposition or reshape, any axes: the numbers stay, and the reduction reads x itself where it changed.
TEST(FuseShuffleReduce, RandomShapes)
{
    std::mt19937 random(7);
    int changes[2] = {0, 0};
    for (int i = 0; i < 400; ++i) {
        SCOPED_TRACE("case " + std::to_string(i));
        GraphMaker m;
        Extents e;
        int const rank = int(random() % 4) + 1;
        constexpr int64_t kSizes[] = {1, 2, 3, 4, 6, 10};
        for (int d = 0; d < rank; ++d)
            e.push(kSizes[random() % 6]);
        ops::shuffle::Attrs s;
        bool const reshapes = random() % 2;
        if (reshapes) {
            s.hasReshape = true;
            s.reshape = regrouped(random, e);
        } else {
            for (int d = 0; d < rank; ++d)
                s.firstTranspose.push_back(d);
            std::shuffle(s.firstTranspose.begin(), s.firstTranspose.end(), random);
        }
        size_t const behind = reshapes ? s.reshape.size() : size_t(rank);
        ops::reduce::Attrs r;
        r.kind = ops::reduce::Kind(random() % 5);
        r.axes = int64_t(random() % ((1u << behind) - 1)) + 1;
        r.keepDims = random() % 2;
        ir::Shape shape;
        for (int d = 0; d < rank; ++d)
            shape.emplace_back(e[d]);
        ir::Value* x = m.input("x", shape);
        x = m.add(ops::shuffle::def(), s, {x}, "s");
        m.output(m.add(ops::reduce::def(), r, {x}, "r"), "y");

        auto const inputs = randomInputs(m.g, {});
        auto before = interp::run(m.g, refsOf(inputs));
        NullLog log;
        passes::TargetInfo const target;
        auto changed = passes::fuseShuffleReduce(m.g, {{target}, log});
        ASSERT_TRUE(changed.ok()) << changed.error().message;
        ASSERT_TRUE(ir::verify(m.g).ok());
        auto after = interp::run(m.g, refsOf(inputs));
        ASSERT_TRUE(before.ok() && after.ok());
        expectSame(refsOf(*after), *before, 1e-5);
        EXPECT_TRUE(!*changed || m.g.nodes[0]->op == &ops::reduce::def());
        changes[reshapes] += *changed;
    }
    EXPECT_GT(changes[0], 100);
    EXPECT_GT(changes[1], 50);
}

} // namespace tw::test
