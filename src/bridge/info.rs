//! The operation `BlockcellInfo`.

use super::cudnn;
use super::kernels::{Operation, networks};
use super::runs;
use super::status::or_default;
use crate::graphs;
use blockcell_kernels::Isa;

/// What the operation returns. `tensorflow_running` may be empty: not known.
pub(super) fn info(tensorflow_running: &str, takeover: &str) -> String {
    or_default("BlockcellInfo", || {
        let rewrites = takeover != "off" && graphs::wants_rewrites();
        let names = |wanted: fn(&dyn Operation) -> bool| -> Vec<_> {
            networks().filter(|&op| wanted(op)).map(|op| op.op().name).collect()
        };
        let taken_over = if takeover == "off" { Vec::new() } else { names(|op| op.is_stock()) };
        serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"),
            "tensorflow_built_for": env!("BLOCKCELL_TENSORFLOW"),
            "tensorflow_running": Some(tensorflow_running).filter(|version| !version.is_empty()),
            "isa": Isa::get().name(),
            "ops": names(|_| true),
            "override": takeover,
            "taken_over": taken_over,
            "cudnn": if cudnn::is_on() { "on" } else { "off" },
            "rewrite": if rewrites { "on" } else { "off" },
            "rewritten": graphs::rewritten(),
            "failed_passes": graphs::failed_passes(),
            "runs": runs::of_ops(),
            "labels": runs::of_labels(),
        })
        .to_string()
    })
}
