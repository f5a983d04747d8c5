# SPDX-License-Identifier: Apache-2.0
"""The programs that come with the package."""

import os
import sys


def trtexec():
    """Becomes the program trtexec."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "trtexec")
    os.execv(program, [program, *sys.argv[1:]])
