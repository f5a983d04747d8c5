// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/direct_filters.h"

#include "kernels/cpu/gemm_parts.h"
#include "tactic/vector_tactic.h"

namespace tw::ops {

namespace {

Error noMemory(int64_t floats)
{
    return {ErrorCode::kFailedAllocation, fmt::format("no memory for {} bytes of packed weights", floats * 4)};
}

} // namespace

DirectFilters::DirectFilters(Problem const& problem, kernels::jit::Isa isa, kernels::jit::Factors ofSums,
                             DirectInput input, int64_t mostVectors)
    : factors(ofSums), width(kernels::jit::vectorWidth(isa)), groups(problem.node->attrsAs<KernelWindowAttrs>().groups),
      groupK(problem.outputs[0].dims[1] / groups), groupC(problem.inputs[0].dims[1] / groups),
      depth(isBytes(factors) ? divideUp(groupC, 4) : groupC), blocks(divideUp(groupK, width), mostVectors),
      node_(*problem.node), input_(input), transposed_(isTransposed(node_))
{
    auto const& a = node_.attrsAs<KernelWindowAttrs>();
    Extents const& w = problem.inputs[1].dims;
    int const axes = w.rank - 2;
    auto classes = [&](int axis) { // from the last one
        return classesOf(transposed_, w[w.rank - axis], a.strides[size_t(axes - axis)],
                         a.dilations[size_t(axes - axis)]);
    };
    planeClasses = axes > 2 ? classes(3) : classesOf(transposed_, 1, 1, 1);
    rowClasses = classes(2);
    columnClasses = classes(1);
    int64_t at = 0;
    for (auto const& p : planeClasses)
        for (auto const& r : rowClasses)
            for (auto const& c : columnClasses) {
                classBegin_.push_back(at);
                at += int64_t(p.size() * r.size() * c.size());
            }
    window = at;
}

Result<void> DirectFilters::pack(Extents const& dims, Blob const& w, float const* bias, PackedConstants& packed)
{
    auto const& a = node_.attrsAs<KernelWindowAttrs>();
    Recipe recipe{"filters of products", {width, int64_t(input_), isBytes(factors), transposed_, blocks.count, groups}};
    for (auto const* list : {&a.strides, &a.dilations})
        recipe.numbers.insert(recipe.numbers.end(), list->begin(), list->end());
    recipe.numbers.insert(recipe.numbers.end(), dims.begin(), dims.end());
    auto make = [&]() -> Result<device::PackedFloats> {
        device::PackedFloats weights(packedCount());
        if (!weights.data())
            return noMemory(packedCount());
        Places const places = placesOf(dims);
        for (int64_t i = 0; i < groups * blocks.count; ++i)
            packBlock(places, weights.data(), w.data(), i / blocks.count, i % blocks.count);
        return weights;
    };
    TW_ASSIGN(weights_, packed.get<device::PackedFloats>(w, recipe, make));
    filters_ = weights_->data();
    return isBytes(factors) ? Result<void>() : setBias(bias);
}

Result<void> DirectFilters::packAtRun(float const* bias)
{
    atRun_ = placesOf(ir::extentsOf(node_.inputs[1]->shape)); // the window's dimensions are known
    return setBias(bias);
}

void DirectFilters::packInto(float* to, void const* w, Workers& workers) const
{
    eachInPieces(workers, groups * blocks.count, packedCount() * int64_t(sizeof(float)), [&](int64_t i) {
        int64_t const group = i / blocks.count, block = i % blocks.count;
        int64_t const first = group * lanes() + blocks.begin(block) * width, blockLanes = blocks.size(block) * width;
        std::fill_n(to + first * depth * window, blockLanes * depth * window, 0.0F);
        packBlock(atRun_, to, w, group, block);
    });
}

Result<void> DirectFilters::setBias(float const* bias)
{
    bias_ = device::PackedFloats(groups * lanes());
    if (!bias_.data())
        return noMemory(groups * lanes());
    for (int64_t group = 0; bias && group < groups; ++group)
        std::copy_n(bias + group * groupK, groupK, bias_.data() + group * lanes());
    return {};
}

DirectFilters::Places DirectFilters::placesOf(Extents const& dims) const
{
    bool const bytes = isBytes(factors);
    int64_t const perC = transposed_ ? groupK * window : window;
    int64_t const rowsOfWindow = dims[dims.rank - 2], columnsOfWindow = dims[dims.rank - 1], each = bytes ? 4 : 1;
    Places p;
    for (size_t pc = 0; pc < planeClasses.size(); ++pc)
        for (size_t rc = 0; rc < rowClasses.size(); ++rc)
            for (size_t cc = 0; cc < columnClasses.size(); ++cc) {
                auto const &planes = planeClasses[pc], &rows = rowClasses[rc], &columns = columnClasses[cc];
                int64_t const begin = classBegin(pc, rc, cc) * depth;
                for (int64_t c = 0; c < depth; ++c)
                    for (size_t d = 0; d < planes.size(); ++d)
                        for (size_t i = 0; i < rows.size(); ++i)
                            for (size_t j = 0; j < columns.size(); ++j) {
                                p.from.push_back(c * each * perC +
                                                 (planes[d] * rowsOfWindow + rows[i]) * columnsOfWindow + columns[j]);
                                p.to.push_back(begin + place(c, int64_t(d * rows.size() + i), int64_t(j),
                                                             int64_t(columns.size())));
                                p.channels.push_back(std::min(each, groupC - c * each));
                            }
            }
    p.inOrder =
        !bytes && (p.from.empty() || (p.from.back() == int64_t(p.from.size()) - 1 && std::ranges::is_sorted(p.from)));
    return p;
}

void DirectFilters::packBlock(Places const& places, float* all, void const* w, int64_t group, int64_t block) const
{
    auto const& [from, to, channels, inOrder] = places;
    constexpr size_t kAtOnce = 64; // rows of lanes that stay in L1
    bool const bytes = isBytes(factors);
    int64_t const perK = transposed_ ? window : groupC * window, perC = transposed_ ? groupK * window : window;
    int64_t const first = blocks.begin(block) * width, blockLanes = blocks.size(block) * width;
    int64_t const exist = std::min(blockLanes, groupK - first);
    float* const packed = all + (group * lanes() + first) * depth * window;
    int64_t const at = (transposed_ ? group * groupC * perC : group * groupK * perK) + first * perK;
    for (size_t i = 0; bytes && i < to.size(); ++i)
        for (int64_t u = 0; u < channels[i]; ++u) {
            int8_t const* const x = static_cast<int8_t const*>(w) + at + from[i] + u * perC;
            auto* const row = reinterpret_cast<int8_t*>(packed + to[i] * blockLanes) + u;
            for (int64_t k = 0; k < exist; ++k)
                row[4 * k] = x[k * perK];
        }
    float const* const x = bytes ? nullptr : static_cast<float const*>(w) + at;
    if (inOrder)
        kernels::copyTransposed(packed, blockLanes, to.data(), x, int64_t(to.size()), exist, perK);
    for (size_t m = 0; m < to.size() && !inOrder && !bytes; m += kAtOnce)
        for (int64_t k = 0; k < exist; ++k)
            for (size_t i = m; i < std::min(m + kAtOnce, to.size()); ++i)
                packed[to[i] * blockLanes + k] = x[from[i] + k * perK];
}

float const* DirectFilters::data(int64_t group, int64_t block, size_t planes, size_t rows, size_t columns,
                                 float const* packed) const
{
    int64_t const first = group * lanes() + blocks.begin(block) * width, blockLanes = blocks.size(block) * width;
    return (packed ? packed : filters_) + (first * window + classBegin(planes, rows, columns) * blockLanes) * depth;
}

std::vector<int32_t> DirectFilters::starts(size_t rows, size_t columns, TapRange const& range) const
{
    std::vector<int32_t> list(size_t(groups * lanes()));
    int64_t const elements = int64_t(columnClasses[columns].size()) * depth; // of a filter row
    for (int64_t group = 0; group < groups; ++group)
        for (int64_t block = 0; block < blocks.count; ++block) {
            int64_t const blockLanes = blocks.size(block) * width;
            float const* const w = data(group, block, 0, rows, columns) + range.first * elements * blockLanes;
            kernels::jit::integerStart(factors, reinterpret_cast<int8_t const*>(w), range.count * elements, blockLanes,
                                       list.data() + group * lanes() + blocks.begin(block) * width);
        }
    return list;
}

int64_t DirectFilters::stepsAtOnce(int64_t taps) const
{
    if (!isBytes(factors))
        return channelsAtOnce(taps);
    // About 16 steps of code; no run without a whole number of them, where that costs no more than half of each.
    int64_t const most = std::min(depth, taps <= 1 ? int64_t(8) : std::clamp<int64_t>(16 / taps, 1, 8));
    for (int64_t n = most; 2 * n >= most; --n)
        if (n > 0 && depth % n == 0)
            return n;
    return most;
}

std::optional<PanelOrder> DirectFilters::panelOrder(Problem const& p, kernels::jit::Isa isa, DirectInput input,
                                                    Config const& config)
{
    Extents const& w = p.inputs[1].dims;
    int64_t const width = kernels::jit::vectorWidth(isa);
    if (input != DirectInput::kNhwc || isTransposed(*p.node) || w.rank != 4 ||
        p.node->attrsAs<KernelWindowAttrs>().groups != 1 || w[0] % width != 0)
        return std::nullopt;
    PanelOrder order{{}, int32_t(w[1]), int32_t(w[2]), int32_t(w[3]), int32_t(channelsAtOnce(w[3])), false};
    ChannelBlocks const blocks(w[0] / width, config[0]);
    for (int64_t i = 0; i < blocks.count; ++i)
        order.panels.push_back(int32_t(blocks.size(i) * width));
    return order;
}
Result<void> DirectFilters::takePanels(BlobPtr const& panels, float const* bias)
{
    panels_ = panels;
    filters_ = panels->as<float>();
    return setBias(bias);
}

// Row of lanes, within its classes, of element c and tap j of filter row i with s taps.
int64_t DirectFilters::place(int64_t c, int64_t i, int64_t j, int64_t s) const
{
    if (input_ == DirectInput::kNchw)
        return (i * s + j) * depth + c;
    int64_t const u = stepsAtOnce(s), whole = depth / u * u, row = i * depth * s;
    return c < whole ? row + (c / u * s + j) * u + c % u : row + c * s + j;
}

} // namespace tw::ops
