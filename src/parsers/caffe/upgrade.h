// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tw_caffe {
class LayerParameter;
class NetParameter;
} // namespace tw_caffe

namespace tw::caffe {

// `layers` of files until 2015 become `layer`, in front of which there is none: a text has one or the other.
void upgrade(tw_caffe::NetParameter& net);

// Whether the network has this layer when it is deployed: by its `include` and `exclude` for the phase TEST, and not when its own
// field `phase` is TEST, which the library of 8.5 skips.
bool isDeployed(tw_caffe::LayerParameter const& layer, tw_caffe::NetParameter const& net);

} // namespace tw::caffe
