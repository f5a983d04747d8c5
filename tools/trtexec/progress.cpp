// SPDX-License-Identifier: Apache-2.0
#include "progress.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <sys/ioctl.h>
#include <unistd.h>

#include "log.h"

namespace tw::trtexec {

namespace {

size_t terminalColumns()
{
    winsize size{};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

} // namespace

Progress::Progress(Log& log, std::string step) : log_(log), step_(std::move(step))
{
    if (isatty(STDERR_FILENO))
        thread_ = std::thread([this] { show(); });
}

Progress::~Progress()
{
    if (!thread_.joinable())
        return;
    {
        std::lock_guard const lock(mutex_);
        ended_ = true;
    }
    wake_.notify_one();
    thread_.join();
    log_.clearStatus();
}

void Progress::show()
{
    auto const start = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::milliseconds(250), [this] { return ended_; })) {
        std::chrono::duration<double> const elapsed = std::chrono::steady_clock::now() - start;
        char seconds[32];
        std::snprintf(seconds, sizeof seconds, "%.1f s", elapsed.count());
        std::string line = step_ + " " + seconds + "  " + log_.lastLibraryMessage();
        // Control characters of a message would break the one-line display.
        std::replace_if(
            line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
        line.resize(std::min(line.size(), terminalColumns() - 1));
        log_.showStatus(line);
    }
}

} // namespace tw::trtexec
