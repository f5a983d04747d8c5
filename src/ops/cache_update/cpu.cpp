// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/cache_update/op.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::cache_update {

namespace {

// A piece has all rows of some groups, so that none waits for another; of pages the whole cache is copied before.
Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &u = args.inputs[1], &y = args.outputs[0];
    if (y.count() == 0)
        return {};
    Layout const at(a, x.dims, u.dims);
    int64_t const row = at.inner * sizeOf(y.type), whole = at.capacity * row;
    bool const isCopied = x.data != y.data && !a.pages;
    if (a.pages && x.data != y.data)
        inPieces(*args.workers, at.blocks * at.groups, at.blocks * at.groups * whole, [&](int64_t begin, int64_t end) {
            std::memcpy(y.as<char>() + begin * whole, x.as<char>() + begin * whole, size_t((end - begin) * whole));
        });
    int32_t const* const index = args.inputs.size() > 2 ? args.inputs[2].as<int32_t>() : nullptr;
    int64_t const pageCount = a.pages ? args.inputs[3].dims[1] : 0;
    auto pagesOf = [&](int64_t image) {
        return std::span(a.pages ? args.inputs[3].as<int32_t>() + image * pageCount : nullptr, size_t(pageCount));
    };
    int64_t const written = at.images * at.groups * (isCopied ? whole : at.rows * row);
    inPieces(*args.workers, at.images * at.groups, written, [&](int64_t begin, int64_t end) {
        if (isCopied)
            std::memcpy(y.as<char>() + begin * whole, x.as<char>() + begin * whole, size_t((end - begin) * whole));
        for (int64_t group = begin; group < end; ++group) {
            int64_t const first = index ? index[group / at.groups] : 0;
            char const* from = u.as<char>() + at.at(group / at.groups, group % at.groups, 0) * sizeOf(y.type);
            for (int64_t i = 0; i < at.rows; ++i, from += at.rowStride * sizeOf(y.type))
                if (int64_t const to =
                        at.placeInAll(a, group / at.groups, group % at.groups, first, i, pagesOf(group / at.groups));
                    to >= 0)
                    std::memcpy(y.as<char>() + to * row, from, size_t(row));
        }
    });
    return {};
}

constexpr PlainTactic kPlain{"cache_update_any_plain_cpu", 2, run};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kPlain>;

} // namespace tw::ops::cache_update
