// SPDX-License-Identifier: Apache-2.0
#include "parsers/caffe/node.h"

namespace tw::caffe {

using nvinfer1::DimsHW;
using nvinfer1::PaddingMode;
using tw_caffe::PoolingParameter;

namespace {

void importPooling(CaffeNode& node)
{
    node.expect(1, 1);
    PoolingParameter const& p = node.layer().pooling_param();
    node.check(p.pool() != PoolingParameter::STOCHASTIC, "pool is STOCHASTIC, which is for training; MAX and AVE are "
                                                         "read");
    ITensor& x = node.atLeast(node.x(), 3);
    Dims const d = x.getDimensions();
    auto const number = [&](bool has, uint32_t of, uint32_t both, char const* what, uint32_t least) {
        return asInt(node, has ? of : both, what, least);
    };
    DimsHW kernel(d.d[d.nbDims - 2], d.d[d.nbDims - 1]), stride(1, 1), pad(0, 0);
    if (!p.global_pooling()) {
        kernel = DimsHW(number(p.has_kernel_h(), p.kernel_h(), p.kernel_size(), "kernel_size", 1),
                        number(p.has_kernel_w(), p.kernel_w(), p.kernel_size(), "kernel_size", 1));
        stride = DimsHW(number(p.has_stride_h(), p.stride_h(), p.stride(), "stride", 1),
                        number(p.has_stride_w(), p.stride_w(), p.stride(), "stride", 1));
        pad = DimsHW(number(p.has_pad_h(), p.pad_h(), p.pad(), "pad", 0),
                     number(p.has_pad_w(), p.pad_w(), p.pad(), "pad", 0));
    }
    if (pad.h() >= kernel.h() || pad.w() >= kernel.w())
        node.invalid(fmt::format("pad {} x {} must be smaller than the window {} x {}", pad.h(), pad.w(), kernel.h(),
                                 kernel.w()));
    bool const isFloor = p.torch_pooling() || p.round_mode() == PoolingParameter::FLOOR || !p.ceil_mode();
    auto& pool = node.added(node.network().addPoolingNd(
        x, p.pool() == PoolingParameter::MAX ? nvinfer1::PoolingType::kMAX : nvinfer1::PoolingType::kAVERAGE, kernel));
    pool.setStrideNd(stride);
    pool.setPaddingNd(pad);
    pool.setPaddingMode(isFloor ? PaddingMode::kCAFFE_ROUND_DOWN : PaddingMode::kCAFFE_ROUND_UP);
    pool.setAverageCountExcludesPadding(false);
    node.setTop(node.out(pool));
}

} // namespace

void addPooling(LayerMap& map)
{
    map["Pooling"] = importPooling;
}

} // namespace tw::caffe
