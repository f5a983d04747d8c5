# SPDX-License-Identifier: Apache-2.0
"""The process that writes prompts by chat templates: these are programs that come with a model, so they get a sandbox, so much memory and
no files. Reads lines of JSON, [template, variables], and answers each with a line, [text or null, error]."""

import datetime
import json
import resource
import sys

# Bytes of memory beyond what the process starts with, of a template's text, and of what it writes.
MEMORY, _TEXT, _WRITTEN = 512 << 20, 1 << 20, 16 << 20


def environment():
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def raise_exception(text):
        raise jinja2.TemplateError(str(text)[:1000])

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return made


def written(made, template, variables):
    if len(template) > _TEXT:
        raise ValueError(f"it has {len(template)} characters (limit: {_TEXT})")
    pieces, length = [], 0
    for piece in made.from_string(template).generate(**variables):
        length += len(piece)
        if length > _WRITTEN:
            raise ValueError(f"it writes more than {_WRITTEN} characters")
        pieces.append(piece)
    return "".join(pieces)


def main():
    made = environment()
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    for line in sys.stdin:
        try:
            answer = [written(made, *json.loads(line)), None]
        except MemoryError:
            answer = [None, "it takes too much memory"]
        except RecursionError:
            answer = [None, "it is nested too deeply"]
        except Exception as error:  # a template may raise anything
            answer = [None, f"{type(error).__name__}: {error}"[:500]]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
