"""No text from outside reaches Streamlit as Markdown or HTML: every part of what it reads is ours, a number, or has passed the door."""

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

APP = Path(__file__).parents[2] / "dpviz" / "app"
LABEL = (0, "label", "help")
OPTIONS = (1, "options")
# What each function of Streamlit reads as Markdown: places and names of arguments. Taken from its documentation, release 1.67.
MARKDOWN = {
    **dict.fromkeys(("markdown", "caption", "info", "warning", "error", "success", "title", "header"), (0, "body", "help")),
    **dict.fromkeys(("button", "download_button", "toggle", "checkbox", "selectbox", "multiselect", "text_input", "text_area"), LABEL),
    **dict.fromkeys(("number_input", "slider", "file_uploader", "expander", "TextColumn", "NumberColumn"), LABEL),
    **dict.fromkeys(("segmented_control", "radio", "select_slider"), (*LABEL, *OPTIONS)),
    "metric": (*LABEL, 1, "value", "delta"),
    "progress": (1, "text"),
    "spinner": (0, "text"),
    "tabs": (0, "tabs"),
    "image": ("caption",),
    "Page": ("title",),
}
HTML = {"html": (0, "body")}
# What shows no text, or takes texts as they stand.
PLAIN = {
    *("altair_chart", "cache_resource", "columns", "container", "dataframe", "divider", "fragment", "get_option", "json", "logo"),
    *("navigation", "pydeck_chart", "rerun", "set_page_config", "switch_page", "column_config", "components", "context"),
    *("query_params", "session_state", "sidebar", "App"),
}
DOORS = {"markdown", "html", "amount_text", "budget_words", "budget_text", "regions_text", "len", "stated_amount", "float", "int"}
DOORS |= {"describe_spent", "count_of_numbers", "percent_outside"}
CONSTANT = re.compile("_?[A-Z][A-Z0-9_]*")
NUMBER = re.compile(r"[-+<>^0-9,.]*[defgn%]|,|%[-H:MS%]+")


@dataclass
class Module:
    """A file of the app, with what its names mean."""

    path: Path
    tree: ast.Module = field(init=False)

    def __post_init__(self):
        self.tree = ast.parse(self.path.read_text("utf-8"))
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def scope(self, node):
        """The functions around a node, the innermost first, and the module."""
        while node is not None:
            if isinstance(node, ast.FunctionDef | ast.Lambda | ast.Module):
                yield node
            node = self.parents.get(node)


def called(call):
    """The names of the functions of Streamlit that a call may mean."""
    options = [call.func.body, call.func.orelse] if isinstance(call.func, ast.IfExp) else [call.func]
    return [each for each in options if isinstance(each, ast.Attribute)]


def shown_field(call):
    """The widget that a field is shown by, `field.show(st.number_input, ...)`; none for other calls."""
    widget = call.args[0] if call.args else None
    is_shown = isinstance(call.func, ast.Attribute) and call.func.attr == "show" and isinstance(widget, ast.Attribute)
    return [widget] if is_shown and widget.attr in MARKDOWN else []


def of_fields(call):
    """(call, name, argument) of what a field hands to its widget: the label that it was made with, and the help that it is shown with."""
    if isinstance(call.func, ast.Name) and call.func.id == "Field":
        yield from ((call, "Field", value) for value in arguments(call, ("label",)))
    for widget in shown_field(call):
        yield from ((call, widget.attr, value) for value in arguments(call, ("help",)))


def arguments(call, wanted):
    """The arguments of a call that are wanted, by place or name."""
    yield from (value for place, value in enumerate(call.args) if place in wanted)
    yield from (word.value for word in call.keywords if word.arg in wanted)


def read_texts(module):
    """(call, name of the function, argument) of whatever is read as Markdown or HTML."""
    for call in (node for node in ast.walk(module.tree) if isinstance(node, ast.Call)):
        for function in called(call):
            read = MARKDOWN.get(function.attr) or HTML.get(function.attr)
            if read:
                shaped = [word.value for word in call.keywords if word.arg == "format_func"]
                for value in arguments(call, read):
                    is_options = OPTIONS[0] in read and (value in call.args[1:2]) and function.attr not in ("metric", "progress")
                    yield call, function.attr, shaped[0] if is_options and shaped else value
        yield from of_fields(call)


def unknown_uses(module):
    """Uses of Streamlit that no entry of the tables above knows."""
    known = {*MARKDOWN, *HTML, *PLAIN}
    functions = {each for node in ast.walk(module.tree) if isinstance(node, ast.Call) for each in [*called(node), *shown_field(node)]}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module == "streamlit":
            yield from (f"from {node.module} import {each.name}" for each in node.names)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "st":
            if node.attr not in known:
                yield f"st.{node.attr}"
            elif node.attr in {*MARKDOWN, *HTML} and node not in functions:
                yield f"st.{node.attr} is handed on"


