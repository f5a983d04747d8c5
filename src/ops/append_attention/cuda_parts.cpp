// SPDX-License-Identifier: Apache-2.0
#include "ops/append_attention/cuda_parts.h"

#include <algorithm>

#include "ops/append_attention/run_parts.h"
#include "tactic/registry.h"

namespace tw::ops::append_attention {

namespace {

// Kernels of all parts in one text, those of the updates once.
class Apart final : public CudaKernels
{
public:
    Apart(std::unique_ptr<Parts const> parts, Attrs const& a, std::vector<std::unique_ptr<CudaKernels>> kernels)
        : CudaKernels(joined(kernels)), parts_(std::move(parts)), attrs_(a), kernels_(std::move(kernels))
    {
        for (auto const& k : kernels_)
            k->dropText();
    }

    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override
    {
        return runParts(attrs_, args,
                        [&](Part part, RunArgs& own) { return kernelsOf(part).run(launch.from(firstOf(part)), own); });
    }
    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
    {
        return workspaceOfParts(attrs_, in, out, [&](Part part, auto const& inputs, auto const& outputs) {
            return kernelsOf(part).workspaceBytes(inputs, outputs);
        });
    }

private:
    static CudaSource joined(std::vector<std::unique_ptr<CudaKernels>> const& all)
    {
        CudaSource out;
        out.isDependent = true;
        for (size_t i = 0; i < all.size(); ++i) {
            CudaSource const& s = all[i]->source();
            out.wide = out.wide || s.wide;
            out.isDependent = out.isDependent && s.isDependent;
            out.alignment = std::max(out.alignment, s.alignment);
            out.sharedBytes = std::max(out.sharedBytes, s.sharedBytes);
            if (i == size_t(Part::kValueUpdate))
                continue;
            out.append(s);
        }
        return out;
    }
    CudaKernels const& kernelsOf(Part part) const { return *kernels_[size_t(part)]; }
    int firstOf(Part part) const
    {
        size_t first = 0;
        for (int p = 0; p < std::min(int(part), int(Part::kValueUpdate)); ++p)
            first += kernels_[size_t(p)]->source().names.size();
        return int(part == Part::kValueUpdate ? first - kernelsOf(Part::kKeyUpdate).source().names.size() : first);
    }

    std::unique_ptr<Parts const> const parts_; // the kernels' problems
    Attrs const& attrs_;
    std::vector<std::unique_ptr<CudaKernels>> const kernels_;
};

// The last tactic of an op.
std::unique_ptr<CudaKernels> plainKernels(Problem const& problem)
{
    auto const* tactic = dynamic_cast<CudaTactic const*>(problem.node->op->cudaTactics->back());
    return tactic->kernels(problem, {});
}

} // namespace

ir::Node& Parts::set(Part part, Problem const& whole, std::vector<TensorSpec> inputs, TensorSpec output)
{
    ir::Node& node = nodes_[size_t(part)] = nodeOf(whole.node->attrsAs<Attrs>(), part);
    node.name = whole.node->name;
    problems_[size_t(part)] = {&node, std::move(inputs), {std::move(output)}, whole.threads, whole.target};
    return node;
}

std::unique_ptr<Parts const> Parts::of(Problem const& problem)
{
    auto made = std::make_unique<Parts>();
    ir::Node const& node = *problem.node;
    auto const& a = node.attrsAs<Attrs>();
    auto const& in = problem.inputs;
    TensorSpec rows = in[kQueries];
    ir::Value* queries = node.inputs[kQueries];
    if (a.isTurned()) {
        for (Extents* dims : {&rows.dims, &rows.maxDims})
            *dims = {(*dims)[0], (*dims)[1], a.turnedHeads(), a.attention.size};
        made->set(Part::kRotation, problem, {in[kQueries], in[kCosines], in[kSines]}, rows);
        for (Extents* dims : {&rows.dims, &rows.maxDims})
            *dims = {(*dims)[0], (*dims)[1], a.turnedWidth()};
        made->rows_.type = rows.type;
        made->rows_.shape = {queries->shape[0], queries->shape[1], a.turnedWidth()};
        queries = &made->rows_;
    }
    made->set(Part::kKeyUpdate, problem, {in[kKeyCache], a.isTurned() ? rows : in[kNewKeys], in[kIndex]},
              problem.outputs[1]);
    made->set(Part::kValueUpdate, problem, {in[kValueCache], in[kNewValues], in[kIndex]}, problem.outputs[2]);
    std::vector<TensorSpec> all{rows, in[kKeyCache], in[kValueCache]};
    all.insert(all.end(), in.begin() + kOthers, in.end());
    ir::Node& attending = made->set(Part::kAttention, problem, std::move(all), problem.outputs[0]);
    attending.inputs = {queries, node.inputs[kKeyCache], node.inputs[kValueCache]};
    attending.inputs.insert(attending.inputs.end(), node.inputs.begin() + kOthers, node.inputs.end());
    attending.outputs = {node.outputs[0]};
    return made;
}

std::unique_ptr<CudaKernels> kernelsApart(Problem const& problem, CudaTactic const& attention, Config const& config)
{
    auto parts = Parts::of(problem);
    auto const& a = problem.node->attrsAs<Attrs>();
    std::vector<std::unique_ptr<CudaKernels>> kernels;
    kernels.push_back(a.isTurned() ? plainKernels((*parts)[Part::kRotation]) : ops::kernelsOf(CudaSource{}, {}));
    kernels.push_back(plainKernels((*parts)[Part::kKeyUpdate]));
    kernels.push_back(plainKernels((*parts)[Part::kValueUpdate]));
    kernels.push_back(attention.kernels((*parts)[Part::kAttention], config));
    if (kernels.back()->source().names.empty()) // there is none of this config
        return std::move(kernels.back());
    return std::make_unique<Apart>(std::move(parts), a, std::move(kernels));
}

} // namespace tw::ops::append_attention
