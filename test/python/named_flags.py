# SPDX-License-Identifier: Apache-2.0
"""Every flag of trtexec 8.5, for everything_named_test.py: with what it is given, and what then stands in the output or in a file."""

import collections
import pathlib
import re
import struct

import numpy as np
import tensorrt as trt

# arguments: after those of `base`; {name} is a file in the folder. expect: a pattern in the output, "name: pattern" one in a file.
# status: of the tool, None: this machine decides.
Flag = collections.namedtuple("Flag", "base arguments expect status", defaults=(0,))

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUICK = ["--warmUp=0", "--duration=0", "--iterations=3"]
BUILD = [f"--onnx={ROOT / 'examples/digits/digits.onnx'}", "--buildOnly"]
SHAPED = [*BUILD, "--shapes=image:1x1x8x8"]
RUN = ["--loadEngine={plan}", *QUICK]
PLAIN = ["--loadEngine={plan}"]
FIXED = ["--loadEngine={fixed}", *QUICK]
IMPLICIT = ["--loadEngine={implicit}", *QUICK]
CAFFE = ["--deploy={prototxt}", "--output=y", *QUICK]
UFF = ["--uff={uff}", "--output=y", *QUICK]
REFIT = ["--loadEngine={refit}", *QUICK]
SAFE = ["--onnx={onnx}", "--fp16", *QUICK]

