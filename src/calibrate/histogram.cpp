// SPDX-License-Identifier: Apache-2.0
#include "calibrate/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "calibrate/text_lines.h"
#include "kernels/cpu/magnitudes.h"
#include "tactic/cpu_tactic.h"

namespace tw::calibrate {

namespace {

using kernels::jit::Isa;

static_assert(kBins == kernels::kMagnitudeBins);

constexpr int64_t kPiece = 16384;           // elements that a worker takes at once: 64 KiB, read twice
constexpr uint32_t kInfinity = 0x7f800000u; // and above it the NaNs
constexpr float kLeastRange = 0x1p-100f;    // so that bins per unit are a number

kernels::MagnitudeKernels const& kernelsHere()
{
    if (ops::supportsIsa(ops::thisCpu(), Isa::kAvx512).ok)
        return avx512::kMagnitudes;
    return ops::supportsIsa(ops::thisCpu(), Isa::kAvx2).ok ? avx2::kMagnitudes : kernels::kPlainMagnitudes;
}

// The largest number of bins per unit with which the first range ends below the last bin's end, so that no value is on
// the border behind the last bin however often the range has doubled.
float binsPerUnit(float first)
{
    float bins = float(double(kBins) / first);
    while (first * bins >= float(kBins))
        bins = std::nextafter(bins, 0.f);
    return bins;
}

// Pairs of bins become one, `times` times.
template <class Count>
void foldBins(Count* bins, int times)
{
    for (int t = 0; t < std::min(times, 12); ++t) // 2^11 bins: then all are in the first
        for (int b = 0; b < kBins; ++b)
            bins[b] = b < kBins / 2 ? bins[2 * b] + bins[2 * b + 1] : 0;
}

// How often a range must double to hold the value.
int doublingsFor(float first, float value)
{
    int n = 0;
    for (double range = first; range < double(value); range *= 2)
        ++n;
    return n;
}

} // namespace

double Histogram::range() const
{
    return std::ldexp(double(first), doublings);
}

uint64_t Histogram::count() const
{
    uint64_t sum = zeros;
    for (uint64_t b : bins)
        sum += b;
    return sum;
}

// What one worker has counted of a tensor.
struct Tally::Part
{
    alignas(64) uint32_t counts[kernels::kMagnitudeCopies][kernels::kMagnitudeCounters];
    int doublings = 0;
    uint32_t largest = 0;
    bool isFinite = true;
    int64_t values = 0;
    alignas(64) float elements[kPiece]; // of a piece that does not lie there as floats in a row

