# SPDX-License-Identifier: Apache-2.0
"""The programs that come with the package."""

import argparse
import os
import sys


def trtexec():
    """Becomes the program trtexec."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "trtexec")
    os.execv(program, [program, *sys.argv[1:]])


def main(arguments=None):
    """The program tensorwright: a subcommand and its options; ends with a status."""
    from .generation.program import add as add_generate

    parser = argparse.ArgumentParser(prog="tensorwright", description="Explains, reports, measures and serves engines and models, and writes texts by them.")
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(dest="command", required=True, metavar="inspect|report|bench|generate|serve")
    inspect = commands.add_parser("inspect", help="says what an engine is: tensors, memory, layers, types")
    inspect.add_argument("plan", help="a plan file")
    inspect.add_argument("--layers", action="store_true", help="a line for each layer")
    inspect.add_argument("--time", action="store_true", help="run the engine on random inputs and give each layer's time")
    inspect.add_argument("--json", action="store_true", help="all of it as JSON")
    report = commands.add_parser("report", help="writes one HTML page that explains an engine")
    report.add_argument("plan", help="a plan file")
    report.add_argument("--with", dest="other", metavar="PLAN", help="a second engine, shown beside the first")
    report.add_argument(
        "--accuracy",
        metavar="FILE",
        action="append",
        default=[],
        help="differences to FP32, of trtexec --accuracyReport; given twice: of the second engine, too",
    )
    report.add_argument("-o", "--output", default="report.html", help="default: report.html")
    report.add_argument("--no-time", action="store_true", help="do not run the engines; times are those of their builds")
    bench = commands.add_parser("bench", help="measures an ONNX model here and in other engines that are installed")
    bench.add_argument("model", help="an ONNX file, or a program that torch.export.save() wrote (NAME.pt2)")
    bench.add_argument("--shapes", default="", help="of inputs that the model leaves open: NAME:1x3x224x224,...")
    bench.add_argument("--precision", default="fp32", choices=("fp32", "fp16", "int8", "best"))
    bench.add_argument("--peers", help="comma-separated; default: those that are installed of onnxruntime, openvino and, for .pt2, torch")
    bench.add_argument("--threads", type=int, default=1)
    bench.add_argument("--rounds", type=int, default=20, help="turns of each engine, interleaved")
    bench.add_argument("--turn", type=float, help="seconds of a turn; default: 0.1, with --power 0.5")
    bench.add_argument("--power", action="store_true", help="energy per inference and power, by NVML on a GPU and RAPL on a CPU")
    bench.add_argument("--seed", type=int, default=0, help="of the inputs and of the order of turns")
    bench.add_argument("--json", metavar="FILE", help="write the result as JSON")
    bench.add_argument("--html", metavar="FILE", help="write a plot as a page")
    bench.add_argument("--png", metavar="FILE", help="write the plot as a picture (needs matplotlib)")
    add_generate(commands)
    _add_serve(commands)
    for command in (inspect, report, bench):
        command.add_argument("--device", help="cpu, cuda or cuda:N")
    options = parser.parse_args(arguments)
    try:
        if options.command == "inspect":
            from ._inspect import main as run
        elif options.command == "report":
            from ._report import main as run
        elif options.command == "generate":
            from .generation.program import main as run
        elif options.command == "serve":
            try:
                from .serve import main as run
            except ModuleNotFoundError as error:
                raise ImportError(f"{error}; pip install 'tensorwright[serve]' brings what serving needs") from error
        else:
            from ._bench import main as run
        return run(options) or 0
    except BrokenPipeError:
        # Who reads has read enough; the interpreter's own flush at the end would say so again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130  # as a shell has it
    except (OSError, ValueError, TypeError, RuntimeError, ImportError) as error:
        print(f"tensorwright {options.command}: {error}", file=sys.stderr)
        return 1


def _add_serve(commands):
    serve = commands.add_parser("serve", help="serves plans over HTTP and gRPC (KServe v2), decoder models over HTTP (OpenAI)")
    serve.add_argument(
        "plans", nargs="*", metavar="PLAN|NAME=PLAN|FOLDER", help="plan files; folders of MODEL.plan or MODEL/VERSION/model.plan"
    )
    serve.add_argument("--host", default="127.0.0.1", help="address to listen at; default: 127.0.0.1, this machine only")
    serve.add_argument("--port", type=int, default=8000, help="of HTTP; 0: any that is free; default: 8000")
    serve.add_argument("--grpc-port", type=int, default=8001, help="likewise; default: 8001")
    serve.add_argument("--no-grpc", action="store_true", help="HTTP alone")
    serve.add_argument("--batch", type=int, default=1, help="rows of requests that run together; default: 1, none")
    serve.add_argument(
        "--batch-delay", type=float, default=2.0, metavar="MS", help="how long the first of them waits; default: 2"
    )
    serve.add_argument("--instances", type=int, default=1, help="runs of a model at a time; default: 1")
    serve.add_argument("--queue", type=int, default=128, help="requests of a model that wait at most; more get 503; default: 128")
    serve.add_argument("--timeout", type=float, default=0.0, metavar="S", help="the longest a request waits; default: 0, for ever")
    serve.add_argument("--max-request", type=float, default=64, metavar="MIB", help="the largest request; default: 64")
    serve.add_argument("--max-held", type=float, default=1024, metavar="MIB", help="of all requests at a time; default: 1024")
    serve.add_argument("--max-json", type=float, default=8, metavar="MIB", help="the largest JSON of a request; default: 8")
    serve.add_argument("--max-connections", type=int, default=256, metavar="N", help="of both protocols together; default: 256")
    serve.add_argument("--poll", type=float, default=1.0, metavar="S", help="looks for changed plans; 0: never; default: 1")
    serve.add_argument("--shared-memory", action="store_true", help="clients may register shared memory of this machine")
    serve.add_argument("--control", action="store_true", help="clients may load and unload models")
    serve.add_argument("--device", help="cpu, cuda or cuda:N")
    serve.add_argument("--generate", action="append", default=[], metavar="[NAME=]FOLDER", help="a decoder model, by OpenAI's protocol")
    serve.add_argument("--slots", type=int, default=8, help="of it: sequences at a time; default: 8")
    serve.add_argument("--capacity", type=int, metavar="N", help="tokens of a sequence; default: the model's, at most 2048")
    serve.add_argument("--chunk", type=int, default=128, metavar="N", help="tokens of a prompt between two steps; default: 128")
    serve.add_argument("--pages", type=int, metavar="N", help="blocks of 16 tokens of all sequences together; 0: none; default: what all slots take")
    serve.add_argument("--precision", default="fp32", choices=("fp32", "fp16", "int8", "best"), help="of decoder models")


def _version():
    from . import __version__

    return f"tensorwright {__version__}"
