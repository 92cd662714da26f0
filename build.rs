//! Compiles the C++ shim for the TensorFlow in the Python that `BLOCKCELL_PYTHON` names.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const PYTHON: &str = "BLOCKCELL_PYTHON";
/// Makes warnings errors: for CI and lint, not for users, whose compilers may know more warnings.
const WERROR: &str = "BLOCKCELL_WERROR";
/// Names a file with what [`ASK`] would print, where somebody has asked already.
const FLAGS: &str = "BLOCKCELL_FLAGS";
const SOURCES: &[&str] = &[
    "cpp/attributes.cc",
    "cpp/constants.cc",
    "cpp/implementations.cc",
    "cpp/kernels.cc",
    "cpp/label_pass.cc",
    "cpp/library.cc",
    "cpp/own_ops.cc",
    "cpp/passes.cc",
    "cpp/pool.cc",
    "cpp/processors.cc",
    "cpp/rewrites.cc",
    "cpp/tensors.cc",
    "cpp/variables.cc",
];
const HEADERS: &[&str] = &[
    "cpp/attributes.h",
    "cpp/hidden.h",
    "cpp/library.h",
    "cpp/passes.h",
    "cpp/pool.h",
    "cpp/processors.h",
    "cpp/tensors.h",
];
/// Lets the library run on systems older than the one that it is built on.
const OLD_SYMBOLS: &str = "link/old_symbols.c";

/// Prints the version and flags of the TensorFlow in the Python that runs it, after a marker line,
/// because importing TensorFlow may print.
const ASK: &str = "scripts/tensorflow_flags.py";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Err(reason) = build() {
        println!("cargo::error={reason}");
    }
}

struct TensorFlow {
    version: String,
    compile_flags: Vec<String>,
    link_flags: Vec<String>,
}

fn build() -> Result<(), String> {
    for file in SOURCES.iter().chain(HEADERS).chain([&OLD_SYMBOLS]) {
        println!("cargo::rerun-if-changed={file}");
    }
    for variable in [PYTHON, FLAGS, WERROR] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    println!("cargo::rerun-if-changed={ASK}");
    let tensorflow = match variable(FLAGS) {
        Some(file) => TensorFlow::read(&file)?,
        None => TensorFlow::ask()?,
    };
    tensorflow.check_version()?;
    tensorflow.compile()?;
    tensorflow.link();
    println!("cargo::rustc-env=BLOCKCELL_TENSORFLOW={}", tensorflow.version);
    Ok(())
}

/// An environment variable by the rule of the library's own switches: an empty one counts as not set.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Writes a file that includes all sources. TensorFlow's headers take most of the time of a compilation,
/// and are read once in this way.
fn unit_of(sources: &[&str], folder: &Path) -> Result<PathBuf, String> {
    let file = folder.join("shim.cc");
    let text: String = sources.iter().map(|source| format!("#include \"{source}\"\n")).collect();
    std::fs::write(&file, text).map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    Ok(file)
}

