// SPDX-License-Identifier: Apache-2.0
#include "device_stream.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include "cuda_driver.h"
#include "device_memory.h"

namespace tw::trtexec {

DeviceEvent::DeviceEvent(bool spins)
{
    constexpr unsigned kBlocking = 1;
    if (!usesGpu())
        return;
    useGpuHere();
    checkDriver(gpu().createEvent(&event_, spins ? 0 : kBlocking), "creating an event");
}

DeviceEvent::~DeviceEvent()
{
    if (event_ && gpu().setCurrent(gpu().context) == 0)
        gpu().destroyEvent(event_);
}

void DeviceEvent::record(DeviceStream const& stream)
{
    if (event_)
        checkDriver(gpu().recordEvent(event_, stream.handle()), "recording an event");
}

void DeviceEvent::wait()
{
    if (event_)
        checkDriver(gpu().waitForEvent(event_), "waiting for the GPU");
}

double DeviceEvent::msSince(DeviceEvent const& earlier) const
{
    float ms = 0;
    if (event_)
        checkDriver(gpu().elapsed(&ms, earlier.event_, event_), "reading an event");
    return ms;
}

DeviceStream::DeviceStream()
{
    constexpr unsigned kNonBlocking = 1;
    if (!usesGpu())
        return;
    useGpuHere();
    checkDriver(gpu().createStream(&stream_, kNonBlocking), "creating a stream");
}

DeviceStream::~DeviceStream()
{
    if (!stream_ || gpu().setCurrent(gpu().context) != 0)
        return;
    gpu().synchronize(stream_);
    if (graph_)
        gpu().destroyExecutable(graph_);
    gpu().destroyStream(stream_);
}

void DeviceStream::synchronize()
{
    if (!stream_)
        return;
    useGpuHere();
    checkDriver(gpu().synchronize(stream_), "waiting for the GPU");
}

void DeviceStream::waitFor(DeviceEvent const& event)
{
    if (stream_)
        checkDriver(gpu().streamWaits(stream_, event.event_, 0), "waiting for an event");
}

void DeviceStream::sleep(double ms)
{
    using Duration = std::chrono::duration<double, std::milli>;
    if (ms <= 0)
        return;
    if (!stream_) {
        std::this_thread::sleep_for(Duration(ms));
        return;
    }
    auto duration = std::make_unique<Duration>(ms);
    auto const run = [](void* given) {
        std::unique_ptr<Duration> const owned(static_cast<Duration*>(given));
        std::this_thread::sleep_for(*owned);
    };
    checkDriver(gpu().callOnHost(stream_, run, duration.get()), "giving a function to a stream");
    static_cast<void>(duration.release()); // the function's now
}

bool DeviceStream::beginCapture()
{
    constexpr int kThreadLocal = 1;
    if (!stream_ || gpu().setCurrent(gpu().context) != 0)
        return false;
    captureError_ = gpu().beginCapture(stream_, kThreadLocal);
    return captureError_ == 0;
}

bool DeviceStream::endCapture()
{
    void* captured = nullptr;
    captureError_ = gpu().endCapture(stream_, &captured);
    if (captureError_ != 0 || !captured)
        return false;
    captureError_ = gpu().instantiate(&graph_, captured, 0);
    if (captureError_ != 0)
        graph_ = nullptr;
    gpu().destroyGraph(captured);
    return graph_ != nullptr;
}

bool DeviceStream::launch()
{
    return gpu().launchGraph(graph_, stream_) == 0;
}

ProfiledRange::ProfiledRange()
{
    if (usesGpu() && gpu().startProfiler && gpu().setCurrent(gpu().context) == 0)
        gpu().startProfiler();
}

ProfiledRange::~ProfiledRange()
{
    if (usesGpu() && gpu().stopProfiler && gpu().setCurrent(gpu().context) == 0)
        gpu().stopProfiler();
}

} // namespace tw::trtexec
