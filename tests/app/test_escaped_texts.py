"""No text from outside reaches Streamlit as Markdown or HTML: every part of what it reads is ours, a number, or has passed the door."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

APP = Path(__file__).parents[2] / "dpviz" / "app"
LABEL = (0, "label", "help")
OF_OPTIONS = ("segmented_control", "radio", "select_slider")
# What each function of Streamlit reads as Markdown: places and names of arguments. Taken from its documentation, release 1.67.
MARKDOWN = {
    **dict.fromkeys(("markdown", "caption", "info", "warning", "error", "success", "title", "header"), (0, "body", "help")),
    **dict.fromkeys(("button", "download_button", "toggle", "checkbox", "selectbox", "multiselect", "text_input", "text_area"), LABEL),
    **dict.fromkeys(("number_input", "slider", "file_uploader", "expander", "TextColumn", "NumberColumn"), LABEL),
    **dict.fromkeys(OF_OPTIONS, (*LABEL, 1, "options")),
    "metric": (*LABEL, 1, "value", "delta"),
    "progress": (1, "text"),
    "spinner": (0, "text"),
    "subheader": (0, "body"),
    "toast": (0, "body"),
    "popover": (0, "label", "help"),
    "tabs": (0, "tabs"),
    "table": (0, "data"),
    "image": ("caption",),
    "Page": ("title",),
    "Field": ("label",),  # dpviz.app.components.fields: the label of a widget, and the help that `show` hands to it
    "show": ("help",),
}
HTML = {"html": (0, "body")}
# What shows no text, or takes texts as they stand.
PLAIN = {
    *("altair_chart", "cache_resource", "code", "columns", "container", "dataframe", "divider", "fragment", "get_option", "json", "logo"),
    *("navigation", "rerun", "set_page_config", "switch_page", "column_config", "components", "context"),
    *("query_params", "session_state", "sidebar", "App"),
}
DOORS = {"markdown", "html", "amount_text", "budget_words", "budget_text", "describe_regions", "len", "format_amount", "float", "int"}
DOORS |= {"describe_spent", "format_decimal", "percent_outside", "format_percent", "choice_words"}
CONSTANT = re.compile("_?[A-Z][A-Z0-9_]*")
NUMBER = re.compile(r"[-+<>^0-9,.]*[defgn%]|,|%[-H:MS%]+")


class Module:
    """A file of the app, with what its names mean."""

    def __init__(self, path):
        self.path, self.tree = path, ast.parse(path.read_text("utf-8"))
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def scope(self, node):
        """The functions around a node, the innermost first, and the module."""
        while node is not None:
            if isinstance(node, ast.FunctionDef | ast.Lambda | ast.Module):
                yield node
            node = self.parents.get(node)


def called(call):
    """(node, name) of the functions that a call may mean: those of Streamlit, of its containers and of fields."""
    options = [call.func.body, call.func.orelse] if isinstance(call.func, ast.IfExp) else [call.func]
    if isinstance(call.func, ast.Name) and call.func.id == "Field":
        return [(call.func, "Field")]
    return [(each, each.attr) for each in options if isinstance(each, ast.Attribute)]


def arguments(call, wanted):
    """The arguments of a call that are wanted, by place or name."""
    yield from (value for place, value in enumerate(call.args) if place in wanted)
    yield from (word.value for word in call.keywords if word.arg in wanted)


def calls(module):
    return [node for node in ast.walk(module.tree) if isinstance(node, ast.Call)]


def read_texts(module):
    """(call, name of the function, argument) of whatever is read as Markdown or HTML; of options, what is shown of them."""
    for call in calls(module):
        shaped = [word.value for word in call.keywords if word.arg == "format_func"]
        for _, name in called(call):
            for value in arguments(call, MARKDOWN.get(name) or HTML.get(name, ())):
                is_options = name in OF_OPTIONS and value in call.args[1:2]
                yield call, name, shaped[0] if is_options and shaped else value


def unknown_uses(module):
    """Uses of Streamlit that no entry of the tables above knows; only `show` of a field may be given a function."""
    known = {*MARKDOWN, *HTML, *PLAIN}
    functions = {node for call in calls(module) for node, name in called(call)}
    functions |= {call.args[0] for call in calls(module) for _, name in called(call) if name == "show" and call.args}
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
    """What a text is made of; None if that is not known."""
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
    """The values that a scope gives to a name; None for one that is not known."""
    for target, value in _bindings(scope):
        names = [getattr(each, "id", None) for each in (target.elts if isinstance(target, ast.Tuple) else [target])]
        if name in names and isinstance(target, ast.Tuple):
            yield value.elts[names.index(name)] if isinstance(value, ast.Tuple) else None
        elif name in names:
            yield value


def _bindings(scope):
    """(target, value) of whatever a scope assigns; a loop over a literal table assigns each of its rows."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
            yield node.target, node.value
        elif isinstance(node, ast.For | ast.comprehension):
            is_table = isinstance(node.target, ast.Tuple) and isinstance(node.iter, ast.Tuple | ast.List)
            yield from ((node.target, row) for row in (node.iter.elts if is_table else [node.iter]))


