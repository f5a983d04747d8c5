#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line as scripts see it: exit status, first and last line, where each line goes.
usage: cli_test.py TRTEXEC"""
import os
import re
import subprocess
import sys
import unittest

TOOL = sys.argv.pop(1) if len(sys.argv) > 1 else "trtexec"
PREFIX = r"\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] "


def run(*arguments, **variables):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120,
                          env={**os.environ, **variables})


class CommandLine(unittest.TestCase):
    def lines(self, result):
        return result.stdout.splitlines()

    def banner(self, word, *arguments):
        return f"&&&& {word} TensorRT.trtexec [TensorRT v8503] # {' '.join([TOOL, *arguments])}"

    def fails(self, *arguments, **variables):
        result = run(*arguments, **variables)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertEqual(self.lines(result)[0], self.banner("RUNNING", *arguments))
        self.assertEqual(self.lines(result)[-1], self.banner("FAILED", *arguments))
        return result

    def test_no_arguments(self):
        result = run()
        self.assertEqual(result.returncode, 0)
        self.assertEqual(self.lines(result)[0], self.banner("RUNNING"))
        self.assertEqual(self.lines(result)[-1], self.banner("PASSED"))
        self.assertIn("=== Model Options ===", result.stdout)
        self.assertEqual(result.stderr, "")

    def test_help(self):
        for flag in ("--help", "-h"):
            result = run(flag)
            self.assertEqual(result.returncode, 0)
            self.assertEqual(self.lines(result)[0], self.banner("RUNNING", flag))
            self.assertIn("=== Help ===", result.stdout)
            self.assertNotIn("PASSED", result.stdout)

    def test_unknown_option(self):
        result = self.fails("--onnx=m.onnx", "--speed=11")
        self.assertRegex(result.stderr, PREFIX + r"\[E\] Unknown option: --speed 11\n")
        self.assertIn("=== System Options ===", result.stdout)

    def test_flag_given_twice(self):
        result = self.fails("--onnx=m.onnx", "--fp16", "--fp16")
        self.assertRegex(result.stderr, r"\[E\] Unknown option: --fp16 \n")

    def test_model_missing(self):
        self.assertRegex(self.fails("--fp16").stderr, r"\[E\] Model missing or format not recognized\n")

    def test_echo_goes_to_stdout_and_warnings_to_stderr(self):
        result = self.fails("--onnx=no such file.onnx", "--explicitBatch", "--device=cpu")
        self.assertRegex(result.stdout, PREFIX + r"\[I\] === Model Options ===\n")
        self.assertRegex(result.stdout, PREFIX + r"\[I\] === Device Information ===\n")
        self.assertRegex(result.stdout, r"\[I\] TensorRT version: 8\.5\.3\n")
        self.assertRegex(result.stderr, r"\[W\] --explicitBatch")
        self.assertRegex(result.stderr, r"\[E\] ")

    def test_files_that_cannot_be_read(self):
        self.assertIn("No such file", self.fails("--loadEngine=missing.plan").stderr)
        self.assertIn("not a regular file", self.fails("--loadEngine=/").stderr)
        self.assertIn("empty", self.fails("--loadEngine=/dev/null").stderr.replace("not a regular file", "empty"))
        self.assertIn("cannot load 'missing.so'", self.fails("--onnx=m.onnx", "--plugins=missing.so").stderr)
        self.assertIn("input_0.pb", self.fails("--onnx=m.onnx", "--loadInputsFrom=/").stderr)

    def test_folders_that_take_no_files_are_found_before_the_build(self):
        for flag in ("saveEngine", "exportTimes", "exportOutput", "exportProfile", "exportLayerInfo"):
            result = self.fails("--onnx=m.onnx", f"--{flag}=/nonexistent/file")
            self.assertIn("cannot write '/nonexistent/file'", result.stderr)
            self.assertNotIn("Start parsing", result.stdout)

    def test_devices(self):
        self.assertIn("no such device", self.fails("--onnx=m.onnx", "--device=63").stderr)

    def test_devices_from_the_environment(self):
        def said(device, *arguments):
            return self.fails("--onnx=no such file.onnx", *arguments, TENSORWRIGHT_DEVICE=device).stderr

        for bad in ("bogus", "cuda:", "cuda:x", "cuda:-1", "cuda0", "CPU", "cuda:99999999999"):
            self.assertIn(f"TENSORWRIGHT_DEVICE={bad} is no device (allowed: cpu, cuda, cuda:N)", said(bad))
        self.assertIn("no such file.onnx", said("cpu"))
        self.assertIn("no such file.onnx", said(""))
        # With or without a GPU there are not that many.
        self.assertRegex(said("cuda:63"), r"TENSORWRIGHT_DEVICE=cuda:63(: no such device| asks for a GPU)")
        self.assertIn("no such device", said("cpu", "--device=63"))
        self.assertIn("no such file.onnx", said("cuda:63", "--device=cpu"))
        if "TENSORWRIGHT_DEVICE=cuda asks for a GPU, and there is none" not in said("cuda"):
            self.assertIn("no such file.onnx", said("cuda"), "there is a GPU")

    def test_what_a_safety_engine_does_not_tell(self):
        for flag in ("--dumpProfile", "--exportProfile=p.json", "--dumpRefit", "--timeRefit", "--dumpLayerInfo", "--exportLayerInfo=l.json"):
            said = self.fails("--onnx=m.onnx", "--safe", "--fp16", flag).stderr
            self.assertIn(flag.partition("=")[0], said)
            self.assertIn("leave out --safe", said)


if __name__ == "__main__":
    unittest.main()