def foreign(module, node, ours, seen=()):
    """The parts of a text that are neither literal, nor numbers, nor `ours`, nor from the door."""
    if node in seen or ast.unparse(node) in ours or isinstance(node, ast.Constant):
        return []
    parts = _parts(module, node)
    if parts is None:
        return [ast.unparse(node)]
    return [each for part in parts for each in foreign(module, part, ours, (*seen, node))]


def _parts(module, node):
    """What a text is made of; None if that cannot be told."""
    if isinstance(node, ast.Call):
        return _of_call(module, node)
    if isinstance(node, ast.Name):
        return _of_name(module, node)
    if ast.unparse(node) in ("str.capitalize", "'{:g}'.format", "'{:.12g}'.format"):
        return []
    made = MADE_OF.get(type(node))
    return None if made is None else made(node)


def _of_field(node):
    number = node.format_spec is not None and NUMBER.fullmatch(ast.unparse(node.format_spec)[2:-1])
    return [] if number else [node.value]


MADE_OF = {
    ast.JoinedStr: lambda node: [each for each in node.values if isinstance(each, ast.FormattedValue)],
    ast.FormattedValue: _of_field,
    ast.BinOp: lambda node: [node.left, node.right],
    ast.IfExp: lambda node: [node.body, node.orelse],
    ast.Lambda: lambda node: [node.body],
    **dict.fromkeys((ast.BoolOp, ast.Dict), lambda node: node.values),
    **dict.fromkeys((ast.Tuple, ast.List), lambda node: node.elts),
    **dict.fromkeys((ast.Starred, ast.NamedExpr, ast.Subscript), lambda node: [node.value]),
    **dict.fromkeys((ast.GeneratorExp, ast.ListComp), lambda node: [node.elt]),
}


def _of_call(module, call):
    function = call.func
    if isinstance(function, ast.Name) and function.id in DOORS:
        return []
    if isinstance(function, ast.Name) and function.id in ("str", "list", "next", "iter"):
        return call.args
    if isinstance(function, ast.Attribute) and function.attr == "index":
        return []
    if isinstance(function, ast.Attribute) and function.attr == "get":
        return [function.value, *call.args[1:]]
    if isinstance(function, ast.Attribute) and function.attr in ("join", "format", "capitalize", "replace", "lower", "strip"):
        return [function.value, *call.args, *(word.value for word in call.keywords)]
    for node in module.tree.body:
        if isinstance(function, ast.Name) and isinstance(node, ast.FunctionDef) and node.name == function.id:
            return [each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value is not None]
    return None


def _of_name(module, name):
    """All that is assigned to a name, in the innermost function around it that assigns it."""
    if name.id in DOORS or CONSTANT.fullmatch(name.id):
        return []
    for scope in module.scope(name):
        found = [] if isinstance(scope, ast.Lambda) else list(_assigned(scope, name.id))
        if found:
            return None if None in found else found
        if name.id in {each.arg for each in ast.walk(scope) if isinstance(each, ast.arg)} and not isinstance(scope, ast.Module):
            return None
    return None


def _assigned(scope, name):
    """The values that a scope gives to a name; None for one that cannot be told."""
    for node in ast.walk(scope):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign) else []
        for target in targets:
            if isinstance(target, ast.Name) and target.id == name:
                yield node.value
            elif isinstance(target, ast.Tuple) and name in [getattr(each, "id", None) for each in target.elts]:
                place = [getattr(each, "id", None) for each in target.elts].index(name)
                yield node.value.elts[place] if isinstance(node.value, ast.Tuple) else None
        if isinstance(node, ast.For | ast.comprehension):
            yield from _in_turn(node, name)
        if isinstance(node, ast.NamedExpr) and node.target.id == name:
            yield node.value


def _in_turn(loop, name):
    """What a loop gives to a name: one place of each row of a literal table, or the elements of whatever it runs over."""
    if isinstance(loop.target, ast.Name):
        if loop.target.id == name:
            yield loop.iter
    elif name in (targets := [getattr(each, "id", None) for each in loop.target.elts]):
        rows = loop.iter.elts if isinstance(loop.iter, ast.Tuple | ast.List) else [None]
        yield from (row.elts[targets.index(name)] if isinstance(row, ast.Tuple) else None for row in rows)


