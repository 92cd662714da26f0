//! What the operations compute that rewrites put into graphs, by their definitions in `docs/graph-ops.md`.

use blockcell_graphs::{Attribute, Node, ops};

use super::tensor::{Tensor, concat, stack};

pub(crate) fn sigmoid(tensor: &Tensor) -> Tensor {
    tensor.map(|x| 1.0 / (1.0 + (-x).exp()))
}

pub(crate) fn tanh(tensor: &Tensor) -> Tensor {
    tensor.map(f64::tanh)
}

fn rest(tensor: &Tensor) -> Tensor {
    tensor.map(|x| 1.0 - x)
}

/// `y * (1 - y)`
fn slope(tensor: &Tensor) -> Tensor {
    tensor.map(|y| y * (1.0 - y))
}

fn count(node: &Node, name: &str) -> usize {
    ints(node, name).first().map_or(0, |&count| count as usize)
}

fn ints(node: &Node, name: &str) -> Vec<i64> {
    match attribute(node, name) {
        Some(Attribute::Int(value)) => vec![*value],
        Some(Attribute::Ints(values)) => values.clone(),
        _ => Vec::new(),
    }
}

/// How many gates stand before i, ci, f and o.
fn gate_order(node: &Node) -> [usize; 4] {
    let order = ints(node, "gate_order").into_iter().map(|place| place as usize);
    order.collect::<Vec<_>>().try_into().unwrap_or([0, 1, 2, 3])
}

fn flag(node: &Node, name: &str) -> bool {
    matches!(attribute(node, name), Some(Attribute::Bool(true)))
}

fn float(node: &Node, name: &str) -> f64 {
    match attribute(node, name) {
        Some(Attribute::Float(value)) => f64::from(*value),
        _ => 0.0,
    }
}

/// The function of a number that an attribute names.
fn function(node: &Node, name: &str, usual: &str) -> impl Fn(f64) -> f64 {
    let name = match attribute(node, name) {
        Some(Attribute::Text(name)) => name.clone(),
        _ => usual.to_owned(),
    };
    move |x| match &name[..] {
        "tanh" => x.tanh(),
        "sigmoid" => 1.0 / (1.0 + (-x).exp()),
        "relu" => x.max(0.0),
        "linear" => x,
        "hard_sigmoid" => (x + 3.0).clamp(0.0, 6.0) / 6.0,
        "hard_sigmoid_keras2" => (x * f64::from(0.2f32) + 0.5).clamp(0.0, 1.0),
        _ => f64::NAN,
    }
}

/// That of a cell's state.
fn of_state(node: &Node) -> impl Fn(f64) -> f64 {
    function(node, "activation", "tanh")
}

/// That of its gates.
fn of_gates(node: &Node) -> impl Fn(f64) -> f64 {
    function(node, "recurrent_activation", "sigmoid")
}

/// The derivative of a function of a cell's state, where `y` is its value.
fn slope_of_state(node: &Node) -> impl Fn(f64) -> f64 {
    let is = |name: &str| attribute(node, "activation") == Some(&Attribute::Text(name.to_owned()));
    let (is_relu, is_linear) = (is("relu"), is("linear"));
    move |y| match (is_relu, is_linear) {
        (true, _) => f64::from(u8::from(y > 0.0)),
        (_, true) => 1.0,
        _ => 1.0 - y * y,
    }
}

fn attribute<'n>(node: &'n Node, name: &str) -> Option<&'n Attribute> {
    node.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// Takes inputs one after the other.
struct Inputs<'i>(&'i [Tensor]);

impl<'i> Inputs<'i> {
    fn one(&mut self) -> &'i Tensor {
        &self.some(1)[0]
    }

    fn some(&mut self, count: usize) -> &'i [Tensor] {
        let (taken, left) = self.0.split_at(count);
        self.0 = left;
        taken
    }
}

