"""README and documentation: code blocks run, commands exist, links lead somewhere."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

import pages
from helpers import isolated
from pages import ROOT

TF1 = tf.__version__.startswith("1.")
SECONDS = 300
PAGES = pages.pages()
BLOCKS = [block for page in PAGES for block in pages.blocks(page)]
MODULES = {
    "bench.cudnn": ["bench/cudnn", "bench/comparison.py"],
    "bench.figures": ["bench/figures"],
    "bench.inference": ["bench/inference", "bench/comparison.py"],
    "bench.peers": ["bench/peers", "bench/comparison.py"],
    "bench.predict": ["bench/predict", "bench/comparison.py"],
    "blockcell": ["python/blockcell/cli"],
}
"""Where the options are of the modules that commands run by `python -m`: folders and files."""
CHECKED = ("raised by", "printed by", "printed like")
"""Marks of blocks whose text is compared with what something says."""
FOREIGN = ("apt-get", "cd", "docker", "git", "gunicorn", "mvn", "pip", "rustup", "unzip")
"""Commands of others, of which only the files that they name are checked."""


def environment():
    """As a user has it: no settings of these tests, the package on the path."""
    variables = {name: value for name, value in os.environ.items() if "BLOCKCELL" not in name}
    variables.update(TF_CPP_MIN_LOG_LEVEL="2", PYTHONPATH=str(ROOT / "python"))
    variables["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), variables["PATH"]])
    return variables


@pytest.fixture
def copy_of_root(tmp_path):
    """A folder with links to all that the repository has, where blocks may write files."""
    for entry in ROOT.iterdir():
        (tmp_path / entry.name).symlink_to(entry)
    return tmp_path


def run(command, folder):
    done = subprocess.run(
        command,
        cwd=str(folder),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS,
    )
    printed = done.stdout.decode()
    assert done.returncode == 0, printed[-4000:]
    return printed


def runs(block):
    return block.language == "python" or set(CHECKED) & set(block.marks)


@pytest.mark.parametrize("page", sorted({block.page for block in BLOCKS if runs(block)}))
def test_blocks_run(page, copy_of_root):
    theirs = environment()
    changes = {name: theirs.get(name) for name in {*os.environ, *theirs}}
    code, printed, said = isolated.run_program("pages", [page], changes, copy_of_root)
    assert code == 0, (printed + said)[-4000:]


@pytest.mark.skipif(TF1, reason="the example is for TensorFlow 2")
def test_example_for_tensorflow_2_learns(copy_of_root):
    printed = run([sys.executable, "examples/tf2/train_gru.py"], copy_of_root)
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", printed)]
    assert len(losses) == 5 and losses[-1] < 0.1 * losses[0]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.page}:{block.line}")
def test_each_block_is_of_a_kind_that_is_checked(block):
    assert block.language in ("python", "sh", "text") or block.marks.get("not run"), block
    if block.language != "text":
        assert not set(CHECKED) & set(block.marks)


def test_no_fence_is_missed():
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        fences = len(re.findall(r"^ *```", text, re.MULTILINE))
        assert fences == 2 * len(pages.blocks(page)), page


def test_all_marks_are_used():
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        count = sum(len(re.findall(rf"<!-- *{mark}:", text)) for mark in pages.MARKS)
        assert count == sum(len(block.marks) for block in pages.blocks(page)), page


def test_output_on_the_front_page_is_that_of_the_page_on_the_command_line():
    """The latter is compared with what the command prints."""
    mark = "docs/command-line.md has the same"
    front, page = pages.blocks("README.md"), pages.blocks("docs/command-line.md")
    shown = [one.code for one in front if one.marks.get("not run", "").startswith(mark)]
    tested = [one.code for one in page if "printed like" in one.marks]
    assert len(shown) == 1 and shown[0] in tested


# Commands.


def commands():
    for block in BLOCKS:
        if block.language != "sh" or "not run" in block.marks:
            continue
        for line in block.code.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            while words and re.match(r"[A-Z_0-9]+=", words[0]):
                words.pop(0)
            if words:
                yield pytest.param(words, id=f"{block.page}:{block.line}: {' '.join(words)}")


@pytest.fixture(scope="module")
def make_targets():
    printed = subprocess.run(
        ["make", "-pRrq", "help"], cwd=str(ROOT), stdout=subprocess.PIPE
    ).stdout
    return set(re.findall(r"^([a-z][\w.-]*):(?!=)", printed.decode(), re.MULTILINE))


@pytest.mark.parametrize("words", list(commands()))
def test_command_exists(words, make_targets):
    program = Path(words[0]).name
    if program == "make":
        check_make(words[1:], make_targets)
    elif program in ("python", "python3") and words[1] == "-m" and words[2] in MODULES:
        check_options(MODULES[words[2]], own_words(words[3:]) if words[3] == "run" else words[3:])
    elif program in ("python", "python3") and words[1] != "-m":
        assert (ROOT / words[1]).is_file()
        check_options([str(Path(words[1]).parent), "examples/common"], words[2:])
    elif program == "blockcell":
        check_mentioned(MODULES[program], words[1])
        check_options(MODULES[program], own_words(words[2:]) if words[1] == "run" else words[2:])
    elif program == "cargo":
        folders = ("", "kernels/", "graphs/")
        manifests = [(ROOT / folder / "Cargo.toml").read_text() for folder in folders]
        for option, value in zip(words, words[1:]):
            if option in ("--package", "--bench"):
                assert any(f'name = "{value}"' in manifest for manifest in manifests), value
            if option == "--features":
                assert any(f"\n{value} = [" in manifest for manifest in manifests), value
    else:
        assert program in FOREIGN or (program.startswith("python") and words[1] == "-m"), program
    check_files(words)


def check_make(words, targets):
    makefile = (ROOT / "Makefile").read_text()
    for word in words:
        variable, is_one, _ = word.partition("=")
        if is_one:
            assert re.search(rf"\$\({variable}\)", makefile), f"make has no variable {variable}"
        else:
            assert word in targets, f"make has no target {word}"


def check_mentioned(places, word):
    """A source at these places must have this string, or a switch such as "--on/--off" with it."""
    pattern = re.compile(rf"[\"/]{re.escape(word)}[\"/]")
    paths = [ROOT / place for place in places]
    sources = [
        file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py"))
    ]
    texts = (source.read_text(encoding="utf-8") for source in sources)
    assert any(map(pattern.search, texts)), f"{places[0]} has no {word}"


def check_options(places, words):
    """The sources at these places must have each option of a command line."""
    for word in words[: words.index("--") if "--" in words else None]:
        if word.startswith("--"):
            check_mentioned(places, word.split("=")[0])


def own_words(words):
    """The words of `blockcell run` in front of the program, whose options are its own."""
    end = (i for i, word in enumerate(words) if word.endswith(".py") or word == "-m")
    return words[: next(end, len(words))]


def check_files(words):
    """Files of the repository that are named must be there; those in build/ are made."""
    for word in words:
        if re.match(r"(bench|cpp|docs|examples|kernels|python|scripts|src|tests)/", word):
            assert (ROOT / word).exists(), f"there is no {word}"


# Names and links.


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def test_environment_variables_exist():
    sources = [ROOT / "build.rs", ROOT / "Makefile"]
    for folder, kind in (("python", "py"), ("cpp", "cc"), ("src", "rs"), ("kernels/src", "rs")):
        sources += (ROOT / folder).rglob("*." + kind)
    known = "\n".join(source.read_text(encoding="utf-8") for source in sources)
    for page in PAGES:
        for variable in set(re.findall(r"\bBLOCKCELL_[A-Z_]+\b", text_of(page))):
            assert variable in known, f"{page} names {variable}"


# The environment's switches.

SWITCH = re.compile(
    r"/// ([^\n]*)\.\npub\(crate\) static \w+: LazyLock<[^\n]*\n\s*switch\(\s*"
    r'"(\w+)",\s*&\[(.*?)\],?\s*\)\n\}\);',
    re.DOTALL,
)
"""A declaration in `src/switches.rs`: what it decides, the name, and the values."""
OTHERS = {
    "BLOCKCELL_ISA": "kernels/src/simd/mod.rs",
    "BLOCKCELL_LIBRARY": "python/blockcell/loader.py",
    "BLOCKCELL_PYTHON": "python/blockcell/building.py",
    "ONEDNN_DEFAULT_FPMATH_MODE": "src/switches.rs",
    "TF_SET_ONEDNN_FPMATH_MODE": "src/switches.rs",
    "TF_CUDNN_RESET_RND_GEN_STATE": "src/switches.rs",
}
"""Variables that are not declared there, and where they are read."""
LIBRARY = [("cpp", "*.*"), *((f"{crate}src", "*.rs") for crate in ("", "graphs/", "kernels/"))]
"""The folders and files of the library's sources."""


