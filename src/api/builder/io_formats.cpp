// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "api/builder/parts.h"
#include "base/round.h"

namespace tw::api {

bool isLegal(Format f, DataType type)
{
    switch (f) {
    case Format::kLinear:
        return true;
    case Format::kCHW4:
    case Format::kCDHW32:
        return isNarrowFloat(type) || isQuantized(type);
    case Format::kCHW32:
        return isReal(type);
    case Format::kHWC:
        return type == DataType::kFloat;
    case Format::kChannelsLast:
        return false;
    default:
        return type == DataType::kHalf;
    }
}

namespace {

using nvinfer1::TensorFormat;

constexpr char const* kDlaFormats =
    "inputs in kDLA_LINEAR and kDLA_HWC4 (FP16, INT8), kCHW16 (FP16) and kCHW32 (INT8), "
    "outputs in the same but kDLA_HWC4";

// Every format is allowed at first.
bool isSet(TensorObject const& t)
{
    return t.formats != TensorObject().formats;
}

std::string listOf(std::vector<Format> const& list)
{
    std::string text;
    for (Format f : list)
        text += (text.empty() ? "" : ", ") + publicNameOf(f);
    return text;
}

// The one of the formats that only DLA has that the tensor is allowed and can be in; kNone: none.
dla::Layout layoutOf(TensorObject const& t, ir::Value const& v, DlaTensor const& onDla, std::vector<std::string>& why)
{
    int const rank = v.rank();
    bool const fits = (isLegal(Format::kCHW16, v.type) || isQuantized(v.type)) && !v.host && rank >= 3;
    auto isAllowed = [&](dla::Layout l) { return fits && (t.formats >> int(l) & 1) != 0; };
    if (isAllowed(dla::Layout::kLinear))
        return dla::Layout::kLinear;
    if (!isAllowed(dla::Layout::kHwc4))
        return dla::Layout::kNone;
    ir::Dim const& channels = v.shape[size_t(rank - 3)];
    if (!onDla.whyNoImage.empty())
        why.push_back("kDLA_HWC4: " + onDla.whyNoImage);
    else if (!channels.isConst() || dla::channelsTogether(channels.value()) == 0)
        why.push_back("kDLA_HWC4: it has " + channels.str() + " channels, allowed are 1, 3 and 4");
    return why.empty() ? dla::Layout::kHwc4 : dla::Layout::kNone;
}

// Whether DLA has the format, too.
bool isOfDla(Format f, DataType type)
{
    return f == Format::kCHW16 ? isLegal(f, type) : f == Format::kCHW32 && isQuantized(type);
}

// `onDla`: null: no layer on DLA is beside the tensor. `layout`: see ioFormatsOf().
Result<builder::IoFormat> formatsOf(TensorObject const& t, ir::Value const& v, char const* what, DlaTensor const* onDla,
                                    dla::Layout& layout)
{
    int const rank = v.rank() - (t.network->implicitBatch ? 1 : 0); // a batch is no channel
    builder::IoFormat io;
    std::string const name = std::string(what) + " '" + t.name + "'";
    if (!isSet(t)) { // clients expect the plain one then
        if (onDla && onDla->isStrict)
            return unsupported("{} ({}) would be linear, and DLA takes {}; allow one (ITensor::setType(), "
                               "setAllowedFormats()), or set BuilderFlag::kGPU_FALLBACK",
                               name, nameOf(v.type), kDlaFormats);
        return io;
    }
    io.allowed.clear();
    std::vector<Format> asked, legal;
    bool isForDla = false;
    for (int i = 0; i < nvinfer1::EnumMax<TensorFormat>(); ++i) {
        bool const isAsked = t.formats >> i & 1;
        auto const f = static_cast<Format>(i);
        if (!isKnown(f)) {
            isForDla = isForDla || isAsked;
            continue;
        }
        bool const fits = isLegal(f, v.type) && fitsRank(f, rank) && (!v.host || f == Format::kLinear) &&
                          (!onDla || !onDla->isStrict || isOfDla(f, v.type));
        if (isAsked)
            asked.push_back(f);
        if (fits)
            legal.push_back(f);
        if (isAsked && fits)
            io.allowed.push_back(f);
    }
    if (!io.allowed.empty())
        return io;
    std::vector<std::string> why;
    if (onDla)
        layout = layoutOf(t, v, *onDla, why);
    if (layout != dla::Layout::kNone) {
        io.allowed = {Format::kLinear};
        return io;
    }
    if (asked.empty() && isForDla && !onDla)
        return unsupported("{}: its allowed formats are those of DLAs, and no layer on a DLA is beside it", name);
    if (onDla && (isForDla || onDla->isStrict))
        return unsupported("{} of type {} and rank {} can be in none of its allowed formats; DLA takes {}{}", name,
                           nameOf(v.type), rank, kDlaFormats, why.empty() ? "" : ". " + why[0]);
    return invalidArgument("{} of type {} and rank {}{} can be in none of its allowed formats ({}); it can be in {}",
                           name, nameOf(v.type), rank, v.host ? ", a shape tensor," : "", listOf(asked), listOf(legal));
}

} // namespace

std::string formatWords(Format format, std::string const& type)
{
    int const vector = vectorOf(format);
    std::string const text = type + " format";
    if (format == Format::kLinear)
        return "Row major linear " + text;
    if (isByPixel(format))
        return "Channel major " + text + (vector > 1 ? fmt::format(" where channel % {} == 0", vector) : std::string());
    char const* const width = vector == 2 ? "Two" : vector == 4 ? "Four" : vector == 16 ? "Sixteen" : "Thirty-two";
    return width + std::string(" wide channel vectorized row major ") + text +
           (leastRankOf(format) > 3 ? " with 3 spatial dimensions" : "");
}

std::string publicNameOf(Format format)
{
    if (format == Format::kChannelsLast)
        return "internal";
    std::string name = nameOf(format);
    std::ranges::transform(name, name.begin(), [](char c) { return char(std::toupper(c)); });
    return "k" + name;
}

Result<builder::IoFormats> ioFormatsOf(NetworkObject const& network, ir::Graph const& graph, bool isDirect,
                                       DlaTensors const& onDla, std::map<std::string, dla::Layout>* layouts)
{
    builder::IoFormats out;
    auto add = [&](TensorObject const& t, std::vector<ir::Value*> const& values, char const* what) -> Result<void> {
        for (ir::Value const* v : values)
            if (v->name == t.name) {
                auto const at = onDla.find(t.name);
                bool const isOnDla = at != onDla.end();
                dla::Layout layout = dla::Layout::kNone;
                TW_ASSIGN(builder::IoFormat io, formatsOf(t, *v, what, isOnDla ? &at->second : nullptr, layout));
                // What a DLA reads as it is, its model converts.
                io.isDirect = isDirect && isSet(t) && !v->host && !isOnDla;
                if (layout != dla::Layout::kNone && layouts)
                    layouts->emplace(t.name, layout);
                out[t.name] = std::move(io);
            }
        return {};
    };
    for (auto const& t : network.inputs)
        TW_TRY(add(*t, graph.inputs, "network input"));
    for (TensorObject const* t : network.allOutputs())
        TW_TRY(add(*t, graph.outputs, "network output"));
    return out;
}

nvinfer1::Dims stridesOf(Format format, Extents const& dims)
{
    nvinfer1::Dims strides{};
    strides.nbDims = dims.rank;
    bool const isPacked = format != Format::kLinear && fitsRank(format, dims.rank);
    int const axis = isPacked ? channelAxis(format, dims.rank) : 0;
    int64_t step = 1;
    auto take = [&](int d, int64_t extent) {
        strides.d[d] = step < 0 ? -1 : int32_t(step);
        step = extent < 0 || step < 0 ? -1 : step * extent;
    };
    // In the order of memory, innermost first.
    int64_t const vectors = isPacked && dims[axis] >= 0 ? divideUp(dims[axis], vectorOf(format))
                            : dims.rank                 ? dims[axis]
                                                        : 0;
    bool const isByPixels = isPacked && isByPixel(format);
    if (isByPixels)
        take(axis, vectors);
    for (int d = dims.rank - 1; d >= 0; --d)
        if (!isByPixels || d != axis)
            take(d, isPacked && d == axis ? vectors : dims[d]);
    return strides;
}

} // namespace tw::api
