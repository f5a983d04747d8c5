// SPDX-License-Identifier: Apache-2.0
// The CUDA stand-in, loaded in every way: libnvinfer finds it, and all that are there are one. Each way is tried in a
// process of its own, which links neither. usage: test_engine_loading FOLDER, with the built libraries in it or below:
// lib/libnvinfer.so.8, lib/hostcuda/libcudart.so.*, loading/{engine_client,static_plugin,libcudart-1b2d.so.11.0}
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

std::string folder;
int failures = 0; // of this process

void check(bool good, std::string const& what)
{
    if (!good)
        std::printf("FAIL: %s\n", what.c_str()), ++failures;
}

void* load(std::string const& file, int flags)
{
    void* const library = dlopen(file.c_str(), RTLD_NOW | flags);
    if (!library)
        std::printf("FAIL: %s\n", dlerror()), std::exit(1);
    return library;
}

// Calls <prefix><name>() of a library; all arguments are pointers or sizes.
struct Runtime
{
    void* library;
    char const* prefix;

    template <class... Args>
    int operator()(char const* name, Args... args) const
    {
        auto* const function = reinterpret_cast<int (*)(Args...)>(dlsym(library, (prefix + std::string(name)).c_str()));
        if (!function)
            std::printf("FAIL: no %s%s\n", prefix, name), std::exit(1);
        return function(args...);
    }
};

struct Client
{
    explicit Client(void* library)
        : relu(reinterpret_cast<int (*)(float*, float*, void*, void*)>(dlsym(library, "clientRelu"))),
          lastError(reinterpret_cast<char const* (*)()>(dlsym(library, "clientLastError"))),
          askedForGpu(reinterpret_cast<int (*)()>(dlsym(library, "clientAskedForGpu")))
    {}
    int (*relu)(float*, float*, void*, void*);
    char const* (*lastError)();
    int (*askedForGpu)();
};

// Streams of one, memory and events of the other.
void runAcross(Client const& client, Runtime const& a, Runtime const& b)
{
    constexpr size_t kSizeBytes = 4 * sizeof(float);
    constexpr int kToDevice = 1, kToHost = 2;
    float in[4] = {-1, 2, -3, 4}, out[4] = {9, 9, 9, 9};
    void *stream = nullptr, *event = nullptr, *x = nullptr, *y = nullptr, *graph = nullptr;
    check(a("StreamCreate", &stream) == 0 && b("EventCreate", &event) == 0, "stream and event");
    check(b("Malloc", &x, kSizeBytes) == 0 && a("Malloc", &y, kSizeBytes) == 0, "memory");
    check(b("MemcpyAsync", x, static_cast<void const*>(in), kSizeBytes, kToDevice, stream) == 0, "copy to x");
    int const ran = client.relu(static_cast<float*>(x), static_cast<float*>(y), stream, event);
    check(ran == 0, std::string("the engine on the stream: ") + (ran == 0 ? "" : client.lastError()));
    check(b("EventQuery", event) == 0, "the event");
    check(b("MemcpyAsync", static_cast<void*>(out), static_cast<void const*>(y), kSizeBytes, kToHost, stream) == 0,
          "copy from y");
    check(b("StreamSynchronize", stream) == 0, "synchronize");
    check(out[0] == 0 && out[1] == 2 && out[2] == 0 && out[3] == 4, "the numbers");
    // Begun here, in the way there, ended there.
    constexpr int kGlobalCapture = 0, kNotWhileCapturing = 900;
    void* more = nullptr;
    check(a("StreamBeginCapture", stream, kGlobalCapture) == 0, "capture");
    check(client.relu(static_cast<float*>(x), static_cast<float*>(y), stream, nullptr) == 0, "the engine, captured");
    check(b("StreamEndCapture", stream, &graph) == 0 && graph && a("GraphDestroy", graph) == 0, "the graph");
    check(a("StreamBeginCapture", stream, kGlobalCapture) == 0, "second capture");
    check(b("Malloc", &more, kSizeBytes) == kNotWhileCapturing, "memory in a capture");
    check(b("StreamEndCapture", stream, &graph) != 0, "that spoils the capture");
    check(a("Free", x) == 0 && b("Free", x) != 0 && b("Free", y) == 0, "freed once");
    check(b("StreamDestroy", stream) == 0 && a("StreamDestroy", stream) != 0, "destroyed once");
}

struct File
{
    std::string name; // below the folder
    int flags;
};

std::string shown(std::vector<File> const& files)
{
    std::string text;
    for (File const& f : files)
        text += (text.empty() ? "" : ", ") + f.name + (f.flags & RTLD_GLOBAL ? " (global)" : "") +
                (f.flags & RTLD_DEEPBIND ? " (deep)" : "");
    return text;
}

bool holdsRuntime(File const& f)
{
    return f.name.find("/libcudart.so") != f.name.npos || f.name.find("plugin") != f.name.npos;
}

// Loads the files in this order, then works across each two that hold a runtime.
void inThisOrder(std::vector<File> const& files)
{
    std::vector<Runtime> runtimes;
    void* client = nullptr;
    for (File const& f : files) {
        void* const library = load(f.name[0] == '/' ? f.name : folder + "/" + f.name, f.flags);
        if (f.name.find("client") != f.name.npos)
            client = library;
        else if (holdsRuntime(f))
            runtimes.push_back({library, f.name.find("plugin") != f.name.npos ? "plugin" : "cuda"});
    }
    if (!client)
        client = load(folder + "/loading/engine_client.so", RTLD_LOCAL);
    for (Runtime const& a : runtimes)
        for (Runtime const& b : runtimes)
            runAcross(Client(client), a, b);
    check(Client(client).askedForGpu() == (files.size() > 1 && files[1].name.find("1b2d") != std::string::npos),
          "a GPU is asked for where another runtime is beside");
}

