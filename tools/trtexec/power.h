// SPDX-License-Identifier: Apache-2.0
// Power and energy of a run (--power).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "energy.h"

namespace tw::trtexec {

// Of the measured part of a run. Where there is a reason there is nothing else.
struct PowerUse
{
    std::string reason; // why nothing can be told
    std::string source;
    double joules = 0, seconds = 0, inferences = 0;
    double idleWatts = 0; // before the run

    double watts() const { return joules / seconds; }
    double joulesPerInference() const { return joules / inferences; }
    double joulesAboveIdle() const { return (joules - idleWatts * seconds) / inferences; } // per inference
};

std::vector<std::string> powerLines(PowerUse const& use);
std::string powerJson(PowerUse const& use);

// Reads a counter in a thread of its own. Nothing here fails: what goes wrong is the reason in the result.
class PowerMeter
{
public:
    using Clock = std::chrono::steady_clock;

    // Looks at the idle device for so long, after a little while in which it comes to rest.
    explicit PowerMeter(std::function<std::unique_ptr<EnergyCounter>()> const& open,
                        std::chrono::milliseconds idle = std::chrono::milliseconds(1000));
    ~PowerMeter();
    PowerMeter(PowerMeter const&) = delete;

    void start();
    void stop();
    // Between two moments, which lie between start and stop.
    PowerUse use(Clock::time_point from, Clock::time_point to, double inferences) const;

private:
    struct Reading
    {
        Clock::time_point at;
        double joules = 0;
    };
    void read();
    double joulesAt(Clock::time_point at) const;

    std::unique_ptr<EnergyCounter> counter_;
    std::string reason_;
    double idleWatts_ = 0;
    std::vector<Reading> readings_;
    std::jthread reader_;
};

} // namespace tw::trtexec