    void clear(int doublings_)
    {
        std::fill(&counts[0][0], &counts[0][0] + sizeof counts / sizeof(uint32_t), 0u);
        doublings = doublings_;
        largest = 0;
        isFinite = true;
        values = 0;
    }
    void growTo(int n)
    {
        for (auto& copy : counts)
            foldBins(copy, n - doublings);
        doublings = std::max(doublings, n);
    }
};

Tally::Tally(Workers& workers) : workers_(workers)
{
    for (int i = 0; i < workers.count(); ++i)
        parts_.push_back(std::make_unique<Part>());
}

Tally::~Tally() = default;

namespace {

// `n` elements of a tensor from the one with this number on, pixel by pixel where they lie so; in `scratch` where they
// are not floats in a row.
float const* elementsAt(TensorRef const& t, int64_t begin, int64_t n, float* scratch)
{
    bool const isFloat = isFullFloat(t.type);
    if (isFloat && t.format == Format::kLinear)
        return t.as<float>() + begin;
    if (!isFloat || !isByPixel(t.format)) {
        for (int64_t i = 0; i < n; ++i)
            scratch[i] = float(t.get(t.place(begin + i)));
        return scratch;
    }
    int64_t const channels = t.dims[std::max(channelAxis(t.format, t.dims.rank), 0)], stride = t.pixelStride();
    for (int64_t i = 0; i < n;) {
        int64_t const channel = (begin + i) % channels, some = std::min(n - i, channels - channel);
        std::copy_n(t.as<float>() + (begin + i) / channels * stride + channel, some, scratch + i);
        i += some;
    }
    return scratch;
}

} // namespace

void Tally::add(TensorRef const& values, Histogram& to)
{
    kernels::MagnitudeKernels const& k = kernelsHere();
    int64_t const n = values.count(), pieces = (n + kPiece - 1) / kPiece;
    auto const sizeOf = [&](int64_t p) { return std::min(kPiece, n - p * kPiece); };
    auto const pieceAt = [&](int64_t p, Part& part) {
        return elementsAt(values, p * kPiece, sizeOf(p), part.elements);
    };
    for (auto& part : parts_)
        part->clear(to.doublings);
    if (to.first == 0) {
        workers_.run(pieces, [&](int64_t p, int worker) {
            Part& part = *parts_[size_t(worker)];
            uint32_t const bits = k.largest(pieceAt(p, part), sizeOf(p));
            part.isFinite = part.isFinite && bits < kInfinity;
            part.largest = bits < kInfinity ? std::max(part.largest, bits) : part.largest;
        });
        uint32_t largest = 0;
        for (auto& part : parts_) {
            largest = std::max(largest, part->largest);
            to.isFinite = to.isFinite && part->isFinite;
        }
        if (largest == 0) {
            to.zeros += to.isFinite ? uint64_t(n) : 0;
            return;
        }
        to.first = std::max(std::bit_cast<float>(largest), kLeastRange);
    }
    float const first = to.first, perUnit = binsPerUnit(first);
    workers_.run(pieces, [&](int64_t p, int worker) {
        Part& part = *parts_[size_t(worker)];
        float const* const from = pieceAt(p, part);
        uint32_t const bits = k.largest(from, sizeOf(p));
        if (bits >= kInfinity) {
            part.isFinite = false;
            return;
        }
        part.largest = std::max(part.largest, bits);
        part.growTo(doublingsFor(first, std::bit_cast<float>(bits)));
        k.count(from, sizeOf(p), std::ldexp(perUnit, -part.doublings), &part.counts[0][0]);
        part.values += sizeOf(p);
    });
    int doublings = to.doublings;
    for (auto& part : parts_)
        doublings = std::max(doublings, part->doublings);
    foldBins(to.bins.data(), doublings - to.doublings);
    to.doublings = doublings;
    for (auto& part : parts_) {
        part->growTo(doublings);
        uint64_t counted = 0;
        for (int b = 0; b < kBins; ++b)
            for (auto const& copy : part->counts) {
                to.bins[size_t(b)] += copy[b];
                counted += copy[b];
            }
        to.zeros += uint64_t(part->values) - counted;
        to.largest = std::max(to.largest, std::bit_cast<float>(part->largest));
        to.isFinite = to.isFinite && part->isFinite;
    }
}

namespace {

constexpr char const *kHistogramCache = "histogram cache", *kKind = "CalibrationHistograms-";
constexpr int kMostDoublings = 256; // from the smallest range to the largest float
constexpr uint64_t kMostCount = uint64_t(1) << 60;

std::string hex(float x)
{
    char digits[8];
    return {digits, std::to_chars(digits, digits + sizeof digits, std::bit_cast<uint32_t>(x), 16).ptr};
}

// Takes the text up to the next space off `rest`.
std::string_view next(std::string_view& rest)
{
    size_t const end = std::min(rest.find(' '), rest.size());
    std::string_view const word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return word;
}

bool parseFloat(std::string_view word, float& x)
{
    uint32_t bits = 0;
    bool const isRead = parseNumber(word, bits, 16);
    x = std::bit_cast<float>(bits);
    return isRead && std::isfinite(x) && !std::signbit(x);
}

bool parseHistogram(std::string_view rest, Histogram& h)
{
    int finite = 0;
    if (!parseFloat(next(rest), h.first) || !parseNumber(next(rest), h.doublings) || h.doublings < 0 ||
        h.doublings > kMostDoublings || !parseFloat(next(rest), h.largest) || !parseNumber(next(rest), h.zeros) ||
        h.zeros > kMostCount || !parseNumber(next(rest), finite) || (finite != 0 && finite != 1))
        return false;
    h.isFinite = finite == 1;
    int last = -1;
    while (!rest.empty()) {
        std::string_view const word = next(rest);
        size_t const colon = std::min(word.find(':'), word.size());
        int bin = 0;
        uint64_t count = 0;
        if (colon == word.size() || !parseNumber(word.substr(0, colon), bin) || bin <= last || bin >= kBins ||
            !parseNumber(word.substr(colon + 1), count) || count == 0 || count > kMostCount)
            return false;
        h.bins[size_t(bin)] = count;
        last = bin;
    }
    // What add() makes: bins come with a range, which holds the largest value.
    return (h.first == 0) == (last < 0) && double(h.largest) <= h.range();
}

} // namespace

std::string writeHistograms(NamedHistograms const& list, int version)
{
    std::string text = firstLine(version, fmt::format("{}{}", kKind, list.size()));
    for (auto const& [name, h] : list) {
        text += fmt::format("{}: {} {} {} {} {}", name, hex(h.first), h.doublings, hex(h.largest), h.zeros,
                            h.isFinite ? "1" : "0");
        for (int b = 0; b < kBins; ++b)
            if (h.bins[size_t(b)] != 0)
                text += fmt::format(" {}:{}", b, h.bins[size_t(b)]);
        text += "\n";
    }
    return text;
}

Result<NamedHistograms> readHistograms(std::string_view text)
{
    TW_ASSIGN(TextLines const lines, splitText(text, kHistogramCache));
    size_t count = 0;
    if (!lines.kind.starts_with(kKind) || !parseNumber(lines.kind.substr(std::strlen(kKind)), count))
        return invalidArgument("{}: it holds '{}', not {}<number of tensors>", kHistogramCache, lines.kind, kKind);
    if (lines.lines.size() != count || !lines.endsWithLine)
        return invalidArgument(
            "{}: it has been cut: there are {} of {} tensors{}; without the cache the network is calibrated anew",
            kHistogramCache, lines.lines.size(), count, lines.endsWithLine ? "" : ", the last line without its end");
    NamedHistograms list;
    for (TextLine const& line : lines.lines) {
        list.emplace_back(std::string(line.name), Histogram());
        if (!parseHistogram(line.rest, list.back().second))
            return badLine(kHistogramCache, line.number, std::string(line.name) + ": " + std::string(line.rest),
                           "is no histogram");
    }
    return list;
}

} // namespace tw::calibrate