// Threads that load different files at one time: one state comes out.
void byThreads()
{
    std::vector<std::string> const files{"lib/hostcuda/libcudart.so.11.0", "lib/hostcuda/libcudart.so.12",
                                         "lib/hostcuda/libcudart.so.13", "loading/static_plugin.so"};
    std::vector<Runtime> runtimes(files.size());
    std::vector<void*> streams(files.size());
    std::atomic<int> waiting{int(files.size())};
    std::vector<std::thread> threads;
    for (size_t i = 0; i < files.size(); ++i)
        threads.emplace_back([&, i] {
            runtimes[i] = {load(folder + "/" + files[i], RTLD_LOCAL), i == 3 ? "plugin" : "cuda"};
            --waiting;
            while (waiting > 0)
                std::this_thread::yield();
            check(runtimes[i]("StreamCreate", &streams[i]) == 0, "a stream for each thread");
        });
    Client const client(load(folder + "/loading/engine_client.so", RTLD_LOCAL));
    for (std::thread& t : threads)
        t.join();
    for (Runtime const& r : runtimes)
        for (void* stream : streams)
            check(r("StreamSynchronize", stream) == 0, "each knows the streams of the others");
    runAcross(client, runtimes[0], runtimes[3]);
}

// What is unloaded leaves its streams, and what was found once is there again.
void unloaded()
{
    Client const client(load(folder + "/loading/engine_client.so", RTLD_LOCAL));
    float x[4] = {-1, 2, -3, 4}, y[4] = {};
    check(client.relu(x, y, nullptr, nullptr) == 0, "without a runtime");
    for (int round = 0; round < 3; ++round)
        for (char const* file : {"loading/static_plugin.so", "lib/hostcuda/libcudart.so.12"}) {
            Runtime const r{load(folder + "/" + file, RTLD_LOCAL), file[1] == 'o' ? "plugin" : "cuda"};
            runAcross(client, r, r);
            dlclose(r.library);
            check(client.relu(x, y, nullptr, nullptr) == 0, "after it was closed");
        }
}

int tried = 0, broken = 0;

void inAProcess(std::string const& title, std::function<void()> const& body)
{
    std::fflush(stdout);
    pid_t const child = fork();
    if (child == 0) {
        body();
        std::fflush(stdout);
        _exit(failures ? 1 : 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    ++tried;
    if (status != 0)
        std::printf("^ in: %s (status %d)\n", title.c_str(), status), ++broken;
}

void tryFiles(std::vector<File> const& files)
{
    inAProcess(shown(files), [&] { inThisOrder(files); });
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 2)
        return 2;
    folder = argv[1];
    std::string const cudart = "lib/hostcuda/libcudart.so.";
    File const client{"loading/engine_client.so", RTLD_LOCAL}, nvinfer{"lib/libnvinfer.so.8", RTLD_LOCAL};
    File const plugin{"loading/static_plugin.so", RTLD_LOCAL}, other{"loading/libcudart-1b2d.so.11.0", RTLD_LOCAL};
    std::vector<std::string> const majors{"11.0", "12", "13"};
    for (std::string const& major : majors)
        for (int const flags : {RTLD_LOCAL, RTLD_GLOBAL, RTLD_LOCAL | RTLD_DEEPBIND, RTLD_GLOBAL | RTLD_DEEPBIND}) {
#ifdef TW_NO_DEEPBIND // a sanitizer's runtime refuses it
            if (flags & RTLD_DEEPBIND)
                continue;
#endif
            File const runtime{cudart + major, flags};
            tryFiles({runtime});
            tryFiles({nvinfer, runtime});
            tryFiles({client, runtime});
            for (std::string const& second : majors) // also itself: then it is one
                tryFiles({runtime, {cudart + second, RTLD_LOCAL}});
            tryFiles({runtime, plugin});
            tryFiles({plugin, client, runtime});
        }
    tryFiles({plugin});
    tryFiles({client, plugin});

    // One file by two paths.
    std::filesystem::path const copies =
        std::filesystem::temp_directory_path() / ("tw_loading_" + std::to_string(getpid()));
    std::filesystem::create_directories(copies);
    std::filesystem::copy_file(folder + "/" + cudart + "12", copies / "libcudart.so.12");
    std::filesystem::copy_file(folder + "/loading/static_plugin.so", copies / "static_plugin.so");
    tryFiles({{cudart + "12", RTLD_LOCAL}, {copies / "libcudart.so.12", RTLD_LOCAL}});
    tryFiles({{copies / "libcudart.so.12", RTLD_GLOBAL}, client, {cudart + "12", RTLD_LOCAL}});
    tryFiles({plugin, {copies / "static_plugin.so", RTLD_LOCAL}});
    std::filesystem::remove_all(copies);

    // Beside a runtime that is not ours: where it is on a GPU's machine, the engine would be on that GPU.
    setenv("TENSORWRIGHT_DEVICE", "cpu", 1);
    for (int round = 0; round < 10; ++round)
        inAProcess("threads", byThreads);
    inAProcess("unloading", unloaded);
    unsetenv("TENSORWRIGHT_DEVICE");
    tryFiles({{cudart + "12", RTLD_LOCAL}, other});
    std::printf("%d ways of loading, %d broken\n", tried, broken);
    return broken || tried < 80 ? 1 : 0;
}
