// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/cuda_gemm.h"

#include <algorithm>

namespace tw::ops {

bool isPresent(Problem const& p, int input)
{
    return size_t(input) < p.inputs.size() && p.inputs[size_t(input)].present;
}

bool isKnown(ir::Value const& v, size_t fromEnd)
{
    return fromEnd < v.shape.size() && v.shape[v.shape.size() - 1 - fromEnd].isConst();
}

Support supportsNorm(Problem const& p, bool wanted)
{
    if (matrix_multiply::hasFirstNorm(*p.node))
        return Support::no("does not normalize the rows of input 0");
    if (matrix_multiply::hasNorm(*p.node) == wanted)
        return Support::yes();
    return Support::no(wanted ? "normalizes rows always" : "does not normalize rows");
}

Support supportsFirstNorm(Problem const& p)
{
    return matrix_multiply::hasFirstNorm(*p.node) ? Support::yes()
                                                  : Support::no("normalizes the rows of input 0 always");
}

Support supportsProductAlone(Problem const& p)
{
    return matrix_multiply::isGated(*p.node) ? Support::no("does not gate columns") : supportsNorm(p, false);
}

matrix_multiply::Geometry geometryOf(Problem const& p, bool atMaximum)
{
    auto dims = [&](size_t i) -> Extents const& { return atMaximum ? p.inputs[i].maxDims : p.inputs[i].dims; };
    return matrix_multiply::geometryOf(*p.node, dims(0), dims(1));
}

Error wrongShapes(ir::Node const& node, RunArgs const& args, char const* why)
{
    return failedExecution("layer '" + node.name + "': shapes " + args.inputs[0].dims.str() + " and " +
                           args.inputs[1].dims.str() + " are not among those that its kernel was made for: " + why);
}

ProductRows rowsOf(matrix_multiply::Geometry const& g, bool aAlongK, bool bAlongK)
{
    ProductRows r;
    r.m = g.m;
    r.lda = aAlongK ? g.aRow : g.aColumn;
    r.ldb = bAlongK ? g.bColumn : g.bRow;
    int d = g.batch.rank - 1;
    for (; d >= 0 && aAlongK; --d) {
        if (g.batch[d] == 1)
            continue;
        if (g.bBatch[d] != 0 || (r.m > 1 && g.aBatch[d] != r.m * r.lda))
            break;
        r.lda = r.m > 1 ? r.lda : g.aBatch[d];
        r.m *= g.batch[d];
    }
    for (int i = 0; i <= d; ++i) {
        r.batch.push(g.batch[i]);
        r.aBatch.push(g.aBatch[i]);
        r.bBatch.push(g.bBatch[i]);
    }
    return r;
}

ProductBatches batchesOf(Extents const& batch, Extents const& a, Extents const& b)
{
    ProductBatches p;
    for (int d = batch.rank - 1; d >= 0; --d) {
        if (batch[d] == 1)
            continue;
        bool const isStep = a[d] == p.batchA * p.batch && b[d] == p.batchB * p.batch;
        if (p.batch == 1 && p.outer.rank == 0) {
            p.batch = batch[d];
            p.batchA = a[d];
            p.batchB = b[d];
        } else if (isStep && p.outer.rank == 0) {
            p.batch *= batch[d];
        } else {
            p.outer.push(batch[d]);
            p.aOuter.push(a[d]);
            p.bOuter.push(b[d]);
        }
    }
    for (Extents* e : {&p.outer, &p.aOuter, &p.bOuter})
        std::reverse(e->d.begin(), e->d.begin() + e->rank);
    return p;
}

} // namespace tw::ops
