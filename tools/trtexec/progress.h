// SPDX-License-Identifier: Apache-2.0
// While it lives, shows on a terminal how long a step has run and the library's last message. Quiet in pipes.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tw::trtexec {

class Log;

class Progress
{
public:
    Progress(Log& log, std::string step);
    ~Progress();
    Progress(Progress const&) = delete;
    Progress& operator=(Progress const&) = delete;

private:
    void show();

    Log& log_;
    std::string step_;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool ended_ = false;
    std::thread thread_; // last: it reads the members above
};

} // namespace tw::trtexec
