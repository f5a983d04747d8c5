// SPDX-License-Identifier: Apache-2.0
// RoiAlign, AffineGrid: points of images, which a grid sample layer takes.
#include "onnx/importer.h"
#include "onnx/positions.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;
using nvinfer1::ReduceOperation;
using nvinfer1::UnaryOperation;

class RoiAlign
{
public:
    explicit RoiAlign(ImportContext& ctx) : ctx_(ctx), x_(ctx.tensor(0)), rois_(ctx.tensor(1))
    {
        if (x_.getDimensions().nbDims != 4 || rois_.getDimensions().nbDims != 2)
            ctx.invalid("the data has shape " + describe(x_.getDimensions()) + " and the boxes " +
                        describe(rois_.getDimensions()) + "; ranks 4 and 2 are needed");
        for (auto& [value, attr] : {std::pair{&rows_, "output_height"}, std::pair{&columns_, "output_width"}}) {
            *value = ctx.attrInt(attr, 1);
            if (*value < 1 || *value > 4096)
                ctx.invalid(std::string(attr) + " is " + std::to_string(*value));
        }
        samples_ = ctx.attrInt("sampling_ratio", 0);
        ctx.check(samples_ >= 1 && samples_ <= 256,
                  "sampling_ratio is " + std::to_string(samples_) +
                      "; 1 to 256 can be imported (0 makes the number of samples depend on each box)");
        std::string const mode =
            ctx.attrString("coordinate_transformation_mode", ctx.opset() < 16 ? "output_half_pixel" : "half_pixel");
        if (mode != "half_pixel" && mode != "output_half_pixel")
            ctx.invalid("coordinate_transformation_mode '" + mode + "' is unknown");
        isHalfPixel_ = mode == "half_pixel";
        std::string const how = ctx.attrString("mode", "avg");
        if (how != "avg" && how != "max")
            ctx.invalid("mode '" + how + "' is unknown (allowed: avg, max)");
        reduction_ = how == "avg" ? ReduceOperation::kAVG : ReduceOperation::kMAX;
    }

    // Images stand on each other, n h by w, so that one grid reaches all: a place in an image stays inside of it.
    void run()
    {
        Sizes const s = ctx_.sizesOf(x_);
        Size const boxes = ctx_.sizesOf(rois_)[0];
        ITensor& tall =
            ctx_.reshape(ctx_.transpose(x_, {1, 0, 2, 3}), Sizes{Size(1), s[1], ctx_.mul(s[0], s[2]), s[3]});
        Axis const down = axisOf(1, rows_, s[2]), across = axisOf(0, columns_, s[3]);
        ITensor& image = ctx_.unsqueeze(ctx_.cast(ctx_.tensor(2), DataType::kFLOAT), {1}); // [boxes, 1]
        ITensor& first = ctx_.elementwise(image, number(s[2]), Op::kPROD);
        ITensor& y = normal(ctx_.elementwise(*down.place, first, Op::kSUM), ctx_.mul(s[0], s[2]));
        ITensor& x = normal(*across.place, s[3]);
        int64_t const p = rows_ * samples_, q = columns_ * samples_;
        Sizes const all{boxes, Size(p), Size(q), Size(1)};
        ITensor& grid = ctx_.concat(
            {&ctx_.expand(ctx_.unsqueeze(x, {1, 3}), all), &ctx_.expand(ctx_.unsqueeze(y, {2, 3}), all)}, 3);
        auto& layer = ctx_.added(ctx_.network().addGridSample(
            tall, ctx_.reshape(grid, Sizes{Size(1), ctx_.mul(boxes, p), Size(q), Size(2)})));
        layer.setSampleMode(nvinfer1::SampleMode::kCLAMP);
        ITensor& points = ctx_.reshape(ctx_.out(layer), Sizes{s[1], boxes, Size(p), Size(q)});
        // Points outside count as 0.
        ITensor& isInside =
            ctx_.elementwise(ctx_.unsqueeze(*down.isInside, {2}), ctx_.unsqueeze(*across.isInside, {1}), Op::kAND);
        ITensor& mask = ctx_.unsqueeze(isInside, {0});
        ITensor& taken = ctx_.select(mask, points, ctx_.scalarLike(0, points));
        ITensor& cut =
            ctx_.reshape(taken, Sizes{s[1], boxes, Size(rows_), Size(samples_), Size(columns_), Size(samples_)});
        ITensor& bins = ctx_.reduce(cut, reduction_, {3, 5}, false);
        ctx_.setOutput(0, ctx_.transpose(bins, {1, 0, 2, 3}));
    }

private:
    struct Axis
    {
        ITensor *place, *isInside; // [boxes, points]
    };

    ITensor& number(Size const& s) { return ctx_.unsqueeze(ctx_.cast(ctx_.asTensor(s), DataType::kFLOAT), {0}); }

