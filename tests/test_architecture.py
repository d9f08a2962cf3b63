"""Imports run one way, and each concern has one place: read from the sources, not from what happens to be run."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

import model
from visualizer.settings.views import VIEWS as RECORDS

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("headlight", "model", "visualizer")
SOURCES = sorted([ROOT / "app.py", *(source for name in PACKAGES for source in ROOT.glob(f"{name}/**/*.py"))])


def name_of(source: Path) -> str:
    """``visualizer/views/step.py`` -> ``visualizer.views.step``."""
    return ".".join(source.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


VIEWS = tuple(view.module.split(".")[0] for view in RECORDS.values())
MODULES = {name_of(source): source for source in SOURCES}
ROOMS = (
    *("model", "model.sources", "model.learning", "model.analysis"),
    *("headlight.masks", "headlight", "headlight.residual_stream", "headlight.pretrained"),
    *("visualizer", "visualizer.components", "visualizer.figures"),
    *("visualizer.settings", "visualizer.runs", "visualizer.stages", "visualizer.pictures"),
    "visualizer.notebook",
    *("visualizer.state", "visualizer.server", "visualizer.work"),
    "visualizer.guide",
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
    """True if a module is a package or one of its parts."""
    return module == package or module.startswith(f"{package}.")


def within(*packages: str) -> list[str]:
    """The modules of some packages."""
    return [module for module in MODULES if any(is_within(module, package) for package in packages)]


def refused(modules: Iterable[str], *packages: str) -> list[str]:
    """List the imports that some modules make from some packages, each as ``module imports name``."""
    return [
        f"{module} imports {name}"
        for module in modules
        for name in imports_of(module)
        if any(is_within(name, package) for package in packages)
    ]


def packages_outside(modules: Iterable[str], *known: str) -> set[str]:
    """The packages that some modules import beside the standard library and those named."""
    imported = {name.partition(".")[0] for module in modules for name in imports_of(module)}
    return imported - sys.stdlib_module_names - set(known)


def bring(modules: Iterable[str], package: str) -> list[str]:
    """Those of some modules whose import brings a package."""
    return [module for module in modules if package in {name.partition(".")[0] for name in reached_from(module)}]


def test_the_model_needs_torch_and_the_standard_library_alone():
    read_weights = {f"model.learning.{name}" for name in ("checkpoints", "training_recordings")}
    assert not packages_outside(set(within("model")) - read_weights, "torch", "model")
    assert not packages_outside(read_weights, "torch", "model", "safetensors")


def test_watching_needs_torch_and_the_standard_library_alone():
    own = {"headlight.recording": "safetensors", "headlight.command": "streamlit"}
    others = set(within("headlight.pretrained"))
    assert not packages_outside(set(within("headlight")) - set(own) - others, "torch", "model", "headlight")
    assert not refused(set(within("headlight")) - others, "headlight.pretrained")
    for module, package in own.items():
        assert not packages_outside([module], "torch", "model", "headlight", package)


def test_transformers_is_loaded_when_a_checkpoint_is_and_never_before():
    begins = {"transformers", "huggingface_hub", "accelerate", "gguf"}
    for module in MODULES:
        first = [node for node in tree_of(module).body if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {(getattr(node, "module", None) or node.names[0].name).partition(".")[0] for node in first}
        assert not names & begins, module


def test_figures_and_components_see_arrays_and_labels_alone():
    modules = within("visualizer.figures", "visualizer.components")
    known = {f"{module} imports model.texts" for module in modules}  # sentences, which know of no model
    assert not set(refused(modules, "torch", "model", "visualizer.runs.run", "visualizer.views")) - known


def test_figures_and_components_do_not_know_streamlit():
    assert not bring(within("visualizer.figures", "visualizer.components"), "streamlit")


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_knows_no_other_view(view):
    others = (f"visualizer.views.{other}" for other in VIEWS if other != view)
    assert not refused(within(f"visualizer.views.{view}"), *others)


def test_what_views_share_knows_none_of_them():
    views = [f"visualizer.views.{view}" for view in VIEWS]
    shared = set(within("visualizer.views")) - {"visualizer.views", *within(*views)}
    assert not refused(shared, *views)


def test_only_what_shows_a_view_knows_the_views():
    shown = {"visualizer.page.show", "visualizer.page.sidebar", *within("visualizer.views")}
    others = set(within("visualizer")) - shown
    assert not refused(others, "visualizer.views")


def test_a_run_is_computed_without_streamlit():
    modules = ["visualizer.runs.run", "visualizer.settings.settings", "visualizer.stages.checks"]
    assert not bring(modules, "streamlit")


def test_what_is_chosen_and_the_page_bring_no_torch():
    page = ("header", "opening_picture", "sidebar", "examples_menu", "warming")
    modules = [
        "model",
        "visualizer.routes.served",
        *within("visualizer.settings"),
        *(f"visualizer.page.{name}" for name in page),
    ]
    script = f"import sys, {', '.join(modules)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == 0


def test_every_name_of_the_model_is_there_when_it_is_asked_for():
    found = {name: getattr(model, name) for name in model.__all__}
    assert found.pop("MASKS") is model.masks.MASKS
    assert all(each.__name__ == name for name, each in found.items())


def test_the_model_has_no_other_names():
    with pytest.raises(AttributeError, match="no attribute 'Transfomer'"):
        model.Transfomer  # noqa: B018 - asking for it is the test


def test_what_lasts_knows_neither_the_page_nor_what_a_view_keeps():
    kept = ("visualizer.runs.writer", "visualizer.runs.continuation")
    assert not refused(
        within("visualizer.state", "visualizer.server", "visualizer.work"),
        "visualizer.page",
        "visualizer.views",
        *kept,
    )


def test_what_is_computed_knows_nothing_of_what_is_said_of_it():
    later = (f"visualizer.{name}" for name in ("stages", "state", "server", "work", "page", "views"))
    assert not refused(within("visualizer.runs"), *later)


def test_a_view_does_not_know_the_page():
    assert not refused(within("visualizer.views"), "visualizer.page")


@pytest.mark.parametrize(
    ("start", "places"),
    [
        ("session_state", {"visualizer.state.drafts", "visualizer.state.state", "visualizer.state.widget_values"}),
        ("query_params", {"visualizer.state.state", "visualizer.page.audience"}),
        ("cache_", set()),
        ("rerun", {"visualizer.work.live"}),
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


def test_a_room_knows_only_those_before_it():
    places = {module: ROOMS.index(room_of(module)) for module in MODULES}
    later = [
        f"{module} in {room_of(module)} imports {name}"
        for module in MODULES
        for name in imports_of(module) & MODULES.keys()
        if places[name] > places[module]
    ]
    assert not later


def test_every_folder_is_a_room_or_part_of_one():
    folders = {".".join(name.split(".")[:2]) for name in MODULES if name.count(".") > 1}
    assert folders <= set(ROOMS)


def test_everything_public_says_what_it_is():
    assert not [module for module in MODULES if not ast.get_docstring(tree_of(module))]
    assert not [f"{module}: {name}" for module in MODULES for name in undocumented(tree_of(module))]


def test_docstrings_begin_with_a_noun_or_a_verb():
    """ "Return the weights", "The weights", "True if": the reader sees at once what the thing is or does."""
    clauses = {"How", "Of", "What", "When", "Where", "Whether", "Which", "Who", "Whose", "Why"}
    files = [source for name in (*PACKAGES, "benchmarks", "tests") for source in ROOT.glob(f"{name}/**/*.py")]
    found = [
        f"{file.relative_to(ROOT)}, line {node.lineno}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if node.value.value.split(maxsplit=1)[:1] and node.value.value.split(maxsplit=1)[0] in clauses
    ]
    assert not found


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
    sources = "".join(source.read_text(encoding="utf-8") for source in SOURCES)
    tables = set(re.findall(r"`([A-Z][A-Z_]+)`", "".join(re.findall(r"^\|.*$", text, re.MULTILINE))))
    assert {"VIEWS", "METRICS"} <= tables
    assert not {name for name in tables if not re.search(rf"^{name}\b", sources, re.MULTILINE)}


def test_the_page_is_short():
    assert len((ROOT / "app.py").read_text(encoding="utf-8").splitlines()) < 50


def test_plotly_is_loaded_when_a_figure_is_drawn():
    others = set(MODULES) - set(within("visualizer.figures"))
    assert not [
        f"{module} begins with {name}"
        for module in others
        for name in first_imports(module)
        if is_within(name, "plotly") or is_within(name, "visualizer.figures")
    ]


def first_imports(module: str) -> Iterator[str]:
    """The modules that a module imports when it is imported itself."""
    for node in tree_of(module).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield getattr(node, "module", None) or node.names[0].name