def variables_of_page():
    """The rows of the table in `docs/installing.md`, by the variable: values and effect."""
    section = text_of("docs/installing.md").split("## Environment variables\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*) \|$", section, re.MULTILINE)
    assert len(dict((name, row) for name, *row in rows)) == len(rows)
    return {name: row for name, *row in rows}


@pytest.mark.once
def test_page_has_each_switch_as_it_is_declared():
    source = text_of("src/switches.rs")
    declared = SWITCH.findall(source)
    assert len(declared) == source.count("LazyLock::new(") > 0
    rows = variables_of_page()
    assert set(rows) == {*OTHERS, *(name for _, name, _ in declared)}
    for decides, name, values in declared:
        known = re.findall(r'\("(\w+)",[^"]*"([^"]*)"\)', values)
        assert rows[name][0] == "; ".join(f"`{value}`: {meaning}" for value, meaning in known)
        effect = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", rows[name][1])
        assert effect.startswith(decides[0].lower() + decides[1:]), name
    for name, source in OTHERS.items():
        assert f'"{name}"' in text_of(source)
    sets = re.findall(r'=> "(\w+)"', text_of(OTHERS["BLOCKCELL_ISA"]))
    assert rows["BLOCKCELL_ISA"][0].startswith(", ".join(f"`{name}`" for name in reversed(sets)))


