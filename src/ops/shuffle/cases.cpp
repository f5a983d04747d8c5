// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <optional>
#include <utility>

#include "cases/draw.h"
#include "ops/shuffle/op.h"

namespace tw::ops::shuffle {

void cases(CaseList& list)
{
    using Ints = std::vector<int64_t>;
    struct Form
    {
        Ints first = {};
        std::optional<Ints> reshape = {};
        Ints second = {};
        bool zeroIsPlaceholder = true;
    };
    auto shuffle = [&](std::string const& name, CaseInput x, Form const& f,
                       std::vector<std::vector<double>> expected = {}, std::vector<CaseInput> more = {}) {
        Attrs a;
        a.firstTranspose = f.first;
        a.hasReshape = f.reshape.has_value();
        a.reshape = f.reshape.value_or(Ints());
        a.secondTranspose = f.second;
        a.zeroIsPlaceholder = f.zeroIsPlaceholder;
        more.insert(more.begin(), std::move(x));
        list.add(name, a, std::move(more), std::move(expected));
    };
    shuffle("by_hand_transpose", f32({2, 3}, {1, 2, 3, 4, 5, 6}), {.first = {1, 0}}, {{1, 4, 2, 5, 3, 6}});
    // [2,3] -> transposed [3,2]: 1 4 2 5 3 6 -> [2,3]: (1 4 2)(5 3 6) -> transposed [3,2]: 1 5 4 3 2 6
    shuffle("by_hand_all", f32({2, 3}, {1, 2, 3, 4, 5, 6}), {.first = {1, 0}, .reshape = Ints{2, -1}, .second = {1, 0}},
            {{1, 5, 4, 3, 2, 6}});
    shuffle("nothing", f32({2, 3, 4}), {});
    shuffle("scalar_to_1d", f32({}), {.reshape = Ints{1}});
    shuffle("1d_to_scalar", f32({1}), {.reshape = Ints{}});
    shuffle("flatten", f32({2, 3, 4, 5}), {.reshape = Ints{0, -1}});
    shuffle("zeros_copy", f32({2, 3, 4}), {.reshape = Ints{0, 0, 2, 2}});
    shuffle("nhwc", f32({2, 3, 5, 7}), {.first = {0, 2, 3, 1}});
    shuffle("tiles_33x65", f32({2, 33, 65}), {.first = {0, 2, 1}});
    shuffle("middle", f32({3, 4, 5, 6}), {.first = {0, 2, 1, 3}});
    shuffle("reversed", f32({2, 3, 4, 5}), {.first = {3, 2, 1, 0}});
    shuffle("ones", f32({1, 4, 1, 5}), {.first = {3, 2, 1, 0}});
    shuffle("rank_8", f32({2, 1, 2, 3, 1, 2, 2, 2}), {.first = {7, 1, 0, 2, 5, 4, 6, 3}});
    shuffle("heads", f32({2, 5, 12}), {.reshape = Ints{0, 0, 3, 4}, .second = {0, 2, 1, 3}});
    for (DataType t : {DataType::kHalf, DataType::kInt8, DataType::kInt32, DataType::kBool, DataType::kUInt8})
        shuffle(std::string("type_") + nameOf(t), input(t, {4, 3, 5}),
                {.first = {2, 0, 1}, .reshape = Ints{10, 6}, .second = {1, 0}});
    for (DataType t : {DataType::kHalf, DataType::kInt8}) {
        shuffle(std::string("tiles_") + nameOf(t), input(t, {2, 33, 65}), {.first = {0, 2, 1}});
        shuffle(std::string("rows_") + nameOf(t), input(t, {2, 4, 3, 32}), {.first = {0, 2, 1, 3}});
    }
    // Transposes: rows that begin at packs of 16 bytes or anywhere, several tiles, one axis short.
    constexpr int64_t kPlaces[][2] = {{64, 144},  {65, 129}, {200, 72},  {136, 328}, {3, 701},   {701, 3},  {2, 512},
                                      {512, 2},   {49, 96},  {96, 49},   {5, 1000},  {1000, 6},  {47, 15},  {270, 24},
                                      {311, 203}, {600, 77}, {129, 320}, {1041, 65}, {1203, 50}, {3, 4512}, {4, 2096},
                                      {2, 6160},  {4512, 3}, {2096, 4},  {6160, 2}};
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8})
        for (auto const [a, b] : kPlaces) {
            std::string const name = fmt::format("places_{}x{}_{}", a, b, nameOf(t));
            shuffle(name, input(t, {2, a, b}), {.first = {0, 2, 1}});
        }
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
        shuffle(std::string("far_") + nameOf(t), input(t, {33, 3, 2, 40}), {.first = {3, 1, 2, 0}});
        shuffle(std::string("far_and_near_") + nameOf(t), input(t, {65, 3, 16, 80}), {.first = {3, 2, 1, 0}});
        shuffle(std::string("scattered_") + nameOf(t), input(t, {7, 3, 5, 6}), {.first = {3, 1, 0, 2}});
        shuffle(std::string("odd_rows_") + nameOf(t), input(t, {3, 5, 4, 7}), {.first = {2, 1, 0, 3}});
    }
    // Permuted rows that begin anywhere: several tiles of either dimension, ends of words and of sectors.
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
        shuffle(std::string("moved_rows_") + nameOf(t), input(t, {2, 37, 12, 65}), {.first = {0, 2, 1, 3}});
        shuffle(std::string("moved_many_rows_") + nameOf(t), input(t, {3, 5, 403, 41}), {.first = {0, 2, 1, 3}});
        shuffle(std::string("moved_far_rows_") + nameOf(t), input(t, {3, 17, 4, 5, 107}), {.first = {2, 3, 1, 0, 4}});
    }
    // Rows of heads of few channels; planes with four or few more rows or columns, and with thousands.
    for (int64_t n : {1, 3, 4, 5, 8, 12, 20, 63, 64, 65, 100})
        shuffle(fmt::format("heads_of_{}", n), f32({3, 71, 5, n}), {.first = {0, 2, 1, 3}});
    for (auto const& [a, b] :
         {std::pair<int64_t, int64_t>{4, 2500}, {2500, 4}, {4, 4}, {12, 13}, {13, 12}, {7, 6}, {4100, 68}, {20, 36}})
        shuffle(fmt::format("fours_{}x{}", a, b), f32({2, a, b}), {.first = {0, 2, 1}});
    // Rows of channels that are channels-last pixels, where there are no gaps without a copy, and back.
    for (int64_t c : {16, 32, 17, 256}) {
        shuffle(fmt::format("rows_to_pixels_{}", c), f32({2, 12, c}),
                {.first = {0, 2, 1}, .reshape = Ints{0, 0, 3, 4}});
        shuffle(fmt::format("last_to_pixels_{}", c), f32({2, 3, 4, c}), {.first = {0, 3, 1, 2}});
        shuffle(fmt::format("pixels_to_rows_{}", c), f32({2, c, 3, 4}),
                {.reshape = Ints{0, 0, -1}, .second = {0, 2, 1}});
        shuffle(fmt::format("pixels_to_last_{}", c), f32({2, c, 3, 4}), {.first = {0, 2, 3, 1}});
        shuffle(fmt::format("volumes_to_rows_{}", c), f32({2, c, 3, 2, 2}),
                {.reshape = Ints{0, 0, -1}, .second = {0, 2, 1}});
        shuffle(fmt::format("pixels_of_a_line_{}", c), f32({2, c, 12}), {.reshape = Ints{0, 0, 1, 12}});
        shuffle(fmt::format("pixels_as_a_line_{}", c), f32({2, c, 3, 4}), {.reshape = Ints{0, 0, -1}});
        shuffle(fmt::format("pixels_to_heads_{}", c), f32({2, c, 3, 4}),
                {.first = {0, 2, 3, 1}, .reshape = Ints{2, 12, 1, c}});
    }
    // So many that threads of a GPU move several.
    shuffle("many_rows", f32({270, 19, 113}), {.first = {1, 0, 2}});
    shuffle("many_odd_rows", input(DataType::kInt8, {900, 22, 111}), {.first = {1, 0, 2}});
    // An input of [3,0] with reshape dimensions [0,0]: copied, or sizes of zero.
    shuffle("empty_placeholder", f32({3, 0}), {.reshape = Ints{0, 0}}, {{}});
    shuffle("empty_no_placeholder", f32({3, 0}), {.reshape = Ints{0, 0}, .zeroIsPlaceholder = false});
    shuffle("empty_transpose", f32({3, 0, 2}), {.first = {1, 2, 0}});
    shuffle("dims_input", f32({2, 6}), {}, {}, {constant(DataType::kInt32, {3}, {3, -1, 2})});
    shuffle("dims_input_zero", f32({3, 0}), {.zeroIsPlaceholder = false}, {},
            {constant(DataType::kInt32, {3}, {0, 0, 5})});
    shuffle("dims_input_scalar", f32({1, 1}), {}, {}, {constant(DataType::kInt32, {0})});
}

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    static constexpr DataType kTypes[] = {DataType::kFloat, DataType::kHalf, DataType::kInt8,
                                          DataType::kInt32, DataType::kBool, DataType::kUInt8};
    auto permutation = [&](size_t rank) {
        std::vector<int64_t> p(rank);
        for (size_t i = 0; i < rank; ++i)
            p[i] = int64_t(i);
        for (size_t i = rank; i > 1; --i)
            std::swap(p[i - 1], p[size_t(d.from(0, int64_t(i) - 1))]);
        return p;
    };
    Attrs a;
    Extents const x = d.extents(int(d.from(1, 4)), 24);
    if (d.chance(60))
        a.firstTranspose = permutation(size_t(x.rank));
    size_t rank = size_t(x.rank);
    if (d.chance(60)) { // neighbours become one dimension, or one is cut in two
        a.hasReshape = true;
        for (int i = 0; i < x.rank; ++i)
            a.reshape.push_back(x[a.firstTranspose.empty() ? i : int(a.firstTranspose[size_t(i)])]);
        size_t const at = size_t(d.from(0, x.rank - 1));
        if (at + 1 < a.reshape.size() && d.chance(50)) {
            a.reshape[at] *= a.reshape[at + 1];
            a.reshape.erase(a.reshape.begin() + int64_t(at) + 1);
        } else if (a.reshape[at] % 2 == 0) {
            a.reshape[at] /= 2;
            a.reshape.insert(a.reshape.begin() + int64_t(at), 2);
        }
        rank = a.reshape.size();
    }
    if (d.chance(40))
        a.secondTranspose = permutation(rank);
    list.add(name, a, {input(kTypes[d.from(0, std::size(kTypes) - 1)], x)});
}

} // namespace tw::ops::shuffle
