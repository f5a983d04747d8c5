// SPDX-License-Identifier: Apache-2.0
// What a build spends its time on, for its log: wall time of the thread that builds.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace tw::tune {

class Phases
{
public:
    // The time of its life is the phase's, but for that of scopes within. Null: nobody wants to know.
    class Scope
    {
    public:
        Scope(Phases* phases, char const* name) : phases_(phases)
        {
            if (phases_)
                phases_->enter(name);
        }
        ~Scope()
        {
            if (phases_)
                phases_->leave();
        }
        Scope(Scope const&) = delete;
        Scope& operator=(Scope const&) = delete;

    private:
        Phases* phases_;
    };

    // A line for each part, the one that took longest first: "  timing kernels      1.503 s   71.2 %". The last ones
    // are the rest of `seconds`, where it is worth a line, and the sum.
    std::vector<std::string> table(double seconds) const;

private:
    using Clock = std::chrono::steady_clock;
    void enter(char const* name);
    void leave();
    void count(); // what has passed goes to the innermost scope

    std::vector<std::pair<std::string, double>> seconds_;
    std::vector<size_t> open_;
    Clock::time_point last_ = Clock::now();
};

} // namespace tw::tune
