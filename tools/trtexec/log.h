// SPDX-License-Identifier: Apache-2.0
// Log lines with the published prefix, and the one-line build display that shares the terminal with them.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

namespace tw::trtexec {

// Numbers equal those of nvinfer1::ILogger::Severity.
enum class Level : int32_t
{
    kFatal = 0,
    kError = 1,
    kWarning = 2,
    kInfo = 3,
    kVerbose = 4
};

// Thread-safe. Verbose and info lines go to `out`, the others to `err`.
class Log
{
public:
    Log(std::FILE* out, std::FILE* err, Level threshold) : out_(out), err_(err), threshold_(threshold) {}

    void setThreshold(Level threshold) { threshold_ = threshold; }

    void fatal(std::string_view text) { write(Level::kFatal, text); }
    void error(std::string_view text) { write(Level::kError, text); }
    void warning(std::string_view text) { write(Level::kWarning, text); }
    void info(std::string_view text) { write(Level::kInfo, text); }
    void verbose(std::string_view text) { write(Level::kVerbose, text); }
    void write(Level level, std::string_view text);
    // A message that came through ILogger::log. Errors and warnings are counted, shown or not.
    void fromLibrary(Level level, std::string_view text);
    uint64_t libraryErrors() const { return libraryErrors_; }
    uint64_t libraryWarnings() const { return libraryWarnings_; }
    std::string lastLibraryMessage() const;
    std::string lastLibraryError() const; // empty: none yet
    std::string lastLibraryWarning() const;

    void plain(std::string_view text); // to `out`, without prefix, with a line end

    // Shows `text` on the last line of the terminal behind `err`; the next log line takes its place.
    void showStatus(std::string_view text);
    void clearStatus();

private:
    void eraseStatusLocked();
    void writeLocked(Level level, std::string_view tag, std::string_view text);

    std::FILE* out_;
    std::FILE* err_;
    Level threshold_;
    std::atomic<uint64_t> libraryErrors_{0};
    std::atomic<uint64_t> libraryWarnings_{0};
    mutable std::mutex mutex_;
    bool statusShown_ = false;
    std::string lastLibraryMessage_, lastLibraryError_, lastLibraryWarning_;
};

} // namespace tw::trtexec
