"""Imports run one way, and each concern has one place: read from the sources, not from what happens to be run."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import model

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("headlight", "model", "visualizer")
SOURCES = sorted([ROOT / "app.py", *(source for name in PACKAGES for source in ROOT.glob(f"{name}/**/*.py"))])


def name_of(source: Path) -> str:
    """``visualizer/views/step.py`` -> ``visualizer.views.step``."""
    return ".".join(source.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


VIEWS = ("step", "token_way", "heads", "compare", "lab", "train", "generate", "watched")
MODULES = {name_of(source): source for source in SOURCES}
ROOMS = (
    *("model", "model.mask_tools", "model.sources", "model.learning", "model.analysis"),
    "headlight",
    *("visualizer", "visualizer.components", "visualizer.figures"),
    *("visualizer.settings", "visualizer.runs", "visualizer.stages", "visualizer.pictures", "visualizer.session"),
    *("visualizer.routes", "visualizer.views", "visualizer.page", "app"),
)
"""The folders, each of which knows none but those before it: what is chosen, computed, known of it, kept, shown."""


@cache
def tree_of(module: str) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def imports_of(module: str) -> frozenset[str]:
    """The modules that a module imports, wherever in it, by their full names."""
    found = set()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            submodules = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
            found |= submodules or {node.module}
    return frozenset(found)


def reached_from(module: str) -> set[str]:
    """Everything that importing a module brings, through modules of this project."""
    reached, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += imports_of(name) if name in MODULES else ()
    return reached


def is_within(module: str, package: str) -> bool:
    """Whether a module is a package or one of its parts."""
    return module == package or module.startswith(f"{package}.")


def within(*packages: str) -> list[str]:
    """The modules of some packages."""
    return [module for module in MODULES if any(is_within(module, package) for package in packages)]


def refused(module: str, *packages: str) -> list[str]:
    """What a module imports of some packages."""
    return [name for name in imports_of(module) if any(is_within(name, package) for package in packages)]


@pytest.mark.parametrize("module", within("model"))
def test_the_model_needs_torch_and_the_standard_library_alone(module):
    others = {name.partition(".")[0] for name in imports_of(module)} - sys.stdlib_module_names
    reads_weights = module in {f"model.learning.{name}" for name in ("checkpoints", "recordings", "worker")}
    assert others <= {"torch", "model"} | ({"safetensors"} if reads_weights else set())


@pytest.mark.parametrize("module", within("headlight"))
def test_watching_needs_torch_and_the_standard_library_alone(module):
    others = {name.partition(".")[0] for name in imports_of(module)} - sys.stdlib_module_names
    writes_files = module == "headlight.recording"
    assert others <= {"torch", "model", "headlight"} | ({"safetensors"} if writes_files else set())


@pytest.mark.parametrize("module", within("visualizer.figures", "visualizer.components"))
def test_figures_and_components_see_arrays_and_labels_alone(module):
    assert not refused(module, "torch", "model", "visualizer.runs.run", "visualizer.views")


@pytest.mark.parametrize("module", within("visualizer.figures", "visualizer.components"))
def test_figures_and_components_do_not_know_streamlit(module):
    assert "streamlit" not in {name.partition(".")[0] for name in reached_from(module)}


@pytest.mark.parametrize("module", [name for name in within("visualizer.views") if name != "visualizer.views"])
def test_a_view_knows_no_other_view(module):
    others = {f"visualizer.views.{view}" for view in VIEWS if not is_within(module, f"visualizer.views.{view}")}
    assert not refused(module, *others)


@pytest.mark.parametrize(
    "module", [name for name in within("visualizer") if not is_within(name, "visualizer.views")]
)
def test_only_what_shows_a_view_knows_the_views(module):
    assert module == "visualizer.page.show" or not refused(module, "visualizer.views")


@pytest.mark.parametrize(
    "module", ["visualizer.runs.run", "visualizer.settings.settings", "visualizer.stages.checks"]
)
def test_a_run_is_computed_without_streamlit(module):
    assert "streamlit" not in reached_from(module)


@pytest.mark.parametrize(
    "module", ["visualizer.page.header", "visualizer.session.state", "visualizer.page.sidebar"]
)
def test_the_page_stands_before_torch_is_loaded(module):
    assert "torch" not in {name.partition(".")[0] for name in reached_from(module)}


def test_what_is_chosen_and_the_page_bring_no_torch():
    page = ("header", "sidebar", "worked_examples_menu", "warming")
    modules = [
        "model",
        "visualizer.routes.served",
        *within("visualizer.settings"),
        *(f"visualizer.page.{name}" for name in page),
    ]
    script = f"import sys, {', '.join(modules)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("name", model.__all__)
def test_every_name_of_the_model_is_there_when_it_is_asked_for(name):
    found = getattr(model, name)
    assert found is model.masks.MASKS if name == "MASKS" else found.__name__ == name


def test_the_model_has_no_other_names():
    with pytest.raises(AttributeError, match="no attribute 'Transfomer'"):
        model.Transfomer  # noqa: B018 - asking for it is the test


@pytest.mark.parametrize("module", within("visualizer.session"))
def test_what_lasts_knows_neither_the_page_nor_what_a_view_keeps(module):
    assert not refused(
        module, "visualizer.page", "visualizer.views", "visualizer.runs.writer", "visualizer.runs.written"
    )


@pytest.mark.parametrize("module", within("visualizer.runs"))
def test_what_is_computed_knows_nothing_of_what_is_said_of_it(module):
    assert not refused(module, "visualizer.stages", "visualizer.session", "visualizer.page", "visualizer.views")


@pytest.mark.parametrize("module", within("visualizer.views"))
def test_a_view_does_not_know_the_page(module):
    assert not refused(module, "visualizer.page")


@pytest.mark.parametrize(
    ("start", "places"),
    [
        ("session_state", {"visualizer.session.state", "visualizer.session.drafts"}),
        ("query_params", {"visualizer.session.state"}),
        ("cache_", {"visualizer.session.cache"}),
        ("rerun", {"visualizer.session.jobs"}),
    ],
)
def test_streamlits_memory_has_one_place(start, places):
    users = {module for module in MODULES if any(used.startswith(start) for used in used_of_streamlit(module))}
    assert users == places


def used_of_streamlit(module: str) -> Iterator[str]:
    """The names of what a module takes from ``st`` or imports from streamlit."""
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "st":
            yield node.attr
        elif isinstance(node, ast.ImportFrom) and is_within(str(node.module), "streamlit"):
            yield from (alias.name for alias in node.names)


def test_no_imports_go_in_a_circle():
    waiting = {module: imports_of(module) & MODULES.keys() - {module} for module in MODULES}
    while free := {module for module, imports in waiting.items() if not imports & waiting.keys()}:
        for module in free:
            del waiting[module]
    assert not waiting, f"in or behind a circle: {sorted(waiting)}"


def room_of(module: str) -> str:
    """The innermost of ``ROOMS`` that a module stands in."""
    return max((room for room in ROOMS if is_within(module, room)), key=len)


@pytest.mark.parametrize("module", MODULES)
def test_a_room_knows_only_those_before_it(module):
    imported = imports_of(module) & MODULES.keys()
    later = {name for name in imported if ROOMS.index(room_of(name)) > ROOMS.index(room_of(module))}
    assert not later, f"{module} in {room_of(module)} imports {sorted(later)}"


def test_every_folder_is_a_room_or_part_of_one():
    folders = {".".join(name.split(".")[:2]) for name in MODULES if name.count(".") > 1}
    assert folders <= set(ROOMS)


@pytest.mark.parametrize("module", MODULES)
def test_everything_public_says_what_it_is(module):
    assert ast.get_docstring(tree_of(module)), f"{module} has no docstring"
    assert not list(undocumented(tree_of(module)))


def undocumented(scope: ast.Module | ast.ClassDef) -> Iterator[str]:
    """The public functions, classes and methods without a docstring."""
    for node in scope.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if not ast.get_docstring(node):
                yield f"{node.name}, line {node.lineno}"
            if isinstance(node, ast.ClassDef):
                yield from undocumented(node)


def test_what_the_documents_name_is_there():
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md"))
    named = set(re.findall(r"`((?:headlight|model|visualizer|tests|benchmarks|\.ci)/[\w./]*)`", text))
    tree = text.partition("## Where things are")[2].partition("```\n")[2].partition("```")[0]
    room = ""
    for line in tree.splitlines():
        name = line.split()[0]
        room = name if not line.startswith(" ") else room
        named.add(name if name == room else room + name)
    assert {"model/masks.py", "visualizer/runs/", "app.py"} <= named
    assert not {name for name in named if not (ROOT / name).exists()}


def test_the_page_is_short():
    assert len((ROOT / "app.py").read_text(encoding="utf-8").splitlines()) < 50


@pytest.mark.parametrize("module", MODULES)
def test_plotly_is_loaded_when_a_figure_is_drawn(module):
    begins_with = [node for node in tree_of(module).body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [getattr(node, "module", None) or node.names[0].name for node in begins_with]
    if not is_within(module, "visualizer.figures"):
        assert not [name for name in names if is_within(name, "plotly") or is_within(name, "visualizer.figures")]
