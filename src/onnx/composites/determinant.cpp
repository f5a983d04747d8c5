// SPDX-License-Identifier: Apache-2.0
// Det of small matrices, by minors of the last rows.
#include <map>

#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;

constexpr int kLargest = 5; // 2^n minors of it, n layers each

class Determinant
{
public:
    Determinant(ImportContext& ctx, ITensor& x, int n)
        : ctx_(ctx), x_(x), n_(n), sizes_(ctx.sizesOf(x)), rank_(sizes_.size())
    {}

    // Of the rows from `row` on, in the columns of a mask.
    ITensor& minor(int row, unsigned columns)
    {
        if (auto const known = known_.find(columns); known != known_.end())
            return *known->second;
        ITensor* sum = nullptr;
        int sign = 0;
        for (int c = 0; c < n_; ++c) {
            if (!(columns >> c & 1))
                continue;
            ITensor* term = &element(row, c);
            if (row + 1 < n_)
                term = &ctx_.elementwise(*term, minor(row + 1, columns & ~(1u << c)), Op::kPROD);
            sum = sum ? &ctx_.elementwise(*sum, *term, sign ? Op::kSUB : Op::kSUM) : term;
            sign = 1 - sign;
        }
        known_[columns] = sum;
        return *sum;
    }

private:
    ITensor& element(int row, int column)
    {
        Sizes start(rank_, Size(0)), size = sizes_;
        start[rank_ - 2] = Size(row);
        start[rank_ - 1] = Size(column);
        size[rank_ - 2] = size[rank_ - 1] = Size(1);
        return ctx_.slice(x_, start, size, Sizes(rank_, Size(1)));
    }

    ImportContext& ctx_;
    ITensor& x_;
    int const n_;
    Sizes const sizes_;
    size_t const rank_;
    std::map<unsigned, ITensor*> known_; // by the columns: as many rows from the last one on
};

void importDet(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    Dims const d = x.getDimensions();
    if (d.nbDims < 2)
        ctx.invalid("the input has shape " + describe(d) + ", it must be matrices");
    int const n = d.d[d.nbDims - 1];
    ctx.check(
        n >= 1 && n <= kLargest && d.d[d.nbDims - 2] == n,
        fmt::format("matrices of {} rows at most can be imported, as many columns and both known; the shape is {}",
                    kLargest, describe(d)));
    ITensor& y = Determinant(ctx, x, n).minor(0, (1u << n) - 1);
    ctx.setOutput(0, ctx.squeeze(y, {d.nbDims - 2, d.nbDims - 1}));
}

} // namespace

void register_composites_determinant(ImporterMap& map)
{
    map.add("Det", importDet);
}

} // namespace tw::onnx
