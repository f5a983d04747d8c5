// SPDX-License-Identifier: Apache-2.0
// Queries that share one head of keys and values, in FP32, for each instruction set: keys and values are read where they lie, once for all of
// the queries. Heads are multiples of the instruction set's vectors.
#pragma once

#include <cstdint>

namespace tw::ops::attention {

inline constexpr int64_t kKeyBlock = 64; // keys whose scores are there at once
inline constexpr int64_t kRowsOfPage = 16;

// One query and the keys that it sees.
struct FewRow
{
    int64_t from = 0, to = 0, position = 0;
    float const* mask = nullptr;   // of key 0; may be null
    uint8_t const* keep = nullptr; // the same
    float slope = 0;
    // Of the keys so far: the largest score, and the sum of weights in units of it.
    float highest = 0, sum = 0;
};
// What is done to scores beside masks.
struct ScoreRules
{
    float softcap = 0, fill = 0;
    bool keepInverted = false;
};
// Scaled scores of `row`, of keys `first` to `first + n`, in place: what hides and changes them.
struct Scores
{
    float* t = nullptr;
    int64_t first = 0, n = 0;
};
struct FewRows
{
    FewRow* rows = nullptr;
    int64_t count = 0;
    int64_t from = 0, to = 0;                      // keys to be gone through; no row sees others
    float const* q = nullptr;                      // [count][size], scaled
    void const *k = nullptr, *v = nullptr;         // of key 0
    void const *kNext = nullptr, *vNext = nullptr; // the same of the head that comes behind; may be null
    int64_t kStride = 0, vStride = 0;              // elements between keys
    int32_t const* images = nullptr; // of keys, where they are not all of one: k and v are of image 0 of `sharing` then
    int64_t sharing = 1, kImage = 0, vImage = 0; // elements between images, or between blocks
    int32_t const* pages = nullptr; // blocks of kRowsOfPage keys: k and v are of the first one of all then, and `from`
    int64_t blocks = 0;             // is where a page begins
    int64_t size = 0, valueSize = 0;
    float* scores = nullptr; // [count][kKeyBlock] of room
    float* y = nullptr;      // [count][valueSize]: sums, in units of the largest score
    ScoreRules rules;
};
struct FewRowsKernels
{
    void (*attend)(FewRows const&);        // adds to rows' sums and to y
    void (*attendHalves)(FewRows const&);  // of keys and values in FP16
    void (*attendBfloats)(FewRows const&); // and in BF16
    void (*attendBytes)(FewRows const&);   // and in INT8, whose scales others take care of
    void (*adjust)(Scores const&, FewRow const&, ScoreRules const&);
};

} // namespace tw::ops::attention

namespace tw::avx2 {
extern ops::attention::FewRowsKernels const kFewRows;
}
namespace tw::avx512 {
extern ops::attention::FewRowsKernels const kFewRows;
}
