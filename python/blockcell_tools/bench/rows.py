"""A file of measured rows, one line of JSON each, written as they are measured."""

import contextlib
import json
from pathlib import Path
from typing import Any, Dict, List, Tuple


class RowsError(Exception):
    """Rows cannot be kept; says why."""


class ResumeError(RowsError):
    """The rows that are there were measured in another way; says how."""


def open_rows(folder, stem, about, arguments, names):
    """The file of rows of a benchmark, with those of an earlier run if they are to be kept.

    Args:
      folder: Its folder.
      stem: The first part of its name.
      about: What runs here, and where.
      arguments: Of the command line.
      names: Those that have to be the same for rows to be comparable.
    """
    how = {
        **{key: about[key] for key in ("versions", "isa")},
        "machine": {key: about["machine"][key] for key in ("cpu", "cores", "system")},
        **{name: getattr(arguments, name) for name in names},
    }
    return RowFile(folder / (stem + ".rows.jsonl"), how, arguments.resume)


class RowFile:
    """Keeps what was measured, so that an interrupted run can go on.

    The first line says how it was measured; each further one is a row: its key and its result.
    """

    def __init__(self, path: Path, how: Dict[str, Any], resume: bool):
        """Opens the file, and reads what it has.

        Args:
          path: Its path. Without `resume`, what is there is overwritten.
          how: What has to be the same for rows to be comparable.
          resume: Whether to keep the rows that are there.

        Raises:
          ResumeError: They were measured in another way.
          RowsError: The file cannot be written.
        """
        self.path = path
        self._found: List[Tuple[Any, Any]] = []
        how = json.loads(json.dumps(how))
        with self._writing():
            path.parent.mkdir(parents=True, exist_ok=True)
            goes_on = resume and path.exists()
            if goes_on:
                self._read(how)
            self._file = path.open("a" if goes_on else "w", encoding="utf-8")
        if not goes_on:
            self._write(how)

    def _read(self, how):
        text = self.path.read_text(encoding="utf-8")
        # A run that was killed may have left half a line.
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            self.path.write_text(whole, encoding="utf-8")
        first, *lines = [json.loads(line) for line in whole.splitlines()] or [how]
        other = sorted(key for key in {*first, *how} if first.get(key) != how.get(key))
        if other:
            raise ResumeError(
                f"cannot go on with {self.path}: {', '.join(other)} differ; leave out --resume to "
                "begin anew, or name another --output"
            )
        self._found = [(line["key"], line["result"]) for line in lines]

    def get(self, key):
        """The result of a row, or None if it was not measured."""
        key = json.loads(json.dumps(key))
        return next((result for known, result in self._found if known == key), None)

    def add(self, key, result):
        """Writes a row."""
        self._found.append((json.loads(json.dumps(key)), result))
        self._write({"key": key, "result": result})

    def measured(self, key, measure):
        """The result of a row: from the file if it has it, else what `measure` returns."""
        result = self.get(key)
        if result is None:
            result = measure()
            self.add(key, result)
        return result

    def _write(self, content):
        with self._writing():
            self._file.write(json.dumps(content) + "\n")
            self._file.flush()

    @contextlib.contextmanager
    def _writing(self):
        try:
            yield
        except OSError as error:
            raise RowsError(f"cannot write {self.path}: {error.strerror or error}") from error

    def close(self):
        """Closes the file."""
        with self._writing():
            self._file.close()
