//! Functions for CPUs, and those for GPUs that compute the same.

use std::collections::BTreeMap;

use super::function::Function;

/// Two functions of one signature.
pub(super) struct Pair<'f> {
    pub(super) standard: &'f Function,
    pub(super) other: &'f Function,
}

/// The halves of two functions with gradients. A forward half returns the outputs of its function and what its
/// backward half takes, which takes the gradients of these outputs before that.
pub(super) struct Halves<'f> {
    pub(super) forward: &'f Function,
    pub(super) backward: &'f Function,
    pub(super) forward_by: &'f Function,
    pub(super) backward_by: &'f Function,
}

/// What TensorFlow calls the attribute of a forward half that names the other one.
const BACKWARD: &str = "backward_function_name";
const FORWARD: &str = "forward_function_name";

impl<'f> Pair<'f> {
    pub(super) fn all(functions: &'f [Function]) -> Vec<Pair<'f>> {
        let is_whole = |one: &Function| one.text(BACKWARD).or(one.text(FORWARD)).is_none();
        let same = |standard: &Function, other: &Function| {
            standard.input_types().eq(other.input_types())
                && standard.output_types().eq(other.output_types())
        };
        let pairs = matching(functions, is_whole, same);
        pairs.into_iter().map(|(standard, other)| Pair { standard, other }).collect()
    }
}

impl<'f> Halves<'f> {
    pub(super) fn all(functions: &'f [Function]) -> Vec<Halves<'f>> {
        let is_forward = |one: &Function| one.text(BACKWARD).is_some();
        let same = |one: &Function, other: &Function| one.input_types().eq(other.input_types());
        let pairs = matching(functions, is_forward, same);
        let halves = pairs.into_iter().filter_map(|(forward, forward_by)| {
            let backward = backward_of(forward, functions)?;
            let backward_by = backward_of(forward_by, functions)?;
            Some(Halves { forward, backward, forward_by, backward_by })
        });
        halves.collect()
    }

    /// Whether their types agree. Forward halves return `outputs` outputs of their functions before what they keep.
    pub(super) fn agree(&self, outputs: usize) -> Result<(), &'static str> {
        let Halves { forward, backward, forward_by, backward_by } = *self;
        let both = |forward: &Function, backward: &Function| {
            forward.outputs.len() >= outputs && forward.output_types().eq(backward.input_types())
        };
        let same = both(forward, backward)
            && both(forward_by, backward_by)
            && forward.output_types().take(outputs).eq(forward_by.output_types().take(outputs))
            && backward.output_types().eq(backward_by.output_types());
        if same { Ok(()) } else { Err("its other implementation has another signature") }
    }
}

/// Functions of a kind for CPUs, each with the only one of that kind for GPUs that implements the same interface
/// and matches.
fn matching<'f>(
    functions: &'f [Function],
    is_of_a_kind: impl Fn(&Function) -> bool,
    matches: impl Fn(&Function, &Function) -> bool,
) -> Vec<(&'f Function, &'f Function)> {
    let mut for_gpus: BTreeMap<&str, Vec<&Function>> = BTreeMap::new();
    let is_for = |function: &&Function, device| {
        function.text("api_preferred_device") == Some(device) && is_of_a_kind(function)
    };
    for function in functions.iter().filter(|one| is_for(one, "GPU")) {
        if let Some(interface) = function.text("api_implements") {
            for_gpus.entry(interface).or_default().push(function);
        }
    }
    let pair = |standard: &'f Function| {
        let others = for_gpus.get(standard.text("api_implements")?)?;
        let mut same = others.iter().copied().filter(|other| matches(standard, other));
        let other = same.next().filter(|_| same.next().is_none())?;
        Some((standard, other))
    };
    functions.iter().filter(|one| is_for(one, "CPU")).filter_map(pair).collect()
}

/// The backward half of a forward half: the one that it names, or else the only one. Where functions came from a file,
/// they have new names, and the attributes the old ones.
fn backward_of<'f>(forward: &Function, functions: &'f [Function]) -> Option<&'f Function> {
    let key = |one: &Function| {
        ["api_implements", "api_preferred_device"].map(|name| one.text(name).map(str::to_owned))
    };
    let wanted = key(forward);
    let fits = |one: &&Function| {
        one.text(FORWARD).is_some()
            && key(one) == wanted
            && one.input_types().eq(forward.output_types())
    };
    let all: Vec<_> = functions.iter().filter(fits).collect();
    let named = all.iter().find(|one| Some(&one.name[..]) == forward.text(BACKWARD));
    named.or_else(|| all.first().filter(|_| all.len() == 1)).copied()
}