/// The outputs of a node, None for an error; the outer None if the operation is another one.
pub(crate) fn compute(node: &Node, inputs: &[Tensor]) -> Option<Option<Vec<Tensor>>> {
    let mut inputs = Inputs(inputs);
    Some(match node.op.as_str() {
        ops::LSTM_CELL => lstm_cell(node, &mut inputs),
        ops::LSTM_CELL_GRAD => lstm_cell_grad(node, &mut inputs),
        ops::GRU_CELL | ops::HALF_GRU_CELL => gru_cell(node, &mut inputs),
        ops::GRU_CELL_GRAD_C => gru_cell_grad_c(node, &mut inputs),
        ops::GRU_CELL_GRAD_RU => gru_cell_grad_ru(node, &mut inputs),
        ops::MAT_MUL_ADD_N => mat_mul_add_n(node, &mut inputs),
        ops::MAT_MUL_SLICE => mat_mul_slice(node, &mut inputs),
        ops::BIAS_ADD_GRAD_ADD_N => bias_add_grad_add_n(node, &mut inputs),
        ops::NORMALIZED_LSTM_CELL => normalized_cell(node, &mut inputs),
        ops::LSTM_LAYER | ops::GRU_LAYER | ops::NORMALIZED_LSTM_LAYER => layer(node, &mut inputs),
        ops::KERAS_LSTM | ops::KERAS_GRU => keras(node, &mut inputs),
        _ => return None,
    })
}

/// `[x | h_prev] @ w + b`, in parts. The operations take a bias of one number for each column.
fn gates([x, h_prev, w, b]: [&Tensor; 4], count: usize) -> Option<Vec<Tensor>> {
    if Some(&b.shape[..]) != w.shape.get(1..) {
        return None;
    }
    let left = concat(&[x.clone(), h_prev.clone()], 1.0)?;
    left.product(w, [false; 2])?.plus(b)?.split(1.0, count)
}

/// `x @ w + h_prev @ w_h + b`, in parts.
fn gates_of_two(
    [x, h_prev, w, b]: [&Tensor; 4],
    w_h: &Tensor,
    (broadcasts_rows, count): (bool, usize),
) -> Option<Vec<Tensor>> {
    if Some(&b.shape[..]) != w.shape.get(1..) || Some(&b.shape[..]) != w_h.shape.get(1..) {
        return None;
    }
    let [of_x, of_h] = [x.product(w, [false; 2])?, h_prev.product(w_h, [false; 2])?];
    if !broadcasts_rows && of_x.shape != of_h.shape {
        return None;
    }
    of_x.plus(&of_h)?.plus(b)?.split(1.0, count)
}

fn lstm_cell(node: &Node, inputs: &mut Inputs<'_>) -> Option<Vec<Tensor>> {
    let [x, h_prev, w, b] = [(); 4].map(|()| inputs.one());
    let cs_prev = inputs.some(count(node, "num_cs_prev")).first();
    let peepholes = inputs.some(count(node, "num_peepholes"));
    lstm_step(node, [x, h_prev, w, b], cs_prev, peepholes, inputs.some(count(node, "num_w_h")))
}

fn lstm_step(
    node: &Node,
    parameters: [&Tensor; 4],
    cs_prev: Option<&Tensor>,
    peepholes: &[Tensor],
    w_h: &[Tensor],
) -> Option<Vec<Tensor>> {
    let parts = match w_h {
        [w_h] => gates_of_two(parameters, w_h, (flag(node, "broadcasts_rows"), 4))?,
        _ => gates(parameters, 4)?,
    };
    let [i_bar, ci_bar, f_bar, o_bar] = gate_order(node).map(|place| &parts[place]);
    let cells = &i_bar.shape[1..];
    if peepholes.iter().any(|weights| weights.shape != cells) {
        return None;
    }
    let zero = Tensor::scalar(0.0);
    let cs_prev = cs_prev.unwrap_or(&zero);
    let [wci, wcf, wco] = match peepholes {
        [wci, wcf, wco] => [Some(wci), Some(wcf), Some(wco)],
        [wco] => [None, None, Some(wco)],
        _ => [None; 3],
    };
    let look = |bar: &Tensor, weights: Option<&Tensor>, state: &Tensor| match weights {
        Some(weights) => bar.plus(&weights.times(state)?),
        None => Some(bar.clone()),
    };
    let (state, gate) = (of_state(node), of_gates(node));
    let i = look(i_bar, wci, cs_prev)?.map(&gate);
    let biased = f_bar.map(|x| x + float(node, "forget_bias"));
    let f = look(&biased, wcf, cs_prev)?.map(&gate);
    let ci = ci_bar.map(&state);
    let cs = i.times(&ci)?.plus(&f.times(cs_prev)?)?;
    let clip = float(node, "cell_clip");
    let cs = if clip > 0.0 { cs.map(|x| x.clamp(-clip, clip)) } else { cs };
    let o = look(o_bar, wco, &cs)?.map(&gate);
    let co = cs.map(&state);
    let h = o.times(&co)?;
    Some(vec![i, cs, f, o, ci, co, h])
}

