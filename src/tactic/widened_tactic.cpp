// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/round.h"
#include "kernels/cpu/casts.h"
#include "tactic/cpu_tactic.h"
#include "tactic/vector_tactic.h"

namespace tw::ops {

namespace {

constexpr size_t kMostTensors = 16;
constexpr int64_t kAlignment = 64;
constexpr DataType kNarrow = DataType::kBf16;

Problem widened(Problem problem)
{
    for (auto* specs : {&problem.inputs, &problem.outputs})
        for (TensorSpec& t : *specs)
            if (t.type == kNarrow)
                t.type = DataType::kFloat;
    return problem;
}

// As FP32 in memory of its own, at `at`.
TensorRef widened(TensorRef const& t, void* at)
{
    return {DataType::kFloat, t.dims, at, t.format};
}
int64_t bytesOf(TensorRef const& t)
{
    return roundUp(widened(t, nullptr).sizeBytes(), kAlignment);
}

// How both lie in memory: rows of so many elements.
struct Rows
{
    int64_t count = 1, length = 0;
    int64_t narrowStep = 0, wideStep = 0; // from row to row
};
Rows rowsOf(TensorRef const& narrow, TensorRef const& wide)
{
    if (!isByPixel(narrow.format) || narrow.dims.rank < 2)
        return {1, narrow.count()};
    int const axis = std::max(channelAxis(narrow.format, narrow.dims.rank), 0);
    int64_t const channels = narrow.dims[axis];
    return {channels > 0 ? narrow.count() / channels : 0, channels, narrow.pixelStride(), wide.pixelStride()};
}

// Calls row(first element of each, elements), in pieces of one row where there is one alone.
template <class Row>
void eachRow(Rows const& r, int64_t bytes, Workers& workers, Row const& row)
{
    if (r.count == 1)
        return inPieces(workers, r.length, bytes, [&](int64_t begin, int64_t end) { row(begin, begin, end - begin); });
    inPieces(workers, r.count, bytes, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            row(i * r.narrowStep, i * r.wideStep, r.length);
    });
}

// A constant as FP32; without elements where the inner kernel has packed them.
struct WideConstant
{
    Tensor elements;
    TensorRef ref;
};

class WidenedKernel final : public Kernel
{
public:
    WidenedKernel(std::unique_ptr<Kernel> inner, kernels::CastKernels const& casts,
                  std::vector<std::optional<WideConstant>> constants)
        : inner_(std::move(inner)), casts_(casts), constants_(std::move(constants))
    {}

    bool readsConstant(size_t i) const override { return !constants_[i] && inner_->readsConstant(i); }

    int64_t workspaceBytes(std::span<TensorRef const> in, std::span<TensorRef const> out) const override
    {
        Wide wide(*this, in, out, nullptr);
        return wide.bytes + inner_->workspaceBytes(wide.inputs(), wide.outputs());
    }
    Result<std::shared_ptr<Prepared const>> prepare(std::span<TensorRef const> in,
                                                    std::span<TensorRef const> out) const override
    {
        Wide wide(*this, in, out, nullptr);
        return inner_->prepare(wide.inputs(), wide.outputs());
    }
    Result<void> run(RunArgs& args) const override
    {
        auto* const workspace = static_cast<std::byte*>(args.workspace);
        Wide wide(*this, args.inputs, args.outputs, workspace);
        for (size_t i = 0; i < args.inputs.size(); ++i)
            if (!constants_[i] && args.inputs[i].type == kNarrow && args.inputs[i].data)
                widen(args.inputs[i], wide.in[i], *args.workers);
        RunArgs inner = args;
        std::span<TensorRef> outputs = wide.outputs();
        inner.inputs = wide.inputs();
        inner.outputs = outputs;
        inner.workspace = workspace + wide.bytes;
        TW_TRY(inner_->run(inner));
        for (size_t i = 0; i < args.outputs.size(); ++i)
            if (args.outputs[i].type == kNarrow)
                round(wide.out[i], args.outputs[i], *args.workers);
        return {};
    }

private:
    // The tensors of a run as the inner kernel sees them, from `at` on; null: shapes alone.
    struct Wide
    {
        std::array<TensorRef, kMostTensors> in, out;
        size_t inCount, outCount;
        int64_t bytes = 0;

