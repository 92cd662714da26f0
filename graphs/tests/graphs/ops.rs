//! What is known of operations.

use blockcell_graphs::ops;
use blockcell_kernels::ops::all;

/// A description of a graph has what rows name, and nothing else. Patterns that ask for more fail in tests.
#[test]
fn a_row_names_what_patterns_read() {
    assert!(ops::reads("MatMul", "transpose_a") && !ops::reads("MatMul", "grad_a"));
    assert!(ops::reads("GRUBlockCell", "T") && !ops::reads("Elu", "T"));
    for claim in ops::CLAIMS {
        assert!(ops::reads("GRUBlockCell", claim) && !ops::reads("Elu", claim));
    }
    let read =
        || blockcell_graphs::Node { op: "MatMul".to_owned(), ..Default::default() }.int("num");
    assert!(std::panic::catch_unwind(read).is_err() == cfg!(debug_assertions));
}

/// Rewrites put each into graphs, and all have memory of their own but those that replace functions.
#[test]
fn what_rewrites_put_into_graphs() {
    let all: Vec<_> = ops::replacements().collect();
    assert!(
        all.iter().all(|op| op.starts_with("Blockcell")
            || op.starts_with("Cudnn")
            || *op == ops::GRU_CELL)
    );
    let own = all.iter().filter(|op| !op.starts_with("Cudnn"));
    assert!(own.clone().count() > 10 && own.clone().all(|op| ops::is(op, ops::OWNS)));
}

/// Steps of cells and their gradients, of TensorFlow and of this library, are what rewrites begin with.
#[test]
fn what_rewrites_begin_with() {
    let begins: Vec<_> = all().map(|op| op.name).filter(|op| ops::starts_rewrites(op)).collect();
    let stock = ["GRUBlockCell", "GRUBlockCellGrad", "LSTMBlockCell", "LSTMBlockCellGrad"];
    let own = [
        ops::LSTM_CELL,
        ops::LSTM_CELL_GRAD,
        ops::NORMALIZED_LSTM_CELL,
        ops::HALF_GRU_CELL,
        ops::GRU_CELL_GRAD_C,
        ops::GRU_CELL_GRAD_RU,
    ];
    assert_eq!(begins, [&stock[..], &own].concat());
    assert!(ops::starts_rewrites("Split") && !ops::starts_rewrites("MatMul"));
}
