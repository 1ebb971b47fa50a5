"""What the builder of the reference has to know of this library's docstrings."""

import re
from typing import Any

import griffe

OWN_DECORATOR = "surepick.core.records.record"
OWN_FIELD = "surepick.policies.options.option"
OWN_SECTION = re.compile(r"^(Source|Cost|Differs from [a-z ]+):", re.MULTILINE)
INLINE_SECTION = re.compile(r"(?<=[.;]) +(Cost|Differs from [a-z ]+):")
SEVERAL_NAMES = re.compile(r"^( {4}\w+(?:, \w+)+):", re.MULTILINE)


class HouseStyle(griffe.Extension):
    """`@record` makes a dataclass and `option` a field; Source, Cost and "Differs from" are paragraphs with a title."""

    def on_class_instance(self, *, cls: griffe.Class, **_: Any) -> None:
        for decorator in cls.decorators:
            if isinstance(decorator.value, griffe.Expr) and decorator.value.canonical_path == OWN_DECORATOR:
                cls.decorators.append(
                    griffe.Decorator(
                        griffe.ExprName("dataclasses.dataclass"), lineno=decorator.lineno, endlineno=decorator.endlineno
                    )
                )
                break

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        made = attr.value
        if isinstance(made, griffe.ExprCall) and made.canonical_path == OWN_FIELD:
            attr.value = made.arguments[0]

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            text = INLINE_SECTION.sub(r"\n\1:", obj.docstring.value)
            obj.docstring.value = OWN_SECTION.sub(r"\n**\1:**", text)
