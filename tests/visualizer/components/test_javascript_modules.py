"""JavaScript modules become one text, and what of it may never be written."""

import re

import pytest

from visualizer.components.javascript_modules import ROOT, module_text, style_sheet

SCRIPTS = sorted(ROOT.glob("**/*.js"))
ELEMENTS = [script for script in SCRIPTS if "export const render = " in script.read_text(encoding="utf-8")]


def name_of(script):
    return script.relative_to(ROOT).as_posix()


def written(folder, **sources):
    for name, source in sources.items():
        (folder / f"{name}.js").write_text(source, encoding="utf-8")
    return folder


def test_a_module_stands_before_those_that_import_it_and_keeps_its_names_to_itself(tmp_path):
    one = "const secret = 1;\nexport function one() { return secret; }\n"
    two = 'import { one as first } from "./one.js";\n\nexport const two = first() + 1;\nexport class Two {}\n'
    folder = written(tmp_path, one=one, two=two)
    text = module_text(
        'import { two, Two } from "./two.js";\nimport { one } from "./one.js";\nexport default two;', folder
    )
    assert text.count("const secret") == 1
    assert text.index("return { one };") < text.index("{ one: first }") < text.index("return { two, Two };")
    assert text.endswith("export default two;")
    assert not re.search(r"^import|^export (?!default two)", text, re.MULTILINE)


def test_a_json_file_is_a_value_of_the_module_that_imports_it(tmp_path):
    one = 'import ONE from "./one.json" with { type: "json" };\n\nexport const one = ONE;\n'
    folder = written(tmp_path, one=one)
    (folder / "one.json").write_text('{"a": 1}')
    assert 'const ONE = {"a": 1};' in module_text('import { one } from "./one.js";\n', folder)


def test_a_style_sheet_belongs_to_the_module_beside_it(tmp_path):
    folder = written(tmp_path, one="export const one = 1;\n", two='import { one } from "./one.js";\n')
    (folder / "one.css").write_text(".one {}")
    assert style_sheet('import { two } from "./two.js";\n', folder) == ".one {}"


def test_the_buttons_that_walk_are_not_printed():
    sheet = style_sheet('import { render } from "./components/stage_map/element.js";\n', ROOT)
    assert ".walk-button" in sheet.partition("@media print")[2]


@pytest.mark.parametrize(
    ("source", "error", "match"),
    [
        ('import { x } from "./gone.js";\n', FileNotFoundError, "gone.js"),
        ('import { me } from "./me.js";\nexport const me = 1;\n', ValueError, "me_js imports itself"),
        ('import * as everything from "./one.js";\n', ValueError, "import or export of names"),
        ("export default 1;\n", ValueError, "import or export of names"),
    ],
)
def test_what_cannot_be_resolved_is_an_error(tmp_path, source, error, match):
    folder = written(tmp_path, one="export const one = 1;\n", me=source)
    with pytest.raises(error, match=match):
        module_text('import { me } from "./me.js";\n', folder)


def found_in(scripts, pattern):
    return [
        f"{name_of(script)}: {found[0]}"
        for script in scripts
        for found in re.finditer(pattern, script.read_text(encoding="utf-8"))
    ]


def test_no_script_writes_markup_or_runs_text():
    assert not found_in(SCRIPTS, r"(inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\(|new Function")


def test_no_picture_knows_streamlit():
    scripts = [script for script in SCRIPTS if script.is_relative_to(ROOT / "components")]
    assert not found_in(scripts, r"--st-|setTriggerValue|setStateValue|stApp")
    assert not [
        f"{name_of(script)} imports {path}"
        for script in scripts
        for path in re.findall(r'^import .*? from "(.+?)";', script.read_text(encoding="utf-8"), re.M | re.S)
        if not (script.parent / path).resolve().is_relative_to(ROOT / "components")
    ]


def test_every_element_resolves():
    assert ELEMENTS
    for element in ELEMENTS:
        entry = f'import {{ render }} from "./{element.name}";\nexport {{ render }};'
        assert module_text(entry, element.parent).count("applyTheme(root") >= 1
        sheet = style_sheet(entry, element.parent)
        assert ".headlight .token" in sheet
        assert "--st-" not in sheet
