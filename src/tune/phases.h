// SPDX-License-Identifier: Apache-2.0
// What a build spends its time on, for its log. Of the thread that builds.
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

    // "passes 0.12 s, checks 1.50 s", in the order in which they came first.
    std::string str() const;

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