FLAGS = {
    "--onnx": Flag(QUICK, [BUILD[0], "--shapes=image:1x1x8x8"], r"Format: ONNX[\s\S]*Throughput: [\d.]+ qps"),
    "--uff": Flag([], [*UFF, "--uffInput=x,2,4,4"], r"Format: UFF[\s\S]*Throughput: [\d.]+ qps"),
    "--uffInput": Flag(UFF, ["--uffInput=x,2,4,4"], r"Input: x,2,4,4[\s\S]*Created input binding for x with dimensions (1x)?2x4x4"),
    "--uffNHWC": Flag(UFF, ["--uffInput=x,4,4,2", "--uffNHWC"], r"Uff Inputs Layout: NHWC[\s\S]*PASSED"),
    "--model": Flag(CAFFE, ["--model={caffemodel}"], r"Format: Caffe\n[\s\S]*Model: \S+caffemodel\n[\s\S]*Throughput: "),
    "--deploy": Flag([], CAFFE, r"Prototxt: \S+prototxt\n[\s\S]*Throughput: "),
    "--output": Flag(["--deploy={prototxt}", *QUICK], ["--output=h,y"], r"Output: h y[\s\S]*output binding for h[\s\S]*output binding for y"),
    "--maxBatch": Flag(IMPLICIT, ["--maxBatch=4", "--batch=2"], "Max batch: 4\n"),
    "--minShapes": Flag(BUILD, ["--minShapes=image:2x1x8x8", "--maxShapes=image:4x1x8x8"], "image=2x1x8x8[+]4x1x8x8[+]4x1x8x8"),
    "--optShapes": Flag(BUILD, ["--optShapes=image:3x1x8x8"], "image=3x1x8x8[+]3x1x8x8[+]3x1x8x8"),
    "--maxShapes": Flag(BUILD, ["--maxShapes=image:4x1x8x8"], "image=4x1x8x8[+]4x1x8x8[+]4x1x8x8"),
    "--minShapesCalib": Flag(SHAPED, [f"--{m}ShapesCalib=image:{n}x1x8x8" for m, n in (("min", 1), ("opt", 2), ("max", 3))], "calibration shape: image=1x1x8x8[+]"),
    "--optShapesCalib": Flag(SHAPED, ["--optShapesCalib=image:2x1x8x8"], "calibration shape: image=2x1x8x8[+]2x1x8x8[+]2x1x8x8"),
    "--maxShapesCalib": Flag(SHAPED, [f"--{m}ShapesCalib=image:{n}x1x8x8" for m, n in (("min", 1), ("opt", 2), ("max", 3))], "[+]3x1x8x8"),
    "--inputIOFormats": Flag(SHAPED, ["--inputIOFormats=fp16:chw"], r"Input\(s\): fp16:chw"),
    "--outputIOFormats": Flag(SHAPED, ["--outputIOFormats=fp16:chw"], r"Output\(s\): fp16:chw"),
    "--workspace": Flag(SHAPED, ["--workspace=16.5"], r"workspace: 16.5 MiB[\s\S]*\[W\] --workspace is deprecated"),
    "--memPoolSize": Flag(SHAPED, ["--memPoolSize=workspace:64.5,dlaSRAM:1"], "workspace: 64.5 MiB, dlaSRAM: 1 MiB"),
    "--profilingVerbosity": Flag(SHAPED, ["--profilingVerbosity=detailed", "--exportLayerInfo={layers}"], 'layers: "TacticName"'),
    "--nvtxMode": Flag(SHAPED, ["--nvtxMode=verbose"], r"Profiling verbosity: 2[\s\S]*\[W\] --nvtxMode is deprecated"),
    "--minTiming": Flag(SHAPED, ["--minTiming=2"], "minTiming: 2\n"),
    "--avgTiming": Flag(SHAPED, ["--avgTiming=3"], "avgTiming: 3\n"),
    "--refit": Flag(SHAPED, ["--refit", "--dumpRefit"], r"\[I\] \S+ Kernel\n"),
    "--sparsity": Flag(SHAPED, ["--sparsity=force", "--fp16"], r"\(Sparsity\) Layers eligible for sparse math: \S"),
    "--noTF32": Flag(SHAPED, ["--noTF32"], "Engine built in "),
    "--fp16": Flag(SHAPED, ["--fp16"], r"Precision: FP32[+]FP16\n"),
    "--int8": Flag(SHAPED, ["--int8"], r"Precision: FP32[+]INT8\n[\s\S]*dummy dynamic range"),
    "--best": Flag(SHAPED, ["--best"], r"Precision: FP32[+]FP16[+]INT8\n"),
    "--directIO": Flag(SHAPED, ["--directIO"], "DirectIO mode: Enabled"),
    "--precisionConstraints": Flag(SHAPED, ["--precisionConstraints=prefer"], r"\(prefer precision constraints\)"),
    "--layerPrecisions": Flag(SHAPED, ["--precisionConstraints=prefer", "--layerPrecisions=*:fp16", "--fp16"], r"LayerPrecisions: \*:fp16"),
    "--layerOutputTypes": Flag(SHAPED, ["--precisionConstraints=prefer", "--layerOutputTypes=none_such:fp16"], "'none_such'", None),
    "--calib": Flag(SHAPED, ["--int8", "--calib={calibration}"], "Reading Calibration Cache for calibrator: EntropyCalibration2"),
    "--safe": Flag(SAFE, ["--safe"], r"Safe mode: Enabled[\s\S]*SafeEngine deserialized in [\s\S]*Throughput: "),
    "--consistency": Flag(SAFE, ["--safe", "--consistency"], r"Start consistency checking\.[\s\S]*Consistency validation passed\."),
    "--restricted": Flag(SAFE, ["--restricted"], r"Restricted mode: Enabled[\s\S]*Throughput: [\s\S]*safety restricted mode: the limits"),
    "--buildOnly": Flag([], SHAPED, r"Skipped inference phase since --buildOnly is added\."),
    "--saveEngine": Flag(SHAPED, ["--saveEngine={saved}"], "saved: ."),
    "--loadEngine": Flag(QUICK, ["--loadEngine={plan}"], r"Engine loaded in [\s\S]*Throughput: "),
    "--tacticSources": Flag(SHAPED, ["--tacticSources=-CUBLAS,+JIT_CONVOLUTIONS"], r"cublas \[OFF\], JIT convolutions \[ON\], "),
    "--noBuilderCache": Flag(SHAPED, ["--noBuilderCache"], "timingCacheMode: disable"),
    "--timingCacheFile": Flag(SHAPED, ["--timingCacheFile={timing}"], r"Saved \d+ bytes of timing cache to \S+timing"),
    "--heuristic": Flag(SHAPED, ["--heuristic"], "Heuristic: Enabled"),
    "--preview": Flag(SHAPED, ["--preview=+fasterDynamicShapes0805"], r"kFASTER_DYNAMIC_SHAPES_0805 \[ON\]"),
    "--explicitBatch": Flag(SHAPED, ["--explicitBatch"], r"\[W\] --explicitBatch is deprecated"),
    "--explicitPrecision": Flag(SHAPED, ["--explicitPrecision"], r"\[W\] --explicitPrecision is deprecated"),
    "--batch": Flag(IMPLICIT, ["--batch=3"], r"Batch: 3\n[\s\S]*Throughput: "),
    "--shapes": Flag(RUN, ["--shapes=image:2x1x8x8"], "Created input binding for image with dimensions 2x1x8x8"),
    "--loadInputs": Flag(RUN, ["--loadInputs=image:{input}", "--shapes=image:1x1x8x8"], r"Using values loaded from \S+input for input image"),
    "--iterations": Flag(PLAIN, ["--iterations=17", "--warmUp=0", "--duration=0"], r"Timing trace has 1[78] queries"),
    "--warmUp": Flag(PLAIN, ["--warmUp=50", "--duration=0", "--iterations=1"], r"Warmup completed [1-9]\d* queries over 50 ms"),
    "--duration": Flag(PLAIN, ["--duration=0.3", "--warmUp=0"], r"Timing trace has \d+ queries over (0\.(2[5-9]|[3-9])|[1-9])\S* s"),
    "--sleepTime": Flag(RUN, ["--sleepTime=5"], r"Sleep time: 5ms[\s\S]*Throughput: "),
    "--idleTime": Flag(RUN, ["--idleTime=20"], r"Throughput: [1-7]?\d(\.\d+)? qps"),
    "--streams": Flag(FIXED, ["--streams=2"], r"Streams: 2\n[\s\S]*Timing trace has ([6-9]|\d\d+) queries"),
    "--exposeDMA": Flag(RUN, ["--exposeDMA"], r"ExposeDMA: Enabled[\s\S]*Throughput: "),
    "--noDataTransfers": Flag(RUN, ["--noDataTransfers"], r"H2D Latency: min = 0 ms, max = 0 ms"),
    "--useManagedMemory": Flag(RUN, ["--useManagedMemory", "--verbose"], "--useManagedMemory: host and device share their memory"),
    "--useSpinWait": Flag(RUN, ["--useSpinWait"], r"Spin-wait: Enabled[\s\S]*Throughput: "),
    "--threads": Flag(FIXED, ["--threads", "--streams=2"], r"Multithreading: Enabled[\s\S]*Throughput: "),
    "--useCudaGraph": Flag(RUN, ["--useCudaGraph"], r"\[W\] --useCudaGraph: the CPU device cannot capture a CUDA graph; running without it"),
    "--timeDeserialize": Flag(RUN, ["--timeDeserialize"], r"Total deserialization time = \S+ milliseconds in 20 iterations", None),
    "--timeRefit": Flag(BUILD, ["--shapes=image:1x1x8x8", "--refit", "--timeRefit"], r"Engine refitted in \S+ ms\."),
    "--separateProfileRun": Flag(RUN, ["--dumpProfile", "--separateProfileRun"], r"Throughput: [\s\S]*=== Profile \("),
    "--persistentCacheRatio": Flag(RUN, ["--persistentCacheRatio=0.5"], r"Setting persistentCacheLimit to 0 bytes\."),
    "--verbose": Flag(RUN, ["--verbose"], r"\[V\] "),
    "--avgRuns": Flag(PLAIN, ["--warmUp=0", "--duration=0", "--iterations=6", "--avgRuns=3"], "Average on 3 runs - GPU latency: "),
    "--percentile": Flag(RUN, ["--percentile=25,75"], r"percentile\(25%\) = \S+ ms, percentile\(75%\) = "),
    "--dumpRefit": Flag(REFIT, ["--dumpRefit"], r"\[I\] \S+ Kernel\n"),
    "--dumpOutput": Flag(RUN, ["--dumpOutput"], r"Output Tensors:\n[\s\S]*logits: \(1x10\)\n"),
    "--dumpProfile": Flag(RUN, ["--dumpProfile"], r"=== Profile \(\d+ iterations \) ===[\s\S]*Total"),
    "--dumpLayerInfo": Flag(RUN, ["--dumpLayerInfo"], "Layer Information:\n"),
    "--exportTimes": Flag(RUN, ["--exportTimes={times}"], 'times: "latencyMs" ?:'),
    "--exportOutput": Flag(RUN, ["--exportOutput={values}"], 'values: "dimensions" ?: ?"1x10"'),
    "--exportProfile": Flag(RUN, ["--exportProfile={profile}"], 'profile: "averageMs" ?:'),
    "--exportLayerInfo": Flag(RUN, ["--exportLayerInfo={layers}"], 'layers: "Bindings" ?:'),
    "--device": Flag(PLAIN, ["--device=63"], r"--device=63: no such device \(allowed: 0", 1),
    "--useDLACore": Flag(SHAPED, ["--useDLACore=0", "--fp16"], r"DLACore: 0\n[\s\S]*\[E\] [^\n]*DLA", 1),
    "--allowGPUFallback": Flag(SHAPED, ["--useDLACore=0", "--allowGPUFallback", "--fp16"], r"DLACore: 0\(With GPU fallback\)", None),
    "--plugins": Flag(RUN, ["--plugins={plugin}"], "Loading supplied plugin library: "),
    "--help": Flag([], ["--help"], "=== Help ==="),
    "-h": Flag([], ["-h"], "=== Help ==="),
}  # fmt: skip


