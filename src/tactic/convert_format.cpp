// SPDX-License-Identifier: Apache-2.0
#include "tactic/convert_format.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/round.h"

namespace tw::ops {

namespace {

// rows x columns elements, either side with its own steps; in squares, so that both sides keep to few cache lines.
template <class T>
void transpose(T const* from, int64_t fromRow, int64_t fromColumn, T* to, int64_t toRow, int64_t toColumn, int64_t rows,
               int64_t columns)
{
    constexpr int64_t kSquare = 16;
    for (int64_t r0 = 0; r0 < rows; r0 += kSquare)
        for (int64_t c0 = 0; c0 < columns; c0 += kSquare)
            for (int64_t r = r0; r < std::min(r0 + kSquare, rows); ++r)
                for (int64_t c = c0; c < std::min(c0 + kSquare, columns); ++c)
                    to[r * toRow + c * toColumn] = from[r * fromRow + c * fromColumn];
}

// Where channel c of an image lies, and the elements from channel to channel and from pixel to pixel within as many
// channels as lie together.
struct Place
{
    int64_t first, channel, pixel;
};
Place placeOf(TensorRef const& t, int64_t c, int64_t pixels)
{
    if (t.format == Format::kLinear)
        return {c * pixels, pixels, 1};
    if (isByPixel(t.format))
        return {c, 1, t.pixelStride()};
    int64_t const vector = vectorOf(t.format);
    return {c / vector * vector * pixels + c % vector, 1, vector};
}
int64_t imageElements(TensorRef const& t, int64_t channels, int64_t pixels)
{
    if (t.format == Format::kLinear)
        return channels * pixels;
    if (isByPixel(t.format))
        return pixels * t.pixelStride();
    return roundUp(channels, vectorOf(t.format)) * pixels;
}

template <class T>
void convert(TensorRef const& from, TensorRef const& to, Workers& workers)
{
    int const axis = channelAxis(from.format != Format::kLinear ? from.format : to.format, from.dims.rank);
    int64_t const channels = from.dims[axis], pixels = from.dims.volume(axis + 1, from.dims.rank);
    int64_t together = channels; // channels that have even steps on both sides
    for (TensorRef const* t : {&from, &to})
        if (t->format != Format::kLinear && !isByPixel(t->format))
            together = std::min<int64_t>(together, vectorOf(t->format));
    int64_t const fromImage = imageElements(from, channels, pixels), toImage = imageElements(to, channels, pixels);
    workers.run(from.dims.volume(0, axis), [&](int64_t n, int) {
        for (int64_t c = 0; c < channels; c += together) {
            Place const f = placeOf(from, c, pixels), t = placeOf(to, c, pixels);
            transpose(from.as<T>() + n * fromImage + f.first, f.pixel, f.channel, to.as<T>() + n * toImage + t.first,
                      t.pixel, t.channel, pixels, std::min(together, channels - c));
        }
    });
}

} // namespace

void convertFormat(TensorRef const& from, TensorRef const& to, Workers& workers)
{
    if (from.count() == 0)
        return;
    if (from.format == to.format && from.format == Format::kLinear) {
        if (from.data != to.data)
            std::memcpy(to.data, from.data, size_t(from.sizeBytes()));
        return;
    }
    switch (sizeOf(from.type)) {
    case 4:
        return convert<uint32_t>(from, to, workers);
    case 2:
        return convert<uint16_t>(from, to, workers);
    default:
        return convert<uint8_t>(from, to, workers);
    }
}

std::vector<Gap> gapsOf(TensorRef const& t)
{
    if (t.format == Format::kLinear || t.count() == 0 || !fitsRank(t.format, t.dims.rank))
        return {};
    int const axis = channelAxis(t.format, t.dims.rank);
    int64_t const channels = t.dims[axis], images = t.dims.volume(0, axis);
    int64_t const pixels = t.dims.volume(axis + 1, t.dims.rank);
    if (isByPixel(t.format)) {
        int64_t const stride = t.pixelStride();
        return stride == channels ? std::vector<Gap>()
                                  : std::vector<Gap>{{channels, stride - channels, stride, images * pixels}};
    }
    int64_t const vector = vectorOf(t.format), vectors = divideUp(channels, vector), used = channels % vector;
    std::vector<Gap> gaps;
    if (used > 0 && vectors == 1)
        gaps.push_back({used, vector - used, vector, images * pixels});
    else if (used > 0)
        for (int64_t n = 0; n < images; ++n)
            gaps.push_back({((n + 1) * vectors - 1) * pixels * vector + used, vector - used, vector, pixels});
    return gaps;
}

void zeroGaps(TensorRef const& t)
{
    int64_t const bytes = sizeOf(t.type);
    for (Gap const& g : gapsOf(t))
        for (int64_t row = 0; row < g.rows; ++row)
            std::memset(t.as<std::byte>() + (g.begin + row * g.pitch) * bytes, 0, size_t(g.width * bytes));
}

} // namespace tw::ops
