"""Parts of pages that programs write: what stands between two comments."""

import re


def replaced(text, name, part):
    """A page with another part between `<!-- name: begin -->` and `<!-- name: end -->`."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    assert re.search(pattern, text, re.DOTALL), f"no {begin.strip()} on the page"
    return re.sub(pattern, lambda _: f"{begin}{part}\n{end}", text, flags=re.DOTALL)
