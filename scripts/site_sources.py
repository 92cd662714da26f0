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
            source = _source(target, page.src_uri)
            if source is not None and _name(source) not in files.src_uris:
                files.append(File.generated(config, _name(source), content=source.read_bytes()))
    return files


def on_page_markdown(markdown, page, config, files):
    """Turns the links into links to the copies."""
    up = "../" * page.file.src_uri.count("/")

    def changed(match):
        source = _source(match.group(2), page.file.src_uri)
        return match.group(0) if source is None else match.group(1) + up + _name(source)

    return LINK.sub(changed, markdown)


def _source(target, page):
    """The file that a page links to; None if it is in `docs/`, where mkdocs knows it."""
    name = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    if name.startswith("docs/"):
        return None
    return ROOT / name / "README.md" if (ROOT / name).is_dir() else ROOT / name


def _name(source):
    """The copy's name; `.txt` lets browsers show it, and keeps mkdocs from making it a page."""
    return f"sources/{source.relative_to(ROOT)}.txt"
