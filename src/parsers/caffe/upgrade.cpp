// SPDX-License-Identifier: Apache-2.0
#include "parsers/caffe/upgrade.h"

#include <algorithm>
#include <array>

#include "importers/common/values.h"
#include "tw_caffe.pb.h"

namespace tw::caffe {

using importers::fail;
using nvonnxparser::ErrorCode;
using tw_caffe::LayerParameter;
using tw_caffe::NetParameter;
using tw_caffe::NetStateRule;
using tw_caffe::V1LayerParameter;

namespace {

// By number.
constexpr std::array kTypes{"",
                            "Accuracy",
                            "BNLL",
                            "Concat",
                            "Convolution",
                            "Data",
                            "Dropout",
                            "EuclideanLoss",
                            "Flatten",
                            "HDF5Data",
                            "HDF5Output",
                            "Im2col",
                            "ImageData",
                            "InfogainLoss",
                            "InnerProduct",
                            "LRN",
                            "MultinomialLogisticLoss",
                            "Pooling",
                            "ReLU",
                            "Sigmoid",
                            "Softmax",
                            "SoftmaxWithLoss",
                            "Split",
                            "TanH",
                            "WindowData",
                            "Eltwise",
                            "Power",
                            "SigmoidCrossEntropyLoss",
                            "HingeLoss",
                            "MemoryData",
                            "ArgMax",
                            "Threshold",
                            "DummyData",
                            "Slice",
                            "MVN",
                            "AbsVal",
                            "Silence",
                            "ContrastiveLoss",
                            "Exp",
                            "Deconvolution"};
static_assert(kTypes.size() == V1LayerParameter::LayerType_ARRAYSIZE);

void upgradeLayer(V1LayerParameter const& from, LayerParameter& to)
{
    to.set_name(from.name());
    to.set_type(kTypes[size_t(from.type())]);
    *to.mutable_bottom() = from.bottom();
    *to.mutable_top() = from.top();
    *to.mutable_include() = from.include();
    *to.mutable_exclude() = from.exclude();
#define TW_TAKE(field)                                                                                                 \
    if (from.has_##field())                                                                                            \
    *to.mutable_##field() = from.field()
    TW_TAKE(argmax_param);
    TW_TAKE(concat_param);
    TW_TAKE(convolution_param);
    TW_TAKE(crop_param);
    TW_TAKE(eltwise_param);
    TW_TAKE(exp_param);
    TW_TAKE(inner_product_param);
    TW_TAKE(lrn_param);
    TW_TAKE(mvn_param);
    TW_TAKE(pooling_param);
    TW_TAKE(power_param);
    TW_TAKE(relu_param);
    TW_TAKE(slice_param);
    TW_TAKE(softmax_param);
    TW_TAKE(threshold_param);
#undef TW_TAKE
}

template <class List>
bool has(List const& list, std::string const& word)
{
    return std::find(list.begin(), list.end(), word) != list.end();
}

bool isMet(NetStateRule const& rule, tw_caffe::NetState const& state)
{
    return (!rule.has_phase() || rule.phase() == tw_caffe::TEST) &&
           (!rule.has_min_level() || state.level() >= rule.min_level()) &&
           (!rule.has_max_level() || state.level() <= rule.max_level()) &&
           std::all_of(rule.stage().begin(), rule.stage().end(),
                       [&](std::string const& s) { return has(state.stage(), s); }) &&
           std::none_of(rule.not_stage().begin(), rule.not_stage().end(),
                        [&](std::string const& s) { return has(state.stage(), s); });
}

} // namespace

void upgrade(NetParameter& net)
{
    if (net.layers_size() > 0 && net.layer_size() > 0)
        fail(ErrorCode::kINVALID_GRAPH, "the network's text has both 'layer' and 'layers', the form until 2015; one of "
                                        "them would be left out");
    for (V1LayerParameter const& from : net.layers()) {
        if (from.has_layer())
            fail(ErrorCode::kUNSUPPORTED_GRAPH, "the network's text is of Caffe's first form (2013), which is not "
                                                "read: upgrade it with Caffe's upgrade_net_proto_text");
        upgradeLayer(from, *net.add_layer());
    }
    net.clear_layers();
}

bool isDeployed(LayerParameter const& layer, NetParameter const& net)
{
    if (layer.has_phase() && layer.phase() == tw_caffe::TEST)
        return false;
    auto const met = [&](NetStateRule const& rule) { return isMet(rule, net.state()); };
    return layer.include_size() > 0 ? std::any_of(layer.include().begin(), layer.include().end(), met)
                                    : std::none_of(layer.exclude().begin(), layer.exclude().end(), met);
}

} // namespace tw::caffe
