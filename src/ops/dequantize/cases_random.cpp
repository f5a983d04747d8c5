// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"
#include "cases/draw.h"
#include "ops/dequantize/op.h"

namespace tw::ops::dequantize {

void randomCase(CaseList& list, Draw& d, std::string const& name)
{
    Extents const x = d.extents(int(d.from(0, 5)), 24);
    Attrs const a(int32_t(d.from(-1, x.rank - 1)), d.type());
    Extents const scale = a.axis < 0 ? Extents{} : Extents{x[a.axis]};
    list.add(name, a, {input(DataType::kInt8, x), d.chance(80) ? constant(DataType::kFloat, scale) : f32(scale)});
}

} // namespace tw::ops::dequantize
