// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <optional>

#include "interp/interp.h"
#include "ir/op_def.h"
#include "recipe/recipes.h"

namespace tw::recipe {

namespace {

class Evaluation
{
public:
    explicit Evaluation(ir::Graph const& g) : graph_(g) {}

    Result<std::vector<BlobPtr>> run(std::vector<bool> const& changed, Workers& workers)
    {
        markAffected(changed);
        collect();
        for (size_t level = 0; level < levels_.size(); ++level)
            TW_TRY(runLevel(level, workers));
        auto out = mapped<BlobPtr>(graph_.outputs, [&](ir::Value const* v) {
            return !affected_.at(v) ? nullptr : v->isConstant() ? v->constant->data : made_.at(v);
        });
        return out;
    }

private:
    void markAffected(std::vector<bool> const& changed)
    {
        auto const& values = graph_.values();
        for (size_t i = 0; i < values.size(); ++i)
            affected_[values[i].get()] =
                values[i]->isConstant() && (changed.empty() || (i < changed.size() && changed[i]));
        for (auto const& n : graph_.nodes)
            for (ir::Value const* y : n->outputs)
                affected_[y] = changed.empty() ||
                               std::ranges::any_of(n->inputs, [&](ir::Value const* x) { return x && affected_.at(x); });
    }
    // Nodes that affected outputs need, each one level above those that it waits for.
    void collect()
    {
        std::map<ir::Node const*, bool> wanted;
        for (ir::Value const* v : graph_.outputs)
            if (v->producer && affected_.at(v))
                wanted[v->producer] = true;
        for (size_t i = graph_.nodes.size(); i-- > 0;)
            if (wanted[graph_.nodes[i].get()])
                for (ir::Value const* x : graph_.nodes[i]->inputs)
                    if (x && x->producer)
                        wanted[x->producer] = true;
        std::map<ir::Node const*, size_t> levelOf;
        for (auto const& n : graph_.nodes) {
            if (!wanted[n.get()])
                continue;
            size_t level = 0;
            for (ir::Value const* x : n->inputs)
                if (x && x->producer)
                    level = std::max(level, levelOf.at(x->producer) + 1);
            levelOf[n.get()] = level;
            levels_.resize(std::max(levels_.size(), level + 1));
            levels_[level].push_back(n.get());
        }
        for (auto& level : levels_) // large ones first, so that no worker is left with one at the end
            std::ranges::stable_sort(level,
                                     [](ir::Node const* a, ir::Node const* b) { return bytesOf(*a) > bytesOf(*b); });
    }
    static int64_t bytesOf(ir::Node const& n)
    {
        return ir::isStatic(n.outputs[0]->shape) ? ir::extentsOf(n.outputs[0]->shape).volume() : 0;
    }
    Result<void> runLevel(size_t level, Workers& workers)
    {
        auto const& nodes = levels_[level];
        std::vector<std::vector<BlobPtr>> made(nodes.size());
        std::vector<std::optional<Error>> errors(nodes.size());
        workers.run(int64_t(nodes.size()), [&](int64_t i, int) {
            try {
                auto done = runOne(*nodes[size_t(i)]);
                if (done.ok())
                    made[size_t(i)] = std::move(*done);
                else
                    errors[size_t(i)] = done.error();
            } catch (std::bad_alloc const&) {
                errors[size_t(i)] = failedAllocation("no memory to compute new weights");
            }
        });
        for (auto const& e : errors)
            if (e)
                return *e;
        for (size_t i = 0; i < nodes.size(); ++i)
            for (size_t k = 0; k < made[i].size(); ++k)
                made_[nodes[i]->outputs[k]] = std::move(made[i][k]);
        return {};
    }
    Result<std::vector<BlobPtr>> runOne(ir::Node const& n) const
    {
        std::vector<TensorRef> in;
        for (ir::Value const* v : n.inputs) {
            if (!v) {
                in.emplace_back();
                continue;
            }
            Blob const& b = v->isConstant() ? *v->constant->data : *made_.at(v);
            in.push_back(TensorRef{v->type, ir::extentsOf(v->shape), const_cast<void*>(b.data())});
        }
        TW_ASSIGN(std::vector<Tensor> tensors, evaluateNode(n, in));
        std::vector<BlobPtr> out;
        for (Tensor& t : tensors) {
            auto const owner = std::make_shared<Tensor>(std::move(t));
            out.push_back(std::make_shared<Blob const>(owner->data(), size_t(owner->ref().sizeBytes()), owner));
        }
        return out;
    }

    ir::Graph const& graph_;
    std::map<ir::Value const*, bool> affected_;
    std::vector<std::vector<ir::Node const*>> levels_;
    std::map<ir::Value const*, BlobPtr> made_;
};

} // namespace

Result<std::vector<Tensor>> evaluateNode(ir::Node const& node, std::vector<TensorRef> const& inputs)
{
    if (auto fast = runLoop(node, inputs); fast.data()) {
        std::vector<Tensor> out;
        out.push_back(std::move(fast));
        return out;
    }
    return interp::runNode(node, inputs);
}

Result<std::vector<BlobPtr>> evaluate(ir::Graph const& graph, std::vector<bool> const& changed, Workers& workers)
{
    return Evaluation(graph).run(changed, workers);
}

} // namespace tw::recipe
