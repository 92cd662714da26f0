"""The results as one self-contained HTML page: plots inside, no script, nothing to load."""

import base64
import html
from pathlib import Path

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; }
table { border-collapse: collapse; margin: 1em 0; font-size: 13px; }
th, td { border-bottom: 1px solid #ddd; padding: 2px 8px; text-align: right; white-space: nowrap; }
.text { text-align: left; }
img { max-width: 100%; }
code { white-space: pre-wrap; }
"""


def table(columns, lines, texts):
    """An HTML table whose first `texts` columns are text, and the others numbers."""

    def row(tag, cells):
        parts = []
        for number, cell in enumerate(cells):
            kind = ' class="text"' if number < texts else ""
            parts.append(f"<{tag}{kind}>{html.escape(cell)}</{tag}>")
        return f"<tr>{''.join(parts)}</tr>"

    return "\n".join(["<table>", row("th", columns), *(row("td", c) for c in lines), "</table>"])


def paragraph(text):
    """A paragraph of plain text; what is between backticks is a command."""
    pieces = html.escape(text).split("`")
    marked = [f"<code>{p}</code>" if number % 2 else p for number, p in enumerate(pieces)]
    return f"<p>{''.join(marked)}</p>"


def image(path: Path):
    """A picture, inside the page."""
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    return f'<p><img alt="{html.escape(path.stem)}" src="data:image/png;base64,{data}"></p>'


def write(path: Path, title, parts):
    """Writes a page of these parts."""
    head = f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>"
    body = "\n".join([f"<h1>{html.escape(title)}</h1>", *parts])
    text = f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n{head}\n{body}\n</html>\n'
    path.write_text(text, encoding="utf-8")
