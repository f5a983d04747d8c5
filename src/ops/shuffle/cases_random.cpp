// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/shuffle/op.h"

namespace tw::ops::shuffle {

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
