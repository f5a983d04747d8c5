// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <nanobind/stl/vector.h>

#include "layers.h"
#include "module.h"
#include "weights_of_layers.h"

namespace tw::python {

using namespace nvinfer1;

namespace {

std::vector<float> scales(IResizeLayer const& self)
{
    std::vector<float> values(Dims::MAX_DIMS);
    values.resize(size_t(std::max(0, self.getScales(Dims::MAX_DIMS, values.data()))));
    return values;
}

void setScales(IResizeLayer& self, std::vector<float> const& values)
{
    self.setScales(values.data(), int32_t(values.size()));
}

} // namespace

void bindWindowLayers(nb::module_& m)
{
    nb::class_<IConvolutionLayer, ILayer>(
        m, "IConvolutionLayer",
        "Convolution (cross-correlation) over 2 or 3 spatial dimensions. Input [N, C, spatial...], output [N, K, "
        "spatial...]. Kernel weights [K, C / groups, window...]. C must be known when the engine is built.")
        .def_prop_rw("kernel_size", deprecatedGetter(&IConvolutionLayer::getKernelSize, "kernel_size_nd"),
                     deprecatedSetter(&IConvolutionLayer::setKernelSize, "kernel_size_nd"),
                     "Replaced by kernel_size_nd.")
        .def_prop_rw("num_output_maps", &IConvolutionLayer::getNbOutputMaps, &IConvolutionLayer::setNbOutputMaps,
                     "K, the channels of the output.")
        .def_prop_rw("stride", deprecatedGetter(&IConvolutionLayer::getStride, "stride_nd"),
                     deprecatedSetter(&IConvolutionLayer::setStride, "stride_nd"), "Replaced by stride_nd.")
        .def_prop_rw("padding", deprecatedGetter(&IConvolutionLayer::getPadding, "padding_nd"),
                     deprecatedSetter(&IConvolutionLayer::setPadding, "padding_nd"), "Replaced by padding_nd.")
        .def_prop_rw("pre_padding", &IConvolutionLayer::getPrePadding, &IConvolutionLayer::setPrePadding,
                     "Zeros before each spatial dimension. Default 0.")
        .def_prop_rw("post_padding", &IConvolutionLayer::getPostPadding, &IConvolutionLayer::setPostPadding,
                     "Zeros after each spatial dimension. Default 0.")
        .def_prop_rw("padding_mode", &IConvolutionLayer::getPaddingMode, &IConvolutionLayer::setPaddingMode,
                     "Default EXPLICIT_ROUND_DOWN; the SAME modes win over explicit paddings.")
        .def_prop_rw("num_groups", &IConvolutionLayer::getNbGroups, &IConvolutionLayer::setNbGroups,
                     "Groups of channels that do not mix; divides C and K. Default 1.")
        .def_prop_rw("kernel", weightsGetter(&IConvolutionLayer::getKernelWeights),
                     weightsSetter(&IConvolutionLayer::setKernelWeights), "The kernel, [K, C / groups, window...].")
        .def_prop_rw("bias", weightsGetter(&IConvolutionLayer::getBiasWeights),
                     weightsSetter(&IConvolutionLayer::setBiasWeights), "K values added to each output map, or empty.")
        .def_prop_rw("dilation", deprecatedGetter(&IConvolutionLayer::getDilation, "dilation_nd"),
                     deprecatedSetter(&IConvolutionLayer::setDilation, "dilation_nd"), "Replaced by dilation_nd.")
        .def_prop_rw("kernel_size_nd", &IConvolutionLayer::getKernelSizeNd, &IConvolutionLayer::setKernelSizeNd,
                     "Window extents; 2 or 3 of them choose 2D or 3D.")
        .def_prop_rw("stride_nd", &IConvolutionLayer::getStrideNd, &IConvolutionLayer::setStrideNd,
                     "Default 1 in each dimension.")
        .def_prop_rw("padding_nd", &IConvolutionLayer::getPaddingNd, &IConvolutionLayer::setPaddingNd,
                     "Sets padding before and after; the getter gives the padding before.")
        .def_prop_rw("dilation_nd", &IConvolutionLayer::getDilationNd, &IConvolutionLayer::setDilationNd,
                     "Distance of window elements in the input. Default 1.");
    nb::class_<IDeconvolutionLayer, ILayer>(
        m, "IDeconvolutionLayer",
        "Transposed convolution over 2 or 3 spatial dimensions: O = (I - 1) stride + window - paddings. Input [N, C, "
        "spatial...], output [N, K, spatial...]. Kernel weights [C, K / groups, window...].")
        .def_prop_rw("kernel_size", deprecatedGetter(&IDeconvolutionLayer::getKernelSize, "kernel_size_nd"),
                     deprecatedSetter(&IDeconvolutionLayer::setKernelSize, "kernel_size_nd"),
                     "Replaced by kernel_size_nd.")
        .def_prop_rw("stride", deprecatedGetter(&IDeconvolutionLayer::getStride, "stride_nd"),
                     deprecatedSetter(&IDeconvolutionLayer::setStride, "stride_nd"), "Replaced by stride_nd.")
        .def_prop_rw("padding", deprecatedGetter(&IDeconvolutionLayer::getPadding, "padding_nd"),
                     deprecatedSetter(&IDeconvolutionLayer::setPadding, "padding_nd"), "Replaced by padding_nd.")
        .def_prop_rw("num_output_maps", &IDeconvolutionLayer::getNbOutputMaps, &IDeconvolutionLayer::setNbOutputMaps,
                     "K, the channels of the output.")
        .def_prop_rw("pre_padding", &IDeconvolutionLayer::getPrePadding, &IDeconvolutionLayer::setPrePadding,
                     "Elements cut from the start of each output dimension; not negative. Default 0.")
        .def_prop_rw("post_padding", &IDeconvolutionLayer::getPostPadding, &IDeconvolutionLayer::setPostPadding,
                     "Elements cut from the end of each output dimension; not negative. Default 0.")
        .def_prop_rw("padding_mode", &IDeconvolutionLayer::getPaddingMode, &IDeconvolutionLayer::setPaddingMode,
                     "Default EXPLICIT_ROUND_DOWN.")
        .def_prop_rw("num_groups", &IDeconvolutionLayer::getNbGroups, &IDeconvolutionLayer::setNbGroups,
                     "Groups of channels that do not mix; divides C and K. Default 1.")
        .def_prop_rw("kernel", weightsGetter(&IDeconvolutionLayer::getKernelWeights),
                     weightsSetter(&IDeconvolutionLayer::setKernelWeights), "The kernel, [C, K / groups, window...].")
        .def_prop_rw("bias", weightsGetter(&IDeconvolutionLayer::getBiasWeights),
                     weightsSetter(&IDeconvolutionLayer::setBiasWeights),
                     "K values added to each output map, or empty.")
        .def_prop_rw("kernel_size_nd", &IDeconvolutionLayer::getKernelSizeNd, &IDeconvolutionLayer::setKernelSizeNd,
                     "Window extents; 2 or 3 of them choose 2D or 3D.")
        .def_prop_rw("stride_nd", &IDeconvolutionLayer::getStrideNd, &IDeconvolutionLayer::setStrideNd,
                     "Default 1 in each dimension.")
        .def_prop_rw("padding_nd", &IDeconvolutionLayer::getPaddingNd, &IDeconvolutionLayer::setPaddingNd,
                     "Sets what is cut from start and end; the getter gives the start.")
        .def_prop_rw("dilation_nd", &IDeconvolutionLayer::getDilationNd, &IDeconvolutionLayer::setDilationNd,
                     "Distance of window elements in the output. Default 1.");
    nb::class_<IPoolingLayer, ILayer>(m, "IPoolingLayer",
                                      "Reduces a window that moves over 2 or 3 spatial dimensions. Input [N, C, "
                                      "spatial...]. Padding counts as -infinity for the maximum and as 0 for the mean.")
        .def_prop_rw("type", &IPoolingLayer::getPoolingType, &IPoolingLayer::setPoolingType,
                     "What happens in the window.")
        .def_prop_rw("window_size", deprecatedGetter(&IPoolingLayer::getWindowSize, "windnow_size_nd"),
                     deprecatedSetter(&IPoolingLayer::setWindowSize, "windnow_size_nd"), "Replaced by windnow_size_nd.")
        .def_prop_rw("stride", deprecatedGetter(&IPoolingLayer::getStride, "stride_nd"),
                     deprecatedSetter(&IPoolingLayer::setStride, "stride_nd"), "Replaced by stride_nd.")
        .def_prop_rw("padding", deprecatedGetter(&IPoolingLayer::getPadding, "padding_nd"),
                     deprecatedSetter(&IPoolingLayer::setPadding, "padding_nd"), "Replaced by padding_nd.")
        .def_prop_rw("pre_padding", &IPoolingLayer::getPrePadding, &IPoolingLayer::setPrePadding,
                     "Padding before each spatial dimension. Default 0.")
        .def_prop_rw("post_padding", &IPoolingLayer::getPostPadding, &IPoolingLayer::setPostPadding,
                     "Padding after each spatial dimension. Default 0.")
        .def_prop_rw("padding_mode", &IPoolingLayer::getPaddingMode, &IPoolingLayer::setPaddingMode,
                     "Default EXPLICIT_ROUND_DOWN.")
        .def_prop_rw("blend_factor", &IPoolingLayer::getBlendFactor, &IPoolingLayer::setBlendFactor,
                     "Share of the mean in MAX_AVERAGE_BLEND, 0 to 1. Default 0.")
        .def_prop_rw("average_count_excludes_padding", &IPoolingLayer::getAverageCountExcludesPadding,
                     &IPoolingLayer::setAverageCountExcludesPadding,
                     "Whether the mean divides by the elements inside the input only. Default true.")
        .def_prop_rw("window_size_nd", &IPoolingLayer::getWindowSizeNd, &IPoolingLayer::setWindowSizeNd,
                     "Window extents; 2 or 3 of them choose 2D or 3D.")
        .def_prop_rw("stride_nd", &IPoolingLayer::getStrideNd, &IPoolingLayer::setStrideNd,
                     "Default 1 in each dimension.")
        .def_prop_rw("padding_nd", &IPoolingLayer::getPaddingNd, &IPoolingLayer::setPaddingNd,
                     "Sets padding before and after; the getter gives the padding before.");
    nb::class_<IPaddingLayer, ILayer>(
        m, "IPaddingLayer",
        "Adds zeros around the two innermost dimensions; negative numbers crop. Use ISliceLayer instead.")
        .def_prop_rw("pre_padding", deprecatedGetter(&IPaddingLayer::getPrePadding, "pre_padding_nd"),
                     deprecatedSetter(&IPaddingLayer::setPrePadding, "pre_padding_nd"), "Replaced by pre_padding_nd.")
        .def_prop_rw("post_padding", deprecatedGetter(&IPaddingLayer::getPostPadding, "post_padding_nd"),
                     deprecatedSetter(&IPaddingLayer::setPostPadding, "post_padding_nd"),
                     "Replaced by post_padding_nd.")
        .def_prop_rw("pre_padding_nd", &IPaddingLayer::getPrePaddingNd, &IPaddingLayer::setPrePaddingNd,
                     "Zeros before each of the two dimensions.")
        .def_prop_rw("post_padding_nd", &IPaddingLayer::getPostPaddingNd, &IPaddingLayer::setPostPaddingNd,
                     "Zeros after each of the two dimensions.");
    nb::class_<ILRNLayer, ILayer>(
        m, "ILRNLayer",
        "Local response normalization across channels: x / (k + alpha / window * sum of squares in the window)^beta.")
        .def_prop_rw("window_size", &ILRNLayer::getWindowSize, &ILRNLayer::setWindowSize,
                     "Channels in the window: odd, 1 to 15.")
        .def_prop_rw("alpha", &ILRNLayer::getAlpha, &ILRNLayer::setAlpha, "-1e20 to 1e20.")
        .def_prop_rw("beta", &ILRNLayer::getBeta, &ILRNLayer::setBeta, "0.01 to 1e5.")
        .def_prop_rw("k", &ILRNLayer::getK, &ILRNLayer::setK, "1e-5 to 1e10.");
    nb::class_<IResizeLayer, ILayer>(
        m, "IResizeLayer",
        "Resamples a tensor to other extents. NEAREST resizes up to 8 innermost dimensions, LINEAR up to 3, CUBIC 2.")
        .def_prop_rw("shape", &IResizeLayer::getOutputDimensions, &IResizeLayer::setOutputDimensions,
                     "Extents of the output. An error once input 1 is set.")
        .def_prop_rw("scales", &scales, &setScales,
                     "One factor for each dimension; the extent is floor(input * scale). Empty while none are set. An "
                     "error once input 1 is set.")
        .def_prop_rw("resize_mode", &IResizeLayer::getResizeMode, &IResizeLayer::setResizeMode, "Default NEAREST.")
        .def_prop_rw("coordinate_transformation", &IResizeLayer::getCoordinateTransformation,
                     &IResizeLayer::setCoordinateTransformation, "Default ASYMMETRIC.")
        .def_prop_rw("selector_for_single_pixel", &IResizeLayer::getSelectorForSinglePixel,
                     &IResizeLayer::setSelectorForSinglePixel, "Default FORMULA.")
        .def_prop_rw("nearest_rounding", &IResizeLayer::getNearestRounding, &IResizeLayer::setNearestRounding,
                     "Default FLOOR.")
        .def_prop_rw("exclude_outside", &IResizeLayer::getExcludeOutside, &IResizeLayer::setExcludeOutside,
                     "Whether weights outside the input are dropped and the rest scaled to sum 1. Default false.")
        .def_prop_rw("cubic_coeff", &IResizeLayer::getCubicCoeff, &IResizeLayer::setCubicCoeff,
                     "Coefficient of the cubic weights. Default -0.75.")
        .def("set_input", &setInput<IResizeLayer>, nb::arg("index"), nb::arg("tensor"),
             "Replaces an input, or adds one that is optional.");
    nb::class_<IGridSampleLayer, ILayer>(m, "IGridSampleLayer",
                                         "Output [N, C, Ho, Wo] reads data [N, C, H, W] at the points of grid [N, Ho, "
                                         "Wo, 2], whose x and y run from -1 to 1.")
        .def_prop_rw("interpolation_mode", &IGridSampleLayer::getInterpolationMode,
                     &IGridSampleLayer::setInterpolationMode, "Default LINEAR.")
        .def_prop_rw("align_corners", &IGridSampleLayer::getAlignCorners, &IGridSampleLayer::setAlignCorners,
                     "Whether -1 and 1 are the centres of the border elements, not their outer edges. Default false.")
        .def_prop_rw("sample_mode", &IGridSampleLayer::getSampleMode, &IGridSampleLayer::setSampleMode,
                     "FILL (default), CLAMP or REFLECT; false for others.");
    nb::class_<INMSLayer, ILayer>(m, "INMSLayer",
                                  "Non-maximum suppression for each class. Boxes [N, B, C, 4] or [N, B, 4], scores [N, "
                                  "B, C], at most max boxes for each class (INT32 scalar). Output 0: INT32 [n, 3], "
                                  "batch, class and box, by batch and falling score. Output 1: n, an INT32 scalar.")
        .def_prop_rw("bounding_box_format", &INMSLayer::getBoundingBoxFormat, &INMSLayer::setBoundingBoxFormat,
                     "Default CORNER_PAIRS.")
        .def_prop_rw("topk_box_limit", &INMSLayer::getTopKBoxLimit, &INMSLayer::setTopKBoxLimit,
                     "Best boxes of each class and batch element that are considered at all. Default 5000, which is "
                     "also the most.")
        .def("set_input", &setInput<INMSLayer>, nb::arg("index"), nb::arg("tensor"),
             "Replaces an input, or adds one that is optional.");
}

} // namespace tw::python
