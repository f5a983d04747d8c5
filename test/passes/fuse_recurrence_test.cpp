// SPDX-License-Identifier: Apache-2.0
#include "cell_spelling.h"

namespace tw::test {

namespace {

Result<bool> fuseAll(ir::Graph& g, passes::PassContext const& ctx)
{
    for (auto const& n : g.nodes)
        for (auto const& r : n->regions)
            TW_TRY(passes::foldConstants(*r, ctx));
    TW_TRY(passes::foldConstants(g, ctx));
    TW_TRY(passes::hoistInvariants(g, ctx));
    TW_ASSIGN(bool const fused, passes::fuseRecurrence(g, ctx));
    TW_ASSIGN(bool const dead, passes::removeDead(g, ctx));
    TW_ASSIGN(bool const folded, passes::foldConstants(g, ctx));
    TW_ASSIGN(bool const again, passes::removeDead(g, ctx));
    return fused || dead || folded || again;
}

// The attributes of the only recurrence; "" where the loop stays, or there is none.
std::string fused(Spelling const& s, bool loopStays = false)
{
    GraphMaker m = NetMaker(s).make();
    checkPass(m.g, fuseAll, true, {.tolerance = 2e-5});
    for (auto const& n : m.g.nodes)
        EXPECT_TRUE(loopStays || n->op != &ops::loop::def()) << nodesOf(m.g);
    return recurrencesOf(m.g);
}

} // namespace

TEST(FuseRecurrence, CellsOfOneProductForEachGate)
{
    EXPECT_EQ(fused({.cell = Cell::kRnn}), "rnn");
    EXPECT_EQ(fused({.cell = Cell::kLstm}), "lstm");
    EXPECT_EQ(fused({.cell = Cell::kGru}), "gru");
    EXPECT_EQ(fused({.cell = Cell::kGru, .resetAfter = true}), "gru after");
}

TEST(FuseRecurrence, OneProductForAllGates)
{
    EXPECT_EQ(fused({.cell = Cell::kLstm, .oneProduct = true}), "lstm");
    EXPECT_EQ(fused({.cell = Cell::kLstm, .oneProduct = true, .joined = true, .transposed = true}), "lstm");
    EXPECT_EQ(fused({.cell = Cell::kGru, .oneProduct = true, .twoBiases = true, .resetAfter = true}), "gru after");
    EXPECT_EQ(fused({.cell = Cell::kGru, .joined = true}), "gru");
}

TEST(FuseRecurrence, ProductsInFrontOfTheLoop)
{
    EXPECT_EQ(fused({.cell = Cell::kLstm, .oneProduct = true, .inFront = true}), "lstm");
    EXPECT_EQ(fused({.cell = Cell::kGru, .twoBiases = true, .resetAfter = true, .inFront = true}), "gru after");
    GraphMaker m = NetMaker({.cell = Cell::kRnn, .inFront = true}).make();
    checkPass(m.g, fuseAll, true);
    for (auto const& n : m.g.nodes) // it reads x itself
        EXPECT_TRUE(n->op != &ops::recurrence::def() || n->inputs[0]->name == "x") << nodesOf(m.g);
}

TEST(FuseRecurrence, OtherFunctionsPeepholesClip)
{
    EXPECT_EQ(fused({.cell = Cell::kLstm, .hard = true}), "lstm functions");
    EXPECT_EQ(fused({.cell = Cell::kLstm, .peepholes = true}), "lstm peepholes");
    EXPECT_EQ(fused({.cell = Cell::kLstm, .coupled = true}), "lstm coupled");
    EXPECT_EQ(fused({.cell = Cell::kLstm, .peepholes = true, .clipped = true}), "lstm clipped peepholes");
    EXPECT_EQ(fused({.cell = Cell::kGru, .resetAfter = true, .swapped = true, .factored = true}), "gru after");
    EXPECT_EQ(fused({.cell = Cell::kGru, .swapped = true, .hard = true}), "gru functions");
}

TEST(FuseRecurrence, DirectionsAxesAndShapes)
{
    EXPECT_EQ(fused({.reverse = true, .stackReverse = true}), "lstm reverse");
    EXPECT_EQ(fused({.reverse = true}), "lstm reverse");
    EXPECT_EQ(fused({.axis = 1, .stackAxis = 1}), "lstm");
    EXPECT_EQ(fused({.flat = 1, .stackAxis = 2}), "lstm");
    EXPECT_EQ(fused({.sequences = 1, .flat = 2, .stackAxis = 1}), "lstm");
    EXPECT_EQ(fused({.captured = true}), "lstm");
}

TEST(FuseRecurrence, WhatElseTheBodyDoesStaysALoop)
{
    EXPECT_EQ(fused({.projected = true}, true), "lstm");
}

TEST(FuseRecurrence, StatesThatStayPastTheLengthOfASequence)
{
    for (int limit : {Spelling::kCarried, Spelling::kIterated, Spelling::kMask})
        for (bool contrary : {false, true})
            for (bool reverse : {false, true}) {
                SCOPED_TRACE(std::to_string(limit) + (contrary ? " contrary" : "") + (reverse ? " reverse" : ""));
                std::string const want = reverse ? "lstm reverse lengths" : "lstm lengths";
                Spelling s{.sequences = 4, .reverse = reverse, .limit = limit, .contrary = contrary};
                EXPECT_EQ(fused(s), want);
                s.zeroed = true;
                EXPECT_EQ(fused(s), want);
            }
    EXPECT_EQ(fused({.cell = Cell::kGru, .flat = 1, .stackAxis = 2, .limit = Spelling::kCarried}), "gru lengths");
    EXPECT_EQ(fused({.cell = Cell::kRnn, .sequences = 1, .flat = 2, .limit = Spelling::kMask}), "rnn lengths");
    EXPECT_EQ(fused({.projected = true, .limit = Spelling::kCarried}, true), "lstm lengths");
}

TEST(FuseRecurrence, RandomSpellings)
{
    for (unsigned seed = 0; seed < 300; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 rng(seed);
        Spelling const s = randomSpelling(rng);
        EXPECT_NE(fused(s, s.projected), "");
        if (HasFailure())
            break;
    }
}

} // namespace tw::test