# Parts of texts that neither a file, nor a person, nor a link decides, by the reason.
OURS_ANYWHERE = {
    "a lesson": (
        *("BY_KEY[stop].title", "lesson.title", "lesson.key", "lesson.text", "lesson.task"),
        *("lesson.question", "lesson.choices", "lesson.answer", "lesson.in_class"),
    ),
    "a lesson's bar": ("bar.caption", "bar.presets_help"),
    "a figure of the Learn page": ("figure.help", "figure.label", "figure.value", "shown.note", "shown.source"),
    "a picture's format": ("kind.upper()",),
    "a sample's": ("about.description", "about.licence", "about.source", "about.unit"),
    "a sample's, or fixed words for a file": ("data.title", "what.data.unit"),
    "Points or Trips": ("config.kind",),
    "a family's": ("family.title", "page.raw"),
    "a mechanism's": ("mechanism.title", "mechanism.summary", "release.approximate"),
    "declared by a mechanism": ("rule.label", "rule.help", "rule.choices", "names[0].label"),
    "a preset's": ("published[current].source",),
    "a budget": ("receipt.converted", "receipt.total", "receipt.currency", "receipt.conversion"),
    "a number": ("what.number",),
    "record, trip or person": ("page_state.protected", "counts.unit"),
    "a picture in base64, whose texts pass the door in dpviz.view: see tests/view/test_escape.py": (
        "base64.b64encode(draw_svg(scene).encode()).decode()",
    ),
    "fixed words": ("column.consequence", "question.noun"),
}
# Fixed words of the app or of a caller, names of pages, numbers and colours, by the file where they are ours.
OURS_IN_FILES = {
    "cards/file_questions.py": ("fault",),
    "cards/columns.py": ("noun", "text", "title"),
    "pages/compare/controls.py": ("names", "option", "text", "title"),
    "pages/compare/page.py": (
        *(
            "about",
            "compared_of(data).parts_about",
            *("choose_band(rows).about", "choose_band(times).about"),
            "size_words(name)",
            "number_of(study_job.total, 'release')",
            "number_of(len(study), 'release')",
        ),
        *("number_of(len(study.mechanisms), 'configuration')", "number_of(study.repeats, 'repeat')"),
        # its names pass the door there: see test_compare_page.py
        "describe_answer(rows, unit, workload_words(workload, data))",
        "describe_contrasts(rows, list_contrasts(study_job), scale)",
        *("describe_target(rows, target, unit)", "note"),
    ),
    "pages/compare/points.py": ("masked.asks",),
    "payment/release_files.py": ("label",),
    "modes/curate.py": ("options", "protected", "state.view.drawer", "cards.first_missing"),
    "components/mechanism_controls.py": ("page_state.draft.split_amount", "symbol"),
    "payment/dataset.py": ("symbol",),
    "cards/path_files.py": ("counting",),
    "cards/uploads.py": ("title", "text", "what", "{role.words: role for role in self.roles}"),
    "pages/help.py": (
        *("section_of_page.title", "target_page.title", "page.key", "pages()[key].title"),
        *("section.body", "section.key", "section.title"),
    ),
    "cards/expected_errors.py": ("unit", "levels.part", "worth.share", "label"),
    "pages/learn/page.py": ("what", "help_text"),
    "pages/learn/path.py": ("label", "name"),
    "pages/papers.py": ("color", "icon", "pd.DataFrame({'Number': value, '95 % interval': intervals}, index=names)"),  # escaped names
    "pages/areas/regions.py": ("side",),
    "pages/areas/counted_by.py": ("side", "label", "text"),
    "pages/points/where.py": ("side", "box.name", "numbers"),
    "modes/tabs.py": ("titles",),  # of a page or, for a tab of its own, of a mechanism
    "components/resolution.py": ("describe_resolution",),
    "cards/regions_file.py": ("noun",),
    "session/widgets.py": ("waiting",),
    "pages/start.py": ("preset.title", "preset.text", "label"),
    "components/drawers.py": ("labels.__getitem__",),
    "modes/teach.py": (  # fixed words
        *("not_private_stamp(type(first.draft.build()))", "describe_unprotected(mechanism)"),
        *("page.protected", "page.not_protected", "opened_drawer(state)"),
    ),
    "cards/text_format.py": ("chosen.describe(kind)",),
    "pages/trips/tabs.py": ("title", "unit", "what.title", "runs[0].data.unit"),  # the title is a mechanism's
    "pages/trips/teach.py": ("describe_run(what)",),  # a mechanism's title, and its budget
    "modes/shown_runs.py": ("state.view.main", "partial(name_map_of, page.view.panes)", "name(other)"),
    "cards/unit.py": ("titles.__getitem__", "noun", "question.place"),
    "components/words.py": ("further_lines", "of", "title", "help_text"),
}
OURS = {part for parts in OURS_ANYWHERE.values() for part in parts}
OURS |= {f"{file}: {part}" for file, parts in OURS_IN_FILES.items() for part in parts}


@cache
def modules():
    """All files of the app."""
    return [Module(path) for path in sorted(APP.rglob("*.py"))]


def file_of(module):
    """A module's path within the app."""
    return module.path.relative_to(APP).as_posix()


def named(module, text):
    """The entry that a part of a text is looked up by: with its file unless it says enough by itself."""
    return text if text in OURS else f"{file_of(module)}: {text}"


def test_every_part_of_what_is_read_as_markdown_or_html_is_known():
    """Whatever is listed here either passes `dpviz.view.escape.markdown` or `html`, or is ours and gets an entry above."""
    ours = {key for key in OURS if ": " not in key}
    found = [
        f"{file_of(module)}:{call.lineno} {name}: {part}"
        for module in modules()
        for call, name, value in read_texts(module)
        for part in foreign(module, value, ours)
        if named(module, part) not in OURS
    ]
    assert found == []


def test_every_function_of_streamlit_has_an_entry():
    assert [(file_of(module), use) for module in modules() for use in unknown_uses(module)] == []


def test_no_entry_is_left_over():
    parts = {named(module, part) for module in modules() for _, _, value in read_texts(module) for part in foreign(module, value, ())}
    assert OURS - parts == set()


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


def test_every_table_is_shown_by_the_function_that_escapes_formulas():
    places = [path.name for path in APP.rglob("*.py") for call in calls(Module(path)) for _, name in called(call) if name == "dataframe"]
    assert places == ["words.py"]
