#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: exports.py libcudart.so.N

The library exports names that CUDA publishes (cuda*, __cuda*) and twHostCuda, nothing else; each has the library's
SONAME as its version, as NVIDIA's have; the functions that TensorRT's samples and trtexec import are all there.
"""
import re
import subprocess
import sys

# The functions that the 8.5 samples and trtexec call, without the prefix.
SAMPLES = """DeviceGetAttribute DriverGetVersion RuntimeGetVersion GetDevice SetDevice SetDeviceFlags GetDeviceProperties
GetErrorString GetLastError MemGetInfo Malloc MallocHost MallocManaged Free FreeHost Memcpy MemcpyAsync StreamCreate
StreamCreateWithFlags StreamDestroy StreamSynchronize StreamWaitEvent StreamBeginCapture StreamEndCapture LaunchHostFunc
EventCreateWithFlags EventDestroy EventRecord EventSynchronize EventElapsedTime GraphInstantiate GraphLaunch GraphDestroy
GraphExecDestroy ProfilerStart ProfilerStop""".split()
# What other clients and plugins use besides.
CLIENTS = """EventCreate EventQuery StreamQuery StreamIsCapturing GetErrorName PeekAtLastError GetDeviceCount
DeviceSynchronize DeviceReset Memset MemsetAsync HostAlloc HostRegister PointerGetAttributes MallocAsync FreeAsync
FuncSetAttribute StreamAddCallback StreamGetCaptureInfo Memcpy2D Memcpy2DAsync MemcpyPeer HostGetDevicePointer
StreamCreateWithPriority DeviceGetStreamPriorityRange DeviceGetPCIBusId FuncGetAttributes GetDriverEntryPoint
LaunchKernel GraphInstantiateWithFlags""".split()


def main():
    library = sys.argv[1]
    soname = re.search(r"SONAME.*\[(.+)\]", subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout)[1]
    lines = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout.splitlines()
    names, findings = set(), []
    for kind, symbol in (line.split()[-2:] for line in lines):
        name, _, version = symbol.partition("@@")
        if kind == "A":  # the version node itself
            continue
        names.add(name)
        if version != soname:
            findings.append(f"{symbol}: its version is not {soname}")
        if not re.fullmatch(r"(__)?cuda[A-Z]\w*|twHostCuda", name):
            findings.append(f"{name}: not a name that CUDA publishes")
    wanted = {f"cuda{name}" for name in SAMPLES + CLIENTS} | {"twHostCuda", "__cudaRegisterFatBinary"}
    if soname == "libcudart.so.12":
        wanted |= {"cudaGetDeviceProperties_v2", "cudaStreamGetCaptureInfo_v2"}
    findings += [f"{name}: missing" for name in sorted(wanted - names)]
    print("\n".join(findings))
    print(f"{soname}: {len(names)} symbols, {len(findings)} findings")
    return 1 if findings or len(SAMPLES) != 36 else 0


sys.exit(main())
