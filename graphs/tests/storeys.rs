//! Modules lie in storeys: a file imports from its own storey and from those below, and no two files import each
//! other, directly or through others. A re-export is no import: who takes a name through one imports from where the
//! name is defined. A file is a part of the modules around it, so it may import from these.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A crate: where its sources are, and its modules from the lowest storey to the highest. `lib.rs` is above all.
struct Crate {
    sources: &'static str,
    storeys: &'static [&'static [&'static str]],
    /// Modules whose names all may take.
    hatches: &'static [&'static str],
}

const CRATES: [Crate; 2] = [
    Crate {
        sources: "src",
        storeys: &[&["graph"], &["reading"], &["facts"], &["rewrites"]],
        hatches: &[],
    },
    Crate {
        sources: "../kernels/src",
        storeys: &[
            &["simd", "memory", "error", "switch"],
            &["ops", "shapes", "precision"],
            &["tuning"],
            &["element", "executor", "workspace"],
            &["activation", "tiles", "constants"],
            &["context"],
            &["elementwise"],
            &["gemm"],
            &["recurrence"],
            &["lstm", "gru", "rnn", "mat_mul"],
            &["block_lstm", "block_gru"],
            &["unfused", "cudnn_rnn"],
            &["instances", "bench_internals"],
        ],
        // The instances for element types, which refer to all computations.
        hatches: &["instances"],
    },
];

#[test]
fn arrows_point_down() {
    for Crate { sources, storeys, hatches } in CRATES {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(sources);
        let mut files = BTreeMap::new();
        read(&root, &mut Vec::new(), &mut files);
        let faults = faults(&Modules::of(files, hatches), storeys);
        assert!(faults.is_empty(), "in {sources}:\n{}", faults.join("\n"));
    }
}

#[test]
fn an_arrow_that_points_up_is_found() {
    let lower = "use crate::upper::{Thing, part};";
    assert_eq!(
        faults_in(&[("lower", lower), ("upper", "")]),
        ["lower imports from upper, above it"]
    );
    assert_eq!(faults_in(&[("lower", "fn f() { crate::upper::g() }"), ("upper", "")]).len(), 1);
    assert_eq!(faults_in(&[("lower", ""), ("upper", "use crate::lower::Thing;")]), [""; 0]);
}

#[test]
fn a_circle_is_found() {
    let circle = [("lower::a", "use super::b::f;"), ("lower::b", "use super::{c::{d, e}};")];
    let closed = ("lower::c", "use crate::lower::a;");
    let files = [&circle[..], &[("lower", "mod a;"), closed, ("upper", "")]].concat();
    assert_eq!(faults_in(&files), ["a circle: lower::a, lower::b, lower::c"]);
}

#[test]
fn a_module_may_import_from_that_around_it() {
    let with_parent = [("lower", "mod a; use a::f;"), ("lower::a", "use super::Thing;")];
    assert_eq!(faults_in(&[&with_parent[..], &[("upper", "")]].concat()), [""; 0]);
}

#[test]
fn a_name_comes_from_where_it_is_defined() {
    let upper = "mod a; pub(crate) use a::{f, g};";
    let files =
        |lower| [("upper", upper), ("upper::a", "use crate::lower::Thing;"), ("lower", lower)];
    assert_eq!(faults_in(&files("")), [""; 0]);
    assert_eq!(
        faults_in(&files("use crate::upper::f;")),
        ["lower imports from upper::a, above it", "a circle: lower, upper::a"]
    );
}

#[test]
fn all_may_take_names_of_a_hatch() {
    let files = [("lower", "use crate::hatch::Thing;"), ("hatch", "use crate::lower::f;")];
    assert_eq!(faults_in(&[&files[..], &[("upper", "")]].concat()), [""; 0]);
}

#[test]
fn what_only_tests_import_does_not_count() {
    let lower = "// use crate::upper::a;\n#[cfg(test)]\nmod tests { use crate::upper::b; }\nconst A: &str = \"crate::upper\";";
    assert_eq!(faults_in(&[("lower", lower), ("upper", "")]), [""; 0]);
}

#[test]
fn a_module_without_a_storey_is_found() {
    assert_eq!(faults_in(&[("lower", ""), ("upper", ""), ("other", "")]), ["other has no storey"]);
}

fn faults_in(files: &[(&str, &str)]) -> Vec<String> {
    let own = files.iter().map(|&(module, text)| (path(module), text.to_owned()));
    faults(&Modules::of(own.collect(), &["hatch"]), &[&["lower"], &["upper", "hatch"]])
}

