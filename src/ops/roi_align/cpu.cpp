// SPDX-License-Identifier: Apache-2.0
// Samples are mixes along both axes, so that a bin is a mix of rows that are mixes of pixels: of each roi and axis the
// taps of all bins are found first, equal pixels taken together, then taken from every channel. Rows of the map are mixed
// for a whole row of bins.
#include <algorithm>
#include <cmath>

#include "base/element.h"
#include "base/round.h"
#include "ops/roi_align/kernels.h"
#include "ops/roi_align/op.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::roi_align {

namespace {

constexpr int64_t kChannels = 32;       // that a piece of work takes
constexpr int64_t kPixelChannels = 128; // of maps that lie by pixels

struct Bin
{
    int32_t first, count; // of its taps
    bool hasSamples, hasZero;
};

struct Span
{
    int32_t begin, end; // pixels that any bin takes
};

struct Roi
{
    int32_t image, level; // image below 0: there is nothing to take
    Span columns;
};

// Where things lie in the workspace: rois, then bins, then taps of both axes.
struct Layout
{
    Layout(ir::Node const& node, std::span<TensorRef const> in)
        : a(node.attrsAs<Attrs>()), rois(in[kRois].dims.volume() / 4), bins(a.height + a.width)
    {
        int64_t h = 0, w = 0;
        for (TensorRef const& map : in.subspan(kMaps)) {
            h = std::max(h, map.dims[2]);
            w = std::max(w, map.dims[3]);
        }
        down = tapsOf(a, a.height, h);
        across = tapsOf(a, a.width, w);
    }
    int64_t bytes() const { return rois * int64_t(sizeof(Roi) + size_t(bins) * sizeof(Bin) + size_t(taps()) * 12); }
    int64_t taps() const { return down + across; }

    Attrs const& a;
    int64_t rois, bins, down = 0, across = 0;
};

float within(float v, float high)
{
    return v > 0 ? std::min(v, high) : 0;
}

struct Range
{
    float low, high;
};

Range tidied(Attrs const& a, Range r, float side)
{
    float const most = a.isAbsolute ? side : 1;
    float const low = within(std::fmin(r.low, r.high), most), high = within(std::fmax(r.low, r.high), most);
    return a.isAbsolute ? Range{low / side, high / side} : Range{low, high};
}

// Makes the taps of one axis.
class Axis
{
public:
    Axis(Attrs const& a, Range v, int32_t level, int64_t bins, int64_t size)
        : a_(a), bins_(bins), size_(int32_t(size)), samples_(a.samples)
    {
        bool const isCorners = a.grid == Grid::kCorners;
        float const unit = a.boxes == Boxes::kScaled ? std::ldexp(float(a.scale), -level)
                           : isCorners               ? float(size - 1)
                                                     : float(size);
        if (a.grid == Grid::kPooled) {
            begin_ = std::round(v.low * unit);
            step_ = std::fmax(std::round(v.high * unit) - begin_ + 1, 1.0F) / float(bins);
            return;
        }
        float const moved = a.grid == Grid::kHalfPixel ? 0.5F : 0.0F;
        begin_ = v.low * unit - moved;
        float length = v.high * unit - moved - begin_;
        if (isCorners && a.boxes == Boxes::kNormalized)
            length = (v.high - v.low) * unit;
        if (a.grid == Grid::kAtLeastOne)
            length = std::fmax(length, 1.0F);
        if (samples_ == 0) {
            float const needed = std::ceil(length / float(bins)), least = a.boxes == Boxes::kTidied ? 1 : 0;
            samples_ = int64_t(needed > least ? std::min(needed, float(kMostSamples)) : least);
        }
        offset_ = isCorners || a.grid == Grid::kEdges ? 0.0F : 0.5F;
        step_ = length / float(isCorners ? bins - 1 : bins);
        if (isCorners && bins == 1) {
            begin_ = 0.5F * (v.low + v.high) * unit;
            step_ = 0;
        }
    }

    Span find(Bin* bins, Tap* taps) const
    {
        Span span{size_, 0};
        int32_t count = 0;
        for (int64_t i = 0; i < bins_; ++i) {
            Bin& bin = bins[i] = {count, 0, true, false};
            if (a_.grid == Grid::kPooled)
                pool(i, bin, taps + count);
            else
                mix(i, bin, taps + count);
            for (Tap const& t : std::span(taps + count, size_t(bin.count))) {
                span.begin = std::min(span.begin, t.at);
                span.end = std::max(span.end, t.at + 1);
            }
            count += bin.count;
        }
        return span;
    }

private:
    void pool(int64_t i, Bin& bin, Tap* taps) const
    {
        auto const pixel = [&](float v) { return int32_t(within(v + begin_, float(size_))); };
        int32_t const begin = pixel(std::floor(float(i) * step_)), end = pixel(std::ceil(float(i + 1) * step_));
        for (int32_t at = begin; at < end; ++at)
            taps[bin.count++] = {at, 1, 1};
        bin.hasSamples = begin < end;
    }

