// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/int8_filters.h"

namespace tw::ops {

Int8Filters::Int8Filters(Problem const& problem, kernels::jit::Isa isa, int64_t mostVectors)
    : factors(byteFactors(isa)), width(kernels::jit::vectorWidth(isa)),
      groups(problem.node->attrsAs<KernelWindowAttrs>().groups), groupK(problem.outputs[0].dims[1] / groups),
      groupC(problem.inputs[0].dims[1] / groups), quads(divideUp(groupC, 4)),
      blocks(divideUp(groupK, width), mostVectors), node_(*problem.node), transposed_(isTransposed(node_))
{
    auto const& a = node_.attrsAs<KernelWindowAttrs>();
    Extents const& w = problem.inputs[1].dims;
    rowClasses = classesOf(transposed_, w[2], a.strides[0], a.dilations[0]);
    columnClasses = classesOf(transposed_, w[3], a.strides[1], a.dilations[1]);
    for (auto const& r : rowClasses)
        for (auto const& c : columnClasses) {
            classBegin_.push_back(window);
            window += int64_t(r.size() * c.size());
        }
}

int64_t Int8Filters::quadsAtOnce(int64_t taps) const
{
    // About 16 steps of code; no run without a whole number of them, where that costs no more than half of each.
    int64_t const most = std::min(quads, taps <= 1 ? int64_t(8) : std::clamp<int64_t>(16 / taps, 1, 8));
    for (int64_t n = most; 2 * n >= most; --n)
        if (n > 0 && quads % n == 0)
            return n;
    return most;
}

Result<void> Int8Filters::pack(Extents const& dims, Blob const& w, PackedConstants& shared)
{
    auto const& a = node_.attrsAs<KernelWindowAttrs>();
    Recipe recipe{"filters of products of i8", {width, transposed_, blocks.count, groups}};
    for (auto const* list : {&a.strides, &a.dilations})
        recipe.numbers.insert(recipe.numbers.end(), list->begin(), list->end());
    recipe.numbers.insert(recipe.numbers.end(), dims.begin(), dims.end());
    TW_ASSIGN(weights_, shared.get<device::PackedFloats>(w, recipe, [&] { return packed(dims, w.as<int8_t>()); }));
    return {};
}

Result<device::PackedFloats> Int8Filters::packed(Extents const& dims, int8_t const* w) const
{
    device::PackedFloats weights(groups * lanes() * window * quads);
    if (!weights.data())
        return Error{ErrorCode::kFailedAllocation, "no memory for " +
                                                       std::to_string(groups * lanes() * window * quads * 4) +
                                                       " bytes of packed weights"};
    int64_t const elements = dims[2] * dims[3];
    int64_t const perK = transposed_ ? elements : groupC * elements, perC = transposed_ ? groupK * elements : elements;
    for (int64_t group = 0; group < groups; ++group)
        for (int64_t block = 0; block < blocks.count; ++block) {
            int64_t const first = blocks.begin(block) * width, blockLanes = blocks.size(block) * width;
            int64_t const exist = std::min(blockLanes, groupK - first);
            int8_t const* const x = w + (transposed_ ? group * groupC * perC : group * groupK * perK) + first * perK;
            auto* to = reinterpret_cast<int8_t*>(weights.data()) + (group * lanes() + first) * window * quads * 4;
            for (auto const& rows : rowClasses)
                for (auto const& columns : columnClasses) {
                    auto const taps = int64_t(columns.size());
                    int64_t const atOnce = quadsAtOnce(taps), whole = quads / atOnce * atOnce;
                    for (int64_t const row : rows)
                        for (int64_t begin = 0; begin < quads;) {
                            int64_t const n = begin < whole ? atOnce : 1;
                            for (int64_t const column : columns)
                                for (int64_t q = begin; q < begin + n; ++q, to += 4 * blockLanes)
                                    for (int64_t c = 4 * q; c < std::min(4 * q + 4, groupC); ++c) {
                                        int8_t const* const from = x + c * perC + row * dims[3] + column;
                                        for (int64_t k = 0; k < exist; ++k)
                                            to[4 * k + c % 4] = from[k * perK];
                                    }
                            begin += n;
                        }
                }
        }
    return weights;
}

int8_t const* Int8Filters::data(int64_t group, int64_t block, size_t rowClass, size_t columnClass, int64_t row) const
{
    int64_t const first = group * lanes() + blocks.begin(block) * width, blockLanes = blocks.size(block) * width;
    int64_t const before =
        classBegin_[rowClass * columnClasses.size() + columnClass] + row * int64_t(columnClasses[columnClass].size());
    return reinterpret_cast<int8_t const*>(weights_->data()) + (first * window + before * blockLanes) * quads * 4;
}

std::vector<int32_t> Int8Filters::starts(size_t rowClass, size_t columnClass, TapRange const& range) const
{
    std::vector<int32_t> list(size_t(groups * lanes()));
    for (int64_t group = 0; group < groups; ++group)
        for (int64_t block = 0; block < blocks.count; ++block)
            kernels::jit::integerStart(factors, data(group, block, rowClass, columnClass, range.first),
                                       range.count * int64_t(columnClasses[columnClass].size()) * quads,
                                       blocks.size(block) * width,
                                       list.data() + group * lanes() + blocks.begin(block) * width);
    return list;
}

} // namespace tw::ops