# Parts of texts that neither a file, nor a person, nor a link decides, by the reason.
OURS_BY_REASON = {
    "a lesson": ("BY_KEY[key].title", "lesson.title", "lesson.key", "lesson.text", "lesson.task", "target.title"),
    "a lesson's bar": ("bar.caption", "bar.presets_help"),
    "a figure of the Learn page": ("figure.help", "figure.label", "figure.value", "shown.note", "shown.source"),
    "a picture's format": ("kind.upper()",),
    "a sample's": ("about.description", "about.licence", "about.source", "about.unit"),
    "a sample's, or fixed words for a file": ("data.title", "data.unit", "what.data.unit"),
    "Points or Trips": ("config.kind",),
    "a mechanism's": ("mechanism.title", "mechanism.summary", "what.titles", "release.approximate"),
    "declared by a mechanism": ("rule.label", "rule.help", "rule.choices", "names[0].label"),
    "a tab that a mechanism declares": ("POINT_FAMILY.choices[what.release.mechanism].extra_tab",),
    "a preset's": ("published[current].source",),
    "a name of ours": ("receipt.conversion",),
    "a budget": ("receipt.converted", "receipt.total"),
    "a sign of ours": ("receipt.currency",),
    "a number": ("study.repeats", "what.number", "compare/page.py: number", "compare/page.py: size_words(name)"),
    "HTML of dpviz.view, whose texts pass the door there: see tests/view/test_escape.py": ("picture.legend",),
    "a colour of ours": (
        "dataset_block.py: colour",
        "__init__.py: st.get_option(f\"theme.{st.context.theme.type or 'light'}.secondaryBackgroundColor\")",
    ),
    "fixed words of the caller": (
        *("compare/controls.py: names", "compare/controls.py: option", "compare/controls.py: text", "compare/controls.py: title"),
        *("points_data.py: text", "points_data.py: title", "dataset_block.py: title", "first_row.py: protected", "files.py: hint"),
        *("session.py: waiting", "words.py: further_lines", "trips_data.py: text", "trips_data.py: title", "trips_page.py: title"),
    ),
    "an engine": ("files.py: counting",),
    "fixed words": (
        *("release_page.py: title", "unit_controls.py: titles.__getitem__", "unit_controls.py: nouns[2].removesuffix('s')"),
        *(
            "column.consequence",
            "release_page.py: label",
            "learn_page.py: label",
            "__init__.py: text",
        ),
    ),
    "record or trip": ("question.noun", "unit_controls.py: noun"),
    "a name of a page": (
        "release_page.py: loaded",
        "page.title",
        (
            "release_page.py: st.segmented_control('Data', list(loaded), default=next(iter(loaded)), key='release data', required=True,"
            " persist_state='session')"
        ),
    ),
    "a page of help's": (
        *(
            "help_page.py: section_of_page.title",
            "help_page.py: target_page.title",
            "help_page.py: page.key",
            "help_page.py: pages()[key].title",
            "help_page.py: section.body",
        ),
        *("help_page.py: section.key", "help_page.py: section.title"),
    ),
}
OURS = {part: reason for reason, parts in OURS_BY_REASON.items() for part in parts}
MODULES = [Module(path) for path in sorted(APP.rglob("*.py"))]


def file_of(module):
    """A module's path within the app."""
    return module.path.relative_to(APP).as_posix()


def named(module, text):
    """The entry that a part of a text is looked up by: with its file unless it says enough by itself."""
    return text if text in OURS else f"{file_of(module)}: {text}"


def test_every_part_of_what_is_read_as_markdown_or_html_is_known():
    """Whatever is listed here either passes `dpviz.view.escape.markdown` or `html`, or is ours and gets an entry above that says why."""
    ours = {key for key in OURS if ": " not in key}
    found = [
        f"{file_of(module)}:{call.lineno} {name}: {part}"
        for module in MODULES
        for call, name, value in read_texts(module)
        for part in foreign(module, value, ours)
        if named(module, part) not in OURS
    ]
    assert found == []


def test_every_function_of_streamlit_has_an_entry():
    assert [(file_of(module), use) for module in MODULES for use in unknown_uses(module)] == []


def test_no_entry_is_left_over():
    parts = {named(module, part) for module in MODULES for _, _, value in read_texts(module) for part in foreign(module, value, ())}
    assert set(OURS) - parts == set()


@pytest.mark.parametrize(
    "line",
    [
        "st.caption(f'Level {name}')",
        "st.selectbox('Level', names, help=name)",
        "st.segmented_control('Level', names)",
        "st.segmented_control('Level', names, format_func=lambda each: f'level {each}')",
        "left.metric('Answer', name)",
        "(st.info if name else st.warning)(name)",
        "said = f'**{name}**'; st.markdown(said)",
        "st.tabs([f'{each}' for each in names])",
        "st.html('<b>' + name)",
        "Field(label=name)",
        "field.show(left.number_input, help=name)",
        "field.show(st.text_input, value='', help=f'With {name}')",
    ],
)
def test_a_text_that_passes_no_door_is_found(tmp_path, line):
    path = tmp_path / "page.py"
    path.write_text(f"import streamlit as st\ndef page(name, names, left):\n    {line}\n", "utf-8")
    module = Module(path)
    assert [part for _, _, value in read_texts(module) for part in foreign(module, value, ())]
    assert list(unknown_uses(module)) == []


@pytest.mark.parametrize("line", ["st.write(name)", "st.chat_message(name)", "show = st.caption", "from streamlit import markdown"])
def test_another_function_of_streamlit_is_found(tmp_path, line):
    path = tmp_path / "page.py"
    path.write_text(f"import streamlit as st\n{line}\n", "utf-8")
    assert list(unknown_uses(Module(path)))
