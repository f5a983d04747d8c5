// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include "ir/shape_values.h"
#include "runtime/constants.h"

namespace tw::runtime {

namespace {

// Shape arithmetic and messages may look at these at any time.
constexpr size_t kSmallBytes = 4096;

class Releaser
{
public:
    explicit Releaser(std::function<BlobPtr(Blob const&)> const& keep) : keep_(keep) {}
    // `blocks`: of the graph, one for each set of kernels.
    void run(ir::Graph& graph, std::vector<LoadedBlock const*> const& blocks)
    {
        std::set<ir::Value const*> read(graph.outputs.begin(), graph.outputs.end());
        for (LoadedBlock const* block : blocks)
            for (LoadedStep const& step : block->steps) {
                ir::Node const& node = *step.node;
                for (size_t i = 0; i < node.inputs.size(); ++i) {
                    bool const packed =
                        step.kernel && !step.host && !ir::isShapeInput(node, i) && !step.kernel->readsConstant(i);
                    if (!packed)
                        read.insert(node.inputs[i]);
                }
            }
        keep(graph, &read);
        for (size_t i = 0; i < graph.nodes.size(); ++i) {
            ir::Node& node = *graph.nodes[i];
            if (node.body)
                keep(*node.body, nullptr);
            for (size_t r = 0; r < node.regions.size(); ++r)
                run(*node.regions[r], mapped<LoadedBlock const*>(blocks, [&](LoadedBlock const* block) {
                    return block->steps[i].regions[r].get();
                }));
        }
    }

private:
    // Those in `read` (null: all), and small ones.
    void keep(ir::Graph& graph, std::set<ir::Value const*> const* read)
    {
        for (auto const& v : graph.values()) {
            if (!v->isConstant())
                continue;
            BlobPtr const& data = v->constant->data;
            bool const wanted = !read || read->contains(v.get()) || data->sizeBytes() <= kSmallBytes;
            auto c = std::make_shared<ir::Constant>(*v->constant);
            c->data = wanted ? copyOf(data) : std::make_shared<Blob const>(nullptr, 0);
            v->constant = std::move(c);
        }
    }
    // Values may share contents, and go on to.
    BlobPtr copyOf(BlobPtr const& data)
    {
        BlobPtr& copy = copies_[data->data()];
        if (copy && copy->sizeBytes() == data->sizeBytes())
            return copy;
        copy = keep_ ? keep_(*data) : nullptr;
        if (!copy)
            copy = Blob::copy(data->data(), data->sizeBytes());
        return copy;
    }
    std::function<BlobPtr(Blob const&)> const& keep_;
    std::map<void const*, BlobPtr> copies_;
};

} // namespace

void releaseConstants(ir::Graph& graph, std::vector<std::unique_ptr<LoadedBlock>> const& blocks,
                      std::function<BlobPtr(Blob const&)> const& keep)
{
    Releaser(keep).run(graph, mapped<LoadedBlock const*>(blocks, [](auto const& block) { return block.get(); }));
}

} // namespace tw::runtime
