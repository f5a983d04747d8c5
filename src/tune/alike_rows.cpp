// SPDX-License-Identifier: Apache-2.0
#include "tune/alike_rows.h"

#include <cstring>
#include <random>

#include "ir/op_def.h"
#include "ops/recurrence/op.h"
#include "tactic/reference.h"
#include "tactic/registry.h"

namespace tw::tune {

namespace {

using ops::recurrence::RowAxes;
using ops::recurrence::rowAxes;

constexpr int64_t kOriginals = 3;
constexpr double kFewOperations = 1e8; // that a reference does in some 50 ms

// A tensor as runs of bytes: [outer][row][run].
struct Runs
{
    int64_t outer = 1, rows = 0, sizeBytes = 0;
    char* data = nullptr;

    char* at(int64_t o, int64_t row) const { return data + (o * rows + row) * sizeBytes; }
};

// None where the tensor is the same for all rows.
std::optional<Runs> runsOf(TensorRef const& t, RowAxes const& rows)
{
    if (!t.data || rows.begin == rows.end)
        return {};
    return Runs{t.dims.volume(0, rows.begin), t.dims.volume(rows.begin, rows.end),
                t.dims.volume(rows.end, t.dims.rank) * sizeOf(t.type), t.as<char>()};
}

// The first rows alone.
Tensor firstRows(TensorRef const& t, RowAxes const& rows)
{
    Extents dims = t.dims;
    for (int axis = rows.begin; axis < rows.end; ++axis)
        dims[axis] = axis == rows.begin ? kOriginals : 1;
    return Tensor(t.type, dims);
}

} // namespace

std::vector<int64_t> repeatedOriginals(int64_t count, int64_t few, uint64_t seed)
{
    std::mt19937_64 random(seed);
    std::vector<int64_t> of;
    for (int64_t n = 0; n < count; ++n) {
        int64_t const step = int64_t(random() % uint64_t(few - 1)) + 1;
        of.push_back(n < few ? n : (of.back() + step) % few);
    }
    return of;
}

AlikeRows::AlikeRows(ir::Node const& node, int64_t rows, uint64_t seed)
    : node_(&node), originals_(repeatedOriginals(rows, kOriginals, seed))
{}

bool AlikeRows::isOf(ir::Node const& node)
{
    return node.op == &ops::recurrence::def();
}

std::optional<AlikeRows> AlikeRows::of(ir::Node const& node, std::span<TensorRef const> inputs,
                                       std::span<TensorRef const> outputs, std::vector<bool> const& fixed,
                                       uint64_t seed)
{
    if (!isOf(node) || node.op->operations(node, inputs, outputs) <= kFewOperations)
        return {};
    auto const first = outputs.empty() ? std::nullopt : runsOf(outputs[0], rowAxes(node, true, 0));
    if (!first || first->rows <= kOriginals)
        return {};
    AlikeRows alike(node, first->rows, seed);
    alike.fixed_ = fixed;
    for (size_t i = 0; i < inputs.size(); ++i) {
        auto const runs = runsOf(inputs[i], rowAxes(node, false, int(i)));
        for (int64_t o = 0; runs && fixed[i] && o < runs->outer; ++o)
            for (int64_t row = 0; row < runs->rows; ++row)
                if (std::memcmp(runs->at(o, row), runs->at(o, alike.originals_[size_t(row)]),
                                size_t(runs->sizeBytes)) != 0)
                    return {};
    }
    return alike;
}

void AlikeRows::repeat(std::span<TensorRef const> inputs) const
{
    for (size_t i = 0; i < inputs.size(); ++i) {
        auto const runs = runsOf(inputs[i], rowAxes(*node_, false, int(i)));
        for (int64_t o = 0; runs && !fixed_[i] && o < runs->outer; ++o)
            for (int64_t row = kOriginals; row < runs->rows; ++row)
                std::memcpy(runs->at(o, row), runs->at(o, originals_[size_t(row)]), size_t(runs->sizeBytes));
    }
}

Result<void> AlikeRows::refer(std::span<TensorRef const> inputs, std::span<TensorRef const> outputs,
                              uint64_t* randomState) const
{
    std::vector<Tensor> storage;
    auto few = [&](TensorRef const& t, bool isOutput, size_t i) -> Result<TensorRef> {
        auto const runs = runsOf(t, rowAxes(*node_, isOutput, int(i)));
        if (!runs)
            return t;
        storage.push_back(firstRows(t, rowAxes(*node_, isOutput, int(i))));
        TensorRef const out = storage.back().ref();
        if (!out.data)
            return failedAllocation("no memory for rows of a reference");
        for (int64_t o = 0; o < runs->outer; ++o)
            std::memcpy(out.as<char>() + o * kOriginals * runs->sizeBytes, runs->at(o, 0),
                        size_t(kOriginals * runs->sizeBytes));
        return out;
    };
    std::vector<TensorRef> in, out;
    for (size_t i = 0; i < inputs.size(); ++i) {
        TW_ASSIGN(TensorRef const t, few(inputs[i], false, i));
        in.push_back(t);
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
        TW_ASSIGN(TensorRef const t, few(outputs[i], true, i));
        out.push_back(t);
    }
    ops::RefContext ctx(*node_, in, out);
    ctx.randomState = randomState;
    TW_TRY(node_->op->reference(ctx));
    for (size_t i = 0; i < outputs.size(); ++i) {
        auto const runs = runsOf(outputs[i], rowAxes(*node_, true, int(i)));
        for (int64_t o = 0; runs && o < runs->outer; ++o)
            for (int64_t row = 0; row < runs->rows; ++row)
                std::memcpy(runs->at(o, row),
                            out[i].as<char>() + (o * kOriginals + originals_[size_t(row)]) * runs->sizeBytes,
                            size_t(runs->sizeBytes));
    }
    return {};
}

} // namespace tw::tune
