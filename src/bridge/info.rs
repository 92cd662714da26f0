//! The operation `BlockcellInfo`.

use super::kernels::{Operation, networks};
use super::runs;
use super::status::or_default;
use super::{constants, cudnn, int8_errors};
use crate::{graphs, switches};
use blockcell_kernels::Isa;

/// What the operation returns. `tensorflow_running` may be empty: not known.
pub(super) fn info(tensorflow_running: &str) -> String {
    or_default("BlockcellInfo", || {
        let (overrides, precision) = (*switches::OVERRIDE, switches::precision());
        let rewrites = overrides && *switches::REWRITE;
        let names = |wanted: fn(&dyn Operation) -> bool| -> Vec<_> {
            networks().filter(|&op| wanted(op)).map(|op| op.op().name).collect()
        };
        let taken_over = if overrides { names(|op| op.is_stock()) } else { Vec::new() };
        serde_json::json!({
            "version": env!("BLOCKCELL_VERSION"),
            "tensorflow_built_for": env!("BLOCKCELL_TENSORFLOW"),
            "tensorflow_running": Some(tensorflow_running).filter(|version| !version.is_empty()),
            "isa": Isa::get().name(),
            "float32_matmul_precision": precision.name(),
            "float32_matmul_runs": precision.on(Isa::get()).name(),
            "weights": switches::WEIGHTS.name(),
            "ops": names(|_| true),
            "override": match overrides {
                false => "off",
                // The two ways of `cpp/library.h`.
                true if env!("BLOCKCELL_TENSORFLOW").starts_with("1.") => "graph_pass",
                true => "priority",
            },
            "taken_over": taken_over,
            "cudnn": if cudnn::is_on() { "on" } else { "off" },
            "rewrite": if rewrites { "on" } else { "off" },
            "kept_weight_bytes": constants::kept_bytes(),
            "rewritten": graphs::rewritten(),
            "failed_passes": graphs::failed_passes(),
            "runs": runs::of_ops(),
            "runs_in_int8": runs::in_int8(),
            "runs_in_bfloat16": runs::in_bfloat16(),
            "int8_errors": int8_errors::noted(),
            "labels": runs::of_labels(),
            "layers": runs::of_layers(),
        })
        .to_string()
    })
}
