// SPDX-License-Identifier: Apache-2.0
#include "runtime/linear_adapter.h"

#include "base/round.h"
#include "tactic/convert_format.h"

namespace tw::runtime {

namespace {

TensorRef linear(TensorRef const& t)
{
    return TensorRef{t.type, t.dims, t.data};
}

class Adapter final : public ops::Kernel
{
public:
    explicit Adapter(std::unique_ptr<ops::Kernel> kernel) : kernel_(std::move(kernel)) {}

    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
    {
        std::vector<TensorRef> inputs = linears(in), outputs = linears(out);
        return copyBytes(in) + copyBytes(out) + kernel_->workspaceBytes(inputs, outputs);
    }
    Result<std::shared_ptr<ops::Prepared const>> prepare(std::span<TensorRef const> in,
                                                         std::span<TensorRef const> out) const override
    {
        return kernel_->prepare(linears(in), linears(out));
    }
    Result<void> run(ops::RunArgs& args) const override
    {
        std::vector<TensorRef> inputs = linears(args.inputs), outputs = linears(args.outputs);
        auto* at = static_cast<std::byte*>(args.workspace);
        auto place = [&](std::span<TensorRef const> original, std::vector<TensorRef>& copies) {
            for (size_t i = 0; i < copies.size(); ++i)
                if (original[i].format != Format::kLinear && original[i].data) {
                    copies[i].data = at;
                    at += roundUp(copies[i].sizeBytes(), kCacheLine);
                }
        };
        place(args.inputs, inputs);
        place(args.outputs, outputs);
        for (size_t i = 0; i < inputs.size(); ++i)
            if (inputs[i].data != args.inputs[i].data)
                ops::convertFormat(args.inputs[i], inputs[i]);
        ops::RunArgs inner = args;
        inner.inputs = inputs;
        inner.outputs = outputs;
        inner.workspace = at;
        TW_TRY(kernel_->run(inner));
        for (size_t i = 0; i < outputs.size(); ++i) {
            args.outputs[i].dims = outputs[i].dims;
            if (outputs[i].data != args.outputs[i].data)
                ops::convertFormat(outputs[i], args.outputs[i]);
        }
        return {};
    }

private:
    static std::vector<TensorRef> linears(std::span<TensorRef const> list)
    {
        std::vector<TensorRef> out;
        for (TensorRef const& t : list)
            out.push_back(linear(t));
        return out;
    }
    static int64_t copyBytes(std::span<TensorRef const> list)
    {
        int64_t bytes = 0;
        for (TensorRef const& t : list)
            if (t.format != Format::kLinear)
                bytes += roundUp(linear(t).sizeBytes(), kCacheLine);
        return bytes;
    }
    std::unique_ptr<ops::Kernel> kernel_;
};

} // namespace

std::unique_ptr<ops::Kernel> linearAdapter(std::unique_ptr<ops::Kernel> kernel)
{
    return std::make_unique<Adapter>(std::move(kernel));
}

} // namespace tw::runtime