        Wide(WidenedKernel const& k, std::span<TensorRef const> inputs, std::span<TensorRef const> outputs,
             std::byte* at)
            : inCount(inputs.size()), outCount(outputs.size())
        {
            auto place = [&](TensorRef const& t) {
                TensorRef const w = widened(t, at ? at + bytes : nullptr);
                bytes += bytesOf(t);
                return w;
            };
            for (size_t i = 0; i < inCount; ++i)
                in[i] = k.constants_[i]             ? k.constants_[i]->ref
                        : inputs[i].type == kNarrow ? place(inputs[i])
                                                    : inputs[i];
            for (size_t i = 0; i < outCount; ++i)
                out[i] = outputs[i].type == kNarrow ? place(outputs[i]) : outputs[i];
        }
        std::span<TensorRef const> inputs() const { return {in.data(), inCount}; }
        std::span<TensorRef> outputs() { return {out.data(), outCount}; }
    };

    void widen(TensorRef const& from, TensorRef const& to, Workers& workers) const
    {
        Rows const rows = rowsOf(from, to);
        int64_t const gap = std::max<int64_t>(rows.wideStep - rows.length, 0);
        eachRow(rows, to.sizeBytes(), workers, [&](int64_t x, int64_t y, int64_t n) {
            casts_.bfloat16ToFloat(from.as<uint16_t>() + x, to.as<float>() + y, n);
            if (rows.count > 1)
                std::fill_n(to.as<float>() + y + n, gap, 0.f);
        });
    }
    void round(TensorRef const& from, TensorRef const& to, Workers& workers) const
    {
        eachRow(rowsOf(to, from), from.sizeBytes(), workers, [&](int64_t y, int64_t x, int64_t n) {
            casts_.floatToBfloat16(from.as<float>() + x, to.as<uint16_t>() + y, n);
        });
    }

    std::unique_ptr<Kernel> inner_;
    kernels::CastKernels const& casts_;
    std::vector<std::optional<WideConstant>> constants_; // of inputs: those of the narrow type
};

Result<WideConstant> widenedConstant(TensorSpec const& t)
{
    Tensor wide(DataType::kFloat, t.dims);
    if (!wide.data())
        return failedAllocation("no memory for a constant in FP32");
    copyElements({t.type, t.dims, const_cast<void*>(t.constant->data())}, wide.ref());
    TensorRef const ref = wide.ref();
    return WideConstant{std::move(wide), ref};
}

} // namespace

Support WidenedTactic::supports(Problem const& p) const
{
    TW_SUPPORTS(takesOnly(kNarrow, p));
    if (p.inputs.size() > kMostTensors || p.outputs.size() > kMostTensors)
        return Support::no(fmt::format("has more than {} inputs or outputs", kMostTensors));
    return inner_.supports(widened(p));
}

std::vector<Formats> WidenedTactic::formats(Problem const& p) const
{
    return inner_.formats(widened(p));
}

std::vector<Config> WidenedTactic::configs(Problem const& p) const
{
    return inner_.configs(widened(p));
}

double WidenedTactic::estimate(Problem const& p, Config const& config) const
{
    constexpr double kBytesPerUs = 2e4; // of a core
    double bytes = 0;
    for (auto const* specs : {&p.inputs, &p.outputs})
        for (TensorSpec const& t : *specs)
            if (t.present && !t.constant && t.type == kNarrow)
                bytes += double(t.dims.volume()) * (sizeof(float) + sizeof(uint16_t));
    return inner_.estimate(widened(p), config) + bytes / kBytesPerUs / std::max(p.threads, 1);
}

Result<std::unique_ptr<Kernel>> WidenedTactic::load(Problem const& p, Config const& config, std::string const&) const
{
    Problem wide = widened(p);
    std::vector<std::optional<WideConstant>> constants(p.inputs.size());
    std::vector<BlobPtr> blobs; // while the inner kernel is made
    for (size_t i = 0; i < p.inputs.size(); ++i) {
        if (p.inputs[i].type != kNarrow || !p.inputs[i].constant)
            continue;
        TW_ASSIGN(constants[i], widenedConstant(p.inputs[i]));
        blobs.push_back(Blob::copy(constants[i]->ref.data, size_t(constants[i]->ref.sizeBytes())));
        wide.inputs[i].constant = blobs.back().get();
    }
    PackedConstants alone; // copies of what does not stay
    TW_ASSIGN(std::unique_ptr<Kernel> inner, inner_.loadShared(wide, config, {}, alone));
    for (size_t i = 0; i < constants.size(); ++i)
        if (constants[i] && !inner->readsConstant(i)) {
            constants[i]->elements = Tensor();
            constants[i]->ref.data = nullptr;
        }
    auto const& casts = kernels::castsOf(inner_.isa());
    return std::unique_ptr<Kernel>(std::make_unique<WidenedKernel>(std::move(inner), casts, std::move(constants)));
}

} // namespace tw::ops
