// SPDX-License-Identifier: Apache-2.0
// With a user's object of our own: the real ones come from the API layer (test/engine/plugin_test.cpp).
#include "cases/cases.h"

#include "ops/plugin/op.h"

namespace tw::ops::plugin {

namespace {

// y0 = 2 x, and where there is a second output, y1 = x in reverse order.
class DoublingKernel final : public Kernel
{
public:
    int64_t workspaceBytes(std::span<TensorRef const>, std::span<TensorRef const>) const override { return 16; }
    Result<void> run(RunArgs& args) const override
    {
        TensorRef const& x = args.inputs[0];
        int64_t const n = x.count();
        for (int64_t i = 0; i < n; ++i) {
            args.outputs[0].set(i, 2 * x.get(i));
            if (args.outputs.size() > 1)
                args.outputs[1].set(n - 1 - i, x.get(i));
        }
        return {};
    }
};

class Doubling final : public Object
{
public:
    bool isOnHost() const override { return true; }
    std::vector<Formats> formats(Problem const& problem) const override { return {linearFormats(problem)}; }
    Result<std::unique_ptr<Kernel>> load(Problem const&) const override
    {
        return std::unique_ptr<Kernel>(std::make_unique<DoublingKernel>());
    }
};

Attrs attrs(DataType type, int64_t rank, std::string shapes, size_t outputs = 1)
{
    Attrs a;
    a.state = {"Doubling", "1", "", std::string("\0\x01z", 3)};
    a.inputTypes = {int64_t(type)};
    a.inputRanks = {rank};
    a.outputTypes.assign(outputs, int64_t(type));
    a.shapes = std::move(shapes);
    a.object = std::make_shared<Doubling>();
    return a;
}

} // namespace

void cases(CaseList& list)
{
    list.add("by_hand", attrs(DataType::kFloat, 1, "[x0.0]"), {f32({4}, {-2, 0, 1, 3})}, {{-4, 0, 2, 6}});
    list.add("two_outputs", attrs(DataType::kInt32, 2, "[x0.0|x0.1];[(x0.0*x0.1)]", 2),
             {input(DataType::kInt32, {2, 2}, {1, 2, 3, 4})}, {{2, 4, 6, 8}, {4, 3, 2, 1}});
    // All that shapes are made of: the same size in other words.
    list.add("shape_expressions",
             attrs(DataType::kFloat, 2,
                   "[max(x0.0, 1)|floordiv((4*x0.1 + 3), 4)];[min(ceildiv(x0.0, 1), 99)|(x0.1 + "
                   "lt(5, 3) + eq(1, 0))]",
                   2),
             {f32({2, 3}, {1, 2, 3, 4, 5, 6})}, {{2, 4, 6, 8, 10, 12}, {6, 5, 4, 3, 2, 1}});
    list.add("half", attrs(DataType::kHalf, 3, "[x0.0|x0.1|x0.2]"), {input(DataType::kHalf, {2, 3, 5})});
    list.add("scalar", attrs(DataType::kFloat, 0, "[]"), {f32({}, {3})}, {{6}});
    list.add("empty", attrs(DataType::kFloat, 2, "[x0.0|x0.1]"), {f32({0, 5})});
    Attrs batch = attrs(DataType::kFloat, 2, "[x0.0|3]");
    batch.interface = Interface::kIOExt;
    batch.dropsBatch = true;
    list.add("drops_batch", batch, {f32({2, 3}, {1, 2, 3, 4, 5, 6})}, {{2, 4, 6, 8, 10, 12}});
}

} // namespace tw::ops::plugin
