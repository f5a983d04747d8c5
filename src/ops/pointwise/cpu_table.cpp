// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/cpu/jit/byte_table.h"
#include "ops/pointwise/jit_program.h"
#include "ops/pointwise/op.h"
#include "tactic/cpu_tactic.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::pointwise {

namespace {

using kernels::jit::ByteTableKernel;

constexpr int64_t kValues = 256;

// The one input that is no constant; -1: there are several, or none.
int variableOf(Problem const& p)
{
    int variable = -1;
    for (size_t i = 0; i < p.inputs.size(); ++i) {
        if (p.inputs[i].constant)
            continue;
        if (variable >= 0)
            return -1;
        variable = int(i);
    }
    return variable;
}

// By the bits of x.
Result<std::array<int8_t, kValues>> tableOf(Problem const& p)
{
    std::array<int8_t, kValues> x, y;
    for (int64_t i = 0; i < kValues; ++i)
        x[size_t(i)] = int8_t(uint8_t(i));
    std::vector<TensorRef> in;
    for (TensorSpec const& t : p.inputs)
        in.push_back(t.constant ? TensorRef{t.type, {1}, const_cast<void*>(t.constant->data())}
                                : TensorRef{DataType::kInt8, {kValues}, x.data()});
    RefContext ctx(*p.node, std::move(in), {TensorRef{DataType::kInt8, {kValues}, y.data()}});
    TW_TRY(reference(ctx));
    return y;
}

class TableKernel final : public Kernel
{
public:
    TableKernel(std::array<int8_t, kValues> const& table, int variable, std::optional<ByteTableKernel> fast)
        : table_(table), variable_(variable), fast_(std::move(fast))
    {}
    bool readsConstant(size_t) const override { return false; }
    Result<void> run(RunArgs& args) const override
    {
        TensorRef const &x = args.inputs[size_t(variable_)], &y = args.outputs[0];
        if (y.count() == 0)
            return {};
        // Where both have the same gaps, these go along.
        bool const dense = x.pixelStride() == y.pixelStride() && x.stride == 0 && y.stride == 0;
        bool const pixels = y.format == Format::kChannelsLast && !dense;
        int64_t const rows = pixels ? y.dims[0] * pixelsOf(y) : y.sizeBytes(), row = pixels ? y.dims[1] : 1;
        int64_t const xStep = pixels ? x.pixelStride() : 1, yStep = pixels ? y.pixelStride() : 1;
        inPieces(*args.workers, rows, x.sizeBytes() + y.sizeBytes(), [&](int64_t begin, int64_t end) {
            if (!pixels)
                return look(x.as<int8_t>() + begin, y.as<int8_t>() + begin, end - begin);
            for (int64_t r = begin; r < end; ++r)
                look(x.as<int8_t>() + r * xStep, y.as<int8_t>() + r * yStep, row);
        });
        return {};
    }

private:
    void look(int8_t const* x, int8_t* y, int64_t n) const
    {
        if (fast_)
            return (*fast_)(table_.data(), x, y, n);
        for (int64_t i = 0; i < n; ++i)
            y[i] = table_[uint8_t(x[i])];
    }

    std::array<int8_t, kValues> table_;
    int variable_;
    std::optional<ByteTableKernel> fast_;
};

} // namespace

Support TableTactic::supports(Problem const& p) const
{
    if (isa_)
        TW_SUPPORTS(supportsIsa(*p.target.cpu, *isa_));
    if (isa_ == kernels::jit::Isa::kAvx512 && !p.target.cpu->avx512vbmi)
        return Support::no("needs AVX-512 VBMI");
    int const variable = variableOf(p);
    if (variable < 0 || !isQuantized(p.inputs[size_t(variable)].type) || !isQuantized(p.outputs[0].type))
        return Support::no("takes expressions that make i8 of one i8 input and constants only");
    if (!(p.node->inputs[size_t(variable)]->shape == p.node->outputs[0]->shape) ||
        p.node->attrsAs<Attrs>().inputs[size_t(variable) * kNumbersOfInput] != int64_t(InputKind::kBroadcast))
        return Support::no("needs an input of y's shape");
    auto const& kinds = p.node->attrsAs<Attrs>().inputs;
    for (size_t i = 0; i < p.inputs.size(); ++i)
        if (p.inputs[i].constant &&
            (p.inputs[i].dims.volume() != 1 || kinds[i * kNumbersOfInput] == int64_t(InputKind::kChannel)))
            return Support::no("takes constants of one element, of no channel, only");
    return Support::yes();
}

std::vector<Formats> TableTactic::formats(Problem const& p) const
{
    std::vector<Formats> list;
    if (p.outputs[0].dims.rank >= 3)
        list.push_back(channelsLastFormats(p));
    list.push_back(linearFormats(p));
    return list;
}

Result<std::unique_ptr<Kernel>> TableTactic::load(Problem const& p, Config const&, std::string const&) const
{
    TW_ASSIGN(auto const table, tableOf(p));
    std::optional<ByteTableKernel> fast;
    if (isa_) {
        TW_ASSIGN(fast, ByteTableKernel::emit(*isa_));
    }
    return std::unique_ptr<Kernel>(std::make_unique<TableKernel>(table, variableOf(p), std::move(fast)));
}

} // namespace tw::ops::pointwise
