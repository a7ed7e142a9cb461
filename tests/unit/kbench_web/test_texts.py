"""`manage.py texts` finds what people read, and leaves out what only machines do."""

from __future__ import annotations

from kbench_web.management.commands.texts import python_texts, template_texts


def test_a_template_s_sentences_stay_whole() -> None:
    html = """{# no #}<p title="A hint">One {% if a %}two{% else %}three{% endif %}
<a href="{% url 'x' %}">four</a> {{ n }}.</p>"""
    assert list(template_texts(html)) == [
        (1, "A hint"),
        (1, ""),
        (1, "One |two|three|\nfour …."),
        (2, ""),
    ]


def test_a_module_s_strings_without_docstrings() -> None:
    source = '"""No."""\nraise Fault(f"there is no {name} here", code="x")\n'
    assert sorted(python_texts(source)) == [(2, "there is no … here"), (2, "x")]