    void mix(int64_t i, Bin& bin, Tap* taps) const
    {
        bin.hasSamples = samples_ > 0;
        float const last = float(size_ - 1);
        for (int64_t k = 0; k < samples_; ++k) {
            float const part = (float(k) + offset_) / float(samples_);
            float place = begin_ + step_ * (float(i) + part);
            bool const isFaded = a_.outside == Outside::kFade && !(place >= -1 && place <= float(size_));
            if (isFaded || (a_.outside == Outside::kZero && !(place >= 0 && place <= last))) {
                bin.hasZero = true;
                continue;
            }
            place = within(place, last);
            int32_t const low = int32_t(place);
            float const behind = place - float(low);
            add(bin, taps, low, 1 - behind);
            if (behind > 0)
                add(bin, taps, low + 1, behind);
            else
                bin.hasZero = true;
        }
        if (a_.mode == Mode::kAverage)
            for (int32_t t = 0; t < bin.count; ++t)
                taps[t].weight /= float(samples_);
    }

    // Samples follow each other: a pixel that was there is one of the last two.
    void add(Bin& bin, Tap* taps, int32_t at, float weight) const
    {
        for (int32_t t = bin.count - 1; t >= 0 && t >= bin.count - 2; --t)
            if (taps[t].at == at) {
                taps[t].weight = a_.mode == Mode::kMax ? std::max(taps[t].weight, weight) : taps[t].weight + weight;
                taps[t].least = std::min(taps[t].least, weight);
                return;
            }
        taps[bin.count++] = {at, weight, weight};
    }

    Attrs const& a_;
    int64_t bins_;
    int32_t size_;
    int64_t samples_;
    float begin_ = 0, step_ = 0, offset_ = 0;
};

class Regions
{
public:
    Regions(ir::Node const& node, RunArgs& args)
        : layout_(node, args.inputs), a_(layout_.a), args_(args), maps_(args.inputs.subspan(kMaps)),
          rois_(static_cast<Roi*>(args.workspace)), bins_(reinterpret_cast<Bin*>(rois_ + layout_.rois)),
          taps_(reinterpret_cast<Tap*>(bins_ + layout_.rois * layout_.bins))
    {}

    void run()
    {
        findAll();
        withFloat(maps_[0].type, [&](auto element) {
            inParts(kChannels, [&](int64_t r, int64_t first, int64_t end) { take<decltype(element)>(r, first, end); });
        });
    }