fn normalized_cell(node: &Node, inputs: &mut Inputs<'_>) -> Option<Vec<Tensor>> {
    let [x, h_prev] = [(); 2].map(|()| inputs.one());
    let weights = inputs.some(1 + 2 * count(node, "num_norms"));
    let cs_prev = inputs.some(count(node, "num_cs_prev")).first();
    normalized_step(node, [x, h_prev], cs_prev, weights)
}

/// `[cs, h]`
fn normalized_step(
    node: &Node,
    [x, h_prev]: [&Tensor; 2],
    cs_prev: Option<&Tensor>,
    weights: &[Tensor],
) -> Option<Vec<Tensor>> {
    let (w, norms) = weights.split_first()?;
    let (gamma, beta) = norms.split_at(count(node, "num_norms"));
    let z = concat(&[x.clone(), h_prev.clone()], 1.0)?.product(w, [false; 2])?.split(1.0, 4)?;
    let cells = &z[0].shape[1..];
    if gamma.len() != 5 || norms.iter().any(|vector| vector.shape != cells) {
        return None;
    }
    let norm = |x: &Tensor, n: usize| {
        let axes =
            [if n == 4 { ints(node, "state_axis").first().copied().unwrap_or(1) } else { 1 }];
        let ones = Tensor::filled(&x.shape, 1.0).sum(&axes, true)?;
        let mean = |x: &Tensor| x.sum(&axes, true)?.zip(&ones, |sum, count| sum / count);
        let centered = x.zip(&mean(x)?, |x, mean| x - mean)?;
        let epsilon = float(node, "epsilon");
        let scale = mean(&centered.times(&centered)?)?.map(|v| 1.0 / (v + epsilon).sqrt());
        centered.times(&scale)?.times(&gamma[n])?.plus(&beta[n])
    };
    let [i_bar, ci_bar, f_bar, o_bar] = gate_order(node).map(|place| &z[place]);
    let (state, gate) = (of_state(node), of_gates(node));
    let (i, ci) = (norm(i_bar, 0)?.map(&gate), norm(ci_bar, 1)?.map(&state));
    let f = norm(f_bar, 2)?.map(|x| x + float(node, "forget_bias")).map(&gate);
    let o = norm(o_bar, 3)?.map(&gate);
    let zero = Tensor::scalar(0.0);
    let cs = norm(&i.times(&ci)?.plus(&f.times(cs_prev.unwrap_or(&zero))?)?, 4)?;
    let h = o.times(&cs.map(&state))?;
    Some(vec![cs, h])
}

/// The sum of tensors that broadcast to a shape.
fn total(terms: &[Tensor], shape: &[usize]) -> Option<Tensor> {
    terms.iter().try_fold(Tensor::filled(shape, 0.0), |sum, term| sum.plus(&term.spread(shape)?))
}

fn lstm_cell_grad(node: &Node, inputs: &mut Inputs<'_>) -> Option<Vec<Tensor>> {
    let [i, f, o, ci, co] = [(); 5].map(|()| inputs.one());
    let zero = Tensor::filled(&co.shape, 0.0);
    let cs_prev = inputs.some(count(node, "num_cs_prev")).first().unwrap_or(&zero);
    let dcs = total(inputs.some(count(node, "num_cs_grad")), &co.shape)?;
    let dh = total(inputs.some(count(node, "num_h_grad")), &co.shape)?;
    let peepholes = inputs.some(count(node, "num_peepholes"));
    let cs = inputs.some(count(node, "num_cs")).first().unwrap_or(&zero);
    let gate = |tensor: &Tensor| tensor.sum_to(&ci.shape);
    if !flag(node, "sums_to_gates") && co.shape != ci.shape {
        return None;
    }
    let d_o = dh.times(co)?.times(&slope(o))?;
    let mut dcs = dcs.plus(&dh.times(o)?.times(&co.map(slope_of_state(node)))?)?;
    if let Some(wco) = peepholes.last() {
        dcs = dcs.plus(&d_o.times(wco)?)?;
    }
    let clip = float(node, "cell_clip");
    if clip > 0.0 {
        let state = i.times(ci)?.plus(&f.times(cs_prev)?)?;
        dcs = dcs.zip(&state, |dcs, state| if state.abs() <= clip { dcs } else { 0.0 })?;
    }
    let di = dcs.times(ci)?.times(&slope(i))?;
    let dci = dcs.times(i)?.times(&ci.map(slope_of_state(node)))?;
    let df = dcs.times(cs_prev)?.times(&slope(f))?;
    let mut parts = [(); 4].map(|()| None);
    for (place, part) in gate_order(node).into_iter().zip([&di, &dci, &df, &d_o]) {
        parts[place] = Some(gate(part)?);
    }
    let mut outputs =
        vec![dcs.times(f)?, concat(&parts.map(|part| part.expect("each once")), 1.0)?];
    if let [wci, wcf, _] = peepholes {
        let product = cs_prev.times(wci)?.shape;
        let through = match flag(node, "sums_to_cs_prev") {
            true => &cs_prev.shape,
            false if flag(node, "sums_to_product") => &product,
            false => &co.shape,
        };
        outputs.extend([di.times(wci)?.sum_to(through)?, df.times(wcf)?.sum_to(through)?]);
        let terms = [di.times(cs_prev)?, df.times(cs_prev)?];
        outputs.extend([terms[0].sum_to(&wci.shape)?, terms[1].sum_to(&wcf.shape)?]);
    }
    if let Some(wco) = peepholes.last() {
        outputs.push(d_o.times(cs)?.sum_to(&wco.shape)?);
    }
    Some(outputs)
}

