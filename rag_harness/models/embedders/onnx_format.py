"""ONNX files, written and read without the package ``onnx``, which has 31 MB: the few fields that a BERT needs.

A file is a message of Protocol Buffers (https://protobuf.dev/programming-guides/encoding/): fields one after another,
each a number, a kind and a value. The numbers of fields, types and attributes are those of
https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

_TYPES = {1: "<f4", 3: "<i1", 6: "<i4", 7: "<i8", 9: "?"}
_TYPE_OF = {np.dtype(code): number for number, code in _TYPES.items()}
_FLOAT, _INT32 = 1, 6
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT = 1, 2
_IR_VERSION = 9

Value = int | float | str | bytes


class ReadGraph(NamedTuple):
    """What a file says of its graph.

    Attributes:
        arrays: constants by name.
        nodes: of each node its operation and the names that it reads, in their order.
    """

    arrays: dict[str, npt.NDArray[Any]]
    nodes: list[tuple[str, list[str]]]


def node(kind: str, read: Sequence[str], made: Sequence[str], domain: str, about: Mapping[str, float]) -> bytes:
    """Return a node: the operation ``kind`` of ``domain``, with numbers as its attributes."""
    names = [*((1, name) for name in read), *((2, name) for name in made)]
    return _message(*names, (4, kind), *((5, _attribute(*each)) for each in sorted(about.items())), (7, domain))


def constant(name: str, array: npt.NDArray[Any]) -> bytes:
    """Return a tensor of 32-bit floats or of integers of 8, 32 or 64 bits."""
    sizes = [(1, size) for size in array.shape]
    return _message(*sizes, (2, _TYPE_OF[array.dtype]), (8, name), (9, np.ascontiguousarray(array).tobytes()))


def input_of(name: str, sizes: Sequence[str]) -> bytes:
    """Return an input of 32-bit integers, whose ``sizes`` are known when it is read."""
    return _described(name, _INT32, sizes)


def output_of(name: str, sizes: Sequence[str]) -> bytes:
    """Return an output of 32-bit floats."""
    return _described(name, _FLOAT, sizes)


def model(
    nodes: Sequence[bytes],
    constants: Sequence[bytes],
    inputs: Sequence[bytes],
    outputs: Sequence[bytes],
    versions: Mapping[str, int],
) -> bytes:
    """Return a model of one graph; ``versions`` are those of the operations, by domain."""
    parts = ((1, nodes), (5, constants), (11, inputs), (12, outputs))
    graph = _message((2, "bert"), *((number, each) for number, some in parts for each in some))
    domains = [(8, _message((1, domain), (2, version))) for domain, version in versions.items()]
    return _message((1, _IR_VERSION), (7, graph), *domains)


def read_graph(file: bytes) -> ReadGraph:
    """Return the graph of a model whose tensors are in the file, each as raw bytes."""
    graph = next(value for number, value in _fields(memoryview(file)) if number == 7)
    nodes, arrays = [], {}
    for number, value in _fields(graph):
        if number == 1:
            inside = list(_fields(value))
            read = [str(name, "utf-8") for field, name in inside if field == 1]
            nodes.append((next(str(kind, "utf-8") for field, kind in inside if field == 4), read))
        elif number == 5:
            name, array = _array(value)
            arrays[name] = array
    return ReadGraph(arrays, nodes)


def _array(tensor: memoryview) -> tuple[str, npt.NDArray[Any]]:
    fields = list(_fields(tensor))
    sizes, one = [value for number, value in fields if number == 1], dict(fields)
    return str(one[8], "utf-8"), np.frombuffer(one[9], _TYPES[one[2]]).reshape(sizes)


def _attribute(name: str, value: float) -> bytes:
    is_whole = isinstance(value, int)
    said = (3, value) if is_whole else (2, value)
    return _message((1, name), said, (20, _ATTRIBUTE_INT if is_whole else _ATTRIBUTE_FLOAT))


def _described(name: str, kind: int, sizes: Sequence[str]) -> bytes:
    shape = _message(*((1, _message((2, size))) for size in sizes))
    return _message((1, name), (2, _message((1, _message((1, kind), (2, shape))))))


def _message(*fields: tuple[int, Value]) -> bytes:
    return b"".join(part for number, value in fields for part in _field(number, value))


def _field(number: int, value: Value) -> tuple[bytes, ...]:
    if isinstance(value, int):
        return _varint(number << 3), _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 5), struct.pack("<f", value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2), _varint(len(content)), content


def _varint(number: int) -> bytes:
    """Return a number in sevens of bits, the lowest first; the eighth bit says that another follows."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(message):
        tag, at = _number(message, at)
        kind = tag & 7
        if kind == 0:
            value, at = _number(message, at)
            yield tag >> 3, value
            continue
        size, at = _number(message, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
        yield tag >> 3, message[at : at + size]
        at += size


def _number(message: memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
