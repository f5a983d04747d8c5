// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "plan/old.h"

namespace tw::plan {

namespace {

constexpr size_t kLanes = 8; // independent of each other, so that multiplications overlap

struct PieceHash
{
    uint64_t lanes[kLanes];
};

// Minors 1 and 2: word i of a piece goes to lane i mod 4.
struct WordLanes
{
    static constexpr size_t kCount = 4, kStep = kCount * sizeof(uint64_t);
    OldHasher lanes[kCount];
    void step(char const* p)
    {
        uint64_t words[kCount];
        std::memcpy(words, p, kStep);
        for (size_t i = 0; i < kCount; ++i)
            lanes[i].number(words[i]);
    }
    uint64_t value(size_t i) const { return lanes[i].value(); }
};

// From minor 3 on: two words a multiplication, with all 128 bits of the product: memory is slower (11 GB/s and more on
// Zen 4 where the lanes above reach 6).
struct ProductLanes
{
    static constexpr size_t kCount = kLanes, kStep = 2 * kCount * sizeof(uint64_t);
    uint64_t states[kCount], keys[kCount];
    ProductLanes()
    {
        OldHasher h; // any numbers without a pattern
        for (size_t i = 0; i < kCount; ++i) {
            h.number(i);
            states[i] = h.value();
            h.number(i);
            keys[i] = h.value();
        }
    }
    void step(char const* p)
    {
        uint64_t words[2 * kCount];
        std::memcpy(words, p, kStep);
        for (size_t i = 0; i < kCount; ++i) {
            unsigned __int128 const product =
                static_cast<unsigned __int128>(states[i] ^ words[2 * i]) * (keys[i] ^ words[2 * i + 1]);
            // What a word was remains in the sum where the other factor happens to be zero.
            states[i] = (uint64_t(product) ^ uint64_t(product >> 64)) + words[2 * i] + words[2 * i + 1];
        }
    }
    uint64_t value(size_t i) const { return states[i]; }
};

template <class Lanes>
PieceHash hashPiece(char const* p, size_t sizeBytes)
{
    Lanes lanes;
    for (size_t at = 0; at + Lanes::kStep <= sizeBytes; at += Lanes::kStep)
        lanes.step(p + at);
    PieceHash out{};
    for (size_t i = 0; i < Lanes::kCount; ++i)
        out.lanes[i] = lanes.value(i);
    return out;
}

template <class Lanes>
void hashAll(OldHasher& h, char const* file, size_t sizeBytes, PageKeeper const* pages, Workers& workers)
{
    std::vector<PieceAt> const list = piecesOf(sizeBytes);
    std::vector<PieceHash> pieces(list.size());
    readPieces(file, list, pages, workers,
               [&](size_t i) { pieces[i] = hashPiece<Lanes>(file + list[i].offset, list[i].sizeBytes); });
    for (size_t i = 0; i < list.size(); ++i) {
        for (size_t k = 0; k < Lanes::kCount; ++k)
            h.number(pieces[i].lanes[k]);
        size_t const tail = list[i].sizeBytes % Lanes::kStep;
        h.bytes(file + list[i].offset + list[i].sizeBytes - tail, tail);
    }
}

} // namespace

void OldHasher::bytes(void const* data, size_t size)
{
    auto const* p = static_cast<unsigned char const*>(data);
    for (; size >= 8; p += 8, size -= 8) {
        uint64_t word;
        std::memcpy(&word, p, 8);
        number(word);
    }
    uint64_t tail = 0;
    for (size_t i = 0; i < size; ++i)
        tail |= uint64_t(p[i]) << (8 * i);
    number(tail ^ (uint64_t(size) << 56));
}

uint64_t oldFileHash(void const* bytes, size_t sizeBytes, uint16_t minor, PageKeeper const* pages, Workers& workers)
{
    auto const* p = static_cast<char const*>(bytes);
    OldHasher h;
    h.bytes(p, offsetof(FileHeader, hash));
    if (minor == 0)
        h.bytes(p + sizeof(FileHeader), sizeBytes - sizeof(FileHeader));
    else if (minor < 3)
        hashAll<WordLanes>(h, p, sizeBytes, pages, workers);
    else
        hashAll<ProductLanes>(h, p, sizeBytes, pages, workers);
    return h.value();
}

} // namespace tw::plan