fn gru_cell(node: &Node, inputs: &mut Inputs<'_>) -> Option<Vec<Tensor>> {
    let [x, h_prev, w_ru, w_c, b_ru, b_c] = [(); 6].map(|()| inputs.one());
    let w_h = inputs.some(2 * count(node, "num_w_h"));
    let broadcasts_rows = flag(node, "broadcasts_rows");
    let sums = |parameters, w_h: Option<&Tensor>, count| match w_h {
        Some(w_h) => gates_of_two(parameters, w_h, (broadcasts_rows, count)),
        None => gates(parameters, count),
    };
    let parts = sums([x, h_prev, w_ru, b_ru], w_h.first(), 2)?;
    let places = if flag(node, "update_first") { [1, 0] } else { [0, 1] };
    let [r, u] = places.map(|place| parts[place].map(of_gates(node)));
    if r.shape[1..] != h_prev.shape[1..] || (!broadcasts_rows && r.shape != h_prev.shape) {
        return None;
    }
    let c = sums([x, &r.times(h_prev)?, w_c, b_c], w_h.get(1), 1)?[0].map(of_state(node));
    let [of_h, of_c] = shares(node, &u);
    let h = of_h.times(h_prev)?.plus(&of_c.times(&c)?)?;
    Some(vec![r, u, c, h])
}

/// The shares of the old state and of the candidate in the new one.
fn shares(node: &Node, u: &Tensor) -> [Tensor; 2] {
    if flag(node, "u_weighs_c") { [rest(u), u.clone()] } else { [u.clone(), rest(u)] }
}

fn gru_cell_grad_c(node: &Node, inputs: &mut Inputs<'_>) -> Option<Vec<Tensor>> {
    let [u, h_prev, c, d_h] = [(); 4].map(|()| inputs.one());
    let d_h = d_h.spread(&u.shape)?;
    let [of_h, of_c] = shares(node, u);
    let d_c_bar = d_h.times(&of_c)?.times(&c.map(slope_of_state(node)))?;
    let (more, less) = if flag(node, "u_weighs_c") { (c, h_prev) } else { (h_prev, c) };
    let d_u_bar = d_h.times(&more.plus(&less.map(|x| -x))?)?.times(&slope(u))?;
    Some(vec![d_c_bar, d_u_bar, d_h.times(&of_h)?])
}

fn gru_cell_grad_ru(node: &Node, inputs: &mut Inputs<'_>) -> Option<Vec<Tensor>> {
    let [r, h_prev, d_u_bar, d_hr] = [(); 4].map(|()| inputs.one());
    let d_hr = d_hr.spread(&r.shape)?;
    let d_r_bar = d_hr.times(h_prev)?.times(&slope(r))?;
    let mut both = [d_r_bar, d_u_bar.clone()];
    if flag(node, "update_first") {
        both.reverse();
    }
    Some(vec![concat(&both, 1.0)?, d_hr.times(r)?])
}

