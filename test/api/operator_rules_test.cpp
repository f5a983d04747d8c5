// SPDX-License-Identifier: Apache-2.0
// What the operator reference says of each layer, by numbers that are worked by hand: a network of one layer through its
// reference.
#include "operator_rules.h"

namespace operator_rules {

namespace {

using E = ElementWiseOperation;

struct ElementRules : OperatorRules
{
    // An operation on each of two lists, or what refuses it.
    Numbers with(E operation, DataType type, Numbers a, Numbers b)
    {
        auto const n = int32_t(a.size());
        ITensor &x = input({n}, std::move(a), type), &y = input({n}, std::move(b), type);
        return run(net().addElementWise(x, y, operation));
    }
    bool takes(E operation, DataType type)
    {
        ITensor &x = input({2}, {}, type), &y = input({2}, {}, type);
        ILayer* l = net().addElementWise(x, y, operation);
        bool const taken = l && l->getOutput(0)->getDimensions().nbDims >= 0;
        another();
        return taken;
    }
};

TEST_F(OperatorRules, ConvolutionIsCorrelation)
{
    EXPECT_EQ(run(net().addConvolutionNd(input({1, 1, 1, 4}, {1, 2, 3, 5}), 1, Dims2(1, 3), weights({1, 0, -2}), none)),
              (Numbers{1 - 6, 2 - 10}));
    // What stands before the channels is the batch, however many dimensions that are.
    ILayer* l =
        net().addConvolutionNd(input({2, 1, 2, 1, 1}, {1, 2, 3, 4}), 1, Dims2(1, 1), weights({1, 10}), weights({0.5F}));
    EXPECT_EQ(shapeOf(l), "[2,1,1,1,1]");
    EXPECT_EQ(run(l), (Numbers{21.5, 43.5}));
    // In groups: kernel [2, 1, 1, 1].
    auto* grouped = net().addConvolutionNd(input({1, 2, 1, 1}, {3, 5}), 2, Dims2(1, 1), weights({2, 7}), none);
    grouped->setNbGroups(2);
    EXPECT_EQ(run(grouped), (Numbers{6, 35}));
    // No input channels: sums of nothing.
    EXPECT_EQ(run(net().addConvolutionNd(input({1, 0, 1, 2}), 2, Dims2(1, 1), none, weights({4, 5}))),
              (Numbers{4, 4, 5, 5}));
    EXPECT_TRUE(refused(net().addConvolutionNd(input({1, 1, 4}), 1, Dims2(1, 1), weights({1}), none), "dimensions"));
    EXPECT_TRUE(refused(net().addConvolutionNd(input({1, -1, 4, 4}), 1, Dims2(1, 1), weights({1}), none), "wildcard"));
    EXPECT_TRUE(
        refused(net().addConvolutionNd(input({1, 1, 4, 4}, {}, DataType::kINT32), 1, Dims2(1, 1), weights({1}), none),
                "as i32"));
}

TEST_F(OperatorRules, DeconvolutionHasItsOwnOrderOfWeights)
{
    // Kernel [2 inputs, 1 output, 1, 2].
    EXPECT_EQ(run(net().addDeconvolutionNd(input({1, 2, 1, 1}, {1, 10}), 1, Dims2(1, 2), weights({1, 2, 3, 4}), none)),
              (Numbers{31, 42}));
    // Stride 2: each input adds its window, padding trims.
    auto* l = net().addDeconvolutionNd(input({1, 1, 1, 2}, {1, 10}), 1, Dims2(1, 3), weights({1, 2, 3}), none);
    l->setStrideNd(Dims2(1, 2));
    EXPECT_EQ(run(l), (Numbers{1, 2, 13, 20, 30}));
    l = net().addDeconvolutionNd(input({1, 1, 1, 2}, {1, 10}), 1, Dims2(1, 3), weights({1, 2, 3}), none);
    l->setStrideNd(Dims2(1, 2));
    l->setPaddingNd(Dims2(0, 1));
    EXPECT_EQ(run(l), (Numbers{2, 13, 20}));
}

TEST_F(OperatorRules, ConcatenationsAreOfOneType)
{
    ITensor* parts[] = {&input({1, 2}), &input({1, 2}, {}, DataType::kINT32)};
    EXPECT_TRUE(refused(net().addConcatenation(parts, 2), "type"));
    ITensor* whole[] = {&input({1, 2}, {1, 2}, DataType::kINT32), &input({1, 2}, {3, 4}, DataType::kINT32)};
    ILayer* l = net().addConcatenation(whole, 2);
    EXPECT_EQ(shapeOf(l), "[2,2]") << "axis 0 of two dimensions";
    EXPECT_EQ(l->getOutput(0)->getType(), DataType::kINT32);
}

TEST_F(OperatorRules, IdentityConverts)
{
    auto converted = [&](DataType from, DataType to, Numbers v) {
        auto const n = int32_t(v.size());
        ILayer* l = net().addIdentity(input({n}, std::move(v), from));
        l->setOutputType(0, to);
        return run(l);
    };
    EXPECT_EQ(converted(DataType::kFLOAT, DataType::kINT32, {1.9, -1.9, 0.5}), (Numbers{1, -1, 0}));
    EXPECT_EQ(converted(DataType::kFLOAT, DataType::kBOOL, {0, -0.25, 3}), (Numbers{0, 1, 1}));
    EXPECT_EQ(converted(DataType::kBOOL, DataType::kFLOAT, {0, 1}), (Numbers{0, 1}));
    EXPECT_EQ(converted(DataType::kINT32, DataType::kHALF, {2049, -3}), (Numbers{2048, -3}));
    EXPECT_EQ(converted(DataType::kUINT8, DataType::kFLOAT, {0, 255}), (Numbers{0, 255}));
}

TEST_F(ElementRules, ElementWiseOperations)
{
    auto const f = DataType::kFLOAT;
    Numbers const a{7, -7, 2}, b{2, 2, -0.5};
    EXPECT_EQ(with(E::kSUM, f, a, b), (Numbers{9, -5, 1.5}));
    EXPECT_EQ(with(E::kPROD, f, a, b), (Numbers{14, -14, -1}));
    EXPECT_EQ(with(E::kMAX, f, a, b), (Numbers{7, 2, 2}));
    EXPECT_EQ(with(E::kMIN, f, a, b), (Numbers{2, -7, -0.5}));
    EXPECT_EQ(with(E::kSUB, f, a, b), (Numbers{5, -9, 2.5}));
    EXPECT_EQ(with(E::kDIV, f, a, b), (Numbers{3.5, -3.5, -4}));
    EXPECT_EQ(with(E::kFLOOR_DIV, f, a, b), (Numbers{3, -4, -4}));
    EXPECT_EQ(with(E::kPOW, f, {3, 4}, {2, 0.5}), (Numbers{9, 2}));
    EXPECT_EQ(with(E::kEQUAL, f, a, {7, 7, 7}), (Numbers{1, 0, 0}));
    EXPECT_EQ(with(E::kGREATER, f, a, b), (Numbers{1, 0, 1}));
    EXPECT_EQ(with(E::kLESS, f, a, b), (Numbers{0, 1, 0}));
    auto const i = DataType::kINT32;
    EXPECT_EQ(with(E::kDIV, i, {7, -7}, {2, 2}), (Numbers{3, -3})) << "towards zero";
    EXPECT_EQ(with(E::kFLOOR_DIV, i, {7, -7}, {2, 2}), (Numbers{3, -4}));
    auto const bits = DataType::kBOOL;
    Numbers const p{0, 0, 1, 1}, q{0, 1, 0, 1};
    EXPECT_EQ(with(E::kAND, bits, p, q), (Numbers{0, 0, 0, 1}));
    EXPECT_EQ(with(E::kOR, bits, p, q), (Numbers{0, 1, 1, 1}));
    EXPECT_EQ(with(E::kXOR, bits, p, q), (Numbers{0, 1, 1, 0}));
}

TEST_F(ElementRules, ElementWiseTypes)
{
    for (int o = 0; o < EnumMax<E>(); ++o) {
        auto const operation = static_cast<E>(o);
        bool const isLogic = operation == E::kAND || operation == E::kOR || operation == E::kXOR;
        for (DataType t : {DataType::kFLOAT, DataType::kHALF, DataType::kINT8})
            EXPECT_EQ(takes(operation, t), !isLogic) << o << " " << int(t);
        EXPECT_EQ(takes(operation, DataType::kINT32), !isLogic && operation != E::kPOW) << o;
        EXPECT_EQ(takes(operation, DataType::kBOOL), isLogic) << o;
        EXPECT_FALSE(takes(operation, DataType::kUINT8)) << o;
    }
    EXPECT_TRUE(refused(net().addElementWise(input({2}), input({2}, {}, DataType::kINT32), E::kSUM), "type"));
    EXPECT_TRUE(refused(net().addElementWise(input({2, 1}), input({2}), E::kSUM), "rank"));
    EXPECT_TRUE(refused(net().addElementWise(input({2, 3}), input({2, 2}), E::kSUM), "3"));
    EXPECT_EQ(run(net().addElementWise(input({2, 1}, {10, 20}), input({1, 2}, {1, 2}), E::kSUB)),
              (Numbers{9, 8, 19, 18}));
}

TEST_F(OperatorRules, GatherOutOfBoundsGivesZero)
{
    Numbers const x{1, 2, 3, 4, 5, 6}; // [2, 3]
    auto* l = net().addGather(input({2, 3}, x), list({2, 3, -1, -4}), 1);
    EXPECT_EQ(run(l), (Numbers{3, 0, 3, 0, 6, 0, 6, 0}));
    // One element-wise dimension: row i by list i.
    l = net().addGather(input({2, 3}, x), input({2, 2}, {0, 2, 1, 9}, DataType::kINT32), 1);
    l->setNbElementWiseDims(1);
    EXPECT_EQ(run(l), (Numbers{1, 3, 5, 0}));
    l = net().addGatherV2(input({2, 3}, x), input({2, 2}, {1, 2, 0, 3}, DataType::kINT32), GatherMode::kND);
    EXPECT_EQ(run(l), (Numbers{6, 0}));
    l = net().addGatherV2(input({2, 3}, x), input({2, 3}, {1, 0, 1, 2, 0, 0}, DataType::kINT32), GatherMode::kELEMENT);
    EXPECT_EQ(run(l), (Numbers{4, 2, 6, 0, 2, 3})) << "along axis 0";
    // Longer index tuples than the data has dimensions, less those of the batch.
    l = net().addGatherV2(input({2, 3}), input({4, 3}, {}, DataType::kINT32), GatherMode::kND);
    EXPECT_TRUE(refused(l, "3"));
    l = net().addGatherV2(input({2, 3}), input({2, 2}, {}, DataType::kINT32), GatherMode::kND);
    l->setNbElementWiseDims(1);
    EXPECT_TRUE(refused(l, "2"));
    l = net().addGather(input({2, 3}), input({2}, {}, DataType::kINT32), 0);
    l->setNbElementWiseDims(1);
    EXPECT_TRUE(refused(l, "element-wise"));
    EXPECT_TRUE(refused(net().addGather(input({2, 3}), input({2}), 0), "i32"));
}

TEST_F(OperatorRules, LrnCountsWhatIsThere)
{
    // Windows of three channels, two at the ends: x / (1 + 3 / 3 * sum of squares).
    EXPECT_EQ(run(net().addLRN(input({1, 3, 1, 1}, {1, 1, 2}), 3, 3, 1, 1)),
              (Numbers{double(1.F / 3), double(1.F / 7), double(1.F / 3)}));
    EXPECT_TRUE(refused(net().addLRN(input({3, 3}), 3, 1, 1, 1), "3"));
}

TEST_F(OperatorRules, ProductsOfMatrices)
{
    using enum MatrixOperation;
    EXPECT_EQ(run(net().addMatrixMultiply(input({2, 1, 1}, {2, 3}), kNONE, input({1, 1, 2}, {5, 7}), kNONE)),
              (Numbers{10, 14, 15, 21}))
        << "one matrix for both of the other";
    ILayer* l = net().addMatrixMultiply(input({2, 0}), kNONE, input({0, 2}), kNONE);
    EXPECT_EQ(shapeOf(l), "[2,2]");
    EXPECT_EQ(run(l), (Numbers{0, 0, 0, 0}));
    EXPECT_TRUE(
        refused(net().addMatrixMultiply(input({2, 2, 2}), kNONE, input({2, 2}), kNONE), "collection dimensions"));
    EXPECT_TRUE(refused(net().addMatrixMultiply(input({3, 2, 2}), kNONE, input({2, 2, 2}), kNONE), "3"));
    EXPECT_TRUE(refused(
        net().addMatrixMultiply(input({2, 2}, {}, DataType::kINT32), kNONE, input({2, 2}, {}, DataType::kINT32), kNONE),
        "f32"));
}

TEST_F(OperatorRules, SlopesAndPaddings)
{
    EXPECT_EQ(run(net().addParametricReLU(input({2, 2}, {-1, 2, -3, -4}), input({1, 2}, {10, 100}))),
              (Numbers{-10, 2, -30, -400}));
    EXPECT_EQ(run(net().addPaddingNd(input({1, 1, 2, 2}, {1, 2, 3, 4}), Dims2(1, 0), Dims2(0, -1))),
              (Numbers{0, 1, 3}));
    EXPECT_EQ(run(net().addPaddingNd(input({1, 1, 2, 2}, {1, 2, 3, 4}), Dims2(-1, 1), Dims2(0, 0))),
              (Numbers{0, 3, 4}));
}

TEST_F(OperatorRules, Pools)
{
    auto pooled = [&](PoolingType type, bool exclusive, float blend = 0) {
        auto* l = net().addPoolingNd(input({1, 1, 1, 3}, {2, 4, 9}), type, Dims2(1, 2));
        l->setPaddingNd(Dims2(0, 1));
        l->setStrideNd(Dims2(1, 2));
        l->setAverageCountExcludesPadding(exclusive);
        l->setBlendFactor(blend);
        return run(l);
    };
    EXPECT_EQ(pooled(PoolingType::kMAX, true), (Numbers{2, 9}));
    EXPECT_EQ(pooled(PoolingType::kAVERAGE, true), (Numbers{2, 6.5}));
    EXPECT_EQ(pooled(PoolingType::kAVERAGE, false), (Numbers{1, 6.5}));
    EXPECT_EQ(pooled(PoolingType::kMAX_AVERAGE_BLEND, true, 0.25F), (Numbers{2, 0.75 * 9 + 0.25 * 6.5}));
    auto* wide = net().addPoolingNd(input({1, 1, 1, 1}, {3}), PoolingType::kMAX, Dims2(1, 1));
    wide->setPaddingNd(Dims2(0, 1));
    EXPECT_EQ(run(wide), (Numbers{-kInfinity, 3, -kInfinity})) << "padding alone";
}

TEST_F(OperatorRules, SumsOverNothing)
{
    auto reduced = [&](ReduceOperation o, DataType t) {
        return run(net().addReduce(input({1, 0}, {}, t), o, 2, false));
    };
    using R = ReduceOperation;
    auto const f = DataType::kFLOAT, i = DataType::kINT32;
    EXPECT_EQ(reduced(R::kSUM, f), Numbers{0});
    EXPECT_EQ(reduced(R::kPROD, f), Numbers{1});
    EXPECT_EQ(reduced(R::kMAX, f), Numbers{-kInfinity});
    EXPECT_EQ(reduced(R::kMIN, f), Numbers{kInfinity});
    EXPECT_TRUE(std::isnan(reduced(R::kAVG, f)[0]));
    EXPECT_EQ(reduced(R::kMAX, i), Numbers{double(std::numeric_limits<int32_t>::min())});
    EXPECT_EQ(reduced(R::kMIN, i), Numbers{double(std::numeric_limits<int32_t>::max())});
    EXPECT_EQ(reduced(R::kAVG, i), Numbers{0});
    EXPECT_TRUE(refused(net().addReduce(input({2}, {}, DataType::kBOOL), R::kMAX, 1, false), "must be"));
}

TEST_F(OperatorRules, ResizeRoundsSizesDown)
{
    auto* l = net().addResize(input({1, 1, 1, 3}, {10, 20, 40}));
    float const scales[] = {1, 1, 1, 1.5F};
    l->setScales(scales, 4);
    EXPECT_EQ(shapeOf(l), "[1,1,1,4]") << "4.5";
    EXPECT_EQ(run(l), (Numbers{10, 10, 20, 40})) << "places 0, 2/3, 4/3, 2 rounded down";
    l = net().addResize(input({1, 1, 1, 3}, {10, 20, 40}));
    l->setOutputDimensions(Dims4(1, 1, 1, 5));
    l->setResizeMode(ResizeMode::kLINEAR);
    l->setCoordinateTransformation(ResizeCoordinateTransformation::kALIGN_CORNERS);
    EXPECT_EQ(run(l), (Numbers{10, 15, 20, 30, 40}));
    // One pixel: by the formula of half pixels its middle, or the first.
    for (auto selector : {ResizeSelector::kFORMULA, ResizeSelector::kUPPER}) {
        l = net().addResize(input({1, 1, 1, 3}, {10, 20, 40}));
        l->setOutputDimensions(Dims4(1, 1, 1, 1));
        l->setCoordinateTransformation(ResizeCoordinateTransformation::kHALF_PIXEL);
        l->setSelectorForSinglePixel(selector);
        EXPECT_EQ(run(l), Numbers{selector == ResizeSelector::kFORMULA ? 20.0 : 10.0});
    }
    // Halves, by rounding.
    std::vector<std::pair<ResizeRoundMode, Numbers>> const rounding{{ResizeRoundMode::kHALF_UP, {1, 2, 2, 2}},
                                                                    {ResizeRoundMode::kHALF_DOWN, {1, 1, 2, 2}},
                                                                    {ResizeRoundMode::kFLOOR, {1, 1, 2, 2}},
                                                                    {ResizeRoundMode::kCEIL, {1, 2, 2, 2}}};
    for (auto const& [mode, want] : rounding) {
        l = net().addResize(input({1, 1, 1, 2}, {1, 2}));
        l->setOutputDimensions(Dims4(1, 1, 1, 4));
        l->setNearestRounding(mode); // places 0, 0.5, 1, 1.5
        EXPECT_EQ(run(l), want) << int(mode);
    }
}

TEST_F(OperatorRules, ScaleIsProductSumPower)
{
    auto* l = net().addScale(input({1, 2, 1, 1}, {1, 2}), ScaleMode::kCHANNEL, weights({1, 2}), weights({3, 5}),
                             weights({2, 1}));
    EXPECT_EQ(run(l), (Numbers{16, 12})) << "(x * scale + shift) ^ power";
    EXPECT_EQ(run(net().addScale(input({1, 2, 1, 1}, {1, 2}), ScaleMode::kUNIFORM, none, none, none)), (Numbers{1, 2}));
    EXPECT_EQ(run(net().addScale(input({1, 1, 1, 2}, {1, 2}), ScaleMode::kELEMENTWISE, none, weights({3, 5}), none)),
              (Numbers{3, 10}));
    EXPECT_TRUE(refused(
        net().addScale(input({1, 2, 1, 1}, {}, DataType::kINT32), ScaleMode::kUNIFORM, none, weights({2}), none),
        "f32"));
}

TEST_F(OperatorRules, ScatterWritesElementsAndRows)
{
    auto* l = net().addScatter(input({3}, {1, 2, 3}), input({1, 1}, {1}, DataType::kINT32), input({1}, {9}),
                               ScatterMode::kND);
    EXPECT_EQ(run(l), (Numbers{1, 9, 3}));
    l = net().addScatter(input({2, 2}, {1, 2, 3, 4}), input({1, 1}, {1}, DataType::kINT32), input({1, 2}, {8, 9}),
                         ScatterMode::kND);
    EXPECT_EQ(run(l), (Numbers{1, 2, 8, 9})) << "a row";
    EXPECT_TRUE(refused(
        net().addScatter(input({2, 2}), input({1, 3}, {}, DataType::kINT32), input({1}), ScatterMode::kND), "3"))
        << "a tuple longer than the data's rank";
}

TEST_F(OperatorRules, SelectTakesFloatsHalvesAndIntegers)
{
    EXPECT_EQ(run(net().addSelect(input({2, 1}, {1, 0}, DataType::kBOOL), input({1, 2}, {1, 2}), input({1, 1}, {7}))),
              (Numbers{1, 2, 7, 7}));
    EXPECT_EQ(run(net().addSelect(input({2}, {1, 0}, DataType::kBOOL), input({2}, {1, 2}, DataType::kINT32),
                                  input({2}, {3, 4}, DataType::kINT32))),
              (Numbers{1, 4}));
    EXPECT_TRUE(refused(net().addSelect(input({2}, {}, DataType::kINT32), input({2}), input({2})), "must be b"));
    EXPECT_TRUE(refused(net().addSelect(input({2}, {}, DataType::kBOOL), input({2}), input({2}, {}, DataType::kINT32)),
                        "one type"));
}

TEST_F(OperatorRules, ShuffleTransposesReshapesTransposes)
{
    auto shuffled = [&](std::vector<int32_t> const& from, std::vector<int32_t> const& to, bool placeholder = true) {
        IShuffleLayer* l = net().addShuffle(input(from));
        l->setZeroIsPlaceholder(placeholder);
        l->setReshapeDimensions(dims(to));
        return l;
    };
    auto* l = net().addShuffle(input({2, 3}, {1, 2, 3, 4, 5, 6}));
    l->setFirstTranspose(Permutation{{1, 0}});
    l->setReshapeDimensions(Dims2(2, 3));
    l->setSecondTranspose(Permutation{{1, 0}});
    // [3, 2]: 1 4 2 5 3 6; [2, 3]: 1 4 2 / 5 3 6; its transpose.
    EXPECT_EQ(run(l), (Numbers{1, 5, 4, 3, 2, 6}));
    EXPECT_EQ(shapeOf(shuffled({2, 3, 4}, {0, -1})), "[2,12]");
    EXPECT_EQ(shapeOf(shuffled({3, 0}, {0, 0})), "[3,0]") << "copies";
    EXPECT_EQ(shapeOf(shuffled({3, 0}, {0, 0}, false)), "[0,0]") << "sizes";
    EXPECT_TRUE(refused(shuffled({3, 0}, {0, -1}, false), "cannot be inferred"));
    int const before = logger.errors();
    EXPECT_EQ(shapeOf(shuffled({2, 3}, {-1, -1})), "[2,3]") << "refused by the setter";
    EXPECT_EQ(logger.errors(), before + 1);
    EXPECT_TRUE(refused(shuffled({2, 3}, {4, 2}), "8"));
    EXPECT_TRUE(refused(shuffled({2, 3}, {2, 3, 0}), "0")) << "no dimension to copy";
}

TEST_F(OperatorRules, Slices)
{
    auto sliced = [&](std::vector<int32_t> const& from, Numbers v, std::vector<int32_t> const& start,
                      std::vector<int32_t> const& size, std::vector<int32_t> const& stride,
                      SliceMode mode = SliceMode::kSTRICT_BOUNDS) {
        ISliceLayer* l = net().addSlice(input(from, std::move(v)), dims(start), dims(size), dims(stride));
        l->setMode(mode);
        return l;
    };
    Numbers const x{1, 2, 3};
    EXPECT_EQ(run(sliced({3}, x, {2}, {3}, {-1})), (Numbers{3, 2, 1}));
    EXPECT_EQ(run(sliced({3}, x, {1}, {4}, {0})), (Numbers{2, 2, 2, 2}));
    EXPECT_EQ(shapeOf(sliced({3}, x, {9}, {0}, {7})), "[0]") << "a size of zero checks no bounds";
    EXPECT_TRUE(refused(sliced({3}, x, {1}, {3}, {1}), "out of the bounds"));
    EXPECT_TRUE(refused(sliced({3}, x, {-1}, {1}, {1}), "out of the bounds"));
    EXPECT_EQ(run(sliced({3}, x, {2}, {4}, {1}, SliceMode::kWRAP)), (Numbers{3, 1, 2, 3}));
    EXPECT_EQ(run(sliced({3}, x, {-2}, {6}, {1}, SliceMode::kCLAMP)), (Numbers{1, 1, 1, 2, 3, 3}));
    EXPECT_EQ(run(sliced({3}, x, {-1}, {5}, {1}, SliceMode::kFILL)), (Numbers{0, 1, 2, 3, 0}));
    EXPECT_EQ(run(sliced({3}, x, {-2}, {7}, {1}, SliceMode::kREFLECT)), (Numbers{3, 2, 1, 2, 3, 2, 1}));
    for (SliceMode mode : {SliceMode::kWRAP, SliceMode::kCLAMP, SliceMode::kREFLECT}) {
        EXPECT_TRUE(refused(sliced({0}, {}, {0}, {2}, {1}, mode), "0")) << int(mode);
        EXPECT_EQ(shapeOf(sliced({0}, {}, {0}, {0}, {1}, mode)), "[0]");
    }
}

TEST_F(OperatorRules, TopKTakesTheFirstOfEqualOnes)
{
    auto top = [&](TopKOperation o, int output) {
        return run(net().addTopK(input({1, 5}, {3, 1, 3, 2, 1}), o, 3, 2), output);
    };
    EXPECT_EQ(top(TopKOperation::kMAX, 0), (Numbers{3, 3, 2}));
    EXPECT_EQ(top(TopKOperation::kMAX, 1), (Numbers{0, 2, 3}));
    EXPECT_EQ(top(TopKOperation::kMIN, 1), (Numbers{1, 4, 3}));
    EXPECT_TRUE(refused(net().addTopK(input({1, 5}), TopKOperation::kMAX, 6, 2), "6"));
    EXPECT_TRUE(refused(net().addTopK(input({5}, {}, DataType::kINT32), TopKOperation::kMAX, 1, 1), "must be"));
    EXPECT_TRUE(refused(net().addTopK(input({2, 1, 1, 1, 1}), TopKOperation::kMAX, 1, 1), "last four"));
}

TEST_F(OperatorRules, UnaryOperations)
{
    using U = UnaryOperation;
    auto of = [&](U o, Numbers v, DataType t = DataType::kFLOAT) {
        auto const n = int32_t(v.size());
        return run(net().addUnary(input({n}, std::move(v), t), o));
    };
    EXPECT_EQ(of(U::kROUND, {0.5, 1.5, -0.5, -2.5, 2.6}), (Numbers{0, 2, 0, -2, 3})) << "half to even";
    EXPECT_EQ(of(U::kSQRT, {4, 2}), (Numbers{2, double(std::sqrt(2.F))}));
    EXPECT_EQ(of(U::kRECIP, {4, 3}), (Numbers{0.25, double(1.F / 3)}));
    EXPECT_EQ(of(U::kSIGN, {-2, 0, 0.1}), (Numbers{-1, 0, 1}));
    EXPECT_EQ(of(U::kSIGN, {-2, 0, 7}, DataType::kINT32), (Numbers{-1, 0, 1}));
    EXPECT_EQ(of(U::kCEIL, {-1.5, 1.2}), (Numbers{-1, 2}));
    EXPECT_EQ(of(U::kFLOOR, {-1.5, 1.2}), (Numbers{-2, 1}));
    EXPECT_EQ(of(U::kNOT, {0, 1}, DataType::kBOOL), (Numbers{1, 0}));
    EXPECT_EQ(shapeOf(net().addUnary(input({}), U::kEXP)), "[]");
    EXPECT_EQ(shapeOf(net().addUnary(input({1, 1, 1, 1, 1, 1, 2}), U::kEXP)), "[1,1,1,1,1,1,2]");
    EXPECT_TRUE(refused(net().addUnary(input({1, 1, 1, 1, 1, 1, 1, 2}), U::kEXP), "limit"));
    for (int o = 0; o < EnumMax<U>(); ++o) {
        auto const operation = static_cast<U>(o);
        auto takes = [&](DataType t) {
            ILayer* l = net().addUnary(input({2}, {}, t), operation);
            return l && l->getOutput(0)->getDimensions().nbDims >= 0;
        };
        EXPECT_EQ(takes(DataType::kBOOL), operation == U::kNOT) << o;
        EXPECT_EQ(takes(DataType::kFLOAT), operation != U::kNOT) << o;
    }
}

} // namespace

} // namespace operator_rules
