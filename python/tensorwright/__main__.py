# SPDX-License-Identifier: Apache-2.0
import sys

from ._programs import main

sys.exit(main())