fn mat_mul_add_n(node: &Node, inputs: &mut Inputs<'_>) -> Option<Vec<Tensor>> {
    let (lefts, rights) = (inputs.some(count(node, "num_a")), inputs.some(count(node, "num_b")));
    let mut terms = Vec::new();
    for (left, right) in lefts.chunks((lefts.len() / rights.len().max(1)).max(1)).zip(rights) {
        terms.push(concat(left, 1.0)?.product(right, [true, false])?);
    }
    sum_of_one_shape(&[&terms, inputs.0].concat())
}

fn sum_of_one_shape(terms: &[Tensor]) -> Option<Vec<Tensor>> {
    let are_same = terms.iter().all(|term| term.shape == terms[0].shape);
    Some(vec![total(terms, &terms[0].shape).filter(|_| are_same)?])
}

fn bias_add_grad_add_n(node: &Node, inputs: &mut Inputs<'_>) -> Option<Vec<Tensor>> {
    let rows = inputs.some(count(node, "num_out_backprop")).iter();
    let sums = rows.map(|one| one.sum(&[0], false)).collect::<Option<Vec<_>>>()?;
    sum_of_one_shape(&[&sums, inputs.0].concat())
}

fn mat_mul_slice(node: &Node, inputs: &mut Inputs<'_>) -> Option<Vec<Tensor>> {
    let [a, b] = [(); 2].map(|()| inputs.one());
    let product = a.product(b, [false, true])?;
    let rows = ints(node, "rows").first().copied().unwrap_or(-1);
    let parts = ints(node, "begins").into_iter().zip(ints(node, "sizes"));
    parts.map(|(begin, size)| product.slice(&[0, begin], &[rows, size])).collect()
}

/// How many rounds a loop has, at most.
fn rounds(node: &Node, inputs: &mut Inputs<'_>) -> Option<usize> {
    let bounds = inputs.some(count(node, "num_rounds")).iter();
    let bounds = bounds.map(Tensor::number).collect::<Option<Vec<_>>>()?;
    Some(bounds.into_iter().fold(f64::INFINITY, f64::min).max(0.0) as usize)
}

/// One tensor where `takes`, which broadcasts, is not 0, and another one elsewhere.
pub(crate) fn choose(takes: &Tensor, one: &Tensor, other: &Tensor) -> Option<Tensor> {
    let not = takes.map(|takes| if takes == 0.0 { 1.0 } else { 0.0 });
    let yes = takes.map(|takes| if takes == 0.0 { 0.0 } else { 1.0 });
    yes.times(one)?.plus(&not.times(other)?)
}

fn layer(node: &Node, inputs: &mut Inputs<'_>) -> Option<Vec<Tensor>> {
    let is_lstm = node.op == ops::LSTM_LAYER;
    let is_normalized = node.op == ops::NORMALIZED_LSTM_LAYER;
    let time = inputs.one().number()? as usize;
    let rounds = rounds(node, inputs)?;
    let lengths = inputs.some(count(node, "num_sequence_length")).first();
    let x = inputs.one();
    let mut states = inputs.some(if is_lstm || is_normalized { 2 } else { 1 }).to_vec();
    let all = inputs.0;
    let mut outputs = Vec::new();
    for t in 0..rounds {
        let x = x.at(t)?;
        let next = if is_lstm {
            let (peepholes, more) = all[2..].split_at(count(node, "num_peepholes"));
            let (w_h, projection) = more.split_at(count(node, "num_w_h"));
            let parameters = [&x, &states[0], &all[0], &all[1]];
            let found = lstm_step(node, parameters, Some(&states[1]), peepholes, w_h)?;
            let h = match projection {
                [projection] => found[6].product(projection, [false; 2])?,
                _ => found[6].clone(),
            };
            let clip = float(node, "proj_clip");
            let h = if clip > 0.0 { h.map(|h| h.clamp(-clip, clip)) } else { h };
            vec![h, found[1].clone()]
        } else if is_normalized {
            let found = normalized_step(node, [&x, &states[0]], Some(&states[1]), all)?;
            vec![found[1].clone(), found[0].clone()]
        } else {
            let parameters = [&[x.clone(), states[0].clone()], all].concat();
            vec![gru_cell(node, &mut Inputs(&parameters))?.remove(3)]
        };
        let output = if flag(node, "adds_x") { next[0].plus(&x)? } else { next[0].clone() };
        let Some(lengths) = lengths else {
            outputs.push(output);
            states = next;
            continue;
        };
        let rows = Tensor::filled(&[next[0].shape[0], 1], 0.0);
        let lengths = lengths.spread(&rows.shape[..1])?.reshaped(&[-1, 1])?;
        let runs = lengths.map(|length| if (t as f64) < length { 1.0 } else { 0.0 });
        outputs.push(choose(&runs, &output, &output.map(|_| 0.0))?);
        let kept = next.iter().zip(&states).map(|(next, before)| choose(&runs, next, before));
        states = kept.collect::<Option<_>>()?;
    }
    Some([vec![filled_up(outputs, time)?], states].concat())
}

