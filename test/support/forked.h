// SPDX-License-Identifier: Apache-2.0
// Work in a child process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace tw::test {

// Runs `body` in a child; its return value is the exit status. A child that takes longer than `seconds` is killed.
template <class F>
pid_t forked(unsigned seconds, F body)
{
    pid_t const pid = fork();
    if (pid == 0) {
        alarm(seconds);
        _exit(body());
    }
    return pid;
}

// Waits for it: its exit status, 100 and the signal that ended it, or -1.
inline int statusOf(pid_t pid)
{
    int status = -1;
    if (waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

} // namespace tw::test
