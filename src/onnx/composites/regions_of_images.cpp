// SPDX-License-Identifier: Apache-2.0
// RoiAlign, AffineGrid: points of images, which a grid sample layer takes, or gathers where they are not mixed.
#include <array>
#include <limits>

#include "onnx/importer.h"

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
                ctx.invalid(phrase(attr, " is ", *value));
        }
        samples_ = ctx.attrInt("sampling_ratio", 0);
        ctx.check(samples_ >= 0 && samples_ <= 256,
                  phrase("sampling_ratio is ", samples_, "; 0 to 256 can be imported"));
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

    void run()
    {
        Sizes const s = ctx_.sizesOf(x_);
        Size const boxes = ctx_.sizesOf(rois_)[0];
        Axis const down = axisOf(1, rows_, s[2]), across = axisOf(0, columns_, s[3]);
        Size const p = ctx_.mul(rows_, down.perBin), q = ctx_.mul(columns_, across.perBin);
        ITensor& points = reduction_ == ReduceOperation::kAVG ? mixed(s, {s[1], boxes, p, q}, down, across)
                                                              : largestParts(s, down, across);
        // Points outside count as 0.
        ITensor& taken = ctx_.select(both(*down.isInside, *across.isInside), points, ctx_.scalarLike(0, points));
        Sizes const bins{s[1], boxes, Size(rows_), down.perBin, Size(columns_), across.perBin};
        ITensor& result = samples_ > 0 ? ctx_.reduce(ctx_.reshape(taken, bins), reduction_, {3, 5}, false)
                                       : reduceSamples(taken, bins, down, across);
        ITensor& ofBoxes = ctx_.transpose(result, {1, 0, 2, 3});
        // Where a run decides how many samples there are, the sizes behind them are lost on the way.
        ctx_.setOutput(0,
                       samples_ > 0 ? ofBoxes : ctx_.reshape(ofBoxes, Sizes{boxes, s[1], Size(rows_), Size(columns_)}));
    }