fn path(module: &str) -> Vec<String> {
    module.split("::").map(str::to_owned).collect()
}

/// Reads the files below a folder, by their modules. That of `lib.rs` has an empty path.
fn read(folder: &Path, module: &mut Vec<String>, files: &mut BTreeMap<Vec<String>, String>) {
    for entry in fs::read_dir(folder).expect("the sources are there") {
        let path = entry.expect("the folder can be read").path();
        let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        if path.is_dir() {
            module.push(name);
            read(&path, module, files);
            module.pop();
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let is_own = matches!(&name[..], "mod" | "lib");
            let own = module.iter().cloned().chain(Some(name).filter(|_| !is_own)).collect();
            files.insert(own, fs::read_to_string(&path).expect("the file can be read"));
        }
    }
}

/// The modules that are files, and those that each imports from.
struct Modules {
    imports: BTreeMap<Vec<String>, BTreeSet<Vec<String>>>,
}

/// The modules that are files, and what the names are that they re-export.
struct Names {
    modules: BTreeSet<Vec<String>>,
    exports: BTreeMap<(Vec<String>, String), Vec<String>>,
}

impl Modules {
    fn of(files: BTreeMap<Vec<String>, String>, hatches: &[&str]) -> Modules {
        let mut files: BTreeMap<_, _> =
            files.into_iter().map(|(module, text)| (module, without_comments(&text))).collect();
        let of_tests: Vec<_> = files
            .iter()
            .flat_map(|(module, text)| {
                test_modules(text).into_iter().map(|name| [&module[..], &[name]].concat())
            })
            .collect();
        files.retain(|module, _| !of_tests.iter().any(|tests| module.starts_with(tests)));
        let mut names =
            Names { modules: files.keys().cloned().collect(), exports: BTreeMap::new() };
        let mut own = BTreeMap::new();
        for (module, text) in files {
            let (exports, rest) = without_exports(&without_tests(&text));
            for path in exports.iter().flat_map(|tree| paths(tree)) {
                let name = path.last().expect("a path has words").clone();
                names.exports.insert((module.clone(), name), path);
            }
            own.insert(module, rest);
        }
        let imports = own.into_iter().map(|(module, text)| {
            let found = paths(&text).into_iter().filter_map(|path| names.target(&module, &path));
            let is_hatch = |target: &Vec<String>| {
                target.first().is_some_and(|first| hatches.contains(&&first[..]))
            };
            let found = found.filter(|target| *target != module && !is_hatch(target)).collect();
            (module, found)
        });
        Modules { imports: imports.collect() }
    }

    /// The modules that a module imports from, directly or through others.
    fn reached<'m>(&'m self, module: &'m Vec<String>) -> BTreeSet<&'m Vec<String>> {
        let mut reached = BTreeSet::new();
        let mut open = vec![module];
        while let Some(from) = open.pop() {
            let others = self.imports[from].iter().filter(|other| !from.starts_with(other));
            open.extend(others.filter(|other| reached.insert(*other)));
        }
        reached
    }
}

/// What is wrong with some modules.
fn faults(modules: &Modules, storeys: &[&[&str]]) -> Vec<String> {
    let mut faults = Vec::new();
    let name = |module: &[String]| match module {
        [] => "lib".to_owned(),
        _ => module.join("::"),
    };
    let storey = |module: &[String]| match module.first() {
        None => Some(storeys.len()),
        Some(first) => storeys.iter().position(|storey| storey.contains(&&first[..])),
    };
    for (module, imports) in &modules.imports {
        let Some(own) = storey(module) else {
            faults.push(format!("{} has no storey", name(module)));
            continue;
        };
        for import in imports {
            if storey(import).is_some_and(|other| other > own) {
                faults.push(format!("{} imports from {}, above it", name(module), name(import)));
            }
        }
    }
    let reached: BTreeMap<_, _> =
        modules.imports.keys().map(|module| (module, modules.reached(module))).collect();
    let mut circles = BTreeSet::new();
    for (module, all) in reached.iter().filter(|(module, all)| all.contains(*module)) {
        let circle = all.iter().filter(|other| reached[**other].contains(module));
        circles.insert(circle.map(|other| name(other)).collect::<Vec<_>>().join(", "));
    }
    faults.extend(circles.into_iter().map(|circle| format!("a circle: {circle}")));
    faults
}

