// SPDX-License-Identifier: Apache-2.0
#include "power.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>

#include <fmt/core.h>

#include "json_rows.h"
#include "value_syntax.h"

namespace tw::trtexec {

namespace {

// As often as NVML's counters move on an H200, where a reading takes up to 3 ms. RAPL's run over after a minute or more.
constexpr std::chrono::milliseconds kInterval{100};
// Threads that still spin and clocks that still fall behind the build.
constexpr std::chrono::milliseconds kRest{200};

double secondsBetween(PowerMeter::Clock::time_point from, PowerMeter::Clock::time_point to)
{
    return std::chrono::duration<double>(to - from).count();
}

} // namespace

PowerMeter::PowerMeter(std::function<std::unique_ptr<EnergyCounter>()> const& open, std::chrono::milliseconds idle)
{
    try {
        counter_ = open();
    } catch (std::exception const& error) {
        reason_ = error.what();
        return;
    }
    std::this_thread::sleep_for(std::min(kRest, idle));
    start();
    std::this_thread::sleep_for(idle);
    stop();
    if (readings_.size() > 1)
        idleWatts_ = (readings_.back().joules - readings_.front().joules) /
                     secondsBetween(readings_.front().at, readings_.back().at);
}

PowerMeter::~PowerMeter()
{
    stop();
}

void PowerMeter::read()
{
    if (!reason_.empty())
        return;
    try {
        double const joules = counter_->joules();
        readings_.push_back({Clock::now(), joules});
    } catch (std::exception const& error) {
        reason_ = error.what();
    }
}

void PowerMeter::start()
{
    if (!reason_.empty())
        return;
    readings_.clear();
    read();
    reader_ = std::jthread([this](std::stop_token const& token) {
        std::mutex mutex;
        std::condition_variable_any wake;
        std::unique_lock lock(mutex);
        while (!wake.wait_for(lock, token, kInterval, [&] { return token.stop_requested(); }))
            read();
    });
}

void PowerMeter::stop()
{
    if (!reader_.joinable())
        return;
    reader_.request_stop();
    reader_.join();
    read();
}

// By a line between the readings before and after.
double PowerMeter::joulesAt(Clock::time_point at) const
{
    auto const after = std::lower_bound(readings_.begin(), readings_.end(), at,
                                        [](Reading const& r, Clock::time_point t) { return r.at < t; });
    if (after == readings_.begin())
        return readings_.front().joules;
    if (after == readings_.end())
        return readings_.back().joules;
    Reading const& before = *(after - 1);
    double const share = secondsBetween(before.at, at) / secondsBetween(before.at, after->at);
    return before.joules + share * (after->joules - before.joules);
}

PowerUse PowerMeter::use(Clock::time_point from, Clock::time_point to, double inferences) const
{
    PowerUse use;
    use.reason = reason_;
    if (!use.reason.empty())
        return use;
    use.source = counter_->source();
    use.inferences = inferences;
    use.seconds = secondsBetween(from, to);
    use.idleWatts = idleWatts_;
    if (!readings_.empty())
        use.joules = joulesAt(to) - joulesAt(from);
    if (inferences <= 0 || use.seconds <= 0)
        use.reason = "nothing was measured";
    else if (use.joules <= 0)
        use.reason = fmt::format("{}: the counter did not move in {} s", use.source, numberText(use.seconds));
    return use;
}

std::vector<std::string> powerLines(PowerUse const& use)
{
    std::vector<std::string> lines = {"=== Power summary ==="};
    if (!use.reason.empty()) {
        lines.push_back("Power is not readable here: " + use.reason);
        return lines;
    }
    lines.push_back("Energy Source: " + use.source);
    lines.push_back("Mean Power: " + numberText(use.watts()) + " W");
    lines.push_back("Idle Power: " + numberText(use.idleWatts) + " W");
    lines.push_back(fmt::format("Energy per Inference: {} J ({} J above idle)", numberText(use.joulesPerInference()),
                                numberText(use.joulesAboveIdle())));
    lines.push_back("Inferences per Joule: " + numberText(use.inferences / use.joules));
    return lines;
}

std::string powerJson(PowerUse const& use)
{
    Json json;
    if (!use.reason.empty()) {
        json["notReadable"] = use.reason;
    } else {
        json["source"] = use.source;
        json["meanPowerW"] = jsonNumber(use.watts());
        json["idlePowerW"] = jsonNumber(use.idleWatts);
        json["energyPerInferenceJ"] = jsonNumber(use.joulesPerInference());
        json["energyAboveIdlePerInferenceJ"] = jsonNumber(use.joulesAboveIdle());
        json["inferencesPerJoule"] = jsonNumber(use.inferences / use.joules);
        json["inferences"] = jsonNumber(use.inferences);
        json["seconds"] = jsonNumber(use.seconds);
    }
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace tw::trtexec