impl TensorFlow {
    fn ask() -> Result<Self, String> {
        let python = variable(PYTHON).unwrap_or_else(|| "python3".to_owned());
        let output = Command::new(&python)
            .args(["-W", "ignore", ASK])
            .env("TF_CPP_MIN_LOG_LEVEL", "3")
            .output()
            .map_err(|e| {
                format!("cannot run {python} ({e}): set {PYTHON} to a Python that has TensorFlow")
            })?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            let last = complaint.lines().last().unwrap_or("no message").to_owned();
            return Err(format!(
                "{python} cannot import TensorFlow ({last}): set {PYTHON} to a Python that has it, or run make"
            ));
        }
        let answer = String::from_utf8_lossy(&output.stdout);
        let answer = answer.split_once("blockcell\n").map_or("", |(_, answer)| answer);
        Self::parse(answer).ok_or_else(|| {
            format!(
                "{python} gave no TensorFlow flags: set {PYTHON} to a Python that has TensorFlow"
            )
        })
    }

    fn read(file: &str) -> Result<Self, String> {
        println!("cargo::rerun-if-changed={file}");
        let answer = std::fs::read_to_string(file)
            .map_err(|e| format!("cannot read {file}, which {FLAGS} names: {e}"))?;
        Self::parse(&answer).ok_or_else(|| format!("{file} does not hold TensorFlow's flags"))
    }

    /// Takes the version from the first line, then flags of the compiler, `link`, and of the linker.
    fn parse(answer: &str) -> Option<Self> {
        let mut lines = answer.lines();
        let version = lines.next()?.to_owned();
        let lines: Vec<_> = lines.map(str::to_owned).collect();
        let (compile, link) = lines.split_at(lines.iter().position(|line| line == "link")?);
        Some(TensorFlow {
            version,
            compile_flags: compile.to_vec(),
            link_flags: link[1..].to_vec(),
        })
    }

    /// Releases whose headers and kernel registry the shim was written for: 1.15, 2.4 to 2.21.
    fn check_version(&self) -> Result<(), String> {
        let mut numbers = self.version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        match (numbers.next(), numbers.next()) {
            (Some(1), Some(15)) | (Some(2), Some(4..=21)) => Ok(()),
            _ => Err(format!(
                "TensorFlow {} is not supported: install 1.15, or 2.4 to 2.21, in the Python of {PYTHON}",
                self.version
            )),
        }
    }

    fn compile(&self) -> Result<(), String> {
        let warnings_are_errors = Self::warnings_are_errors();
        let mut bridge = cxx_build::bridges(["src/bridge.rs", "src/functions.rs", "src/graphs.rs"]);
        self.set_flags(&mut bridge, warnings_are_errors);
        bridge.flag("-include").flag("cpp/hidden.h");
        let mut shim = cc::Build::new();
        self.set_flags(&mut shim, warnings_are_errors);
        let out = PathBuf::from(env::var("OUT_DIR").unwrap_or_default());
        shim.cpp(true).file(unit_of(SOURCES, &out)?);
        // Meant for headers, which the files of the unit are not.
        shim.flag_if_supported("-Wno-subobject-linkage");
        // Where cxx_build, called first, has put the headers it generated.
        shim.include(out.join("cxxbridge").join("include"));
        // Nothing refers to the static objects that register kernels: keep them all the same.
        shim.link_lib_modifier("+whole-archive");
        let mut old_symbols = cc::Build::new();
        old_symbols.file(OLD_SYMBOLS).warnings(true).extra_warnings(true);
        old_symbols.warnings_into_errors(warnings_are_errors);
        // An exception passes through.
        old_symbols.flag("-fvisibility=hidden").flag("-fexceptions");
        // Whatever asks for its names, and wherever on the linker's command line.
        old_symbols.link_lib_modifier("+whole-archive");
        for (build, name) in [
            (shim, "blockcell_shim"),
            (bridge, "blockcell_bridge"),
            (old_symbols, "blockcell_old_symbols"),
        ] {
            build.try_compile(name).map_err(|e| {
                let reason = e.to_string().replace('\n', " ");
                format!("cannot compile the C++ shim (is g++ installed?): {reason}")
            })?;
        }
        Ok(())
    }

    fn set_flags(&self, build: &mut cc::Build, warnings_are_errors: bool) {
        // The shim does no arithmetic: it need not take long to compile.
        build.include(".").warnings(true).extra_warnings(true).opt_level(1);
        build.warnings_into_errors(warnings_are_errors);
        // What 1.15 and 2.21 have in common is deprecated in 2.21.
        build.flag("-Wno-deprecated-declarations");
        build.flag("-fvisibility=hidden");
        // Releases before 2.11 name no standard. Theirs is C++14, that of 2.10 is C++17, and a
        // function that takes a string_view has another name in each.
        if !self.compile_flags.iter().any(|flag| flag.contains("-std=")) {
            build.std(if self.version.starts_with("2.10.") { "c++17" } else { "c++14" });
        }
        for flag in &self.compile_flags {
            match flag.strip_prefix("-I") {
                // Not ours to lint: as system headers they give no warnings.
                // Nor to be named by their folder in what they say.
                Some(path) => build
                    .flag("-isystem")
                    .flag(path)
                    .flag_if_supported(format!("-ffile-prefix-map={path}=tensorflow")),
                None => build.flag(flag),
            };
        }
        // TensorFlow is built with NDEBUG, and some of its classes have other members without.
        build.define("NDEBUG", None);
        build.define("BLOCKCELL_TENSORFLOW", format!("\"{}\"", self.version).as_str());
        if self.version.starts_with("1.") {
            build.define("BLOCKCELL_TENSORFLOW_1", None);
        }
    }

    fn warnings_are_errors() -> bool {
        match variable(WERROR).as_deref() {
            Some("1") => true,
            None | Some("0") => false,
            Some(other) => {
                let known = "0 (warnings are printed, the default) and 1 (they are errors)";
                println!("cargo::warning={WERROR}={other} is ignored. The values are {known}");
                false
            }
        }
    }

    fn link(&self) {
        for flag in &self.link_flags {
            println!("cargo::rustc-cdylib-link-arg={flag}");
        }
        // What the libraries linked in would export.
        println!("cargo::rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
        // Where older systems have what newer ones have in libc, and have these libraries empty.
        for flag in [
            "-Wl,--push-state,--no-as-needed",
            "-l:libdl.so.2",
            "-l:libpthread.so.0",
            "-Wl,--pop-state",
        ] {
            println!("cargo::rustc-cdylib-link-arg={flag}");
        }
    }
}
