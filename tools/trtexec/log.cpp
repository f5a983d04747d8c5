// SPDX-License-Identifier: Apache-2.0
#include "log.h"

#include <ctime>

namespace tw::trtexec {

namespace {

constexpr char kLetters[] = {'F', 'E', 'W', 'I', 'V'};

std::string prefix(Level level)
{
    std::time_t const now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    char text[64];
    size_t const n = std::strftime(text, sizeof text, "[%m/%d/%Y-%H:%M:%S] [", &local);
    return std::string(text, n) + kLetters[static_cast<int32_t>(level)] + "] ";
}

void put(std::FILE* file, std::string_view text)
{
    std::fwrite(text.data(), 1, text.size(), file);
    std::fflush(file);
}

} // namespace

void Log::writeLocked(Level level, std::string_view tag, std::string_view text)
{
    if (level > threshold_)
        return;
    eraseStatusLocked();
    std::string line = prefix(level);
    line += tag;
    line += text;
    line += '\n';
    put(level >= Level::kInfo ? out_ : err_, line);
}

void Log::write(Level level, std::string_view text)
{
    std::lock_guard const lock(mutex_);
    writeLocked(level, "", text);
}

void Log::fromLibrary(Level level, std::string_view text)
{
    if (level < Level::kFatal || level > Level::kVerbose)
        level = Level::kVerbose;
    std::lock_guard const lock(mutex_);
    if (level <= Level::kError) {
        ++libraryErrors_;
        lastLibraryError_ = text;
    }
    if (level == Level::kWarning) {
        ++libraryWarnings_;
        lastLibraryWarning_ = text;
    }
    lastLibraryMessage_ = text;
    writeLocked(level, "[TRT] ", text);
}

std::string Log::lastLibraryMessage() const
{
    std::lock_guard const lock(mutex_);
    return lastLibraryMessage_;
}

std::string Log::lastLibraryError() const
{
    std::lock_guard const lock(mutex_);
    return lastLibraryError_;
}

std::string Log::lastLibraryWarning() const
{
    std::lock_guard const lock(mutex_);
    return lastLibraryWarning_;
}

void Log::plain(std::string_view text)
{
    std::lock_guard const lock(mutex_);
    eraseStatusLocked();
    put(out_, std::string(text) + "\n");
}

void Log::eraseStatusLocked()
{
    if (statusShown_)
        put(err_, "\r\x1b[K");
    statusShown_ = false;
}

void Log::showStatus(std::string_view text)
{
    std::lock_guard const lock(mutex_);
    put(err_, "\r\x1b[K" + std::string(text));
    statusShown_ = true;
}

void Log::clearStatus()
{
    std::lock_guard const lock(mutex_);
    eraseStatusLocked();
}

} // namespace tw::trtexec
