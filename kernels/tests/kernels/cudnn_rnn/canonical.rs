//! The parameters as single matrices and vectors.

use blockcell_kernels::Error;
use blockcell_kernels::cudnn_rnn::{
    InputMode, Layout, Mode, canonical_to_params, check_canonical, params_to_canonical,
};
use ndarray::Array1;

use super::{Case, MODES, OP};

fn layout(case: &Case) -> Layout {
    let sizes = [case.num_layers, case.num_units, case.input_size];
    Layout::new(OP, &case.attributes, sizes).expect("sizes that fit")
}

/// All shapes in their order.
fn shapes(layout: &Layout) -> [Vec<Vec<usize>>; 2] {
    let shapes = |regions: &mut dyn Iterator<Item = _>| {
        regions.map(|region: blockcell_kernels::cudnn_rnn::Region| region.shape).collect()
    };
    [shapes(&mut layout.weights()), shapes(&mut layout.biases())]
}

#[test]
fn matrices_have_the_shapes_of_their_layers() {
    let mut case = Case::new(Mode::Gru, [1, 1, 3, 4]);
    case.num_layers = 2;
    case.attributes.bidirectional = true;
    let [weights, biases] = shapes(&layout(&case));
    let (first, second, state) = (vec![4, 3], vec![4, 8], vec![4, 4]);
    let pseudo_layer =
        |inputs: &Vec<usize>| [vec![inputs.clone(); 3], vec![state.clone(); 3]].concat();
    let layers = [&first, &first, &second, &second].map(pseudo_layer);
    assert_eq!(weights, layers.concat());
    assert_eq!(biases, vec![vec![4]; 4 * 6]);

    let mut projected = case.clone();
    (projected.attributes.rnn_mode, projected.attributes.num_proj) = (Mode::Lstm, 2);
    let [weights, biases] = shapes(&layout(&projected));
    let pseudo_layer =
        |inputs: usize| [vec![vec![4, inputs]; 4], vec![vec![4, 2]; 4], vec![vec![2, 4]]].concat();
    assert_eq!(weights, [3, 3, 4, 4].map(pseudo_layer).concat());
    assert_eq!(biases, vec![vec![4]; 4 * 8]);

    case.input_size = 4;
    case.attributes.input_mode = InputMode::SkipInput;
    let [weights, biases] = shapes(&layout(&case));
    assert_eq!(weights[..3], vec![vec![4, 0]; 3]);
    assert_eq!(biases.len(), 4 * 6);
}

/// Regions lie one after the other and fill the buffer.
#[test]
fn regions_fill_the_buffer() {
    for mode in MODES {
        let mut case = Case::new(mode, [1, 1, 3, 5]);
        case.num_layers = 3;
        case.attributes.bidirectional = true;
        case.attributes.num_proj = if mode == Mode::Lstm { 2 } else { 0 };
        let layout = layout(&case);
        assert_eq!(layout.len(), case.params_size());
        assert_eq!(layout.counts(), [layout.weights().count(), layout.biases().count()]);
        let mut end = 0;
        for region in layout.weights().chain(layout.biases()) {
            assert_eq!(region.range.start, end, "{mode:?}, {region:?}");
            assert_eq!(region.range.len(), region.shape.iter().product::<usize>());
            end = region.range.end;
        }
        assert_eq!(end, layout.len());
    }
}

#[test]
pub(crate) fn there_and_back() {
    for mode in MODES {
        let mut case = Case::new(mode, [1, 1, 2, 3]);
        case.num_layers = 2;
        let layout = layout(&case);
        let params = Array1::from_iter((0..layout.len()).map(|n| n as f32));
        let lists = [layout.weights().collect::<Vec<_>>(), layout.biases().collect()];
        let mut parts = lists.map(|list| {
            list.iter().map(|region| vec![f32::NAN; region.range.len()]).collect::<Vec<_>>()
        });
        let [weights, biases] = &mut parts;
        let mut weights: Vec<_> = weights.iter_mut().map(Vec::as_mut_slice).collect();
        let mut biases: Vec<_> = biases.iter_mut().map(Vec::as_mut_slice).collect();
        params_to_canonical(OP, &layout, params.view(), &mut weights, &mut biases)
            .expect("sizes that fit");
        assert_eq!(parts.iter().flatten().flatten().copied().collect::<Vec<_>>(), params.to_vec());

        let [weights, biases] =
            parts.each_ref().map(|list| list.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let mut back = Array1::zeros(layout.len());
        canonical_to_params(OP, &layout, &weights, &biases, back.view_mut())
            .expect("sizes that fit");
        assert_eq!(back, params);

        let short = [&weights[1..], &biases[..]];
        let error = canonical_to_params(OP, &layout, short[0], short[1], back.view_mut());
        assert!(matches!(error, Err(Error::Count { what: "weights", .. })), "{error:?}");
        let wrong = [&weights[..], &vec![&[0.0][..]; biases.len()]];
        let error = canonical_to_params(OP, &layout, wrong[0], wrong[1], back.view_mut());
        assert!(
            matches!(error, Err(Error::Shape { tensor: "biases", index: Some(0), .. })),
            "{error:?}"
        );
    }
}

/// The lists are counted before anything is made for each layer.
#[test]
fn layers_without_units_take_neither_time_nor_memory() {
    let mut case = Case::new(Mode::Lstm, [1, 1, 0, 0]);
    case.num_layers = 1 << 40;
    let layout = layout(&case);
    let (none, mut params) = ([(); 0].map(|()| &[0.0_f32][..]), Array1::zeros(0));
    let error = canonical_to_params(OP, &layout, &none, &none, params.view_mut());
    assert!(matches!(error, Err(Error::Count { what: "weights", .. })), "{error:?}");
}

/// A part may have another shape with as many elements; what is wrong is told by its shape.
#[test]
fn shapes_of_parts() {
    let layout = layout(&Case::new(Mode::Gru, [1, 1, 2, 3]));
    let [mut weights, biases] = shapes(&layout);
    let check = |weights: &[Vec<usize>], biases: &[Vec<usize>]| {
        let weights: Vec<_> = weights.iter().map(Vec::as_slice).collect();
        let biases: Vec<_> = biases.iter().map(Vec::as_slice).collect();
        check_canonical(OP, &layout, &weights, &biases)
    };
    assert_eq!(check(&weights, &biases), Ok(()));
    weights[1] = vec![weights[1].iter().product()];
    assert_eq!(check(&weights, &biases), Ok(()));
    assert!(matches!(check(&weights[1..], &biases), Err(Error::Count { what: "weights", .. })));
    weights[1] = vec![2, 5];
    let error = check(&weights, &biases).expect_err("it has another size").to_string();
    assert_eq!(
        error,
        format!("{OP}: weights[1] must have shape [3, 2], or as many elements, got [2, 5]")
    );
}
