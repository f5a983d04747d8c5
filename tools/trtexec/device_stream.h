// SPDX-License-Identifier: Apache-2.0
// Work in order on the device, and clocks of it. On the CPU device work is done when it has been given: streams are the
// null stream, events do nothing.
#pragma once

namespace tw::trtexec {

class DeviceStream;

class DeviceEvent
{
public:
    explicit DeviceEvent(bool spins); // who waits for it looks again and again; else its thread sleeps
    ~DeviceEvent();
    DeviceEvent(DeviceEvent const&) = delete;
    DeviceEvent& operator=(DeviceEvent const&) = delete;

    void record(DeviceStream const& stream); // happens when the work is done that the stream has been given
    void wait();
    double msSince(DeviceEvent const& earlier) const; // both have happened

private:
    friend class DeviceStream;
    void* event_ = nullptr;
};

class DeviceStream
{
public:
    DeviceStream();
    ~DeviceStream();
    DeviceStream(DeviceStream const&) = delete;
    DeviceStream& operator=(DeviceStream const&) = delete;

    void* handle() const { return stream_; } // a cudaStream_t
    void synchronize();
    void waitFor(DeviceEvent const& event); // what is given from now on begins after it
    void sleep(double ms);                  // nothing happens for so long

    // What is given between the two becomes a CUDA graph, which launch() runs. False: it cannot be captured.
    bool beginCapture();
    bool endCapture();
    int captureError() const { return captureError_; } // of the driver, when one of the two has failed
    bool hasGraph() const { return graph_ != nullptr; }
    bool launch();

private:
    void* stream_ = nullptr;
    void* graph_ = nullptr; // executable
    int captureError_ = 0;
};

// What runs while it lives is what profilers record that wait for the program's sign (nsys -c cudaProfilerApi).
class ProfiledRange
{
public:
    ProfiledRange();
    ~ProfiledRange();
    ProfiledRange(ProfiledRange const&) = delete;
    ProfiledRange& operator=(ProfiledRange const&) = delete;
};

} // namespace tw::trtexec
