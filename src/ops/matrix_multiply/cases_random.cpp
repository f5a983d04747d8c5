// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "cases/integer_sums.h"
#include "cases/programs.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops::matrix_multiply {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    using enum MatrixOperation;
    Attrs a;
    Extents x, y;
    d.until([&] {
        int64_t const m = d.chance(20) ? 1 : d.size(140), n = d.size(140), k = d.size(300);
        a.a = d.chance(30) ? kTranspose : kNone;
        a.b = d.chance(30) ? kTranspose : kNone;
        int const batches = int(d.from(0, 2));
        Extents bx = d.extents(batches, 4), by = bx;
        int64_t work = m * n * k;
        for (int i = 0; i < batches; ++i) {
            work *= bx[i];
            if (d.chance(25))
                (d.chance(50) ? bx : by)[i] = 1;
        }
        x = bx, y = by;
        x.rank = y.rank = batches + 2;
        x[batches + (a.a == kTranspose)] = m, x[batches + (a.a != kTranspose)] = k;
        y[batches + (a.b == kTranspose)] = k, y[batches + (a.b != kTranspose)] = n;
        return work <= kMostWork;
    });
    DataType const t = d.chance(30) ? DataType::kInt8 : d.type();
    std::vector<CaseInput> in{input(t, x), d.chance(50) ? constant(t, y) : input(t, y)};
    Extents result = x;
    int const last = x.rank - 1;
    for (int i = 0; i + 2 < x.rank; ++i)
        result[i] = std::max(x[i], y[i]);
    result[last - 1] = x[last - (a.a != kTranspose)];
    result[last] = y[last - (a.b == kTranspose)];
    if (isQuantized(t)) {
        endIntegers(a.epilogue, in, integerSums(d), result, result[last]);
        list.add(name, a, in);
        return;
    }
    a.gated = result[last] % 2 == 0 && d.chance(25);
    bool const residual = !a.gated && d.chance(30);
    if (d.chance(40))
        in.push_back(constant(t, {result[last]}));
    else if (residual)
        in.push_back(absent());
    if (residual)
        in.push_back(input(t, result));
    a.epilogue.activation = activationOf(d);
    if (!a.gated && d.chance(20))
        drawProgram(d, residual).setTo(a.epilogue);
    list.add(name, a, in);
}

} // namespace tw::ops::matrix_multiply
