"""A hook of mkdocs: links to files of the repository lead to copies in the site.

Pages link to tests and examples by their paths in the repository, such as `../tests/x.py`. mkdocs
knows the files in `docs/` only, so the site gets what pages link to in its folder `sources`.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(\]\(|\]: )(\.\./[^)\s#]+)")


def on_files(files, config):
    """Adds the linked files to the site; a folder is represented by its README."""
    for page in list(files.documentation_pages()):
        for _, target in LINK.findall(Path(page.abs_src_path).read_text(encoding="utf-8")):
            source = _source(target)
            name = _name(source)
            if name not in files.src_uris:
                files.append(File.generated(config, name, content=source.read_bytes()))
    return files


def on_page_markdown(markdown, page, config, files):
    """Turns the links into links to the copies."""
    return LINK.sub(lambda match: match.group(1) + _name(_source(match.group(2))), markdown)


def _source(target):
    path = ROOT / posixpath.normpath(posixpath.join("docs", target))
    return path / "README.md" if path.is_dir() else path


def _name(source):
    """The copy's name; `.txt` lets browsers show it, and keeps mkdocs from making it a page."""
    return f"sources/{source.relative_to(ROOT)}.txt"
