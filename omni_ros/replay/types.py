# Copyright 2026 The omni_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a bag's bytes mean: definitions of message types from the bag itself, else from here.

A bag of Jazzy or later holds the definition of each type it has, and a hash of it. One of Humble in
sqlite3 holds names only: then standard types are taken as Humble had them, and those of this package
from its own .msg files. A type that neither knows is not guessed at.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import omni_ros
from omni_ros.requirements import require

#: The package whose definitions come with this code.
PACKAGE = "omni_ros"


class UnknownType(ValueError):
    """Messages of a type that nobody defines, or that is defined otherwise than they were written."""


def own_definitions() -> dict[str, str]:
    """Return the text of this package's message definitions, by type."""
    package = Path(omni_ros.__file__).resolve().parent
    candidates = [package / "interfaces", package.parent / "msg"]  # pip install, source tree
    candidates += [parent / "share" / PACKAGE / "msg" for parent in package.parents]  # colcon
    folder = next((one for one in candidates if (one / "ActionChunk.msg").is_file()), None)
    files = [] if folder is None else sorted(folder.glob("*.msg"))
    return {f"{PACKAGE}/msg/{file.stem}": file.read_text(encoding="utf-8") for file in files}


class Types:
    """The types of one file of a bag. Definitions are looked into when a type is first needed."""

    def __init__(self, definitions: Mapping[str, Any], hashes: Mapping[str, str], *,
                 distro: str = "") -> None:
        """
        :param definitions: rosbags' MessageDefinition by type, as the bag has them.
        :param hashes: RIHS01 by type, as the bag has them; "" or absent if it has none.
        :param distro: the ROS that wrote the bag, "" if that is not known.
        """
        require("rosbags", "to read a bag")
        self._definitions, self._hashes, self._distro = dict(definitions), dict(hashes), distro
        self._stores: dict[str, Any] = {}
        self._faults: dict[str, UnknownType] = {}
        #: What was odd, in plain words; reading went on.
        self.notes: list[str] = []

    def decode(self, msgtype: str, data: bytes) -> Any:
        """Return a message as an object with its fields as attributes.

        :raises UnknownType: the type cannot be had. :raises ValueError: the bytes are something else.
        """
        store = self._store(msgtype)
        try:
            return store.deserialize_cdr(data, msgtype)
        except Exception as error:  # rosbags' generated code fails in as many ways as bytes can be wrong
            raise ValueError(f"{len(data)} bytes are no {msgtype} ({type(error).__name__}: "
                             f"{str(error)[:80]})") from None

    def _store(self, msgtype: str) -> Any:
        if msgtype in self._faults:
            raise self._faults[msgtype]
        store = self._stores.get(msgtype)
        if store is None:
            try:
                store = self._stores[msgtype] = self._make(msgtype)
            except UnknownType as error:
                self._faults[msgtype] = error
                raise
        return store

    def _make(self, msgtype: str) -> Any:
        from rosbags.interfaces import MessageDefinitionFormat

        definition = self._definitions.get(msgtype)
        given = self._hashes.get(msgtype, "")
        if definition is not None and definition.format != MessageDefinitionFormat.NONE:
            store = self._from_bag(msgtype, definition)
            if given and store.hash_rihs01(msgtype) != given:
                self.notes.append(f"{msgtype}: the definition in the bag is not the one that its hash "
                                  f"is of ({given[:20]}...); messages are read by the definition")
            return store
        store = _known(self._distro)
        if msgtype not in store.fielddefs:
            raise UnknownType(f"{msgtype} is in no definition: not in the bag, not of ROS "
                              f"{self._distro or 'humble'}, not of {PACKAGE}")
        if given and store.hash_rihs01(msgtype) != given:
            raise UnknownType(
                f"{msgtype} was recorded by another definition (hash {given[:20]}..., known here "
                f"{store.hash_rihs01(msgtype)[:20]}...), which the bag does not hold")
        return store

    def _from_bag(self, msgtype: str, definition: Any) -> Any:
        key = msgtype, definition.format, definition.data, self._distro
        if key not in _defined:  # a session of tests reads many bags of the same types
            _defined[key] = self._read(msgtype, definition)
        return _defined[key]

    def _read(self, msgtype: str, definition: Any) -> Any:
        from rosbags.interfaces import MessageDefinitionFormat
        from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore

        store = get_typestore(Stores.EMPTY)
        try:
            if definition.format == MessageDefinitionFormat.MSG:
                types = get_types_from_msg(definition.data, msgtype)
            else:
                rule = "=" * 80 + "\n"
                parts = definition.data.split(rule)[1:] if definition.data.startswith(rule) else []
                types = {}
                for text in [part.split("\n", 1)[1] for part in parts] or [definition.data]:
                    types.update(get_types_from_idl(text))
            self._complete(types)
            store.register(types)
        except Exception as error:  # the text may be anything
            raise UnknownType(f"{msgtype} is defined in the bag by a text that cannot be read "
                              f"({type(error).__name__}: {str(error)[:80]})") from None
        return store

    def _complete(self, types: dict[str, Any]) -> None:
        """Add what definitions refer to and do not bring along, as far as it is known."""
        wanted = [name for entry in types.values() for name in _references(entry)]
        while wanted:
            name = wanted.pop()
            if name not in types:
                known = _known(self._distro).fielddefs
                if name in known:
                    types[name] = known[name]
                    wanted += _references(known[name])


def _references(entry: Any) -> list[str]:
    """Return the types of a definition's fields that are messages themselves."""
    from rosbags.interfaces import Nodetype

    found = []
    for _, (node, detail) in entry[1]:
        if node in (Nodetype.ARRAY, Nodetype.SEQUENCE):
            node, detail = detail[0]
        if node == Nodetype.NAME:
            found.append(detail)
    return found


#: Types by definition, and those of a ROS by its name; both are read once a process.
_defined: dict[Any, Any] = {}
_stores: dict[str, Any] = {}


def _known(distro: str) -> Any:
    """Return the standard types of a ROS and those of this package."""
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    name = f"ROS2_{(distro or 'humble').upper()}"
    store = _stores.get(name)
    if store is None:
        store = get_typestore(getattr(Stores, name, Stores.LATEST))
        types: dict[str, Any] = {}
        for msgtype, text in own_definitions().items():
            types.update(get_types_from_msg(text, msgtype))
        store.register(types)
        _stores[name] = store
    return store
