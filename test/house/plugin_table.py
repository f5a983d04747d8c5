#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/plugins.md: a row for each plugin that src/plugin/init.cpp publishes, with its versions and when it is
registered, and in its columns Tests and Cases which files of test/python test it and by how many cases. What else a row says of a
plugin is held to by test/plugin, which asks the plugin.

A case is a test function that makes the plugin, itself or by a function that it calls, once for each set of its parameters.

    plugin_table.py --fix   writes these two columns
"""
import ast
import itertools
import math
import re
import sys

import house

TABLE = "docs/plugins.md"
HEAD = "| Plugin | Version | Interface | Registered | Devices | Types | Tests | Cases | Differs from 8.5 |"
PUBLISHED = re.compile(r'\{"(\w+)", "(\d)"(, true)?\}')


def parameters(function, constants):
    """(names, list of values) of each parametrize; where the values are not plain, as many Nones. `constants`: of the file, by name."""
    for mark in function.decorator_list:
        if not (isinstance(mark, ast.Call) and getattr(mark.func, "attr", "") == "parametrize"):
            continue
        names, values = mark.args[:2]
        values = constants.get(getattr(values, "id", ""), values)
        try:
            found = list(eval(compile(ast.Expression(values), "values", "eval"), {"itertools": itertools, "math": math}))
        except NameError:
            found = [None] * len(values.keys if isinstance(values, ast.Dict) else values.elts)
        yield ast.literal_eval(names), found


def mentioned(node):
    """Strings and names of functions in it, without decorators. Nodes of ONNX say plugin_version where they mean a plugin."""
    inside = [n for part in node.body for n in ast.walk(part)]
    calls = [n for n in inside if isinstance(n, ast.Call) and getattr(n.func, "attr", "") == "node"]
    operators = {id(n.args[0]) for n in calls if "plugin_version" not in [k.arg for k in n.keywords]}
    strings = {n.value for n in inside if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in operators}
    return strings, {n.id for n in inside if isinstance(n, ast.Name)}


def cases(source, plugins):
    """Name of a plugin -> cases of this file."""
    tree = ast.parse(source)
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    constants = {n.targets[0].id: n.value for n in tree.body if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)}

    def made(name, seen):
        if name in seen or name not in functions:
            return set()
        strings, names = mentioned(functions[name])
        return (strings & plugins).union(*(made(other, seen | {name}) for other in names))

    counts = {}
    for name, function in functions.items():
        if not name.startswith("test_") or name == "test_refusals":
            continue
        sets = list(parameters(function, constants))
        total = math.prod(len(values) for _, values in sets)
        own = {plugin: total for plugin in made(name, frozenset())}
        for _, values in sets:
            for plugin in plugins & {v for v in values if isinstance(v, str)}:
                own[plugin] = total // len(values) * values.count(plugin)
        for plugin, count in own.items():
            counts[plugin] = counts.get(plugin, 0) + count
    return counts


def table(root):
    """(lines in front, cells of rows, lines behind) of the page."""
    lines = house.text(root / TABLE).split("\n")
    if lines.count(HEAD) != 1:
        raise SystemExit(f"{TABLE}: wants one table that begins with '{HEAD}'")
    begin = lines.index(HEAD) + 2
    end = next(i for i in range(begin, len(lines)) if not lines[i].startswith("|"))
    return lines[:begin], [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[begin:end]], lines[end:]


def check(root, options):
    published = {}
    for name, version, is_static in PUBLISHED.findall(house.text(root / "src/plugin/init.cpp")):
        published.setdefault(name, ([], "load" if is_static else "init"))[0].append(version)
    counts = {}
    for path in house.files(root):
        if match := re.fullmatch(r"test/python/standard_plugins_(\w+)_test\.py", str(path)):
            for plugin, count in cases(house.text(root / path), set(published)).items():
                counts.setdefault(plugin, {})[match[1]] = count
    before, rows, behind = table(root)
    findings = []
    wrong = False
    for row in rows:
        name = row[0]
        if name not in published:
            findings.append(f"{TABLE}: there is no plugin {name}")
            continue
        versions, registered = published[name]
        if row[1] != ", ".join(versions) or row[3] != registered:
            findings.append(f"{TABLE}: {name} has the versions {', '.join(versions)} and is registered at {registered}")
        of = counts.get(name, {})
        if not of:
            findings.append(f"{TABLE}: no file of test/python tests {name}")
        cells = [", ".join(sorted(of)), str(sum(of.values()))]
        wrong |= row[6:8] != cells
        row[6:8] = cells
    findings += [f"{TABLE}: {name} has no row" for name in sorted(set(published) - {row[0] for row in rows})]
    if wrong and getattr(options, "fix", False):
        lines = before + ["| " + " | ".join(row) + " |" for row in rows] + behind
        (root / TABLE).write_text("\n".join(lines).replace("|  |", "| |"), encoding="utf-8")
    elif wrong:
        findings.append(f"{TABLE}: its columns Tests and Cases are not what test/python has; run test/house/plugin_table.py --fix")
    return findings


def self_test(root, options):
    house.plant(root, "src/plugin/init.cpp", 'Published p[] = {{"A_TRT", "1"}, {"B", "1", true}, {"B", "2", true}};')
    rule = "|---" * 9 + "|\n"
    house.plant(root, TABLE, f"# x\n\n{HEAD}\n{rule}| A_TRT | 1 | Ext | init | all | FP32 | old | 7 | |\n| B | 1, 2 | Ext | load | all | FP32 | old | 7 | y |\n\nend\n")
    house.plant(root, "test/python/standard_plugins_x_test.py", """
import pytest
def maker(): return make("A_TRT")
@pytest.mark.parametrize("a", [1, 2, 3])
@pytest.mark.parametrize("b, c", [(1, f), (2, g)])
def test_a(a, b, c): maker()
def test_operator(): model.node("B", x)
def test_plugin(): model.node("B", x, plugin_version="1")
@pytest.mark.parametrize("name", ["A_TRT", "B"])
@pytest.mark.parametrize("v", "12")
def test_both(name, v): make(name)
""")
    house.expect(check(root, options), "Tests and Cases")
    options.fix = True
    house.expect(check(root, options))
    options.fix = False
    house.expect(check(root, options))
    page = house.text(root / TABLE)
    assert "| A_TRT | 1 | Ext | init | all | FP32 | x | 8 | |" in page and "| x | 3 | y |" in page and page.endswith("\n\nend\n"), page
    house.plant(root, TABLE, page.replace("| 1, 2 |", "| 1 |").replace("A_TRT", "C"))
    house.expect(check(root, options), "B has the versions 1, 2", "no plugin C", "A_TRT has no row")


if __name__ == "__main__":
    sys.exit(house.run(check, self_test, ("--fix", {"action": "store_true"})))