impl Names {
    /// The module that defines what a path names, if it is one of the crate.
    fn target(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let (mut base, mut rest) = (module.to_vec(), path);
        match &path.first()?[..] {
            "crate" => (base, rest) = (Vec::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                let up = path.iter().take_while(|part| *part == "super").count();
                base.truncate(base.len().checked_sub(up)?);
                rest = &path[up..];
            }
            first => self.modules.contains(&[module, &[first.to_owned()]].concat()).then_some(())?,
        }
        while let Some((part, others)) = rest.split_first() {
            let inner = [&base[..], std::slice::from_ref(part)].concat();
            if !self.modules.contains(&inner) {
                let export = self.exports.get(&(base.clone(), part.clone()));
                return export.map_or(Some(base.clone()), |export| self.target(&base, export));
            }
            (base, rest) = (inner, others);
        }
        Some(base)
    }
}

/// The re-exports of a text, and what else it has.
fn without_exports(text: &str) -> (Vec<String>, String) {
    let (mut exports, mut rest) = (Vec::new(), String::new());
    for statement in text.split_inclusive(';') {
        let export = statement.rfind("pub").map(|at| statement.split_at(at));
        match export.and_then(|(before, export)| Some((before, export.split_once(" use ")?))) {
            Some((before, (visibility, tree))) if !visibility.contains('{') => {
                exports.push(tree.to_owned());
                rest.push_str(before);
            }
            _ => rest.push_str(statement),
        }
    }
    (exports, rest)
}

/// The paths that a text names, with their braces written out.
fn paths(text: &str) -> Vec<Vec<String>> {
    let (tokens, mut found, mut place) = (tokens(text), Vec::new(), 0);
    while place < tokens.len() {
        let is_path = is_word(tokens[place]) && tokens.get(place + 1) == Some(&"::");
        place = if is_path { tree(&tokens, place, &[], &mut found) } else { place + 1 };
    }
    found
}

/// Reads a path, or several in braces, and returns the place after them.
fn tree(
    tokens: &[&str],
    mut place: usize,
    prefix: &[String],
    found: &mut Vec<Vec<String>>,
) -> usize {
    let mut path = prefix.to_vec();
    while tokens.get(place).is_some_and(|token| is_word(token)) {
        path.push(tokens[place].to_owned());
        place += 1;
        if tokens.get(place) != Some(&"::") {
            break;
        }
        place += 1;
    }
    if tokens.get(place) == Some(&"{") && tokens.get(place.wrapping_sub(1)) == Some(&"::") {
        place += 1;
        while tokens.get(place).is_some_and(|token| *token != "}") {
            let is_tree = is_word(tokens[place]) || tokens[place] == "{";
            place = if is_tree { tree(tokens, place, &path, found) } else { place + 1 };
        }
        return place + 1;
    }
    found.push(path);
    place
}

/// Words, `::`, and other characters.
fn tokens(text: &str) -> Vec<&str> {
    let (mut tokens, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len());
        let length = match word {
            0 if rest.starts_with("::") => 2,
            0 => first.len_utf8(),
            word => word,
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

fn is_word(token: &str) -> bool {
    token.starts_with(is_of_word)
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A text without comments and strings. In this project no string has a quote in it where that matters.
fn without_comments(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.replace("'\"'", "' '").replace("\\\"", "");
        let mut parts = line.split('"');
        let code: Vec<_> = parts.by_ref().step_by(2).collect();
        code.join("\"\"").split("//").next().unwrap_or_default().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The names of modules in other files that are there for tests only.
fn test_modules(text: &str) -> Vec<String> {
    let after = text.split("#[cfg(test)]").skip(1);
    let names = after.filter_map(|after| after.trim_start().strip_prefix("mod ")?.split_once(';'));
    let names = names.map(|(name, _)| name.trim());
    names.filter(|name| name.chars().all(is_of_word)).map(str::to_owned).collect()
}

/// A text without the modules of tests, which end at a brace in the first column, or with the text.
fn without_tests(text: &str) -> String {
    let mut parts = text.split("#[cfg(test)]");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |own, part| {
        let head = part.split(['{', ';']).next().unwrap_or_default();
        let is_inline =
            head.trim_start().starts_with("mod ") && part[head.len()..].starts_with('{');
        let rest =
            if is_inline { part.split_once("\n}").map_or("", |(_, rest)| rest) } else { part };
        own + rest
    })
}
