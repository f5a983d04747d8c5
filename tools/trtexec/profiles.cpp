// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "network.h"
#include "value_syntax.h"

namespace tw::trtexec {

namespace {

using nvinfer1::INetworkDefinition;
using nvinfer1::IOptimizationProfile;
using nvinfer1::ITensor;
using nvinfer1::OptProfileSelector;

std::vector<ITensor*> networkInputs(INetworkDefinition& network)
{
    std::vector<ITensor*> inputs;
    for (int32_t i = 0; i < network.getNbInputs(); ++i)
        inputs.push_back(network.getInput(i));
    return inputs;
}

bool needsProfile(ITensor const& input)
{
    return input.isShapeTensor() || hasDynamicDim(input.getDimensions());
}

void checkNames(ShapeRanges const& ranges, std::vector<ITensor*> const& inputs)
{
    for (auto const& [name, range] : ranges) {
        auto const it =
            std::find_if(inputs.begin(), inputs.end(), [&n = name](ITensor const* t) { return n == t->getName(); });
        if (it == inputs.end()) {
            std::string known;
            for (ITensor const* input : inputs)
                known += std::string(known.empty() ? "'" : ", '") + input->getName() + "'";
            throw Failure("shapes: the network has no input '" + name + "' (inputs: " + known + ")");
        }
        nvinfer1::Dims const dims = (*it)->getDimensions();
        if (needsProfile(**it))
            continue;
        for (Shape const* shape : {&range.min, &range.opt, &range.max})
            if (dimsText(dims) != shapeText(*shape))
                throw Failure("shapes: input '" + name + "' is static with shape " + dimsText(dims) + ", not " +
                              shapeText(*shape));
    }
}

Shape recordedShape(RecordedTensor const& tensor)
{
    Shape shape;
    for (int64_t const d : tensor.dims)
        shape.push_back(static_cast<int32_t>(std::min<int64_t>(d, std::numeric_limits<int32_t>::max())));
    return shape;
}

// Shape of an input that no option names; for a shape tensor, its values.
Shape defaultShape(Log& log, ITensor const& input, RecordedTensor const* recorded)
{
    nvinfer1::Dims const dims = input.getDimensions();
    Shape shape;
    if (recorded && input.isShapeTensor()) {
        for (size_t i = 0; i < recorded->count(); ++i)
            shape.push_back(static_cast<int32_t>(recorded->at(i)));
        return shape;
    }
    if (recorded)
        return recordedShape(*recorded);
    if (input.isShapeTensor()) {
        shape.assign(dims.nbDims == 0 ? 1 : static_cast<size_t>(std::max(dims.d[0], 1)), 1);
    } else {
        for (int32_t i = 0; i < dims.nbDims; ++i)
            shape.push_back(dims.d[i] < 0 ? 1 : dims.d[i]);
    }
    log.warning("Input '" + std::string(input.getName()) + "' is dynamic (" + dimsText(dims) +
                ") and no shape was given: using " + shapeText(shape) + "; --shapes sets another");
    return shape;
}

void setRange(Log& log, IOptimizationProfile& profile, ITensor const& input, ShapeRange const& range)
{
    std::string const name = input.getName();
    std::pair<OptProfileSelector, Shape const*> const ends[] = {{OptProfileSelector::kMIN, &range.min},
                                                                {OptProfileSelector::kOPT, &range.opt},
                                                                {OptProfileSelector::kMAX, &range.max}};
    for (auto const& [selector, shape] : ends) {
        bool good = false;
        libraryStep(log, "The shape of input '" + name + "'", [&, selector = selector, shape = shape] {
            good = input.isShapeTensor() ? profile.setShapeValues(name.c_str(), selector, shape->data(),
                                                                  static_cast<int32_t>(shape->size()))
                                         : profile.setDimensions(name.c_str(), selector, dimsOf(*shape, name));
        });
        if (!good)
            throw Failure("shapes: " + shapeText(*shape) + " is not allowed for input '" + name + "' of shape " +
                          dimsText(input.getDimensions()));
    }
}

} // namespace

void applyProfiles(Log& log, INetworkDefinition& network, nvinfer1::IBuilder& builder, nvinfer1::IBuilderConfig& config,
                   Options const& options, std::vector<RecordedTensor> const& recordedInputs)
{
    if (network.hasImplicitBatchDimension())
        return;
    std::vector<ITensor*> const inputs = networkInputs(network);
    checkNames(options.build.shapes, inputs);
    if (std::none_of(inputs.begin(), inputs.end(), [](ITensor const* t) { return needsProfile(*t); })) {
        if (!options.build.shapes.empty())
            throw Failure("shapes were given, but every input of this model is static: build without --shapes, "
                          "--minShapes, --optShapes and --maxShapes");
        return;
    }

    std::vector<size_t> recordedIndex;
    if (!recordedInputs.empty()) {
        std::vector<std::string> names;
        for (ITensor const* input : inputs)
            names.push_back(input->getName());
        recordedIndex = matchRecorded(recordedInputs, names, options.inference.inputFolder);
    }
    ShapeRanges ranges = options.build.shapes;
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (!needsProfile(*inputs[i]) || ranges.count(inputs[i]->getName()))
            continue;
        RecordedTensor const* recorded = recordedIndex.empty() ? nullptr : &recordedInputs[recordedIndex[i]];
        Shape const shape = defaultShape(log, *inputs[i], recorded);
        ranges[inputs[i]->getName()] = {shape, shape, shape};
    }

    // Each context of a dynamic engine has a profile of its own.
    for (int32_t s = 0; s < options.inference.streams; ++s) {
        IOptimizationProfile* profile = builder.createOptimizationProfile();
        if (!profile)
            throw Failure("Creating an optimization profile failed");
        for (ITensor const* input : inputs)
            if (needsProfile(*input))
                setRange(log, *profile, *input, ranges.at(input->getName()));
        if (!profile->isValid() || config.addOptimizationProfile(profile) < 0)
            throw Failure("The library refuses the optimization profile: check that minimum <= optimum <= maximum");
    }
    if (options.build.calibShapes.empty())
        return;
    IOptimizationProfile* profile = builder.createOptimizationProfile();
    if (!profile)
        throw Failure("Creating the calibration profile failed");
    checkNames(options.build.calibShapes, inputs);
    for (ITensor const* input : inputs)
        if (needsProfile(*input)) {
            auto const it = options.build.calibShapes.find(input->getName());
            setRange(log, *profile, *input,
                     it != options.build.calibShapes.end() ? it->second : ranges.at(input->getName()));
        }
    libraryStep(log, "The calibration profile", [&] {
        if (!config.setCalibrationProfile(profile))
            throw Failure("The library refuses the calibration profile");
    });
}

} // namespace tw::trtexec
