"""No text from outside reaches Streamlit as Markdown or HTML: every part of what it reads is ours, a number, or has passed the door."""

import pytest

from tests.app.read_texts import APP, Module, foreign, read_texts, unknown_uses

# Parts of texts that neither a file, nor a person, nor a link decides, and why.
OURS = {
    "BY_KEY[key].title": "a lesson",
    "lesson.title": "a lesson",
    "lesson.key": "a lesson",
    "lesson.text": "a lesson",
    "lesson.task": "a lesson",
    "target.title": "a lesson",
    "bar.caption": "a lesson",
    "bar.presets_help": "a lesson",
    "figure.help": "a figure of the Learn page",
    "figure.label": "a figure of the Learn page",
    "figure.value": "a figure of the Learn page",
    "shown.note": "a figure of the Learn page",
    "shown.source": "a figure of the Learn page",
    "kind.upper()": "a picture's format",
    "about.description": "a sample's",
    "about.licence": "a sample's",
    "about.source": "a sample's",
    "about.unit": "a sample's",
    "data.title": "a sample's, or fixed words for a file",
    "data.unit": "a sample's, or fixed words for a file",
    "what.data.unit": "a sample's, or fixed words for a file",
    "config.kind": "Points or Trips",
    "mechanism.title": "a mechanism's",
    "mechanism.summary": "a mechanism's",
    "what.titles": "the mechanisms'",
    "POINT_FAMILY.choices[what.release.mechanism].extra_tab": "declared by a mechanism",
    "rule.label": "declared by a mechanism",
    "rule.help": "declared by a mechanism",
    "rule.choices": "declared by a mechanism",
    "names[0].label": "declared by a mechanism",
    "published[current].source": "a preset's",
    "release.approximate": "a mechanism's words",
    "receipt.conversion": "a name of ours",
    "receipt.converted": "a budget",
    "receipt.total": "a budget",
    "receipt.currency": "a sign of ours",
    "study.repeats": "a number",
    "what.number": "a number",
    "picture.legend": "HTML of dpviz.view, whose texts pass the door there: see tests/view/test_escape.py",
    "dataset_block.py: colour": "a colour of ours",
    "compare/controls.py: names": "fixed words of the caller",
    "compare/controls.py: option": "fixed words of the caller",
    "compare/controls.py: text": "fixed words of the caller",
    "compare/controls.py: title": "fixed words of the caller",
    "points_data.py: text": "fixed words of the caller",
    "points_data.py: title": "fixed words of the caller",
    "dataset_block.py: title": "fixed words of the caller",
    "first_row.py: protected": "fixed words of the caller",
    "files.py: hint": "fixed words of the caller",
    "files.py: counting": "an engine",
    "session.py: waiting": "fixed words of the caller",
    "words.py: further_lines": "fixed words of the caller",
    "release_page.py: title": "fixed words",
    "question.noun": "record or trip",
    "unit_controls.py: noun": "record or trip",
    "unit_controls.py: titles.__getitem__": "fixed words around record or trip",
    "unit_controls.py: nouns[2].removesuffix('s')": "fixed words",
    "column.consequence": "numbers in fixed words",
    "trips_data.py: text": "fixed words of the caller",
    "trips_data.py: title": "fixed words of the caller",
    "trips_page.py: title": "fixed words of the caller",
    "release_page.py: loaded": "names of pages",
    "release_page.py: st.segmented_control('Data', list(loaded), default=next(iter(loaded)), key='release data', required=True,"
    " persist_state='session')": "a name of a page",
    "release_page.py: label": "fixed words beside the form",
    "help_page.py: section_of_page.title": "a heading of a page of help",
    "help_page.py: target_page.title": "the title of a page of help",
    "help_page.py: page.key": "the name of a file of a page of help",
    "help_page.py: pages()[key].title": "the title of a page of help",
    "help_page.py: section.body": "a text of a page of help",
    "help_page.py: section.key": "a heading of a page of help",
    "help_page.py: section.title": "a heading of a page of help",
    "learn_page.py: label": "fixed words",
    "__init__.py: text": "fixed words",
    "page.title": "a name of a page",
    "compare/page.py: number": "a number",
    "compare/page.py: size_words(name)": "numbers",
    "compare/page.py: tiny_means_note(rows)": "fixed words",
    "__init__.py: st.get_option(f\"theme.{st.context.theme.type or 'light'}.secondaryBackgroundColor\")": "a colour of the settings",
}
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