    // Of maps that lie by pixels.
    void runPixels(Kernels const& kernels, kernels::ChannelsLastKernels const& moves)
    {
        findAll();
        inParts(kPixelChannels, [&](int64_t r, int64_t first, int64_t end) {
            if (isByPixel(args_.outputs[0].format))
                takePixels(kernels, r, first, end);
            else
                takeTurned(kernels, moves, r, first, end);
        });
    }

private:
    int64_t bytes() const { return args_.outputs[0].sizeBytes() * 4; } // that are read, about
    void findAll()
    {
        inPieces(*args_.workers, layout_.rois, bytes(), [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r)
                find(r);
        });
    }
    // Calls f(roi, first channel, behind the last one).
    template <class F>
    void inParts(int64_t each, F const& f) const
    {
        int64_t const channels = maps_[0].dims[1], parts = divideUp(channels, each);
        inPieces(*args_.workers, layout_.rois * parts, bytes(), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
                f(i / parts, i % parts * each, std::min(channels, (i % parts + 1) * each));
        });
    }

    PixelBin binAt(int64_t r, int64_t bin, int64_t channel) const
    {
        Roi const& roi = rois_[r];
        if (roi.image < 0)
            return {};
        TensorRef const& map = maps_[size_t(roi.level)];
        Bin const &down = binsOf(r)[bin / a_.width], &across = binsOf(r)[a_.height + bin % a_.width];
        int64_t const step = map.pixelStride();
        return {map.as<float>() + roi.image * map.dims[2] * map.dims[3] * step + channel,
                map.dims[3],
                step,
                tapsOf(r) + down.first,
                tapsOf(r) + layout_.down + across.first,
                down.count,
                across.count};
    }

    void takePixels(Kernels const& kernels, int64_t r, int64_t first, int64_t end) const
    {
        TensorRef const& y = args_.outputs[0];
        int64_t const bins = a_.height * a_.width, step = y.pixelStride();
        for (int64_t bin = 0; bin < bins; ++bin)
            kernels.mix(binAt(r, bin, first), end - first, y.as<float>() + (r * bins + bin) * step + first);
    }

    // Some bins at a time are put together by pixels, then turned into rows.
    void takeTurned(Kernels const& kernels, kernels::ChannelsLastKernels const& moves, int64_t r, int64_t first,
                    int64_t end) const
    {
        constexpr int64_t kBins = 64;
        alignas(kCacheLine) float pixels[kBins * kPixelChannels];
        int64_t const bins = a_.height * a_.width;
        float* const y = args_.outputs[0].as<float>() + (r * maps_[0].dims[1] + first) * bins;
        for (int64_t from = 0; from < bins; from += kBins) {
            int64_t const count = std::min(kBins, bins - from);
            for (int64_t bin = 0; bin < count; ++bin)
                kernels.mix(binAt(r, from + bin, first), end - first, pixels + bin * kPixelChannels);
            moves.fromNhwc(pixels, kPixelChannels, y + from, bins, end - first, count);
        }
    }

    Bin* binsOf(int64_t r) const { return bins_ + r * layout_.bins; }
    Tap* tapsOf(int64_t r) const { return taps_ + r * layout_.taps(); }

    void find(int64_t r)
    {
        float v[4];
        TensorRef const &rois = args_.inputs[kRois], &images = args_.inputs[kImages];
        withFloat(rois.type, [&](auto element) {
            for (int i = 0; i < 4; ++i)
                v[i] = loadElement(rois.as<decltype(element)>()[4 * r + i]);
        });
        Range y{v[1], v[3]}, x{v[0], v[2]};
        if (a_.isRowFirst)
            std::swap(y, x);
        if (a_.boxes == Boxes::kTidied) {
            y = tidied(a_, y, float(a_.imageHeight));
            x = tidied(a_, x, float(a_.imageWidth));
        }
        float h = y.high - y.low, w = x.high - x.low;
        bool const isEmpty = !(h > 0 && w > 0);
        if (a_.isPlusOne) {
            h += 1 / float(a_.imageHeight);
            w += 1 / float(a_.imageWidth);
        }
        float const area = h * w;
        int64_t const above =
            std::count_if(a_.areas.begin(), a_.areas.end(), [&](double limit) { return area > float(limit); });
        Roi& roi = rois_[r];
        roi.level = int32_t(std::min<int64_t>(above, int64_t(maps_.size()) - 1));
        roi.image = images.data ? images.as<int32_t>()[r] : int32_t(r / rois.dims[1]);
        Extents const& map = maps_[size_t(roi.level)].dims;
        if (roi.image >= map[0] || map[2] == 0 || map[3] == 0 || (a_.isEmptySkipped && isEmpty))
            roi.image = -1;
        if (roi.image < 0)
            return;
        Axis(a_, y, roi.level, a_.height, map[2]).find(binsOf(r), tapsOf(r));
        roi.columns = Axis(a_, x, roi.level, a_.width, map[3]).find(binsOf(r) + a_.height, tapsOf(r) + layout_.down);
    }

    template <class T>
    void take(int64_t r, int64_t firstChannel, int64_t endChannel) const
    {
        Roi const& roi = rois_[r];
        int64_t const bins = a_.height * a_.width, channels = maps_[0].dims[1];
        T* y = args_.outputs[0].as<T>() + (r * channels + firstChannel) * bins;
        if (roi.image < 0) {
            std::fill(y, y + (endChannel - firstChannel) * bins, T{});
            return;
        }
        TensorRef const& map = maps_[size_t(roi.level)];
        int64_t const h = map.dims[2], w = map.dims[3];
        for (int64_t c = firstChannel; c < endChannel; ++c, y += bins) {
            T const* x = map.as<T>() + (roi.image * channels + c) * h * w;
            for (int64_t i = 0; i < a_.height; ++i) {
                Bin const& row = binsOf(r)[i];
                std::span const taps(tapsOf(r) + row.first, size_t(row.count));
                if (a_.mode == Mode::kMax)
                    largest(r, row, taps, x, w, y + i * a_.width);
                else
                    mixed(r, taps, x, w, roi.columns, y + i * a_.width);
            }
        }
    }

    // A row of bins: some columns of the rows' mix at a time.
    template <class T>
    void mixed(int64_t r, std::span<Tap const> rows, T const* x, int64_t w, Span columns, T* y) const
    {
        constexpr int32_t kColumns = 256;
        Bin const* const bins = binsOf(r) + a_.height;
        Tap const* const taps = tapsOf(r) + layout_.down;
        if (columns.end - columns.begin > kColumns) {
            for (int64_t j = 0; j < a_.width; ++j) {
                float sum = 0;
                for (Tap const& row : rows)
                    for (Tap const& t : std::span(taps + bins[j].first, size_t(bins[j].count)))
                        sum += row.weight * t.weight * loadElement(x[row.at * w + t.at]);
                storeElement(y[j], sum);
            }
            return;
        }
        float mix[kColumns];
        int32_t const count = std::max(columns.end - columns.begin, 0);
        std::fill(mix, mix + count, 0.0F);
        for (Tap const& row : rows) {
            T const* const from = x + row.at * w + columns.begin;
            for (int32_t k = 0; k < count; ++k)
                mix[k] += row.weight * loadElement(from[k]);
        }
        for (int64_t j = 0; j < a_.width; ++j) {
            float sum = 0;
            for (Tap const& t : std::span(taps + bins[j].first, size_t(bins[j].count)))
                sum += t.weight * mix[t.at - columns.begin];
            storeElement(y[j], sum);
        }
    }

    template <class T>
    void largest(int64_t r, Bin const& down, std::span<Tap const> rows, T const* x, int64_t w, T* y) const
    {
        Bin const* const bins = binsOf(r) + a_.height;
        Tap const* const taps = tapsOf(r) + layout_.down;
        for (int64_t j = 0; j < a_.width; ++j) {
            Bin const& across = bins[j];
            bool const hasSamples = down.hasSamples && across.hasSamples;
            float most = !hasSamples || down.hasZero || across.hasZero ? 0 : NAN;
            for (Tap const& row : rows)
                for (Tap const& t : std::span(taps + across.first, size_t(hasSamples ? across.count : 0))) {
                    float const v = loadElement(x[row.at * w + t.at]);
                    float const part = v < 0 ? v * (row.least * t.least) : v * (row.weight * t.weight);
                    most = part > most || most != most ? part : most;
                }
            storeElement(y[j], most);
        }
    }

    Layout const layout_;
    Attrs const& a_;
    RunArgs& args_;
    std::span<TensorRef const> const maps_;
    Roi* const rois_;
    Bin* const bins_; // of each roi: rows, then columns
    Tap* const taps_; // so, too
};