/// The outputs of a loop's rounds, and zeros.
fn filled_up(mut outputs: Vec<Tensor>, time: usize) -> Option<Tensor> {
    let zeros = outputs.first()?.map(|_| 0.0);
    (outputs.len() <= time).then_some(())?;
    outputs.resize(time, zeros);
    stack(&outputs)
}

fn keras(node: &Node, inputs: &mut Inputs<'_>) -> Option<Vec<Tensor>> {
    let is_lstm = node.op == ops::KERAS_LSTM;
    let size = inputs.one().number()? as usize;
    let rounds = rounds(node, inputs)?;
    let x = inputs.one();
    let mut states = inputs.some(if is_lstm { 2 } else { 1 }).to_vec();
    let weights = inputs.some(if is_lstm { 3 } else { 4 });
    let mask = inputs.some(count(node, "num_mask")).first();
    let first = inputs.0.first();
    let mut before = first.cloned();
    let mut outputs = Vec::new();
    for t in 0..rounds {
        let step = if is_lstm { keras_lstm } else { keras_gru };
        let mut next = step(node, &x.at(t)?, &states, weights)?;
        let mut output = next[0].clone();
        if let Some(mask) = mask {
            let takes = mask.at(t)?;
            output = choose(&takes, &output, before.as_ref()?)?;
            let kept = next.iter().zip(&states).map(|(next, kept)| choose(&takes, next, kept));
            next = kept.collect::<Option<_>>()?;
        }
        before = if flag(node, "repeats") { Some(output.clone()) } else { first.cloned() };
        states = next;
        if flag(node, "last_only") {
            outputs.clear();
        }
        outputs.push(output);
    }
    Some([vec![filled_up(outputs, size)?], states].concat())
}

fn keras_lstm(
    node: &Node,
    x: &Tensor,
    states: &[Tensor],
    weights: &[Tensor],
) -> Option<Vec<Tensor>> {
    let ([h_prev, cs_prev], [w_x, w_h, b]) = (states, weights) else { return None };
    if Some(&b.shape[..]) != w_x.shape.get(1..) {
        return None;
    }
    let z = x.product(w_x, [false; 2])?.plus(&h_prev.product(w_h, [false; 2])?)?.plus(b)?;
    let parts = z.split(1.0, 4)?;
    let (state, gate) = (of_state(node), of_gates(node));
    let cs = parts[1].map(&gate).times(cs_prev)?;
    let cs = cs.plus(&parts[0].map(&gate).times(&parts[2].map(&state))?)?;
    Some(vec![parts[3].map(&gate).times(&cs.map(&state))?, cs])
}

fn keras_gru(
    node: &Node,
    x: &Tensor,
    states: &[Tensor],
    weights: &[Tensor],
) -> Option<Vec<Tensor>> {
    let ([h_prev], [w_x, w_h, b_x, b_h]) = (states, weights) else { return None };
    if Some(&b_x.shape[..]) != w_x.shape.get(1..) || Some(&b_h.shape[..]) != w_h.shape.get(1..) {
        return None;
    }
    let of_x = x.product(w_x, [false; 2])?.plus(b_x)?.split(1.0, 3)?;
    let of_h = h_prev.product(w_h, [false; 2])?.plus(b_h)?.split(1.0, 3)?;
    let z = of_x[0].plus(&of_h[0])?.map(of_gates(node));
    let r = of_x[1].plus(&of_h[1])?.map(of_gates(node));
    let reset = match attribute(node, "reset_after") {
        Some(Attribute::Bool(false)) => {
            let of_reset = r.times(h_prev)?.product(w_h, [false; 2])?.plus(b_h)?;
            of_reset.split(1.0, 3)?[2].clone()
        }
        _ => r.times(&of_h[2])?,
    };
    let c = of_x[2].plus(&reset)?.map(of_state(node));
    Some(vec![z.times(h_prev)?.plus(&rest(&z).times(&c)?)?])
}
