"""Reads of a shared library what the dynamic loader reads, from bytes that nobody vouches for."""

from __future__ import annotations

import platform
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

SYMBOLS_LIMIT = 200_000
"""Symbols or relocations of one table; a torch extension has some thousands."""

NAMES_LIMIT = 16 << 20
"""Bytes of all names that are read: those of a file can share their ends, and so outgrow it."""

_HEADER = struct.Struct("<4sBB10xHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_ENTRY = struct.Struct("<QQ")
_GNU_HASH = struct.Struct("<IIII")
_PAIR = struct.Struct("<II")
_WORD = struct.Struct("<I")
_MACHINES = {"x86_64": 62, "aarch64": 183}  # EM_ of elf.h
_IRELATIVE = {62: 37, 183: 1032}  # R_ of elf.h
_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_SYMBOL_TABLE = 2  # SHT_SYMTAB of elf.h

NEEDED, PLTRELSZ, HASH, STRTAB, SYMTAB, RELA, RELASZ = 1, 2, 4, 5, 6, 7, 8
STRSZ, SYMENT, RPATH, REL, TEXTREL, JMPREL, INIT_ARRAY, INIT_ARRAYSZ = (
    10,
    11,
    15,
    17,
    22,
    23,
    25,
    27,
)
RUNPATH, FLAGS, PREINIT_ARRAY, GNU_HASH = 29, 30, 32, 0x6FFFFEF5
AUDITORS = {0x6FFFFEFC, 0x6FFFFEFB, 0x7FFFFFFD, 0x7FFFFFFF}  # (dep)audit, auxiliary, filter
FLAG_TEXTREL = 4  # DF_TEXTREL of elf.h
IFUNC = 10  # STT_GNU_IFUNC of elf.h


class NotALibrary(Exception):
    """The bytes are no library that this host's loader would take; the message says why."""


@dataclass(frozen=True)
class Segment:
    """A program header: `flags` has 1 for execute, 2 for write, 4 for read."""

    kind: int
    flags: int
    offset: int
    address: int
    size: int


@dataclass(frozen=True)
class Symbol:
    """A symbol; `defined` unless another library must have it."""

    name: str
    kind: int
    binding: int
    section: int
    address: int

    @property
    def defined(self) -> bool:
        """Whether this library itself has it."""
        return self.section != 0


class Library:
    """A shared library in memory. Every read is bounded; whatever does not fit is `NotALibrary`.

    The tables are found as the loader finds them, by program headers and the dynamic section:
    section headers may say something else. Only names of local symbols come from those.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self._named = 0  # bytes of names so far
        header = self._unpack(_HEADER, 0)
        if header[0] != b"\x7fELF" or header[1:3] != (2, 1):
            raise NotALibrary("it is not a little-endian 64-bit ELF file")
        kind, self.machine = header[3], header[4]
        if kind != 3 or self.machine != _MACHINES.get(platform.machine()):
            raise NotALibrary(f"it is of type {kind} for machine {self.machine}")
        offset, self._section_offset = header[7], header[8]
        count, self._section_count = header[12], header[14]
        if header[11] != _SEGMENT.size:
            raise NotALibrary("its program headers have an unexpected size")
        self.segments = [self._segment(offset + i * _SEGMENT.size) for i in range(count)]
        self._loads = [segment for segment in self.segments if segment.kind == _LOAD]
        self.dynamic = list(self._dynamic())

    def _unpack(self, layout: struct.Struct, offset: int) -> tuple[Any, ...]:
        if not 0 <= offset <= len(self.content) - layout.size:
            raise NotALibrary("a table lies outside of it")
        return layout.unpack_from(self.content, offset)

    def _segment(self, offset: int) -> Segment:
        kind, flags, place, address, _, size, _, _ = self._unpack(_SEGMENT, offset)
        return Segment(kind, flags, place, address, size)

    def _dynamic(self) -> Iterator[tuple[int, int]]:
        segment = next((s for s in self.segments if s.kind == _DYNAMIC), None)
        if segment is None:
            raise NotALibrary("it has no dynamic section")
        # The loader reads it where it is mapped, whatever the program header's offset says.
        start = self.offset(segment.address)
        for i in range(min(segment.size // _ENTRY.size, 4096)):
            tag, value = self._unpack(_ENTRY, start + i * _ENTRY.size)
            if tag == 0:
                return
            yield tag, value

    def offset(self, address: int) -> int:
        """Where in the file an address is."""
        for load in self._loads:
            if load.address <= address < load.address + load.size:
                return address - load.address + load.offset
        raise NotALibrary("an address is in no segment")

    def entry(self, tag: int, default: int | None = None) -> int:
        """The last entry of a tag, as the loader takes it."""
        found = [value for name, value in self.dynamic if name == tag]
        if found:
            return found[-1]
        if default is None:
            raise NotALibrary(f"it has no dynamic entry {tag:#x}")
        return default

    def names(self, tag: int) -> list[str]:
        """The strings of all entries of a tag, such as NEEDED."""
        return [self._string(value) for name, value in self.dynamic if name == tag]

    @cached_property
    def _strings(self) -> int:
        """Where the strings of symbols are: to look it up takes long if there are many segments."""
        return self.offset(self.entry(STRTAB))

    def _string(self, index: int) -> str:
        return self._text(self._strings + index)

    def _text(self, offset: int) -> str:
        end = self.content.find(b"\0", offset, offset + 65536) if offset >= 0 else -1
        if end < 0:
            raise NotALibrary("a name is not terminated")
        self._named += end - offset
        if self._named > NAMES_LIMIT:
            raise NotALibrary("its names are too long")
        return self.content[offset:end].decode("utf-8", "backslashreplace")

    @property
    def executable_stack(self) -> bool:
        """Whether loading it makes stacks executable."""
        stacks = [segment for segment in self.segments if segment.kind == _STACK]
        return not stacks or any(segment.flags & 1 for segment in stacks)

    @property
    def writable_code(self) -> bool:
        """Whether a segment is both written and executed."""
        return any(segment.flags & 3 == 3 for segment in self._loads)

    @cached_property
    def relocations(self) -> list[tuple[int, int, int, int]]:
        """Address, type, index of the symbol, and addend of every relocation."""
        if any(tag == REL for tag, _ in self.dynamic):
            raise NotALibrary("it has relocations of a kind that this machine does not use")
        found: list[tuple[int, int, int, int]] = []
        for table, size in ((RELA, RELASZ), (JMPREL, PLTRELSZ)):
            count = self.entry(size, 0) // _RELOCATION.size
            if count == 0:
                continue
            if count > SYMBOLS_LIMIT:
                raise NotALibrary(f"it has {count} relocations")
            start = self.offset(self.entry(table))
            for i in range(count):
                place, info, addend = self._unpack(_RELOCATION, start + i * _RELOCATION.size)
                found.append((place, info & 0xFFFFFFFF, info >> 32, addend))
        return found

    @cached_property
    def symbols(self) -> list[Symbol]:
        """All dynamic symbols that a relocation or the hash table can reach."""
        if self.entry(SYMENT) != _SYMBOL.size:
            raise NotALibrary("its symbols have an unexpected size")
        last = max((symbol for _, _, symbol, _ in self.relocations), default=0)
        count = max(last + 1, self._hashed())
        if count > SYMBOLS_LIMIT:
            raise NotALibrary(f"it has {count} symbols")
        start = self.offset(self.entry(SYMTAB))
        return [self._symbol(start + i * _SYMBOL.size, self._string) for i in range(1, count)]

    def _symbol(self, offset: int, string: Callable[[int], str]) -> Symbol:
        name, info, _, section, address, _ = self._unpack(_SYMBOL, offset)
        return Symbol(string(name), info & 15, info >> 4, section, address)

    def _hashed(self) -> int:
        """Number of symbols that the hash tables know."""
        count = 0
        if table := self.entry(HASH, 0):
            count = self._unpack(_PAIR, self.offset(table))[1]
        if table := self.entry(GNU_HASH, 0):
            count = max(count, self._gnu_hashed(self.offset(table)))
        return count

    def _gnu_hashed(self, table: int) -> int:
        header: tuple[int, ...] = self._unpack(_GNU_HASH, table)
        buckets, first, bloom, _ = header
        if buckets > SYMBOLS_LIMIT or bloom > SYMBOLS_LIMIT:
            raise NotALibrary("its hash table is too large")
        start = table + _GNU_HASH.size + 8 * bloom
        last = max((self._word(start + 4 * i) for i in range(buckets)), default=0)
        if last < first:
            return first
        chains = start + 4 * buckets
        for i in range(last, SYMBOLS_LIMIT):
            if self._word(chains + 4 * (i - first)) & 1:
                return i + 1
        raise NotALibrary("its hash table does not end")

    def _word(self, offset: int) -> int:
        return int(self._unpack(_WORD, offset)[0])

    @cached_property
    def local_names(self) -> dict[int, set[str]]:
        """Names of functions by address, from the symbol table that debuggers read."""
        found: dict[int, set[str]] = {}
        for symbol in self._local_symbols():
            if symbol.defined and symbol.name:
                found.setdefault(symbol.address, set()).add(symbol.name)
        return found

    def _local_symbols(self) -> Iterator[Symbol]:
        sections = (self._section(i) for i in range(self._section_count))
        table = next((section for section in sections if section[1] == _SYMBOL_TABLE), None)
        if table is None:
            return
        offset, size, strings = table[4], table[5], self._section(table[6])[4]
        if size // _SYMBOL.size > SYMBOLS_LIMIT:
            raise NotALibrary("it has too many local symbols")
        for i in range(size // _SYMBOL.size):
            yield self._symbol(offset + i * _SYMBOL.size, lambda index: self._text(strings + index))

    def _section(self, index: int) -> tuple[Any, ...]:
        return self._unpack(_SECTION, self._section_offset + index * _SECTION.size)

    def constructors(self) -> list[int]:
        """Addresses of the functions that loading it runs."""
        start, size = self.entry(INIT_ARRAY, 0), self.entry(INIT_ARRAYSZ, 0)
        if size // 8 > SYMBOLS_LIMIT:
            raise NotALibrary("it has too many constructors")
        places = {place: (symbol, addend) for place, _, symbol, addend in self.relocations}
        found = []
        for place in range(start, start + size // 8 * 8, 8):
            symbol, address = places.get(place, (0, 0))
            if symbol:
                address += self.symbols[symbol - 1].address
            found.append(address)
        return found

    def indirect(self) -> list[int]:
        """Addresses of the resolvers that loading it runs for functions without a symbol."""
        kind = _IRELATIVE[self.machine]
        return [addend for _, found, _, addend in self.relocations if found == kind]
