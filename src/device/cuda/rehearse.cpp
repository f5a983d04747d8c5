// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/rehearse.h"

namespace tw::cuda {

void warmUp(std::shared_ptr<Device const> const& device, std::function<Result<void>(CUstream_st*)> const& work)
{
    Driver const& d = device->driver();
    if (!d.cuStreamBeginCapture || !d.cuStreamEndCapture || !d.cuGraphDestroy)
        return;
    auto const stream = Stream::create(device);
    if (!stream.ok() || d.cuStreamBeginCapture((*stream)->handle(), kCaptureRelaxed) != kSuccess)
        return;
    (void)work((*stream)->handle()).ok();
    void* graph = nullptr;
    d.cuStreamEndCapture((*stream)->handle(), &graph);
    if (graph)
        d.cuGraphDestroy(graph);
}

} // namespace tw::cuda
