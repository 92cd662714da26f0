//! The choice of the instruction set, by the processor and by `BLOCKCELL_ISA`.

use std::ffi::OsStr;
use std::process::Command;

use blockcell_kernels::{Context, Isa};

/// `Isa::get` is decided once in a process, so each value of the variable needs its own: this test
/// binary, asked to run [`reports_the_choice`] alone. Returns the choice, and what the process wrote to stderr.
fn chosen(value: Option<&OsStr>) -> (String, String) {
    let mut command = this_program();
    command.args(["--exact", "reports_the_choice", "--nocapture"]).env_remove(Isa::VARIABLE);
    if let Some(value) = value {
        command.env(Isa::VARIABLE, value);
    }
    let output = command.output().expect("a child process");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}{errors}");
    let (_, name) = text.split_once("chosen <").expect("the child's report");
    (name.split_once('>').expect("the child's report").0.to_owned(), errors)
}

/// Run as cargo was told to run programs for another machine, if it was.
fn this_program() -> Command {
    let program = std::env::current_exe().expect("this executable");
    let runner =
        format!("CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_RUNNER", std::env::consts::ARCH.to_uppercase());
    let runner = std::env::var(runner).unwrap_or_default();
    let mut words = runner.split_whitespace();
    let Some(first) = words.next() else { return Command::new(program) };
    let mut command = Command::new(first);
    command.args(words).arg(program);
    command
}

#[test]
fn reports_the_choice() {
    assert_eq!(Isa::get(), Isa::get());
    assert_eq!(Isa::get(), Context::default().isa);
    println!("chosen <{}>", Isa::get().name());
}

#[test]
fn available_ones_are_ordered_and_distinct() {
    let available = Isa::available();
    assert_eq!(available[0].name(), "portable");
    assert!(available.is_sorted_by(|a, b| a < b), "{available:?}");
    for (n, isa) in available.iter().enumerate() {
        let avx512 = &["avx512", "avx512_vnni", "avx512_bf16"];
        let second = &["avx2", "avx2_vnni", "neon", "neon_dotprod"];
        let names = [&["portable"][..], second, avx512][n];
        assert!(names.contains(&isa.name()), "{isa:?}");
    }
}

/// Every name once, the default first. With and without what the processor has for tiles, and for pairs and int8, they are
/// other choices.
#[test]
fn choices_are_the_available_ones_and_the_models() {
    let names: Vec<_> = Isa::choices().into_iter().map(Isa::name).collect();
    assert_eq!(names[0], best());
    assert!(names.iter().all(|name| names.iter().filter(|other| other == &name).count() == 1));
    assert!(Isa::available().iter().all(|isa| names.contains(&isa.name())));
    assert_eq!(names.contains(&"avx512_bf16"), best() == "avx512_bf16");
    assert!(best() == "avx512_bf16" || !names.contains(&"avx512_amx"));
    assert!(names.ends_with(&["portable_bf16", "portable_amx"]));
    let with_pairs: Vec<_> = Isa::choices().into_iter().filter(|isa| isa.has_pairs()).collect();
    let have = |isa: &Isa| isa.name().ends_with("_bf16") || isa.name().ends_with("_amx");
    assert!(with_pairs.iter().all(have), "{with_pairs:?}");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn available_ones_are_those_of_the_processor() {
    let names: Vec<_> = Isa::available().into_iter().map(Isa::name).collect();
    let has_avx512 = names.iter().any(|name| name.starts_with("avx512"));
    assert_eq!(has_avx512, is_x86_feature_detected!("avx512bw"));
    assert_eq!(names.iter().any(|name| name.starts_with("avx2")), is_x86_feature_detected!("avx2"));
    let choices: Vec<_> = Isa::choices().into_iter().map(Isa::name).collect();
    assert_eq!(choices.contains(&"avx512_bf16"), is_x86_feature_detected!("avx512bf16"));
    assert_eq!(choices.contains(&"avx2_vnni"), is_x86_feature_detected!("avxvnni"));
}

#[test]
#[cfg(target_arch = "aarch64")]
fn available_ones_are_those_of_the_processor() {
    let choices: Vec<_> = Isa::choices().into_iter().map(Isa::name).collect();
    assert!(choices.contains(&"neon"));
    let has_dot = std::arch::is_aarch64_feature_detected!("dotprod");
    assert_eq!(choices.contains(&"neon_dotprod"), has_dot);
}

#[test]
fn default_is_the_best() {
    for unset in [None, Some(OsStr::new(""))] {
        assert_eq!(chosen(unset), (best().to_owned(), String::new()));
    }
}

#[test]
fn variable_forces_an_available_one() {
    for isa in Isa::choices() {
        let name = isa.name();
        assert_eq!(chosen(Some(OsStr::new(name))), (name.to_owned(), String::new()));
    }
}

/// One line on stderr names the value and the instruction sets that the processor has, the choice first.
#[track_caller]
fn leaves_the_best(value: &OsStr, shown: &str) {
    let (name, errors) = chosen(Some(value));
    assert_eq!(name, best(), "{value:?}");
    let names: Vec<_> = Isa::choices().into_iter().map(Isa::name).collect();
    let [best, slower @ .., bf16, amx] = &names[..] else { unreachable!("at least three") };
    let meaning = |name| if name == &"avx512_amx" { "experimental" } else { "slower" };
    let slower = slower.iter().map(|name| format!(", {name} ({})", meaning(name)));
    let slower: String = slower.collect();
    let best = format!("{best} (the best of this processor, the default)");
    let known = format!("{best}{slower}, {bf16} (for tests) and {amx} (for tests)");
    let message = format!("blockcell: BLOCKCELL_ISA={shown} is ignored. Valid values: {known}\n");
    assert_eq!(errors, message);
}

#[test]
fn unknown_values_leave_the_best_and_are_reported_once() {
    for value in ["sse", "AVX2", "avx2 ", "avx10", "portable,avx2"] {
        leaves_the_best(OsStr::new(value), value);
    }
}

#[test]
#[cfg(unix)]
fn values_that_are_no_text_leave_the_best() {
    use std::os::unix::ffi::OsStrExt;
    leaves_the_best(OsStr::from_bytes(b"avx2\xff"), "avx2\u{fffd}");
}

fn best() -> &'static str {
    Isa::available().last().expect("at least the portable one").name()
}