@pytest.mark.once
def test_environment_is_read_in_one_place():
    sources = [file for folder, kind in LIBRARY for file in (ROOT / folder).rglob(kind)]
    reads = {
        str(file.relative_to(ROOT))
        for file in sources
        if re.search(r"\benv::var|getenv", file.read_text(encoding="utf-8"))
    }
    assert reads == {"kernels/src/switch.rs", "src/switches.rs"}


# Where `unsafe` is allowed.


def crates():
    """The folders of all crates but that of a host of TensorFlow's C interface."""
    lists = re.findall(r"^(?:members|exclude) = \[(.*)\]$", text_of("Cargo.toml"), re.MULTILINE)
    named = re.findall(r'"(.*?)"', " ".join(lists))
    return [ROOT] + [ROOT / name for name in named if name != "tests/host"]


def files_with_unsafe():
    """The sources in Rust that allow it."""
    for crate in crates():
        for folder in ("src", "tests", "benches", "examples"):
            for file in (crate / folder).rglob("*.rs"):
                name = str(file.relative_to(ROOT))
                is_own = not name.startswith("tests/host/")
                if is_own and re.search(r"\ballow\([^)]*\bunsafe_code\b", text_of(name)):
                    yield name


@pytest.mark.once
@pytest.mark.parametrize("page, of_tests", [("CONTRIBUTING.md", True), ("SECURITY.md", False)])
def test_page_names_each_file_that_allows_unsafe_code(page, of_tests):
    (rule,) = re.findall(r"^\* `unsafe`(?:.|\n(?!\* |\n))*", text_of(page), re.MULTILINE)
    named = re.findall(r"`([\w/.]+\.rs)`", rule)
    allowing = [name for name in files_with_unsafe() if of_tests or "tests/" not in name]
    assert sorted(named) == sorted(allowing) != []


@pytest.mark.once
def test_crates_deny_unsafe_code():
    for crate in crates():
        manifest = (crate / "Cargo.toml").read_text(encoding="utf-8")
        denies = 'unsafe_code = "deny"' in manifest
        assert denies or "[lints]\nworkspace = true" in manifest, crate


def anchor(heading):
    """The fragment that GitHub and mkdocs give a heading."""
    words = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return re.sub(r" ", "-", words.strip())


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"^\[\w+\]: (\S+)$", text, re.M)
    for target in targets:
        if re.match(r"https?:", target):
            continue
        path, _, fragment = target.partition("#")
        file = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        assert file.exists(), f"{page} links to {target}"
        if page.startswith("docs") and file.is_dir():  # The site shows a README in its place.
            assert (file / "README.md").is_file(), f"{page} links to {target}, without README"
        if fragment and file.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert fragment in map(anchor, headings), f"{page} links to {target}"