    // Places of the samples along an axis whose coordinates are columns `first` and `first + 2` of the boxes.
    Axis axisOf(int first, int64_t bins, Size const& size)
    {
        Size const boxes = ctx_.sizesOf(rois_)[0];
        double const scale = ctx_.attrFloat("spatial_scale", 1), moved = isHalfPixel_ ? 0.5 : 0;
        auto edge = [&](int column) -> ITensor& {
            ITensor& v = ctx_.cast(ctx_.slice(rois_, {Size(0), Size(column)}, {boxes, Size(1)}, {Size(1), Size(1)}),
                                   DataType::kFLOAT);
            return ctx_.elementwise(ctx_.elementwise(v, ctx_.scalarLike(scale, v), Op::kPROD),
                                    ctx_.scalarLike(moved, v), Op::kSUB);
        };
        ITensor& begin = edge(first);
        ITensor* length = &ctx_.elementwise(edge(first + 2), begin, Op::kSUB);
        if (!isHalfPixel_) // boxes of less than a pixel become one
            length = &ctx_.elementwise(*length, ctx_.scalarLike(1, *length), Op::kMAX);
        std::vector<float> centres;
        for (int64_t i = 0; i < bins * samples_; ++i)
            centres.push_back(float((double(i) + 0.5) / double(bins * samples_)));
        ITensor& parts = ctx_.asTensor(Value(ctx_.floatConstant(centres, makeDims({1, bins * samples_}))));
        ITensor& place = ctx_.elementwise(begin, ctx_.elementwise(*length, parts, Op::kPROD), Op::kSUM);
        ITensor& isBefore = ctx_.elementwise(place, ctx_.scalarLike(-1, place), Op::kLESS);
        ITensor& isBehind = ctx_.elementwise(place, number(size), Op::kGREATER);
        ITensor& isInside = ctx_.unary(ctx_.elementwise(isBefore, isBehind, Op::kOR), UnaryOperation::kNOT);
        ITensor& low = ctx_.elementwise(place, ctx_.scalarLike(0, place), Op::kMAX);
        return {&ctx_.elementwise(low, number(ctx_.sub(size, 1)), Op::kMIN), &isInside};
    }

    // The coordinate of the grid, from -1 to 1 at the outer edges: (2 place + 1) / size - 1.
    ITensor& normal(ITensor& place, Size const& size)
    {
        ITensor& odd = ctx_.elementwise(ctx_.elementwise(place, ctx_.scalarLike(2, place), Op::kPROD),
                                        ctx_.scalarLike(1, place), Op::kSUM);
        return ctx_.elementwise(ctx_.elementwise(odd, number(size), Op::kDIV), ctx_.scalarLike(1, place), Op::kSUB);
    }

    ImportContext& ctx_;
    ITensor &x_, &rois_;
    int64_t rows_ = 1, columns_ = 1, samples_ = 0;
    bool isHalfPixel_ = true;
    ReduceOperation reduction_{};
};

void importRoiAlign(ImportContext& ctx)
{
    RoiAlign(ctx).run();
}

// Pixel i of `count`: from -1 to 1, at the centres of the outer pixels or at their edges; 0 for one pixel.
ITensor& coordinates(ImportContext& ctx, Size const& count, bool alignCorners)
{
    Size const last = ctx.sub(count, 1);
    auto number = [&](Size const& s) -> ITensor& { return ctx.cast(ctx.asTensor(s), DataType::kFLOAT); };
    ITensor& i = ctx.cast(positions(ctx, count), DataType::kFLOAT);
    ITensor& twice = ctx.elementwise(i, ctx.scalarLike(2, i), Op::kPROD);
    ITensor& moved = ctx.elementwise(twice, number(last), Op::kSUB);
    return ctx.elementwise(moved, number(alignCorners ? ctx.max(last, 1) : count), Op::kDIV);
}

// grid[n, i, j] = theta[n] (x_j, y_i, 1)
void importAffineGrid(ImportContext& ctx)
{
    ITensor& theta = ctx.tensor(0);
    Sizes const size = ctx.sizesFrom(ctx.input(1));
    ctx.check(size.size() == 4 && theta.getDimensions().nbDims == 3,
              "grids of images can be imported: 4 sizes and theta of shape [n, 2, 3]");
    bool const alignCorners = ctx.attrInt("align_corners", 0) != 0;
    Sizes const plane{size[2], size[3], Size(1)};
    ITensor& x = ctx.expand(ctx.unsqueeze(coordinates(ctx, size[3], alignCorners), {0, 2}), plane);
    ITensor& y = ctx.expand(ctx.unsqueeze(coordinates(ctx, size[2], alignCorners), {1, 2}), plane);
    ITensor& one = ctx.expand(ctx.scalar(1, DataType::kFLOAT, 3), plane);
    ITensor& points = ctx.reshape(ctx.concat({&x, &y, &one}, 2), Sizes{Size(1), ctx.mul(size[2], size[3]), Size(3)});
    ITensor& grid = ctx.matmul(ctx.cast(points, theta.getType()), theta, false, true);
    ctx.setOutput(0, ctx.reshape(grid, Sizes{size[0], size[2], size[3], Size(2)}));
}

} // namespace

void register_composites_regions_of_images(ImporterMap& map)
{
    map.add("RoiAlign", importRoiAlign);
    map.add("AffineGrid", importAffineGrid);
}

} // namespace tw::onnx
