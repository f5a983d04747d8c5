// SPDX-License-Identifier: Apache-2.0
// Layers that move elements and compute nothing.
#include <algorithm>

#include "parsers/caffe/node.h"

namespace tw::caffe {

using importers::describe;

namespace {

// The bottom itself under other names.
void importPass(CaffeNode& node)
{
    node.expect(1, node.nbOutputs());
    for (int i = 0; i < node.nbOutputs(); ++i)
        node.setTop(i, node.x(), node.caffeRank(0));
}

void importSilence(CaffeNode&) {}

void importConcat(CaffeNode& node)
{
    auto const& p = node.layer().concat_param();
    node.check(node.nbInputs() >= 1, "it has no bottom");
    node.expect(node.nbInputs(), 1);
    int const axis = p.has_axis()         ? node.axisOf(p.axis())
                     : p.has_concat_dim() ? node.axisOf(asInt(node, p.concat_dim(), "concat_dim"))
                                          : node.channelAxis();
    int rank = 0; // dimensions of 1 may be missing at the end
    for (int i = 0; i < node.nbInputs(); ++i)
        rank = std::max(rank, node.dims(i).nbDims);
    std::vector<ITensor*> parts;
    for (int i = 0; i < node.nbInputs(); ++i)
        parts.push_back(&node.atLeast(node.x(i), rank - 1 + node.shift()));
    node.setTop(node.concat(parts, axis));
}

void importSlice(CaffeNode& node)
{
    auto const& p = node.layer().slice_param();
    node.expect(1, node.nbOutputs());
    node.check(node.nbOutputs() >= 1, "it has no top");
    int const axis =
        node.axisOf(p.has_slice_dim() && !p.has_axis() ? asInt(node, p.slice_dim(), "slice_dim") : p.axis());
    Dims const d = node.dims();
    int32_t const extent = d.d[axis], tops = node.nbOutputs();
    std::vector<int32_t> at{0};
    for (uint32_t point : p.slice_point())
        at.push_back(asInt(node, point, "slice_point"));
    if (p.slice_point_size() == 0) {
        if (extent % tops)
            node.invalid(fmt::format("dimension {} of shape {} cannot be cut into {} tops", axis, describe(d), tops));
        for (int32_t i = 1; i < tops; ++i)
            at.push_back(extent / tops * i);
    }
    at.push_back(extent);
    bool const isRising = std::adjacent_find(at.begin(), at.end(), std::greater_equal<>()) == at.end();
    if (int32_t(at.size()) != tops + 1 || !isRising)
        node.invalid(fmt::format("slice points [{}] do not cut an extent of {} into {} tops",
                                 fmt::join(p.slice_point(), ", "), extent, tops));
    Sizes sizes = axis == 0 ? node.sizesOf(node.x()) : node.sizesWithBatch(node.x());
    for (int32_t i = 0; i < tops; ++i) {
        Sizes start(size_t(d.nbDims), Size(0));
        start[size_t(axis)] = Size(at[size_t(i)]);
        sizes[size_t(axis)] = Size(at[size_t(i) + 1] - at[size_t(i)]);
        node.setTop(i, node.slice(node.x(), start, sizes, Sizes(size_t(d.nbDims), Size(1))), node.caffeRank(0));
    }
}

// The extents of a second bottom, from an axis on.
void importCrop(CaffeNode& node)
{
    auto const& p = node.layer().crop_param();
    node.expect(2, 1);
    int const rank = node.caffeRank(0), first = node.axis(p.axis(), rank), cropped = rank - first;
    int const axis = node.axisOf(p.axis());
    if (p.offset_size() > 1 && p.offset_size() != cropped)
        node.invalid(fmt::format("it has {} offsets for {} dimensions", p.offset_size(), cropped));
    Dims const d = node.dims(), reference = node.dims(1);
    if (reference.nbDims != d.nbDims)
        node.invalid(fmt::format("its bottoms have the shapes {} and {}", describe(d), describe(reference)));
    int const spatial = axis - (d.nbDims - 2); // of height and width: a padding layer, as in 8.5
    Sizes start(size_t(d.nbDims), Size(0)),
        sizes = spatial < 0 && axis > 0 ? node.sizesWithBatch(node.x()) : node.sizesOf(node.x());
    for (int i = 0; i < cropped; ++i) {
        size_t const k = size_t(axis + i);
        int64_t const offset = p.offset_size() == 0 ? 0 : p.offset(p.offset_size() == 1 ? 0 : i);
        if (offset + reference.d[k] > d.d[k])
            node.invalid(fmt::format("offset {} and an extent of {} leave dimension {} of shape {}", offset,
                                     reference.d[k], k, describe(d)));
        start[k] = Size(offset);
        sizes[k] = Size(reference.d[k]);
    }
    if (spatial < 0)
        return node.setTop(node.slice(node.x(), start, sizes, Sizes(size_t(d.nbDims), Size(1))));
    nvinfer1::DimsHW before(0, 0), after(0, 0);
    for (int i = spatial; i < 2; ++i) {
        size_t const k = size_t(d.nbDims - 2 + i);
        before.d[i] = -int32_t(start[k].value);
        after.d[i] = int32_t(sizes[k].value + start[k].value - d.d[k]);
    }
    node.setTop(node.out(node.added(node.network().addPaddingNd(node.x(), before, after))));
}

void importReshape(CaffeNode& node)
{
    auto const& p = node.layer().reshape_param();
    node.expect(1, 1);
    int const rank = node.caffeRank(0), shift = node.shift();
    // Caffe counts the places between dimensions: -1 is behind the last.
    int const first = p.axis() < 0 ? rank + 1 + p.axis() : p.axis();
    int64_t const end = p.num_axes() < 0 ? rank : int64_t(first) + p.num_axes();
    if (p.num_axes() < -1 || first < 0 || first > rank || end > rank)
        node.invalid(fmt::format("axis {} and num_axes {} do not fit {} dimensions", p.axis(), p.num_axes(), rank));
    Dims const d = node.dims();
    std::vector<int64_t> whole; // of Caffe; 0: an implicit batch
    auto const extent = [&](int i) { return i < shift ? 0 : int64_t(d.d[i - shift]); };
    for (int i = 0; i < first; ++i)
        whole.push_back(extent(i));
    int inferred = 0;
    for (int i = 0; i < p.shape().dim_size(); ++i) {
        int64_t const dim = p.shape().dim(i);
        if (dim < -1 || dim > INT32_MAX || (dim == 0 && first + i >= rank))
            node.invalid(fmt::format("dim {} is {}", i, dim));
        inferred += dim == -1;
        whole.push_back(dim == 0 ? extent(first + i) : dim);
    }
    for (int i = int(end); i < rank; ++i)
        whole.push_back(extent(i));
    if (inferred > 1)
        node.invalid("-1 stands twice in its shape");
    if (shift == 1) {
        // A file for one image may say 1 for the batch.
        node.check(!whole.empty() && (whole[0] == 0 || (whole[0] == 1 && first == 0)),
                   "the first dim must be 0, the batch, in a network with an implicit batch dimension");
        whole.erase(whole.begin());
    }
    node.check(std::find(whole.begin(), whole.end(), 0) == whole.end(), "a dimension is 0");
    // A batch that stays, which a file for one image may say to be 1, is copied, so that it may become another one.
    bool const keepsBatch = shift == 0 && !whole.empty() && whole[0] == d.d[0];
    if (keepsBatch)
        whole.erase(whole.begin());
    int const kept = keepsBatch ? 1 : 0;
    int const newRank = kept + int(whole.size()) + shift;
    node.setTop(0, node.shaped(node.x(), kept, whole), newRank);
}

// From an axis on [n, ..., k] ends in 1s, so that it is an image of k channels, too.
void importFlatten(CaffeNode& node)
{
    auto const& p = node.layer().flatten_param();
    node.expect(1, 1);
    int const rank = node.caffeRank(0), first = node.axis(p.axis(), rank),
              last = node.axis(p.end_axis(), rank, "end_axis");
    if (last < first)
        node.invalid(fmt::format("axis {} is behind end_axis {}", p.axis(), p.end_axis()));
    int const axis = node.axisOf(p.axis());
    Dims const d = node.dims();
    std::vector<int64_t> shape{-1};
    for (int i = last + 1; i < rank; ++i)
        shape.push_back(d.d[i - node.shift()]);
    int const behindBatch = axis - 1 + node.shift() + int(shape.size());
    for (int i = behindBatch; i < 3; ++i)
        shape.push_back(1);
    node.setTop(0, node.shaped(node.x(), axis, shape), rank - (last - first));
}

void importPermute(CaffeNode& node)
{
    auto const& order = node.layer().permute_param().order();
    node.expect(1, 1);
    int const rank = node.caffeRank(0), shift = node.shift();
    std::vector<int> perm; // Caffe's: given ones first, the others behind them
    for (uint32_t o : order) {
        if (o >= uint32_t(rank) || std::find(perm.begin(), perm.end(), int(o)) != perm.end())
            node.invalid(fmt::format("order [{}] is none of {} dimensions", fmt::join(order, ", "), rank));
        perm.push_back(int(o));
    }
    for (int i = 0; i < rank; ++i)
        if (std::find(perm.begin(), perm.end(), i) == perm.end())
            perm.push_back(i);
    node.check(rank > 0 && perm[0] == 0, "order must begin with 0, the batch");
    std::vector<int> tensorPerm;
    for (int i = shift; i < rank; ++i)
        tensorPerm.push_back(perm[size_t(i)] - shift);
    for (int i = rank - shift; i < node.dims().nbDims; ++i)
        tensorPerm.push_back(i);
    node.setTop(node.transpose(node.x(), tensorPerm));
}

void importTile(CaffeNode& node)
{
    auto const& p = node.layer().tile_param();
    node.expect(1, 1);
    if (p.tiles() < 1)
        node.invalid(fmt::format("tiles is {}", p.tiles()));
    int const axis = node.axisOf(p.axis());
    size_t const rank = size_t(node.dims().nbDims);
    int32_t const one = node.dims().d[axis];
    int64_t const extent = int64_t(one) * p.tiles();
    node.check(extent <= INT32_MAX, fmt::format("{} tiles of {} are too many", p.tiles(), one));
    Sizes sizes = axis == 0 ? node.sizesOf(node.x()) : node.sizesWithBatch(node.x());
    sizes[size_t(axis)] = Size(extent);
    node.setTop(node.slice(node.x(), Sizes(rank, Size(0)), sizes, Sizes(rank, Size(1)), nvinfer1::SliceMode::kWRAP));
}

// Channels [g, k] become [k, g].
void importShuffleChannel(CaffeNode& node)
{
    node.expect(1, 1);
    int32_t const groups = asInt(node, node.layer().shuffle_channel_param().group(), "group", 1);
    ITensor& x = node.atLeast(node.x(), 3);
    Dims const d = x.getDimensions();
    int const axis = d.nbDims - 3;
    int32_t const channels = d.d[axis];
    if (channels % groups)
        node.invalid(fmt::format("group {} does not divide the {} channels", groups, channels));
    auto& layer = node.added(node.network().addShuffle(x));
    Dims split = d;
    split.nbDims = d.nbDims + 1;
    split.d[axis] = groups;
    split.d[axis + 1] = channels / groups;
    split.d[axis + 2] = d.d[axis + 1];
    split.d[axis + 3] = d.d[axis + 2];
    if (axis > 0)
        split.d[0] = 0;
    layer.setReshapeDimensions(split);
    nvinfer1::Permutation swapped{};
    for (int i = 0; i < split.nbDims; ++i)
        swapped.order[i] = i == axis ? axis + 1 : i == axis + 1 ? axis : i;
    layer.setSecondTranspose(swapped);
    node.setTop(node.shaped(node.out(layer), axis, {channels, d.d[axis + 1], d.d[axis + 2]}));
}

} // namespace

void addShapes(LayerMap& map)
{
    map["Dropout"] = importPass;
    map["Split"] = importPass;
    map["Silence"] = importSilence;
    map["Concat"] = importConcat;
    map["Slice"] = importSlice;
    map["Crop"] = importCrop;
    map["Reshape"] = importReshape;
    map["Flatten"] = importFlatten;
    map["Permute"] = importPermute;
    map["Tile"] = importTile;
    map["ShuffleChannel"] = importShuffleChannel;
}

} // namespace tw::caffe
