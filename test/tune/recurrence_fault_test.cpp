// SPDX-License-Identifier: Apache-2.0
// Layers of recurrent cells that are wrong in one row (sequence) or one step are refused, where the reference computes
// every row and where it computes three and the others repeat them.
#include <gtest/gtest.h>

#include "ops/recurrence/op.h"
#include "support/case_problem.h"
#include "tactic/registry.h"
#include "tune/alike_rows.h"
#include "tune/check.h"

namespace tw::test {

namespace {

using namespace ops::recurrence;

// What the op's best kernel makes, with inputs changed in front of it or outputs behind it.
struct CellFault
{
    std::string name;
    std::function<void(std::vector<Tensor>& inputs)> before;
    std::function<void(std::span<TensorRef> outputs)> behind;
};

class Faulty final : public ops::Kernel
{
public:
    Faulty(ops::Kernel const& right, CellFault const& fault) : right_(right), fault_(fault) {}
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
    {
        return right_.workspaceBytes(in, out);
    }
    Result<std::shared_ptr<ops::Prepared const>> prepare(std::span<TensorRef const> in,
                                                         std::span<TensorRef const> out) const override
    {
        return right_.prepare(in, out);
    }
    Result<void> run(ops::RunArgs& args) const override
    {
        std::vector<Tensor> inputs;
        std::vector<TensorRef> refs;
        for (TensorRef const& t : args.inputs) {
            inputs.emplace_back(t.type, t.data ? t.dims : Extents{0});
            if (t.data)
                std::memcpy(inputs.back().data(), t.data, size_t(t.sizeBytes()));
            refs.push_back(t.data ? inputs.back().ref() : t);
        }
        if (fault_.before)
            fault_.before(inputs);
        ops::RunArgs changed = {refs, args.outputs, args.workspace, args.randomState, args.workers};
        changed.prepared = args.prepared;
        TW_TRY(right_.run(changed));
        if (fault_.behind)
            fault_.behind(args.outputs);
        return {};
    }

private:
    ops::Kernel const& right_;
    CellFault const& fault_;
};

constexpr int64_t kSteps = 20, kRows = 13;

struct Size
{
    char const* name;
    int64_t hidden;
    bool isAlike; // so large that rows repeat others
};
constexpr Size kSizes[] = {{"few operations", 24, false}, {"many", 160, true}};

ops::CaseList layerOf(Cell cell, Size const& size)
{
    Attrs a;
    a.cell = cell;
    a.direction = Direction::kBoth;
    a.hidden = size.hidden;
    int64_t const h = size.hidden, g = gatesOf(cell) * h;
    auto weights = [](Extents const& dims) { return ops::constant(DataType::kFloat, dims); };
    ops::CaseList list;
    list.add(size.name, a,
             {ops::f32({kSteps, kRows, h}), weights({2, g, h}), weights({2, g, h}), weights({2, 2 * g}),
              ops::input(DataType::kInt32, {kRows}), ops::f32({2, kRows, h})});
    return list;
}

// Every row and every step once, and each of the outputs.
std::vector<CellFault> faultsOf(int64_t h)
{
    std::vector<CellFault> out;
    for (int64_t n = 0; n < kRows; ++n) {
        out.push_back({"row " + std::to_string(n) + " begins with its neighbour's state",
                       [=](std::vector<Tensor>& in) {
                           float* const h0 = in[kH0].ref().as<float>();
                           std::copy_n(h0 + (n + 1) % kRows * h, h, h0 + n * h);
                       },
                       {}});
        out.push_back({"row " + std::to_string(n) + " has another's length",
                       [=](std::vector<Tensor>& in) {
                           auto* const lengths = in[kLengths].ref().as<int32_t>();
                           lengths[n] = lengths[n] > 10 ? lengths[n] - 1 : lengths[n] + 1;
                       },
                       {}});
        out.push_back({"last hidden unit of the state of row " + std::to_string(n), {}, [=](std::span<TensorRef> y) {
                           y[1].as<float>()[(kRows + n) * h + h - 1] += 0.01F;
                       }});
    }
    for (int64_t t = 0; t < kSteps; ++t)
        out.push_back({"one unit in step " + std::to_string(t), {}, [=](std::span<TensorRef> y) {
                           y[0].as<float>()[(t * kRows + t % kRows) * 2 * h + 7 * t % (2 * h)] += 0.5F;
                       }});
    return out;
}

void plant(Cell cell, Size const& size)
{
    SCOPED_TRACE(size.name);
    auto const list = layerOf(cell, size);
    auto g = makeCase(*ops::find("recurrence"), list.cases[0]);
    ASSERT_TRUE(g.ok()) << g.error().message;
    auto problem = caseProblem(**g);
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    std::unique_ptr<ops::Kernel> kernel;
    for (ops::Tactic const* t : cpuTactics)
        if (!kernel && t->supports(*problem).ok) {
            auto loaded = t->load(*problem, t->configs(*problem).front(), {});
            ASSERT_TRUE(loaded.ok()) << loaded.error().message;
            kernel = std::move(*loaded);
        }
    std::vector<TensorRef> outputs;
    for (ops::TensorSpec const& t : problem->outputs)
        outputs.push_back({t.type, t.dims, nullptr});
    std::vector<Tensor> storage;
    for (TensorRef& t : outputs) {
        storage.emplace_back(t.type, t.dims);
        t = storage.back().ref();
    }
    EXPECT_EQ(
        tune::AlikeRows::of(*(*g)->node, (*g)->nodeInputs, outputs, std::vector<bool>(size_t(kInputs)), 1).has_value(),
        size.isAlike);
    tune::Checker checker(*problem);
    auto check = [&](CellFault const& f) {
        return checker.check(*problem, Faulty(*kernel, f), "test_faulty", serialWorkers());
    };
    auto const right = check({"none", {}, {}});
    ASSERT_TRUE(right.ok()) << right.error().message;
    ASSERT_TRUE(right->isRight()) << right->incomparable << right->differs;
    auto const faults = faultsOf(size.hidden);
    EXPECT_EQ(faults.size(), size_t(3 * kRows + kSteps));
    for (CellFault const& f : faults)
        EXPECT_FALSE(check(f).ok()) << f.name;
}

} // namespace

TEST(RecurrenceFault, OneRowOrStepIsRefused)
{
    for (Cell cell : {Cell::kLstm, Cell::kGru})
        for (Size const& size : kSizes)
            plant(cell, size);
}

// Initial states that the network holds cannot be overwritten: rows that differ are all computed.
TEST(RecurrenceFault, ConstantStatesAreKept)
{
    auto list = layerOf(Cell::kLstm, kSizes[1]);
    for (bool differ : {false, true}) {
        ops::CaseInput& h0 = list.cases[0].inputs[kH0];
        h0.constant = true;
        h0.values.assign(size_t(2 * kRows * kSizes[1].hidden), 0.25);
        h0.values.back() = differ ? 0.5 : 0.25;
        auto g = makeCase(*ops::find("recurrence"), list.cases[0]);
        ASSERT_TRUE(g.ok()) << g.error().message;
        auto problem = caseProblem(**g);
        ASSERT_TRUE(problem.ok()) << problem.error().message;
        std::vector<Tensor> storage;
        std::vector<TensorRef> outputs;
        for (ops::TensorSpec const& t : problem->outputs)
            outputs.push_back(storage.emplace_back(t.type, t.dims).ref());
        std::vector<bool> fixed(size_t(kInputs), false);
        fixed[kH0] = true;
        auto const alike = tune::AlikeRows::of(*(*g)->node, (*g)->nodeInputs, outputs, fixed, 1);
        EXPECT_EQ(alike.has_value(), !differ);
    }
}

} // namespace tw::test