private:
    struct Axis
    {
        ITensor *place, *isInside; // [boxes, points]
        Size perBin;               // how many of the points stand in a bin
        // Where each box has a number of its own, perBin at most: that number, [boxes, 1], and which points are samples.
        ITensor *count = nullptr, *isSample = nullptr;
    };

    // What stands at the points, [c, boxes, p, q], of images s = [n, c, h, w]. Images stand on each other, n h by w, so that
    // one grid reaches all: a place in an image stays inside of it.
    ITensor& mixed(Sizes const& s, Sizes const& points, Axis const& down, Axis const& across)
    {
        Size const boxes = points[1], p = points[2], q = points[3];
        ITensor& tall =
            ctx_.reshape(ctx_.transpose(x_, {1, 0, 2, 3}), Sizes{Size(1), s[1], ctx_.mul(s[0], s[2]), s[3]});
        ITensor& image = ctx_.unsqueeze(ctx_.cast(ctx_.tensor(2), DataType::kFLOAT), {1}); // [boxes, 1]
        ITensor& first = ctx_.elementwise(image, number(s[2]), Op::kPROD);
        ITensor& y = normal(ctx_.elementwise(*down.place, first, Op::kSUM), ctx_.mul(s[0], s[2]));
        ITensor& x = normal(*across.place, s[3]);
        Sizes const all{boxes, p, q, Size(1)};
        ITensor& grid = ctx_.concat(
            {&ctx_.expand(ctx_.unsqueeze(x, {1, 3}), all), &ctx_.expand(ctx_.unsqueeze(y, {2, 3}), all)}, 3);
        auto& layer = ctx_.added(
            ctx_.network().addGridSample(tall, ctx_.reshape(grid, Sizes{Size(1), ctx_.mul(boxes, p), q, Size(2)})));
        layer.setSampleMode(nvinfer1::SampleMode::kCLAMP);
        return ctx_.reshape(ctx_.out(layer), points);
    }

    // Mode max does not mix: the largest of the four pixels around a point, each times its weight of the mix.
    ITensor& largestParts(Sizes const& s, Axis const& down, Axis const& across)
    {
        ITensor& flat =
            ctx_.reshape(ctx_.transpose(x_, {1, 0, 2, 3}), Sizes{s[1], ctx_.mul(ctx_.mul(s[0], s[2]), s[3])});
        ITensor& image = ctx_.unsqueeze(ctx_.cast(ctx_.tensor(2), DataType::kINT32), {1}); // [boxes, 1]
        ITensor& first = ctx_.elementwise(image, ctx_.unsqueeze(ctx_.asTensor(s[2]), {0}), Op::kPROD);
        ITensor& width = ctx_.unsqueeze(ctx_.asTensor(s[3]), {0, 1});
        ITensor* largest = nullptr;
        for (Corner const& y : cornersOf(down, s[2]))
            for (Corner const& x : cornersOf(across, s[3])) {
                ITensor& row = ctx_.unsqueeze(ctx_.elementwise(*y.pixel, first, Op::kSUM), {2});
                ITensor& at = ctx_.elementwise(ctx_.elementwise(row, width, Op::kPROD), ctx_.unsqueeze(*x.pixel, {1}),
                                               Op::kSUM); // [boxes, p, q]
                ITensor& pixels = ctx_.out(ctx_.added(ctx_.network().addGather(flat, at, 1)));
                ITensor& weight = ctx_.unsqueeze(
                    ctx_.elementwise(ctx_.unsqueeze(*y.weight, {2}), ctx_.unsqueeze(*x.weight, {1}), Op::kPROD), {0});
                ITensor& part = ctx_.elementwise(pixels, ctx_.cast(weight, pixels.getType()), Op::kPROD);
                largest = largest ? &ctx_.elementwise(*largest, part, Op::kMAX) : &part;
            }
        return *largest;
    }

    struct Corner
    {
        ITensor *pixel, *weight; // INT32 and FLOAT, [boxes, points]
    };
    // The pixels before and behind each place; the last one stands behind itself, with weight 0.
    std::array<Corner, 2> cornersOf(Axis const& axis, Size const& size)
    {
        ITensor& place = *axis.place;
        ITensor& low = ctx_.unary(place, UnaryOperation::kFLOOR);
        ITensor& high = ctx_.elementwise(ctx_.elementwise(low, ctx_.scalarLike(1, low), Op::kSUM),
                                         number(ctx_.sub(size, 1)), Op::kMIN);
        ITensor& behind = ctx_.elementwise(place, low, Op::kSUB);
        ITensor& before = ctx_.elementwise(ctx_.scalarLike(1, behind), behind, Op::kSUB);
        return {Corner{&ctx_.cast(low, DataType::kINT32), &before},
                Corner{&ctx_.cast(high, DataType::kINT32), &behind}};
    }

    ITensor& number(Size const& s) { return ctx_.unsqueeze(ctx_.cast(ctx_.asTensor(s), DataType::kFLOAT), {0}); }

    // [boxes, p] and [boxes, q] to [1, boxes, p, q]
    ITensor& both(ITensor& down, ITensor& across)
    {
        return ctx_.unsqueeze(ctx_.elementwise(ctx_.unsqueeze(down, {2}), ctx_.unsqueeze(across, {1}), Op::kAND), {0});
    }

    // Of the samples alone; a bin without any gives 0.
    ITensor& reduceSamples(ITensor& points, Sizes const& bins, Axis const& down, Axis const& across)
    {
        bool const isMean = reduction_ == ReduceOperation::kAVG;
        double const others = isMean ? 0 : -std::numeric_limits<double>::infinity();
        ITensor& samples = ctx_.select(both(*down.isSample, *across.isSample), points, ctx_.scalarLike(others, points));
        ITensor& result = ctx_.reduce(ctx_.reshape(samples, bins),
                                      isMean ? ReduceOperation::kSUM : ReduceOperation::kMAX, {3, 5}, false);
        ITensor& count = ctx_.unsqueeze(ctx_.elementwise(*down.count, *across.count, Op::kPROD), {0, 3});
        ITensor& one = ctx_.scalarLike(1, count);
        if (isMean)
            return ctx_.elementwise(result, ctx_.cast(ctx_.elementwise(count, one, Op::kMAX), result.getType()),
                                    Op::kDIV);
        return ctx_.select(ctx_.elementwise(count, one, Op::kLESS), ctx_.scalarLike(0, result), result);
    }

    // Parts of a box's length at which its samples stand: [1, points], or [boxes, points] where its length says how many
    // there are in a bin, ceil(length / bins).
    ITensor& partsOf(ITensor& length, int64_t bins, Axis& axis)
    {
        axis.perBin = Size(samples_);
        if (samples_ > 0) {
            std::vector<float> centres;
            for (int64_t i = 0; i < bins * samples_; ++i)
                centres.push_back(float((double(i) + 0.5) / double(bins * samples_)));
            return ctx_.asTensor(Value(ctx_.floatConstant(centres, makeDims({1, bins * samples_}))));
        }
        ITensor &zero = ctx_.scalarLike(0, length), &one = ctx_.scalarLike(1, length);
        ITensor& n = ctx_.scalarLike(double(bins), length);
        ITensor& needed = ctx_.unary(ctx_.elementwise(length, n, Op::kDIV), UnaryOperation::kCEIL);
        axis.count = &ctx_.elementwise(needed, zero, Op::kMAX);
        ITensor& most = ctx_.reduce(*axis.count, ReduceOperation::kMAX, {0}, false);
        ITensor& atLeastOne = ctx_.elementwise(most, ctx_.scalarLike(1, most), Op::kMAX);
        axis.perBin = Size(ctx_.cast(atLeastOne, DataType::kINT32));
        ITensor& point = positions(ctx_, ctx_.mul(bins, axis.perBin));
        ITensor& perBin = ctx_.asTensor(axis.perBin);
        ITensor& bin = ctx_.elementwise(point, perBin, Op::kFLOOR_DIV);
        ITensor& inBin = ctx_.elementwise(point, ctx_.elementwise(bin, perBin, Op::kPROD), Op::kSUB);
        ITensor& i = ctx_.unsqueeze(ctx_.cast(bin, DataType::kFLOAT), {0});
        ITensor& k = ctx_.unsqueeze(ctx_.cast(inBin, DataType::kFLOAT), {0});
        axis.isSample = &ctx_.elementwise(k, *axis.count, Op::kLESS);
        ITensor& centre = ctx_.elementwise(k, ctx_.scalarLike(0.5, k), Op::kSUM);
        ITensor& inside = ctx_.elementwise(centre, ctx_.elementwise(*axis.count, one, Op::kMAX), Op::kDIV);
        return ctx_.elementwise(ctx_.elementwise(i, inside, Op::kSUM), n, Op::kDIV);
    }

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
        Axis axis{};
        ITensor& parts = partsOf(*length, bins, axis);
        ITensor& place = ctx_.elementwise(begin, ctx_.elementwise(*length, parts, Op::kPROD), Op::kSUM);
        ITensor& isBefore = ctx_.elementwise(place, ctx_.scalarLike(-1, place), Op::kLESS);
        ITensor& isBehind = ctx_.elementwise(place, number(size), Op::kGREATER);
        axis.isInside = &ctx_.unary(ctx_.elementwise(isBefore, isBehind, Op::kOR), UnaryOperation::kNOT);
        ITensor& low = ctx_.elementwise(place, ctx_.scalarLike(0, place), Op::kMAX);
        axis.place = &ctx_.elementwise(low, number(ctx_.sub(size, 1)), Op::kMIN);
        return axis;
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
    int64_t rows_ = 1, columns_ = 1;
    int64_t samples_ = 0; // in a bin, along an axis; 0: as many as a bin has pixels
    bool isHalfPixel_ = true;
    ReduceOperation reduction_{};
};

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
    map.add("RoiAlign", [](auto& ctx) { RoiAlign(ctx).run(); });
    map.add("AffineGrid", importAffineGrid);
}

} // namespace tw::onnx
