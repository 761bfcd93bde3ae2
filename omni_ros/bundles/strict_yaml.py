# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""YAML without what makes YAML dangerous: no tags, no anchors, no merges, no duplicate keys.

Nor numbers that YAML reads otherwise than people do: 010 would be eight, 1:30 would be ninety.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

#: Deeper nesting than any manifest has, far less than the interpreter's stack.
MAX_DEPTH = 12
_OCTAL = re.compile(r"[-+]?0[0-9_]+")


class _StrictLoader(yaml.SafeLoader):
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> yaml.Node:
        event = self.peek_event()
        if getattr(event, "anchor", None) is not None:
            raise yaml.MarkedYAMLError(problem="anchors and aliases are not allowed",
                                       problem_mark=event.start_mark)  # fmt: skip
        if getattr(event, "tag", None) is not None:
            raise yaml.MarkedYAMLError(problem=f"the tag {event.tag!r} is not allowed",
                                       problem_mark=event.start_mark)  # fmt: skip
        if self.depth >= MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem=f"nested deeper than {MAX_DEPTH} levels",
                                       problem_mark=event.start_mark)  # fmt: skip
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_number(self, node: yaml.ScalarNode) -> Any:
        text = node.value
        if ":" in text or _OCTAL.fullmatch(text):
            kind = "a sexagesimal" if ":" in text else "an octal"
            raise yaml.MarkedYAMLError(
                problem=f"{text[:40]} is read as {kind} number: write it in plain decimal, or in"
                " quotes if it is text",
                problem_mark=node.start_mark,
            )
        if node.tag == "tag:yaml.org,2002:int":
            return self.construct_yaml_int(node)
        return self.construct_yaml_float(node)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
                raise yaml.MarkedYAMLError(problem="a key that is no text",
                                           problem_mark=key.start_mark)  # fmt: skip
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"the key {key.value!r} twice",
                                           problem_mark=key.start_mark)  # fmt: skip
            seen.add(key.value)


for _tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
    _StrictLoader.add_constructor(_tag, _StrictLoader.construct_number)


def load(text: str) -> Any:
    """Parse one document.

    :return: dicts with text keys, lists, text, int, float, bool, None (and dates, unasked for).
    :raises ValueError: it is not YAML, or more than is allowed; one line, with the line's number.
    """
    loader = None
    try:
        loader = _StrictLoader(text)
        return loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise ValueError(f"{where}{error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    except (ValueError, OverflowError, RecursionError, ArithmeticError) as error:
        # A date like 9999-99-99, an integer of ten thousand digits.
        raise ValueError(f"a value that cannot be read ({error})") from error
    finally:
        if loader is not None:
            loader.dispose()


class _CompactDumper(yaml.SafeDumper):
    def represent_mapping(self, tag: str, mapping: Any, flow_style: Any = None) -> yaml.MappingNode:
        node = super().represent_mapping(tag, mapping, flow_style)
        node.flow_style = all(_is_flat(value) for _, value in node.value)
        return node


def _is_flat(node: yaml.Node) -> bool:
    if isinstance(node, yaml.SequenceNode):
        return all(isinstance(item, yaml.ScalarNode) for item in node.value)
    return isinstance(node, yaml.ScalarNode)


def dump(data: Any) -> str:
    """Write what `load` reads back equal; a mapping of plain values or short lists on one line."""
    return yaml.dump(
        data,
        Dumper=_CompactDumper,
        sort_keys=False,
        default_flow_style=None,
        width=10_000,
        allow_unicode=True,
    )
