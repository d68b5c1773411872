"""What keeps the list of compiled modules whole: the compiler itself notices none of it, a pod would."""

import ast
from collections.abc import Iterator
from pathlib import Path

import relay_compiler

SOURCES = Path(__file__).resolve().parents[3] / "sidecar" / relay_compiler.PACKAGE


def _trees() -> dict[str, ast.Module]:
    found = sorted(SOURCES.rglob("*.py"))
    return {str(path.relative_to(SOURCES).with_suffix("")): ast.parse(path.read_bytes()) for path in found}


def _name(expression: ast.expr) -> str:
    """`Call` of `Call`, `calls.Call` and `Call[int]`."""
    inner = expression.value if isinstance(expression, ast.Subscript) else expression
    if isinstance(inner, ast.Attribute):
        return inner.attr
    return inner.id if isinstance(inner, ast.Name) else ""


def _classes(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, [_name(base) for base in node.bases]


def test_each_is_there_once_in_order() -> None:
    assert sorted(set(relay_compiler.MODULES)) == list(relay_compiler.MODULES)
    assert set(relay_compiler.MODULES) <= set(_trees())


def test_a_class_made_from_a_compiled_one_is_compiled() -> None:
    trees = _trees()
    bases = {name for module in relay_compiler.MODULES for name, _ in _classes(trees[module])}
    rest = set(trees) - set(relay_compiler.MODULES)
    interpreted = {module: [*_classes(trees[module])] for module in sorted(rest)}
    assert [
        (module, name) for module, found in interpreted.items() for name, above in found if bases & set(above)
    ] == []
    assert sum(map(len, interpreted.values())) > 20  # else nothing was looked at


def test_none_calls_itself() -> None:
    # Compiled, a function that goes on for ever is no RecursionError but the end of the process.
    trees = _trees()
    functions = [
        (module, node)
        for module in relay_compiler.MODULES
        for node in ast.walk(trees[module])
        if isinstance(node, ast.FunctionDef)
    ]
    assert [(module, node.name) for module, node in functions if node.name in _called_in(node)] == []
    assert len(functions) > 200  # else nothing was looked at


def _called_in(node: ast.AST) -> Iterator[str]:
    """Functions of the module and methods of `self` that are called at once, not later by a lambda."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.Lambda):
            yield from _called_in(child)
    if isinstance(node, ast.Call):
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if owner is None or _name(owner) == "self":
            yield _name(node.func)


# They go through all of it, or the compiler makes a loop of them that stops as early.
WHOLE = {
    *("all", "any", "join", "max", "min", "next", "sorted", "sum", "update"),
    *("Counter", "dict", "frozenset", "list", "set", "tuple"),
}


def test_none_leaves_a_generator_expression_to_others() -> None:
    # Compiled, it is a list: whoever stops at the second item has paid for all of them.
    trees = _trees()
    left = [
        (module, inner.lineno)
        for module in relay_compiler.MODULES
        for node in ast.walk(trees[module])
        for inner in ast.iter_child_nodes(node)
        if isinstance(inner, ast.GeneratorExp) and not _goes_through(node)
    ]
    assert left == []


def _goes_through(parent: ast.AST) -> bool:
    return isinstance(parent, ast.Starred) or (isinstance(parent, ast.Call) and _name(parent.func) in WHOLE)
