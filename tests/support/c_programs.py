"""Exported C headers, compiled with the system's compiler and run."""

import shutil
import subprocess

import numpy as np
import pytest

from kernelmaps.export.c import to_c

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc, gcc, clang) found")

MAIN = """
#include <stdio.h>
#include "exported.h"
int main(void)
{
  double x[EXPORTED_FEATURES], out[EXPORTED_COLUMNS + 8];
  int d;
  for (;;) {
    for (d = 0; d < EXPORTED_FEATURES; ++d) if (scanf("%lf", x + d) != 1) return 0;
    exported(x, out);
    for (d = 0; d < EXPORTED_COLUMNS; ++d) printf("%.17g\\n", out[d]);
    MORE
  }
}
"""


def compile_and_run(folder, text):
    """The numbers that a program prints, compiled with every warning an error, for some input."""
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    command = [COMPILER, *flags, "main.c", "-o", "program", "-lm"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    program = [folder / "program"]
    done = subprocess.run(program, input=text, capture_output=True, check=True, text=True)
    return np.array(done.stdout.split(), dtype=float)


def run_in_c(what, X, folder, more=""):
    """What the function of a header gives for rows; `more` is done for each of them."""
    (folder / "exported.h").write_text(to_c(what, "exported"), encoding="utf-8")
    (folder / "main.c").write_text(MAIN.replace("MORE", more))
    text = "\n".join(" ".join(repr(float(v)) for v in row) for row in X)
    return compile_and_run(folder, text).reshape(len(X), -1)