int64_t workspace(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    return Layout(node, in).bytes();
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    if (args.outputs[0].count() > 0)
        Regions(node, args).run();
    return {};
}

constexpr PlainTactic kPlain{"roi_align_any_plain_cpu", 1, run, workspace};

template <Kernels const& k>
Result<void> runPixels(ir::Node const& node, kernels::ChannelsLastKernels const& moves, RunArgs& args)
{
    if (args.outputs[0].count() > 0)
        Regions(node, args).runPixels(k, moves);
    return {};
}

Support supportsPixels(Problem const& p)
{
    if (!isFullFloat(p.inputs[kMaps].type))
        return Support::no("takes f32 maps");
    return p.node->attrsAs<Attrs>().mode == Mode::kAverage ? Support::yes() : Support::no("takes means only");
}

std::vector<Formats> byPixels(Problem const& p)
{
    Formats turned = linearFormats(p);
    turned.inputs.resize(p.inputs.size(), Format::kLinear);
    std::fill(turned.inputs.begin() + kMaps, turned.inputs.end(), Format::kChannelsLast);
    Formats kept = turned;
    kept.outputs = {Format::kChannelsLast};
    if (p.outputs[0].dims.rank != 4) // its channels stand elsewhere
        return {turned};
    return {kept, turned};
}

using kernels::jit::Isa;
constexpr VectorTactic kAvx512{"roi_align_f32_nhwc_avx512",
                               1,
                               Isa::kAvx512,
                               runPixels<avx512::kRoiAlign>,
                               supportsPixels,
                               byPixels,
                               workspace,
                               std::nullopt};
constexpr VectorTactic kAvx2{"roi_align_f32_nhwc_avx2",
                             1,
                             Isa::kAvx2,
                             runPixels<avx2::kRoiAlign>,
                             supportsPixels,
                             byPixels,
                             workspace,
                             std::nullopt};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kAvx512, kAvx2, kPlain>;

} // namespace tw::ops::roi_align
