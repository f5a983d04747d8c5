// SPDX-License-Identifier: Apache-2.0
// How far a build says it is: never past its end, whatever is tried in how many attempts.
#include <cstdio>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "builder/build.h"
#include "ops/convolution/op.h"
#include "support/graph_maker.h"

namespace tw::test {

namespace {

struct Lines final : Log
{
    void write(Severity, std::string const& message) override { list.push_back(message); }
    std::vector<std::string> list;
};

TEST(Progress, NeverTellsOfMoreLayersThanThereAre)
{
    // Convolutions have formats of their own, so that several graphs are tried, with reformats and without.
    GraphMaker m;
    ir::Value* x = m.input("x", ir::shapeOf({1, 16, 12, 12}));
    for (int i = 0; i < 3; ++i) {
        std::string const n = std::to_string(i);
        x = m.add(ops::convolution::def(), ops::convolution::Attrs::plain(2),
                  {x, m.constant("w" + n, {16, 16, 3, 3}), m.constant("b" + n, {16})}, "layer " + n);
    }
    m.output(x, "y");
    plan::Contents c;
    c.graph = m.take();
    c.io.resize(2);
    c.io[0].name = "x";
    c.io[0].isInput = true;
    c.io[1].name = "y";
    Lines log;
    builder::Options options;
    options.fingerprint = "test";
    options.progressSeconds = 0;
    options.shareTimings = false; // each is timed
    options.log = &log;
    auto const built = builder::build(c, options);
    ASSERT_TRUE(built.ok()) << built.error().message;
    int told = 0, last = 0;
    for (std::string const& line : log.list) {
        int done = 0, total = 0;
        if (std::sscanf(line.c_str(), "Building: %d of %d layers done", &done, &total) != 2)
            continue;
        ++told;
        EXPECT_LE(done, total) << line;
        last = done == total ? told : last;
    }
    EXPECT_GE(told, 3);
    EXPECT_GT(last, 0) << "the end is told of";
}

} // namespace

} // namespace tw::test
