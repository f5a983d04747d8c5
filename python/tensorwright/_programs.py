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
    parser = argparse.ArgumentParser(prog="tensorwright", description="Explains, reports and measures engines and models.")
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(dest="command", required=True, metavar="inspect|report|bench")
    inspect = commands.add_parser("inspect", help="says what an engine is: tensors, memory, layers, types")
    inspect.add_argument("plan", help="a plan file")
    inspect.add_argument("--layers", action="store_true", help="a line for each layer")
    inspect.add_argument("--time", action="store_true", help="run the engine on random inputs and give each layer's time")
    inspect.add_argument("--json", action="store_true", help="all of it as JSON")
    report = commands.add_parser("report", help="writes one HTML page that explains an engine")
    report.add_argument("plan", help="a plan file")
    report.add_argument("--with", dest="other", metavar="PLAN", help="a second engine, shown beside the first")
    report.add_argument("-o", "--output", default="report.html", help="default: report.html")
    report.add_argument("--no-time", action="store_true", help="do not run the engines; times are those of their builds")
    bench = commands.add_parser("bench", help="measures an ONNX model here and in other engines that are installed")
    bench.add_argument("model", help="an ONNX file")
    bench.add_argument("--shapes", default="", help="of inputs that the model leaves open: NAME:1x3x224x224,...")
    bench.add_argument("--precision", default="fp32", choices=("fp32", "fp16", "int8", "best"))
    bench.add_argument("--peers", help="comma-separated; default: those that are installed of onnxruntime, openvino")
    bench.add_argument("--threads", type=int, default=1)
    bench.add_argument("--rounds", type=int, default=20, help="turns of each engine, interleaved")
    bench.add_argument("--turn", type=float, default=0.1, help="seconds of a turn")
    bench.add_argument("--seed", type=int, default=0, help="of the inputs and of the order of turns")
    bench.add_argument("--json", metavar="FILE", help="write the result as JSON")
    bench.add_argument("--html", metavar="FILE", help="write a plot as a page")
    bench.add_argument("--png", metavar="FILE", help="write the plot as a picture (needs matplotlib)")
    for command in (inspect, report, bench):
        command.add_argument("--device", help="cpu, cuda or cuda:N")
    options = parser.parse_args(arguments)
    try:
        if options.command == "inspect":
            from ._inspect import main as run
        elif options.command == "report":
            from ._report import main as run
        else:
            from ._bench import main as run
        return run(options) or 0
    except BrokenPipeError:
        # Who reads has read enough; the interpreter's own flush at the end would say so again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, ValueError, TypeError, RuntimeError, ImportError) as error:
        print(f"tensorwright {options.command}: {error}", file=sys.stderr)
        return 1


def _version():
    from . import __version__

    return f"tensorwright {__version__}"