def names_of(facts):
    """The flags that the facts name."""
    return [m[1] for m in re.finditer(r"^flag (-\S+?)[=\s]", facts, re.MULTILINE)]


def _field(number, *parts):
    body = b"".join(p.encode() if isinstance(p, str) else p for p in parts)
    assert len(body) < 128
    return bytes([number << 3 | 2, len(body)]) + body


def _uff():
    """Input x [-1, 2, 4, 4] -> relu y, in the wire form of protobuf."""

    def entry(name, *data):
        return _field(4, _field(1, name), _field(2, *data))

    shape = _field(8, _field(1, b"\xff" * 9 + b"\x01", bytes([2, 4, 4])))
    float32 = b"\xa8\x06\xa0\x80\x08"  # 101: DT_FLOAT32, 0x20020
    nodes = (
        _field(2, _field(1, "x"), _field(3, "Input"), entry("shape", shape), entry("dtype", float32)),
        _field(2, _field(1, "y"), _field(2, "x"), _field(3, "Activation"), entry("func", _field(1, "relu"))),
        _field(2, _field(1, "MarkOutput_0"), _field(2, "y"), _field(3, "MarkOutput")),
    )
    graph = _field(1, "main") + b"".join(nodes)
    return b"\x08\x01\x10\x01" + bytes([4 << 3 | 2, len(graph) % 128 + 128 * (len(graph) > 127)]) + bytes([len(graph) // 128] * (len(graph) > 127)) + graph


def _onnx():
    """y = Relu(x [2, 3]), in the wire form of protobuf."""

    def value(number, name):
        dimensions = _field(2, _field(1, b"\x08\x02"), _field(1, b"\x08\x03"))
        return _field(number, _field(1, name), _field(2, _field(1, b"\x08\x01", dimensions)))

    node = _field(1, _field(1, "x"), _field(2, "y"), _field(4, "Relu"))
    return b"\x08\x08" + _field(7, node, _field(2, "g"), value(11, "x"), value(12, "y")) + _field(8, b"\x10\x11")


PROTOTXT = """name: "n"
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } } }
layer { name: "h" type: "Convolution" bottom: "x" top: "h" convolution_param { num_output: 4 kernel_size: 3 bias_term: false } }
layer { name: "y" type: "ReLU" bottom: "h" top: "y" }
"""


def _caffemodel():
    """A kernel of 4 x 3 x 3 x 3 for the layer h, in the wire form of protobuf."""

    def long(number, body):
        return bytes([number << 3 & 127 | 2 | (128 if number > 15 else 0)]) + bytes([number >> 4] * (number > 15)) + _varint(len(body)) + body

    data = struct.pack("<108f", *np.random.default_rng(37).standard_normal(108).astype(np.float32))
    blob = long(5, data) + _field(7, _field(1, bytes([4, 3, 3, 3])))
    return _field(1, "n") + long(100, _field(1, "h") + _field(2, "Convolution") + long(7, blob))


def _varint(number):
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


class Files:
    """The files that the arguments name; those that are not made are written by the tool."""

    def __init__(self, folder, run):
        self.folder = folder
        self.write("onnx", _onnx())
        self.write("uff", _uff())
        self.write("prototxt", PROTOTXT.encode())
        self.write("caffemodel", _caffemodel())
        self.write("input", struct.pack("<64f", *[0.5] * 64))
        self.write("calibration", b"TRT-8503-EntropyCalibration2\nimage: 3c010a14\n")
        self.write("implicit", self._implicit())
        run([*BUILD, "--maxShapes=image:4x1x8x8", "--optShapes=image:1x1x8x8", "--minShapes=image:1x1x8x8", f"--saveEngine={self.path('plan')}"])
        run([*SHAPED, f"--saveEngine={self.path('fixed')}"])
        run([*SHAPED, "--refit", f"--saveEngine={self.path('refit')}"])

    def path(self, name):
        return self.folder / name

    def write(self, name, data):
        self.path(name).write_bytes(data)

    def filled(self, argument):
        return re.sub(r"\{(\w+)\}", lambda m: str(self.path(m[1])), argument)

    @staticmethod
    def _implicit():
        builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
        builder.max_batch_size = 4
        network = builder.create_network()
        relu = network.add_activation(network.add_input("x", trt.float32, (3, 8, 8)), trt.ActivationType.RELU)
        network.mark_output(relu.get_output(0))
        return bytes(memoryview(builder.build_serialized_network(network, builder.create_builder_config())))
